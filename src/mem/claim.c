/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* claim.c: a waiter claims a ticket: one that is free, one that nobody waits for, or a
 * place in line.
 */
#include "mem/claim.h"
#include "base/counters.h"
#include "base/list.h"
#include "mem/share.h"
#include "mem/state.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/waiter.h"
#include "mem/waiting.h"

static void starve(struct mem *m, struct share *s, struct waiter *w,
		   uint64_t now_ns)
{
	if (w->ticket.v == TICKET_STARVED)
		return;
	ticket_leave(m, w);
	w->ticket.v = TICKET_STARVED;
	w->since_ns = now_ns;
	if (list_empty(&s->starved))
		list_add_tail(&m->tickets.starved, &s->starved_link);
	list_add_tail(&s->starved, &w->link);
	count(m->cnt, CNT_ticket_waits);
}

/**
 * share_claim() - Claim a ticket for a waiter, or let it wait for one.
 * @m:		the NIC's memory
 * @w:		waits until there is one, if it has a share
 * @now_ns:	now
 *
 * Return: true: ticket_open() finds one.
 */
bool share_claim(struct mem *m, struct waiter *w, uint64_t now_ns)
{
	struct share *s = share_of(m, w);

	if (s == &m->own)
		return share_room(m, s);
	if (w->turn) {
		w->turn = false;
		s->promised--;
		m->tickets.promised--;
		return true;
	}
	/* A ticket that becomes free is first for waiters that wait already. */
	if (!share_room(m, s) && !list_empty(&s->queue[QUEUE_AHEAD]))
		ticket_give_up(m, s);
	if (share_room(m, s))
		return true;
	starve(m, s, w, now_ns);
	return false;
}
