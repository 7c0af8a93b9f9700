/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pins.c: which pages we locked, how often, and which of them nobody needs. The
 * kernel keeps no count of locks, so that is done here: regions overlap and share
 * pages, and a page stays locked until the last goes.
 *
 * Theory of operation. The address space is cut at edges; all pages from an edge
 * up to the next are alike: so many users, locked by us, by the program, or not.
 * Before the first edge and behind the last nobody uses anything. Each range in
 * use has two edges at most, and there is always room to cut at them again, so
 * a caller that gives a range back cannot fail.
 *
 * What the program locked before us is left as it is. What cannot be known: that
 * it locks or unlocks a page while we have it locked, or that it unmapped it and
 * mapped something else there, which is then not locked. Pages are looked at before
 * every access as in any mode, so this costs time, never data.
 */
#include "nic/pins.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/page.h"
#include "os/pages.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum pin_state { PIN_NONE, PIN_OURS, PIN_THEIRS };

/**
 * struct pin_edge
 * @vpn:	first page
 * @used:	when the last user went (pins.clock); 0 while there is one
 * @fresh:	locked by the pins_get() that is at it
 */
struct pin_edge {
	uint64_t vpn, used;
	uint32_t count;
	uint8_t state;
	bool fresh;
};

void pins_open(struct pins *p, struct os *os, struct counters *cnt)
{
	*p = (struct pins){.os = os, .cnt = cnt};
	pthread_mutex_init(&p->lock, NULL);
}

/* --- edges ----------------------------------------------------------------- */

/* Room for @more edges, and to give back all that is in use. */
static bool pins_make_room(struct pins *p, uint32_t more)
{
	uint32_t need = p->num + more + 2 * p->users, cap = MAX(p->cap, 16);
	struct pin_edge *v;

	while (cap < need)
		cap *= 2;
	if (cap == p->cap)
		return true;
	v = heap_grow(p->v, cap * sizeof(*v));
	if (!v)
		return false;
	p->v = v;
	p->cap = cap;
	return true;
}

/* The first edge at @vpn or behind it. */
static uint32_t edge_find(const struct pins *p, uint64_t vpn)
{
	uint32_t lo = 0, hi = p->num;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (p->v[mid].vpn < vpn)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Return: the edge at @vpn, made if need be. */
static uint32_t edge_cut(struct pins *p, uint64_t vpn)
{
	uint32_t i = edge_find(p, vpn);
	struct pin_edge *e = &p->v[i];

	if (i < p->num && e->vpn == vpn)
		return i;
	CHECK(p->num < p->cap);
	memmove(e + 1, e, (p->num - i) * sizeof(*e));
	p->num++;
	*e = i ? e[-1] : (struct pin_edge){.state = PIN_NONE};
	e->vpn = vpn;
	return i;
}

static bool alike(const struct pin_edge *a, const struct pin_edge *b)
{
	return a->count == b->count && a->state == b->state &&
	       a->used == b->used;
}

/* Drop the edges that part nothing. */
static void edges_tidy(struct pins *p)
{
	struct pin_edge before = {.state = PIN_NONE};
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->num; i++) {
		if (alike(&p->v[i], &before))
			continue;
		before = p->v[n++] = p->v[i];
	}
	p->num = n;
}

static uint64_t edge_pages(const struct pins *p, uint32_t i)
{
	return p->v[i + 1].vpn - p->v[i].vpn;
}

/* The edges from @i on, in front of @end, that are in the same state. Return: the
 * one behind them. */
static uint32_t run_of(const struct pins *p, uint32_t i, uint32_t end)
{
	uint32_t k = i + 1;

	while (k < end && p->v[k].state == p->v[i].state)
		k++;
	return k;
}

/* --- locking --------------------------------------------------------------- */

static void set_state(struct pins *p, uint32_t i, enum pin_state state)
{
	struct pin_edge *e = &p->v[i];

	if (e->state == PIN_OURS)
		p->pages -= edge_pages(p, i);
	e->state = (uint8_t)state;
	e->used = 0;
	if (state != PIN_OURS)
		return;
	p->pages += edge_pages(p, i);
	if (p->pages * PAGE_BYTES > p->cnt->v[CNT_pin_bytes_max])
		__atomic_store_n(&p->cnt->v[CNT_pin_bytes_max],
				 p->pages * PAGE_BYTES, __ATOMIC_RELAXED);
}

/* Ours and of no use to anybody. */
static void unlock_edge(struct pins *p, uint32_t i)
{
	/* Some of it may be unmapped, which unlocks, too. */
	if (os_unpin(p->os, p->v[i].vpn << PAGE_SHIFT,
		     edge_pages(p, i) << PAGE_SHIFT))
		count_atomic(p->cnt, CNT_pin_stale, 1);
	set_state(p, i, PIN_NONE);
}

/* Unlock what has been of no use for longest. Return: false: nothing is. */
static bool evict(struct pins *p)
{
	uint32_t oldest = p->num;

	for (uint32_t i = 0; i < p->num; i++)
		if (p->v[i].used &&
		    (oldest == p->num || p->v[i].used < p->v[oldest].used))
			oldest = i;
	if (oldest == p->num)
		return false;
	unlock_edge(p, oldest);
	count_atomic(p->cnt, CNT_pin_evictions, 1);
	return true;
}

static void keep_limit(struct pins *p, uint64_t more)
{
	while (p->limit && (p->pages + more) * PAGE_BYTES > p->limit)
		if (!evict(p))
			break;
}

/* @i up to @end are alike, and not locked. */
static int lock_run(struct pins *p, uint32_t i, uint32_t end, bool fetch)
{
	const uint64_t vpn = p->v[i].vpn, pages = p->v[end].vpn - vpn;
	int err;

	keep_limit(p, pages);
	do {
		err = os_pin(p->os, vpn << PAGE_SHIFT, pages << PAGE_SHIFT,
			     fetch);
	} while (err == -ENOMEM && evict(p));
	for (; !err && i < end; i++) {
		set_state(p, i, PIN_OURS);
		p->v[i].fresh = true;
	}
	return err;
}

/* Of these pages, that we have not locked, what has the program? */
static int mark_theirs(struct pins *p, uint64_t vpn, uint64_t end)
{
	while (vpn < end) {
		uint64_t addr = vpn << PAGE_SHIFT;
		uint64_t len = (end - vpn) << PAGE_SHIFT;
		uint32_t i, to;

		if (!os_pinned(p->os, &addr, &len))
			return 0;
		if (!pins_make_room(p, 2))
			return -ENOMEM;
		vpn = page_of(addr) + pages_spanned(addr, len);
		i = edge_cut(p, page_of(addr));
		to = edge_cut(p, vpn);
		for (; i < to; i++)
			set_state(p, i, PIN_THEIRS);
	}
	return 0;
}

static int pins_range_look(struct pins *p, uint64_t vpn, uint64_t end)
{
	uint32_t i = edge_find(p, vpn);

	while (p->v[i].vpn < end) {
		const uint32_t to = run_of(p, i, edge_find(p, end));
		const uint64_t next = p->v[to].vpn;
		int err = p->v[i].state == PIN_NONE
				  ? mark_theirs(p, p->v[i].vpn, next)
				  : 0;

		if (err)
			return err;
		i = edge_find(p, next);
	}
	return 0;
}

static int lock_range(struct pins *p, uint64_t vpn, uint64_t end, bool fetch)
{
	const uint32_t to = edge_find(p, end);
	int err = 0;

	for (uint32_t i = edge_find(p, vpn), next; i < to && !err; i = next) {
		next = run_of(p, i, to);
		if (p->v[i].state == PIN_NONE)
			err = lock_run(p, i, next, fetch);
	}
	return err;
}

/* --- users ----------------------------------------------------------------- */

/* The last user of this is gone. @keep: another may come soon. */
static void edge_leave(struct pins *p, uint32_t i, bool keep)
{
	struct pin_edge *e = &p->v[i];

	if (e->state == PIN_OURS && keep)
		e->used = p->clock;
	else if (e->state == PIN_OURS)
		unlock_edge(p, i);
	else if (e->state == PIN_THEIRS && !p->sticky)
		e->state = PIN_NONE;
}

static void put(struct pins *p, uint64_t vpn, uint64_t end, bool failed)
{
	uint32_t i = edge_cut(p, vpn), to = edge_cut(p, end);

	p->users--;
	p->clock++;
	for (; i < to; i++) {
		bool keep = p->limit && !(failed && p->v[i].fresh);

		CHECK(p->v[i].count > 0);
		if (--p->v[i].count == 0)
			edge_leave(p, i, keep);
		p->v[i].fresh = false;
	}
	keep_limit(p, 0);
	edges_tidy(p);
}

/* Return: are all of them locked already? */
static bool pins_enter(struct pins *p, uint64_t vpn, uint64_t end)
{
	uint32_t i = edge_cut(p, vpn), to = edge_cut(p, end);
	bool all = true;

	p->users++;
	for (; i < to; i++) {
		struct pin_edge *e = &p->v[i];

		all &= e->state != PIN_NONE;
		e->count++;
		e->used = 0;
		e->fresh = false;
	}
	return all;
}

static int pins_cover(struct pins *p, uint64_t vpn, uint64_t end, bool fetch)
{
	bool hit;
	int err;

	if (!pins_make_room(p, 4))
		return -ENOMEM;
	hit = pins_enter(p, vpn, end);
	if (p->limit)
		count_atomic(p->cnt, hit ? CNT_pin_hits : CNT_pin_misses, 1);
	if (hit)
		return 0;
	err = p->sticky ? 0 : pins_range_look(p, vpn, end);
	if (!err)
		err = lock_range(p, vpn, end, fetch);
	if (err)
		put(p, vpn, end, true);
	return err;
}

int pins_get(struct pins *p, uint64_t addr, uint64_t len, bool fetch)
{
	const uint64_t vpn = page_of(addr);
	int err;

	if (!len)
		return 0;
	pthread_mutex_lock(&p->lock);
	err = pins_cover(p, vpn, vpn + pages_spanned(addr, len), fetch);
	pthread_mutex_unlock(&p->lock);
	if (err)
		count_atomic(p->cnt, CNT_pin_refused, 1);
	return err;
}

void pins_put(struct pins *p, uint64_t addr, uint64_t len)
{
	const uint64_t vpn = page_of(addr);

	if (!len)
		return;
	pthread_mutex_lock(&p->lock);
	put(p, vpn, vpn + pages_spanned(addr, len), false);
	pthread_mutex_unlock(&p->lock);
}

static int pins_look_again(struct pins *p, uint64_t vpn, uint64_t end)
{
	uint32_t i, to;
	int err;

	if (!pins_make_room(p, 4))
		return -ENOMEM;
	i = edge_cut(p, vpn);
	to = edge_cut(p, end);
	for (; i < to; i++)
		if (p->v[i].state == PIN_THEIRS)
			p->v[i].state = PIN_NONE;
	err = pins_range_look(p, vpn, end);
	edges_tidy(p);
	return err;
}

int pins_look(struct pins *p, uint64_t addr, uint64_t len)
{
	const uint64_t vpn = page_of(addr);
	int err;

	if (!len)
		return 0;
	pthread_mutex_lock(&p->lock);
	err = pins_look_again(p, vpn, vpn + pages_spanned(addr, len));
	pthread_mutex_unlock(&p->lock);
	return err;
}

void pins_close(struct pins *p)
{
	CHECK(p->users == 0);
	for (uint32_t i = 0; i < p->num; i++)
		if (p->v[i].state == PIN_OURS)
			unlock_edge(p, i);
	heap_free(p->v);
	pthread_mutex_destroy(&p->lock);
}
