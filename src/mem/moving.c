/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* moving.c: which pages a move is out for that writes them, and the waiters for
 * its end (design D7, I3). What counts as an access to such a page is decided
 * in dma.c.
 *
 * Theory of operation
 *
 * The holds of one plan are one struct holds. All that hold something are on a
 * list; all but the one that is being planned belong to moves that are out, for
 * plans are made under the engine lock. As a rule there are none, and what is
 * asked for every access is whether one number equals another.
 *
 * A page that such a move writes is busy for everybody else: else what came
 * first could be written last, an atomic could undo a write that came between
 * its load and its store, and if the move blocks, all accesses that meet it there
 * would. An access that waits holds nothing and waits for one page, which at most one plan
 * writes; and moves end by themselves. So nobody waits for each other.
 *
 * Payload that waits in a slot of the redirect pool makes no page busy but the
 * missing one, by its ticket. Nothing of it has been acknowledged, so no program
 * can tell it from a packet that is still on its way.
 */
#include "mem/moving.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/range.h"
#include "mem/dma.h"
#include "mem/state.h"
#include "mem/tickets.h"
#include "mem/waiter.h"
#include "mem/waiting.h"

/**
 * moving_add() - Add @h, which gets its first hold, to those that hold something.
 * @m:		the NIC's memory
 * @h:		stays where it is until moving_remove()
 */
void moving_add(struct mem *m, struct holds *h)
{
	list_add_tail(&m->moving, &h->link);
}

void moving_remove(struct holds *h)
{
	list_del(&h->link);
}

/**
 * moving_page() - Does a move of another plan write one of these pages?
 * @m:		the NIC's memory
 * @own:	the plan
 * @vpn, @pages: what it is about to access
 * @page:	set to the page
 */
bool moving_page(const struct mem *m, const struct holds *own, uint64_t vpn,
		 uint64_t pages, uint64_t *page)
{
	list_for_each(pos, &m->moving) {
		const struct holds *o = list_entry(pos, struct holds, link);

		for (unsigned i = 0; o != own && i < o->num; i++) {
			const struct hold *h = &o->h[i];

			*page = MAX(h->vpn, vpn);
			if ((h->row & HOLD_WRITE) &&
			    *page < h->vpn + h->pages && *page < vpn + pages)
				return true;
		}
	}
	return false;
}

/**
 * moving_wait() - Let a waiter wait until the move that writes @page has ended. One that
 * waits for it already keeps its place.
 * @m:		the NIC's memory
 * @w:		waiter
 * @page:	from moving_page()
 * @now_ns:	now
 */
void moving_wait(struct mem *m, struct waiter *w, uint64_t page,
		 uint64_t now_ns)
{
	if (w->ticket.v == TICKET_MOVING && w->access.vpn == page)
		return;
	waiter_idle(m, w);
	w->ticket.v = TICKET_MOVING;
	w->access.vpn = page;
	w->access.pages = 1;
	w->since_ns = now_ns;
	list_add_tail(&m->moving_wait, &w->link);
	count(m->cnt, CNT_moving_waits);
}

/**
 * moving_wake() - Wake the waiters for pages of a hold that was dropped.
 * @m:		the NIC's memory
 * @h:		the hold; nothing happens if its move only read
 */
void moving_wake(struct mem *m, const struct hold *h)
{
	if (!(h->row & HOLD_WRITE))
		return;
	list_for_each_safe(pos, tmp, &m->moving_wait) {
		const struct waiter *w = list_entry(pos, struct waiter, link);

		if (!range_ok(w->access.vpn - h->vpn, 1, h->pages))
			continue;
		list_del(pos);
		list_add_tail(&m->moved, pos);
	}
}

/**
 * moved_waiters() - See waiter.h.
 * @m:		the NIC's memory
 */
bool moved_waiters(const struct mem *m)
{
	return !list_empty(&m->moved);
}

/**
 * moved_take() - See waiter.h.
 * @m:		the NIC's memory
 * @woken:	appended to
 */
void moved_take(struct mem *m, struct list *woken)
{
	list_for_each_safe(pos, tmp, &m->moved) {
		list_entry(pos, struct waiter, link)->ticket.v = 0;
		list_del(pos);
		list_add_tail(woken, pos);
	}
}

/**
 * moving_init() - Make the lists of holds that move and of waiters, empty.
 * @m:		the NIC's memory
 */
void moving_init(struct mem *m)
{
	list_init(&m->moving);
	list_init(&m->moving_wait);
	list_init(&m->moved);
	list_init(&m->suspend_wait);
}
