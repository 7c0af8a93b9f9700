/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watch.c: regions whose entries in the shadow page table are watched: some are
 * to keep a minimum of them, or to keep them longer than others do (spare.c), of
 * some the program is told what becomes of their pages (upcall.c).
 *
 * Watched regions are sorted by their first page, and a tree over that order knows the
 * last page that any region below a node has: so the regions that have a page, however
 * they overlap, are found in O(log n) each. A program that watches nothing pays for one
 * look at watch.num.
 */
#include "mem/watch.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/upcall.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { WATCH_MIN = 16 };

static uint64_t end_of(const struct mr *mr)
{
	return page_of(mr->row->addr) +
	       pages_spanned(mr->row->addr, mr->row->length);
}

static bool watches(const struct mr_attr *a)
{
	return a->minimum > 0 || a->weight > 1 || a->upcalls;
}

static uint32_t minimum_of(const struct mr_attr *a)
{
	return (uint32_t)MIN(a->minimum, pages_spanned(a->addr, a->length));
}

/* The tree's inner nodes. */
static void watch_sum(struct watch *w)
{
	for (size_t n = w->cap; n-- > 1;)
		w->end[n] = MAX(w->end[2 * n], w->end[2 * n + 1]);
}

static int watch_grow(struct watch *w)
{
	const uint32_t cap = w->cap ? w->cap * 2 : WATCH_MIN;
	struct mr **mr = heap_grow(w->mr, cap * sizeof(struct mr *));
	uint64_t *start, *end;

	if (!mr)
		return -ENOMEM;
	w->mr = mr;
	start = heap_grow(w->start, cap * sizeof(*start));
	if (!start)
		return -ENOMEM;
	w->start = start;
	end = heap_array(2 * (size_t)cap, sizeof(*end));
	if (!end)
		return -ENOMEM;
	for (uint32_t i = 0; i < w->num; i++)
		end[cap + i] = w->end[w->cap + i];
	heap_free(w->end);
	w->end = end;
	w->cap = cap;
	watch_sum(w);
	return 0;
}

/**
 * watch_room() - Check that a region may be registered, as far as watching it is concerned,
 * and make room for it.
 * @m:		the NIC's memory
 * @attr:	of the region
 *
 * Return: 0; -EINVAL; -ENOSPC; -ENOMEM.
 */
int watch_room(struct mem *m, const struct mr_attr *attr)
{
	struct watch *w = &m->watch;
	uint64_t half = (m->spt.sets.mask + 1) * SPT_WAYS / 2;

	if (attr->weight > MR_WEIGHT_MAX)
		return -EINVAL;
	if (likely(!watches(attr)))
		return 0;
	if (minimum_of(attr) > half - w->promised)
		return -ENOSPC;
	if (w->num < w->cap)
		return 0;
	return w->cap < MR_WATCHED_MAX ? watch_grow(w) : -ENOMEM;
}

/**
 * watch_fini() - Free the tables.
 * @m:		the NIC's memory
 */
void watch_fini(struct mem *m)
{
	heap_free(m->watch.mr);
	heap_free(m->watch.start);
	heap_free(m->watch.end);
}

/* Make room at, or close the gap of, region @i. */
static void watch_shift(struct watch *w, uint32_t i, bool insert)
{
	const uint32_t to = i + insert, from = i + !insert, n = w->num - from;

	memmove(&w->mr[to], &w->mr[from], n * sizeof(struct mr *));
	memmove(&w->start[to], &w->start[from], n * sizeof(*w->start));
	memmove(&w->end[w->cap + to], &w->end[w->cap + from],
		n * sizeof(*w->end));
}

static void watch_insert(struct watch *w, struct mr *mr)
{
	const uint64_t start = page_of(mr->row->addr);
	uint32_t i = w->num;

	while (i > 0 && w->start[i - 1] > start)
		i--;
	watch_shift(w, i, true);
	w->mr[i] = mr;
	w->start[i] = start;
	w->end[w->cap + i] = end_of(mr);
	w->num++;
	watch_sum(w);
}

static void watch_take_out(struct watch *w, const struct mr *mr)
{
	uint32_t i = 0;

	while (w->mr[i] != mr)
		CHECK(++i < w->num);
	watch_shift(w, i, false);
	w->num--;
	w->end[w->cap + w->num] = 0;
	watch_sum(w);
}

/**
 * watch_put_back() - Put a region back that watch_remove() took out, as it was before.
 * @m:		the NIC's memory
 * @mr:		it was watched; nothing happened since
 */
void watch_put_back(struct mem *m, struct mr *mr)
{
	watch_insert(&m->watch, mr);
	m->watch.promised += mr->promised;
	mr->watched = true;
}

/**
 * watch_add() - Watch a region that is made, if @attr asks for it.
 * @m:		the NIC's memory
 * @mr:		the region
 * @attr:	what watch_room() was asked about
 */
void watch_add(struct mem *m, struct mr *mr, const struct mr_attr *attr)
{
	if (likely(!watches(attr)))
		return;
	mr->promised = minimum_of(attr);
	watch_put_back(m, mr);
	if (mr->upcalls)
		mr->upcalls->regions++;
}

/**
 * watch_remove() - Stop watching a region, which becomes unreachable or is replaced:
 * nothing is told of it any more.
 * @m:		the NIC's memory
 * @mr:		any
 */
void watch_remove(struct mem *m, struct mr *mr)
{
	if (likely(!mr->watched))
		return;
	watch_take_out(&m->watch, mr);
	m->watch.promised -= mr->promised;
	mr->watched = false;
}

/**
 * mr_let_go() - Let go of the upcalls of a region that ceases to exist.
 * @mr:		after watch_remove()
 */
void mr_let_go(struct mr *mr)
{
	if (mr->upcalls)
		mr->upcalls->regions--;
}

/**
 * watch_renew() - Put a region in its place again, as nothing is known of its pages any
 * more, or they are elsewhere.
 * @m:		the NIC's memory
 * @mr:		live
 */
void watch_renew(struct mem *m, struct mr *mr)
{
	if (likely(!mr->watched))
		return;
	watch_take_out(&m->watch, mr);
	watch_insert(&m->watch, mr);
}

/**
 * watch_next() - Return the regions that have a page, in turn.
 * @w:		all
 * @vpn:	page
 * @at:		0 to begin with; moves on
 *
 * Return: NULL: there are no more.
 */
struct mr *watch_next(const struct watch *w, uint64_t vpn, uint32_t *at)
{
	uint32_t n = *at + w->cap;

	if (*at >= w->num)
		return NULL;
	/* to the right and up, past what ends before the page */
	while (w->end[n] <= vpn) {
		while (n & 1)
			n >>= 1;
		if (n == 0)
			return NULL;
		n++;
	}
	while (n < w->cap) {
		n *= 2;
		n += w->end[n] <= vpn;
	}
	n -= w->cap;
	if (w->start[n] > vpn)
		return NULL;
	*at = n + 1;
	return w->mr[n];
}
