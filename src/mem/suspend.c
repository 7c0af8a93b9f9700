/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: regions whose memory is being moved (Bestler's suspension). Keys,
 * rights and bounds are checked as ever, but no move is planned: an access
 * to the region waits here, in the order of coming, as others wait for a
 * page. Moves that were out before hold the region until they end; a caller that
 * suspends it waits for that (mr_idle()).
 *
 * Only the region is suspended. Others that have the same pages are not, and
 * what is known of the pages goes on to be true for them.
 */
#include "mem/suspend.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/page.h"
#include "base/range.h"
#include "base/strategy.h"
#include "mem/key_table.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/upcall.h"
#include "mem/waiter.h"
#include "mem/waiting.h"
#include "mem/watch.h"

#include <errno.h>

/**
 * mr_suspend() - See suspend.h.
 * @m:		the NIC's memory
 * @key:	any
 * @expected_ns: how long it is going to take, as peers are told
 * @now_ns:	now
 */
int mr_suspend(struct mem *m, uint32_t key, uint64_t expected_ns,
	       uint64_t now_ns)
{
	struct mr *mr = mr_live(m, key);

	if (!mr)
		return -ENOENT;
	if (mr->row->length == UINT64_MAX)
		return -EOPNOTSUPP;
	if (mr->row->state == KEY_SUSPENDED)
		return -EINVAL;
	if (!mr->suspension)
		mr->suspension = heap_array(1, sizeof(*mr->suspension));
	if (!mr->suspension)
		return -ENOMEM;
	mr->suspension->since_ns = now_ns;
	mr->suspension->expected_ns = expected_ns;
	mr->suspension->met_ns = 0;
	mr->row->state = KEY_SUSPENDED;
	count(m->cnt, CNT_suspensions);
	m->spt.time.now_ns = now_ns;
	upcall_region(m, mr, UPCALL_SUSPENDED);
	return 0;
}

/* What is known of its pages was learned before: another mapping may be there
 * now, or other memory. */
static void suspend_forget(struct mem *m, struct mr *mr)
{
	mr->row->since =
		spt_renew(m, page_of(mr->row->addr),
			  pages_spanned(mr->row->addr, mr->row->length));
	mr->look_ns = 0;
	watch_renew(m, mr);
	watch_know(m, mr);
}

/**
 * mr_update() - See suspend.h.
 * @m:		the NIC's memory
 * @key:	any
 * @addr, @length: where its memory is from now on
 */
int mr_update(struct mem *m, uint32_t key, uint64_t addr, uint64_t length)
{
	enum { ATOMIC_ALIGN = 8 };
	struct mr *mr = mr_live(m, key);

	if (!mr)
		return -ENOENT;
	/* An atomic that was aligned stays so (I7). */
	if (mr->row->state != KEY_SUSPENDED || length != mr->row->length ||
	    range_wraps(addr, length) ||
	    addr % ATOMIC_ALIGN != mr->row->addr % ATOMIC_ALIGN)
		return -EINVAL;
	if (mr->row->holds > 0)
		return -EBUSY;
	mr->row->addr = addr;
	suspend_forget(m, mr);
	upcall_region(m, mr, UPCALL_MOVED);
	return 0;
}

/* All waiters for this region go on, in the order of coming. */
static void suspend_wake(struct mem *m, uint32_t key)
{
	list_for_each_safe(pos, tmp, &m->suspend_wait) {
		const struct waiter *w = list_entry(pos, struct waiter, link);

		if (w->access.vpn != key)
			continue;
		list_del(pos);
		list_add_tail(&m->moved, pos);
	}
}

/**
 * mr_resume() - See suspend.h.
 * @m:		the NIC's memory
 * @key:	any
 * @now_ns:	now
 */
int mr_resume(struct mem *m, uint32_t key, uint64_t now_ns)
{
	struct mr *mr = mr_live(m, key);
	struct suspension *s;

	if (!mr)
		return -ENOENT;
	if (mr->row->state != KEY_SUSPENDED)
		return -EINVAL;
	s = mr->suspension;
	s->pause_ns = s->met_ns ? now_ns - s->met_ns : 0;
	mr->row->state = KEY_LIVE;
	suspend_forget(m, mr);
	m->spt.time.now_ns = now_ns;
	upcall_region(m, mr, UPCALL_RESUMED);
	suspend_wake(m, key);
	return 0;
}

/**
 * suspend_gone() - Wake the waiters for a region that is revoked: they get that verdict.
 * @m:		the NIC's memory
 * @mr:		still in the state that it was in
 */
void suspend_gone(struct mem *m, const struct mr *mr)
{
	if (unlikely(mr->row->state == KEY_SUSPENDED))
		suspend_wake(m, mr->row->key);
}

/**
 * mr_suspension() - See suspend.h.
 * @m:		the NIC's memory
 * @key:	any
 * @out:	set on success
 */
int mr_suspension(struct mem *m, uint32_t key, struct mr_suspension *out)
{
	const struct mr *mr = mr_live(m, key);

	if (!mr)
		return -ENOENT;
	*out = (struct mr_suspension){.suspended = mr->row->state ==
						   KEY_SUSPENDED,
				      .moving = mr->row->holds > 0};
	if (!mr->suspension)
		return 0;
	out->expected_ns = mr->suspension->expected_ns;
	out->pause_ns = mr->suspension->pause_ns;
	out->since_ns = mr->suspension->since_ns;
	return 0;
}

/**
 * suspend_wait() - Let an access to a suspended region wait. A waiter that waits for the
 * region already keeps its place.
 * @m:		the NIC's memory
 * @mr:		region
 * @w:		waiter, or NULL
 * @now_ns:	now
 */
void suspend_wait(struct mem *m, struct mr *mr, struct waiter *w,
		  uint64_t now_ns)
{
	/* Nothing is dropped for it, whatever the region or the QP chose. */
	static const strategies_t set = STRATEGY_BIT(STRATEGY_PARK) |
					STRATEGY_BIT(STRATEGY_BACKUP) |
					STRATEGY_BIT(STRATEGY_REDIRECT) |
					STRATEGY_BIT(STRATEGY_REPLAY) |
					STRATEGY_BIT(STRATEGY_RESUME) |
					STRATEGY_BIT(STRATEGY_RNR);

	if (!w)
		return;
	w->set = set;
	if (w->ticket.v == TICKET_SUSPENDED && w->access.vpn == mr->row->key)
		return;
	waiter_idle(m, w);
	if (!mr->suspension->met_ns)
		mr->suspension->met_ns = now_ns;
	w->ticket.v = TICKET_SUSPENDED;
	w->access.vpn = mr->row->key;
	w->access.pages = 0;
	w->since_ns = now_ns;
	list_add_tail(&m->suspend_wait, &w->link);
	count(m->cnt, CNT_suspend_waits);
}

/**
 * waiter_suspended() - See suspend.h.
 * @m:		the NIC's memory
 * @w:		waiter
 * @expected_ns: set if it is so
 */
uint32_t waiter_suspended(struct mem *m, const struct waiter *w,
			  uint64_t *expected_ns)
{
	const struct mr *mr;

	if (likely(w->ticket.v != TICKET_SUSPENDED))
		return 0;
	mr = mr_live(m, (uint32_t)w->access.vpn);
	if (!mr || mr->row->state != KEY_SUSPENDED)
		return 0; /* it is about to be woken */
	*expected_ns = mr->suspension->expected_ns;
	return mr->row->key;
}
