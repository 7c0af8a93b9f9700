/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: the program is told what becomes of pages of regions that are watched.
 *
 * Theory of operation
 *
 * What is known of a page is lost in few places of spt.c, and each asks here
 * whose page it is (watch.c).
 *
 * A queue of upcalls is a ring of ranges. What is next to one of the last few
 * becomes part of it. When the ring is full all of it becomes one event that says
 * so, and until that is taken there is nothing more to say; then it goes on.
 * An event names its region by key: one that was revoked since is passed over.
 */
#include "mem/upcall.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spare.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/watch.h"

#include <errno.h>
#include <string.h>

enum { MERGE_LOOK = 8 };

/**
 * watch_forget() - Note that the table is emptied: watched regions know no page any more,
 * and the program is told.
 * @m:		the NIC's memory
 */
void watch_forget(struct mem *m)
{
	for (uint32_t i = 0; i < m->watch.num; i++)
		m->watch.mr[i]->known = 0;
	upcall_all(m, UPCALL_REPLACED);
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

static void upcall_queue_add(struct mem *m, struct upcalls *q,
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
	if (!mr || mr->upcalls != q)
		return false;
	*out = (struct upcall){.reason = (enum upcall_reason)e->reason,
			       .below = e->below,
			       .cookie = mr->cookie,
			       .iova = mr->row->iova + e->off,
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
static void page_bytes(const struct key_row *row, uint64_t vpn,
		       struct upcall_event *e)
{
	const uint64_t at = vpn << PAGE_SHIFT;
	uint64_t end = at + PAGE_BYTES - row->addr;

	e->off = at > row->addr ? at - row->addr : 0;
	e->len = MIN(end, row->length) - e->off;
}

/**
 * upcall_page() - Tell the program that a page is not ready any longer, or not for writing.
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
		struct upcall_event ev = {.key = mr->row->key,
					  .reason = (uint8_t)reason,
					  .at_ns = m->spt.time.now_ns};

		if (!mr->upcalls)
			continue;
		ev.below = reason == UPCALL_REPLACED && spare_below(m, mr, e);
		page_bytes(mr->row, vpn, &ev);
		upcall_queue_add(m, mr->upcalls, &ev);
	}
}

/**
 * upcall_region() - Tell the program that something happened to all of a region.
 * @m:		the NIC's memory
 * @mr:		live
 * @reason:	what
 */
void upcall_region(struct mem *m, const struct mr *mr,
		   enum upcall_reason reason)
{
	if (mr->watched && mr->upcalls)
		upcall_queue_add(
			m, mr->upcalls,
			&(struct upcall_event){.len = mr->row->length,
					       .key = mr->row->key,
					       .reason = (uint8_t)reason,
					       .at_ns = m->spt.time.now_ns});
}

/**
 * upcall_all() - Tell the program that something happened to all memory.
 * @m:		the NIC's memory
 * @reason:	what
 */
void upcall_all(struct mem *m, enum upcall_reason reason)
{
	for (uint32_t i = 0; i < m->watch.num; i++)
		upcall_region(m, m->watch.mr[i], reason);
}
