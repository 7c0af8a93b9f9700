/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timerq.c: a binary heap of pointers to timers; the owner keeps the timers themselves.
 * Always: q->heap[i]->pos == i + 1 for i < num <= cap, and no timer is due before its
 * parent at (i - 1) / 2. Timers due at the same time come in any order.
 */
#include "base/timerq.h"
#include "base/check.h"
#include "base/heap.h"

#include <errno.h>

void timerq_init(struct timerq *q)
{
	*q = (struct timerq){0};
}

void timerq_fini(struct timerq *q)
{
	heap_free(q->heap);
	*q = (struct timerq){0};
}

int timerq_reserve(struct timerq *q, uint32_t cap)
{
	struct timer **heap;

	if (cap <= q->cap)
		return 0;
	cap = MAX(cap, q->cap * 2);
	heap = heap_grow(q->heap, cap * sizeof(struct timer *));
	if (!heap)
		return -ENOMEM;
	q->heap = heap;
	q->cap = cap;
	return 0;
}

static void place(struct timerq *q, struct timer *t, uint32_t i)
{
	q->heap[i] = t;
	t->pos = i + 1;
}

static void sift_up(struct timerq *q, uint32_t i)
{
	struct timer *t = q->heap[i];

	while (i && q->heap[(i - 1) / 2]->at_ns > t->at_ns) {
		place(q, q->heap[(i - 1) / 2], i);
		i = (i - 1) / 2;
	}
	place(q, t, i);
}

static void sift_down(struct timerq *q, uint32_t i)
{
	struct timer *t = q->heap[i];

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= q->num)
			break;
		if (c + 1 < q->num && q->heap[c + 1]->at_ns < q->heap[c]->at_ns)
			c++;
		if (q->heap[c]->at_ns >= t->at_ns)
			break;
		place(q, q->heap[c], i);
		i = c;
	}
	place(q, t, i);
}

static void disarm(struct timerq *q, struct timer *t)
{
	uint32_t i = t->pos - 1;
	struct timer *last = q->heap[--q->num];

	t->pos = 0;
	t->at_ns = TIME_NEVER;
	if (last == t)
		return;
	place(q, last, i);
	sift_up(q, i);
	sift_down(q, last->pos - 1);
}

void timerq_set(struct timerq *q, struct timer *t, uint64_t at_ns)
{
	if (t->pos && t->at_ns == at_ns)
		return;
	if (at_ns == TIME_NEVER) {
		if (t->pos)
			disarm(q, t);
		t->at_ns = TIME_NEVER;
		return;
	}
	t->at_ns = at_ns;
	if (!t->pos) {
		CHECK(q->num < q->cap);
		place(q, t, q->num++);
	}
	sift_up(q, t->pos - 1);
	sift_down(q, t->pos - 1);
}

uint64_t timerq_next(const struct timerq *q)
{
	return q->num ? q->heap[0]->at_ns : TIME_NEVER;
}

struct timer *timerq_pop(struct timerq *q, uint64_t now_ns)
{
	struct timer *t;

	if (!q->num || q->heap[0]->at_ns > now_ns)
		return NULL;
	t = q->heap[0];
	disarm(q, t);
	return t;
}
