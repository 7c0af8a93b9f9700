/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: regions whose entries in the shadow page table are watched: some are
 * to keep a minimum of them, or to keep them longer than others do (spt.c), of
 * some the program is told what becomes of their pages.
 *
 * Theory of operation
 *
 * What is known of a page is lost in few places of spt.c, and each asks here
 * whose page it is. Watched regions are sorted by their first page, and a tree
 * over that order knows the last page that any region below a node has: so the
 * regions that have a page, however they overlap, are found in O(log n) each.
 * Whoever watches nothing pays for one look at watch.num.
 *
 * A queue of upcalls is a ring of ranges. What is next to one of the last few
 * becomes part of it. When the ring is full all of it becomes one event that says
 * so, and until that is taken there is nothing more to say; then it goes on.
 * An event names its region by key: one that was revoked since is passed over.
 */
#include "mem/upcall.h"
#include "base/base.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spare.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/watch.h"

#include <errno.h>
#include <string.h>

enum { MERGE_LOOK = 8, WATCH_MIN = 16 };

/* --- which regions ------------------------------------------------------- */

static uint64_t end_of(const struct mr *mr)
{
	return page_of(mr->attr.addr) +
	       pages_spanned(mr->attr.addr, mr->attr.length);
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
 * watch_room() - May a region be registered, as far as this is concerned?
 * @m:		the NIC's memory
 * @attr:	of the region; afterwards there is room for it
 *
 * Return: 0; -EINVAL; -ENOSPC; -ENOMEM.
 */
int watch_room(struct mem *m, const struct mr_attr *attr)
{
	struct watch *w = &m->watch;
	uint64_t half = (m->spt.set_mask + 1) * SPT_WAYS / 2;

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
 * watch_fini() - Free it.
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
	const uint64_t start = page_of(mr->attr.addr);
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

/* Pages that exact hosts know already are known to the region, too. */
static uint32_t known_now(struct mem *m, const struct mr *mr)
{
	return m->spt.exact && mr->attr.minimum > 0
		       ? spt_known(
				 m, page_of(mr->attr.addr),
				 pages_spanned(mr->attr.addr, mr->attr.length))
		       : 0;
}

/**
 * watch_put_back() - It is as it was before watch_remove().
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
 * watch_add() - A region is made.
 * @m:		the NIC's memory
 * @mr:		watch_room() was asked about it
 */
void watch_add(struct mem *m, struct mr *mr)
{
	if (likely(!watches(&mr->attr)))
		return;
	mr->promised = minimum_of(&mr->attr);
	watch_put_back(m, mr);
	mr->known = known_now(m, mr);
	if (mr->attr.upcalls)
		mr->attr.upcalls->regions++;
}

/**
 * watch_remove() - It becomes unreachable: nothing is told of it any more.
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
 * mr_let_go() - It ceases to exist.
 * @mr:		after watch_remove()
 */
void mr_let_go(struct mr *mr)
{
	if (mr->attr.upcalls)
		mr->attr.upcalls->regions--;
}

/**
 * watch_renew() - Nothing is known of its pages any more, or it is elsewhere.
 * @m:		the NIC's memory
 * @mr:		live
 */
void watch_renew(struct mem *m, struct mr *mr)
{
	if (likely(!mr->watched))
		return;
	watch_take_out(&m->watch, mr);
	watch_insert(&m->watch, mr);
	mr->known = known_now(m, mr);
}

/**
 * watch_forget() - The table is emptied.
 * @m:		the NIC's memory
 */
void watch_forget(struct mem *m)
{
	for (uint32_t i = 0; i < m->watch.num; i++)
		m->watch.mr[i]->known = 0;
	upcall_all(m, UPCALL_REPLACED);
}

/**
 * watch_next() - The regions that have a page, in turn.
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

/* --- queues -------------------------------------------------------------- */

/**
 * upcalls_init() - See upcall.h.
 * @q:		empty afterwards
 * @cap:	events that it holds
 */
int upcalls_init(struct upcalls *q, uint32_t cap)
{
	if (cap == 0 || cap > UPCALLS_MAX)
		return -EINVAL;
	*q = (struct upcalls){.cap = cap};
	list_init(&q->link);
	q->e = heap_array(cap, sizeof(*q->e));
	return q->e ? 0 : -ENOMEM;
}

/**
 * upcalls_fini() - See upcall.h.
 * @q:		not used by any region
 */
void upcalls_fini(struct upcalls *q)
{
	CHECK(q->regions == 0);
	list_del(&q->link);
	heap_free(q->e);
}

static struct upcall_event *event_at(const struct upcalls *q, uint32_t i)
{
	return &q->e[(q->head + i) % q->cap];
}

static bool touches(const struct upcall_event *a, const struct upcall_event *b)
{
	return a->off <= sat_add(b->off, b->len) &&
	       b->off <= sat_add(a->off, a->len);
}

/* Suspending and resuming stay in their order, once each. */
static bool mergeable(const struct upcall_event *a,
		      const struct upcall_event *b)
{
	return a->key == b->key && a->reason == b->reason &&
	       a->below == b->below && a->reason <= UPCALL_PROTECTED &&
	       touches(a, b);
}

static bool queue_merge(struct upcalls *q, const struct upcall_event *new)
{
	for (uint32_t i = q->num; i > 0 && q->num - i < MERGE_LOOK; i--) {
		struct upcall_event *e = event_at(q, i - 1);
		uint64_t end;

		if (!mergeable(e, new))
			continue;
		end = MAX(sat_add(e->off, e->len), sat_add(new->off, new->len));
		e->off = MIN(e->off, new->off);
		e->len = end - e->off;
		return true;
	}
	return false;
}

static void queue_add(struct mem *m, struct upcalls *q,
		      const struct upcall_event *new)
{
	count(m->cnt, CNT_upcalls);
	if (q->lost || queue_merge(q, new)) {
		count(m->cnt, CNT_upcalls_merged);
		return;
	}
	if (q->num == q->cap) {
		count(m->cnt, CNT_upcall_overflows);
		q->lost = true;
		q->lost_ns = new->at_ns;
		q->num = 0;
	} else {
		*event_at(q, q->num++) = *new;
	}
	__atomic_store_n(&q->waiting, 1, __ATOMIC_RELAXED);
	if (list_empty(&q->link))
		list_add_tail(&m->watch.news, &q->link);
}

/**
 * upcalls_news() - See upcall.h.
 * @m:		the NIC's memory
 */
bool upcalls_news(const struct mem *m)
{
	return !list_empty(&m->watch.news);
}

/**
 * upcalls_next() - See upcall.h.
 * @m:		the NIC's memory
 */
struct upcalls *upcalls_next(struct mem *m)
{
	struct upcalls *q;

	if (likely(list_empty(&m->watch.news)))
		return NULL;
	q = list_entry(m->watch.news.next, struct upcalls, link);
	list_del(&q->link);
	return q;
}

/* The oldest, if its region is still one. */
static bool queue_pop(struct mem *m, struct upcalls *q, struct upcall *out)
{
	const struct upcall_event *e = event_at(q, 0);
	const struct mr *mr = mr_live(m, e->key);

	q->head = (q->head + 1) % q->cap;
	q->num--;
	if (!mr || mr->attr.upcalls != q)
		return false;
	*out = (struct upcall){.reason = (enum upcall_reason)e->reason,
			       .below = e->below,
			       .cookie = mr->attr.cookie,
			       .iova = mr->attr.iova + e->off,
			       .length = e->len,
			       .at_ns = e->at_ns};
	return true;
}

/**
 * upcalls_take() - See upcall.h.
 * @m:		the NIC's memory
 * @q:		queue
 * @out:	set if there is one
 */
bool upcalls_take(struct mem *m, struct upcalls *q, struct upcall *out)
{
	bool got = q->lost;

	if (got)
		*out = (struct upcall){.reason = UPCALL_EVERYTHING,
				       .length = UINT64_MAX,
				       .at_ns = q->lost_ns};
	q->lost = false;
	while (!got && q->num > 0)
		got = queue_pop(m, q, out);
	if (q->num > 0)
		return got;
	__atomic_store_n(&q->waiting, 0, __ATOMIC_RELAXED);
	list_del(&q->link);
	return got;
}

/* --- what happened ------------------------------------------------------- */

/* The bytes of the region that are on a page that it has. */
static void page_bytes(const struct mr_attr *a, uint64_t vpn,
		       struct upcall_event *e)
{
	const uint64_t at = vpn << PAGE_SHIFT;
	uint64_t end = at + PAGE_BYTES - a->addr;

	e->off = at > a->addr ? at - a->addr : 0;
	e->len = MIN(end, a->length) - e->off;
}

/**
 * upcall_page() - What was known of a page is known no longer: tell whose it is.
 * @m:		the NIC's memory
 * @vpn:	page
 * @e:		its entry, which is still counted (mr.known)
 * @reason:	REPLACED, EVICTED or PROTECTED
 */
void upcall_page(struct mem *m, uint64_t vpn, uint64_t e,
		 enum upcall_reason reason)
{
	struct mr *mr;
	uint32_t at = 0;

	while ((mr = watch_next(&m->watch, vpn, &at))) {
		struct upcall_event ev = {.key = mr->key,
					  .reason = (uint8_t)reason,
					  .at_ns = m->spt.now_ns};

		if (!mr->attr.upcalls)
			continue;
		ev.below = reason == UPCALL_REPLACED && spare_below(m, mr, e);
		page_bytes(&mr->attr, vpn, &ev);
		queue_add(m, mr->attr.upcalls, &ev);
	}
}

/**
 * upcall_region() - Something happened to all of a region.
 * @m:		the NIC's memory
 * @mr:		live
 * @reason:	what
 */
void upcall_region(struct mem *m, const struct mr *mr,
		   enum upcall_reason reason)
{
	if (mr->watched && mr->attr.upcalls)
		queue_add(m, mr->attr.upcalls,
			  &(struct upcall_event){.len = mr->attr.length,
						 .key = mr->key,
						 .reason = (uint8_t)reason,
						 .at_ns = m->spt.now_ns});
}

/**
 * upcall_all() - It happened to all memory.
 * @m:		the NIC's memory
 * @reason:	what
 */
void upcall_all(struct mem *m, enum upcall_reason reason)
{
	for (uint32_t i = 0; i < m->watch.num; i++)
		upcall_region(m, m->watch.mr[i], reason);
}
