/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cheap.c: ranges in which a miss is cheap, as pagers reported (strategy
 * *inline*). What is cheap is decided in os/; whether a move takes the fault,
 * in dma.c. A few ranges, sorted; when there are too many the oldest goes.
 */
#include "mem/cheap.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* First range that ends after @vpn: where a range with @vpn would be. */
static unsigned cheap_pos(const struct cheap *c, uint64_t vpn)
{
	unsigned lo = 0, hi = c->num;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (c->r[mid].end > vpn)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void cheap_remove(struct cheap *c, unsigned i)
{
	memmove(&c->r[i], &c->r[i + 1], (c->num - i - 1) * sizeof(c->r[0]));
	c->num--;
}

static void cheap_drop_oldest(struct cheap *c)
{
	unsigned oldest = 0;

	for (unsigned i = 1; i < c->num; i++)
		if (c->r[i].learned_ns < c->r[oldest].learned_ns)
			oldest = i;
	cheap_remove(c, oldest);
}

static void cheap_add(struct cheap *c, struct cheap_range r)
{
	unsigned i;

	if (c->num == CHEAP_MAX)
		cheap_drop_oldest(c);
	i = cheap_pos(c, r.start);
	memmove(&c->r[i + 1], &c->r[i], (c->num - i) * sizeof(c->r[0]));
	c->r[i] = r;
	c->num++;
}

/**
 * cheap_learn() - Note that misses of pages [start, end) are cheap as of now.
 * @c:		the ranges
 * @start, @end: page numbers; nothing happens if they are equal
 * @now_ns:	when that was learned
 */
void cheap_learn(struct cheap *c, uint64_t start, uint64_t end, uint64_t now_ns)
{
	if (start >= end)
		return;
	cheap_forget(c, start, end);
	cheap_add(c, (struct cheap_range){start, end, now_ns});
}

/**
 * cheap_forget() - Forget what is known of pages [start, end). Pages around them in the
 * same range stay cheap.
 * @c:		the ranges
 * @start, @end: page numbers
 */
void cheap_forget(struct cheap *c, uint64_t start, uint64_t end)
{
	unsigned i = cheap_pos(c, start);

	while (start < end && i < c->num && c->r[i].start < end) {
		struct cheap_range *r = &c->r[i];
		struct cheap_range tail = *r;

		if (r->start < start) {
			r->end = start;
			i++;
		} else if (r->end > end) {
			r->start = end;
			return;
		} else {
			cheap_remove(c, i);
		}
		if (tail.start < start && tail.end > end) {
			tail.start = end;
			cheap_add(c, tail);
			return;
		}
	}
}

/**
 * cheap_covers() - Is a miss of this page known to be cheap?
 * @c:		the ranges
 * @vpn:	page
 * @fresh_ns:	what was learned before this does not count
 */
bool cheap_covers(const struct cheap *c, uint64_t vpn, uint64_t fresh_ns)
{
	unsigned i = cheap_pos(c, vpn);

	return i < c->num && c->r[i].start <= vpn &&
	       c->r[i].learned_ns >= fresh_ns;
}
