/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turns.c: one QP asks for all: see turns.h. */
#include "xport/turns.h"

#include <stddef.h>

void turns_init(struct turns *t)
{
	*t = (struct turns){.taken = 0};
	list_init(&t->waiting);
}

void turn_wait(struct turns *t, struct list *node, bool first)
{
	if (!list_empty(node))
		return;
	if (first)
		list_insert_after(&t->waiting, node);
	else
		list_add_tail(&t->waiting, node);
}

/* Time makes up for turns that were given. */
static void pass(struct turns *t, uint64_t now_ns)
{
	const uint64_t n = (now_ns - t->since_ns) / TURN_NS;

	if (n < t->taken) {
		t->taken -= (unsigned)n;
		t->since_ns += n * TURN_NS;
	} else {
		t->taken = 0;
		t->since_ns = now_ns;
	}
}

struct list *turn_next(struct turns *t, uint64_t now_ns)
{
	struct list *node = t->waiting.next;

	if (list_empty(&t->waiting))
		return NULL;
	pass(t, now_ns);
	if (t->taken == TURNS_MAX)
		return NULL;
	t->taken++;
	list_del(node);
	return node;
}

void turns_heard(struct turns *t)
{
	t->taken = 0;
}
