/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* share.c: how many of the NIC's tickets and pagers a share may have (I4), and which share
 * is next. A share is of a peer in a protection domain: all QPs of one PD to one
 * peer have one struct share.
 *
 * Theory of operation
 *
 * Everywhere it is the same rule, dynamic thresholds (Choudhury and Hahne, 1998):
 * a share may have as many as are free then, a PD several times as many. So one that
 * is alone gets half, n that want all get 1/(n+1) each, and any that comes finds some.
 *
 *  - Tickets: an access that finds its share used up waits on the share, and is
 *    told in the order of its coming that there is one; until it came back that
 *    one is kept for it (waiter.turn), or an access that comes more often
 *    would always be first. Tickets that nobody waits for are given up before that.
 *  - Pagers: no more tickets are with them than they can wait for at once, so that
 *    none stands behind pages that never come. Shares take turns; a share has few
 *    tickets of each of its QPs (one a waiter), in the order they came, so its QPs
 *    take turns, too. A share that has none with the pagers may always ask for
 *    one: the last pager, which waits for nothing, can tell whether it is there.
 *    But all of a PD leave some to the others, if there are others.
 *
 * A step costs the same however many QPs there are, but for a share that may not ask and
 * has pages that others wait for: its line is looked through, and the waiters for these.
 * Shares that may not ask now are set aside until the next answer comes, or until one of
 * them joins a page that another may ask for; they come before those that want a page
 * since then, or these would pass them each time.
 */
#include "mem/share.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "mem/regions.h"
#include "mem/state.h"
#include "mem/tickets.h"
#include "mem/use.h"
#include "mem/waiter.h"
#include "mem/waiting.h"

/* times what is free then */
enum { SHARE = 1, AHEAD_SHARE = 3, PD_SHARE = 4 };

static struct pd *pd_of(struct mem *m, const struct share *s)
{
	return s->pd ? &m->pds.v[s->pd - 1] : NULL;
}

static bool below(uint32_t used, uint32_t times, uint32_t free)
{
	return used < times * (uint64_t)free;
}

static void share_init(struct share *s, uint32_t pd)
{
	*s = (struct share){.pd = pd, .refs = 1};
	list_init(&s->link);
	list_init(&s->starved);
	list_init(&s->starved_link);
	for (unsigned q = 0; q < QUEUE_NUM; q++) {
		list_init(&s->queue[q]);
		list_init(&s->turn[q]);
	}
}

struct share *share_of(struct mem *m, const struct waiter *w)
{
	return w->share ? w->share : &m->own;
}

/* May @s have one more ticket? */
bool share_room(struct mem *m, const struct share *s)
{
	const struct tickets *ts = &m->tickets;
	const uint32_t free = ts->num - ts->out - ts->promised;
	const struct pd *pd = pd_of(m, s);

	if (s == &m->own)
		return free > 0;
	return below(s->tickets + s->promised, SHARE, free) &&
	       below(pd->tickets, PD_SHARE, free);
}

/**
 * share_get() - See waiter.h.
 * @of:		the peer's shares
 * @pd:		of the QP
 */
struct share *share_get(struct list *of, uint32_t pd)
{
	struct share *s;

	list_for_each(l, of) {
		s = list_entry(l, struct share, link);
		if (s->pd == pd) {
			s->refs++;
			return s;
		}
	}
	s = heap_alloc(sizeof(*s));
	if (!s)
		return NULL;
	share_init(s, pd);
	list_add_tail(of, &s->link);
	return s;
}

static void share_free(struct share *s)
{
	if (s->refs > 0 || s->tickets > 0)
		return;
	CHECK(list_empty(&s->starved) && s->promised == 0);
	heap_free(s);
}

/**
 * share_put() - See waiter.h.
 * @s:		share, or NULL
 */
void share_put(struct share *s)
{
	if (!s)
		return;
	if (s->refs == 1)
		list_del(&s->link);
	share_unref(s);
}

/**
 * share_unref() - Drop one reason for a share to stay. It is freed when it has none left,
 * and no tickets.
 * @s:		share; may be gone afterwards
 */
void share_unref(struct share *s)
{
	s->refs--;
	share_free(s);
}

/* --- tickets -------------------------------------------------------------- */

/**
 * share_ahead() - May one more ticket without a waiter be opened?
 * @m:		the NIC's memory
 * @s:		the share that pays for it
 *
 * Half of what the share may have is for tickets with waiters.
 */
bool share_ahead(struct mem *m, struct share *s)
{
	const struct tickets *ts = &m->tickets;

	if (s == &m->own)
		return true;
	return list_empty(&s->starved) && share_room(m, s) &&
	       below(2 * s->tickets, SHARE, ts->num - ts->out - ts->promised);
}

/**
 * share_too() - May one more ticket be opened for an access that waits already?
 * @m:		the NIC's memory
 * @s:		the share that pays for it
 */
bool share_too(struct mem *m, const struct share *s)
{
	return list_empty(&s->starved) && share_room(m, s);
}

/**
 * share_starved_leave() - Take a waiter off the list of those that wait for a ticket.
 * @w:		is on it
 */
void share_starved_leave(struct waiter *w)
{
	list_del(&w->link);
	if (list_empty(&w->share->starved))
		list_del(&w->share->starved_link);
}

/* The waiter that waits longest on @s has its turn, and the share goes to the end. */
static bool wake_one(struct mem *m, struct share *s)
{
	struct waiter *w;

	if (!share_room(m, s))
		return false;
	w = list_entry(s->starved.next, struct waiter, link);
	share_starved_leave(w);
	w->turn = true;
	w->ticket.v = TICKET_MOVING;
	s->promised++;
	m->tickets.promised++;
	list_add_tail(&m->moved, &w->link);
	if (!list_empty(&s->starved)) {
		list_del(&s->starved_link);
		list_add_tail(&m->tickets.starved, &s->starved_link);
	}
	return true;
}

/* There are more free tickets than before. */
static void share_wake(struct mem *m)
{
	bool more;

	do {
		more = false;
		list_for_each_safe(l, tmp, &m->tickets.starved)
			more |= wake_one(
				m, list_entry(l, struct share, starved_link));
	} while (more);
}

/**
 * share_turn_over() - Give up the ticket that is kept for a waiter, which needs none after
 * all.
 * @m:		the NIC's memory
 * @w:		waiter; nothing happens if none is kept for it
 */
void share_turn_over(struct mem *m, struct waiter *w)
{
	if (likely(!w->turn))
		return;
	w->turn = false;
	w->share->promised--;
	m->tickets.promised--;
	share_wake(m);
}

/**
 * share_opened() - Count one ticket more for @s.
 * @m:		the NIC's memory
 * @s:		share
 */
void share_opened(struct mem *m, struct share *s)
{
	struct pd *pd = pd_of(m, s);

	s->tickets++;
	m->tickets.out++;
	if (pd)
		pd->tickets++;
}

/**
 * share_closed() - Count one ticket less for @s, and wake waiters that may have one now.
 * @m:		the NIC's memory
 * @s:		share; may be gone afterwards
 */
void share_closed(struct mem *m, struct share *s)
{
	struct pd *pd = pd_of(m, s);

	s->tickets--;
	m->tickets.out--;
	if (pd)
		pd->tickets--;
	share_free(s);
	share_wake(m);
}

/* --- pagers ----------------------------------------------------------------- */

/**
 * share_enqueue() - Put @t at the end of a line of its share: others are handed out first.
 * @m:		the NIC's memory
 * @t:		new ticket, on no list
 * @q:		which line
 */
void share_enqueue(struct mem *m, struct ticket *t, enum queue q)
{
	struct share *s = t->share;

	t->line.queue = (uint8_t)q;
	s->guests += t->line.guests;
	list_add_tail(&s->queue[q], &t->link);
	if (list_empty(&s->turn[q]))
		list_add_tail(&m->tickets.ready[q], &s->turn[q]);
}

/**
 * share_enqueue_first() - Put @t before all others, of its share and of other shares.
 * @m:		the NIC's memory
 * @t:		new ticket, on no list
 */
void share_enqueue_first(struct mem *m, struct ticket *t)
{
	struct share *s = t->share;

	t->line.queue = QUEUE_FRESH;
	s->guests += t->line.guests;
	list_insert_after(&s->queue[QUEUE_FRESH], &t->link);
	list_del(&s->turn[QUEUE_FRESH]);
	list_insert_after(&m->tickets.ready[QUEUE_FRESH],
			  &s->turn[QUEUE_FRESH]);
}

/**
 * share_dequeue() - Take @t out of its line.
 * @t:		new ticket
 */
void share_dequeue(struct ticket *t)
{
	struct share *s = t->share;

	s->guests -= t->line.guests;
	list_del(&t->link);
	if (list_empty(&s->queue[t->line.queue]))
		list_del(&s->turn[t->line.queue]);
}

static uint32_t pagers_free(const struct mem *m)
{
	return m->tickets.pagers - MIN(m->tickets.asked, m->tickets.pagers);
}

/**
 * ahead_max() - Return how many tickets without a waiter may be with the pagers at once, 1
 * at least: they leave half of the pagers to waiters.
 * @m:		the NIC's memory
 */
uint32_t ahead_max(const struct mem *m)
{
	return MAX(m->tickets.pagers / 2, 1u);
}

static bool may_ask(struct mem *m, const struct share *s, enum queue q)
{
	const uint32_t free = pagers_free(m);
	const struct tickets *ts = &m->tickets;
	const struct pd *pd = pd_of(m, s);

	if (q == QUEUE_AHEAD &&
	    !below(s->ahead_asked, s == &m->own ? ahead_max(m) : AHEAD_SHARE,
		   ahead_max(m) - MIN(ts->ahead_asked, ahead_max(m))))
		return false;
	if (s == &m->own)
		return true;
	if (m->pds.live > 1 && pd->asked > 0 &&
	    !below(pd->asked, PD_SHARE, free))
		return false;
	return below(s->asked, SHARE, free) ||
	       (q == QUEUE_FRESH && s->asked == 0);
}

/* @t stands in the line of @to from now on, @first: before all others. Its share may
 * be gone afterwards. */
static void ticket_pass(struct mem *m, struct ticket *t, struct share *to,
			bool first)
{
	struct share *from = t->share;

	share_dequeue(t);
	share_opened(m, to);
	t->share = to;
	t->line.guests = true;
	share_enqueue(m, t, QUEUE_FRESH);
	if (first) {
		list_del(&t->link);
		list_insert_after(&to->queue[QUEUE_FRESH], &t->link);
	}
	t->line.handed = first;
	share_closed(m, from);
}

/* Is @t, which @to wants, too, better in the line of @to? Not if its own share may ask for
 * it next, and @to may not. */
static bool better_with(struct mem *m, const struct share *to,
			const struct ticket *t)
{
	const struct share *from = t->share;
	const bool may = may_ask(m, to, QUEUE_FRESH),
		   may_from = may_ask(m, from, QUEUE_FRESH);

	if (may && !may_from)
		return true;
	if (!may && may_from && from->queue[t->line.queue].next == &t->link)
		return false;
	return to->asked < from->asked || to->tickets + 1 < from->tickets;
}

/* The share of a waiter for @t that may ask for it, though that of @t may not; or NULL. */
static struct share *guest_of(struct mem *m, struct ticket *t)
{
	bool any = false;

	list_for_each(l, &t->waiters) {
		struct share *s = share_of(m,
					   list_entry(l, struct waiter, link));

		if (s == t->share)
			continue;
		any = true;
		if (may_ask(m, s, QUEUE_FRESH))
			return s;
	}
	if (!any) {
		t->line.guests = false;
		t->share->guests--;
	}
	return NULL;
}

/* Give the shares that were set aside their turns back, in the same order, before those
 * that have a new ticket since. */
static void ask_again(struct tickets *ts)
{
	for (unsigned q = 0; q < QUEUE_NUM; q++) {
		while (!list_empty(&ts->over[q])) {
			struct list *l = ts->over[q].prev;

			list_del(l);
			list_insert_after(&ts->ready[q], l);
		}
	}
}

/**
 * share_takes_over() - Move a ticket that another share has not asked a pager for yet to
 * the line of its new waiter's share, if it is better there: it is not to stand in the line
 * of a share that has more tickets, keeps more pagers busy, or may not ask now, but where
 * it is next. If it does stay there it is marked: see share_next().
 * @m:		the NIC's memory
 * @t:		the ticket
 * @w:		the waiter, which waits for it now
 */
void share_takes_over(struct mem *m, struct ticket *t, const struct waiter *w)
{
	struct share *to = share_of(m, w), *from = t->share;

	if (better_with(m, to, t)) {
		ticket_pass(m, t, to, false);
		/* if @to was set aside it is to hand that over */
		if (guest_of(m, t))
			ask_again(&m->tickets);
	} else if (to != from && !t->line.guests) {
		t->line.guests = true;
		from->guests++;
	}
}

/* What keeps the pagers of @s busy, slow pages it may be, is not to delay others that
 * wait for a page in its line. It goes to the head of theirs: at a tail it would fall
 * back each time, and two could hand it to and fro for ever. Return: true: one did, and
 * @s may be gone. */
static bool hand_over(struct mem *m, struct share *s)
{
	list_for_each(l, &s->queue[QUEUE_FRESH]) {
		struct ticket *t = list_entry(l, struct ticket, link);
		struct share *to = t->line.guests ? guest_of(m, t) : NULL;

		if (!to)
			continue;
		ticket_pass(m, t, to, true);
		return true;
	}
	return false;
}

/**
 * share_next() - Find the share whose turn it is. One that may not ask now hands a
 * page over that others wait for, too.
 * @m:		the NIC's memory
 * @q:		in which line
 *
 * Return: the ticket, still in its line, or NULL: no share may ask now.
 */
struct ticket *share_next(struct mem *m, enum queue q)
{
	struct tickets *ts = &m->tickets;

	while (!list_empty(&ts->ready[q])) {
		struct list *l = ts->ready[q].next;
		struct share *s = list_entry(l - q, struct share, turn[0]);

		list_del(l);
		if (may_ask(m, s, q)) {
			struct ticket *t = list_entry(s->queue[q].next,
						      struct ticket, link);

			if (t->line.handed) /* in the turn of the share that had it */
				list_insert_after(&ts->ready[q], l);
			else
				list_add_tail(&ts->ready[q], l);
			return t;
		}
		ts->short_of |= q == QUEUE_FRESH;
		if (q == QUEUE_FRESH && s->guests > 0) {
			const bool more = s->queue[q].next->next !=
					  &s->queue[q];

			if (hand_over(m, s)) {
				/* the next of them when that had its turn */
				if (more)
					list_add_tail(&ts->ready[q], l);
				continue;
			}
		}
		list_add_tail(&ts->over[q], l);
	}
	return NULL;
}

/**
 * share_asked() - Count a ticket of @s that went to the pagers.
 * @m:		the NIC's memory
 * @s:		share
 * @ahead:	no waiter waits for it
 */
void share_asked(struct mem *m, struct share *s, bool ahead)
{
	struct pd *pd = pd_of(m, s);

	s->asked++;
	s->ahead_asked += ahead;
	m->tickets.asked++;
	m->tickets.ahead_asked += ahead;
	if (pd)
		pd->asked++;
}

/**
 * share_answered() - Count a ticket of @s that came back from the pagers, and let shares
 * that could not ask before try again.
 * @m:		the NIC's memory
 * @s:		share
 * @ahead:	as it was asked
 */
void share_answered(struct mem *m, struct share *s, bool ahead)
{
	struct tickets *ts = &m->tickets;
	struct pd *pd = pd_of(m, s);

	s->asked--;
	s->ahead_asked -= ahead;
	ts->asked--;
	ts->ahead_asked -= ahead;
	if (pd)
		pd->asked--;
	ask_again(ts);
}

/**
 * share_pd_gone() - Let shares try again that left some pagers to a PD which is gone.
 * @m:		the NIC's memory
 */
void share_pd_gone(struct mem *m)
{
	ask_again(&m->tickets);
}

/**
 * pagers_bound() - See use.h.
 * @m:		the NIC's memory
 * @num:	how many may be asked at once
 */
void pagers_bound(struct mem *m, uint32_t num)
{
	m->tickets.pagers = MAX(1u, MIN(num, m->cfg.pagers));
	ask_again(&m->tickets);
}

/**
 * shares_init() - Make the only share that there is at first, the NIC's own, without bound.
 * @m:		the NIC's memory
 */
void shares_init(struct mem *m)
{
	struct tickets *ts = &m->tickets;

	ts->pagers = m->cfg.pagers;
	share_init(&m->own, 0);
	list_init(&ts->starved);
	for (unsigned q = 0; q < QUEUE_NUM; q++) {
		list_init(&ts->ready[q]);
		list_init(&ts->over[q]);
	}
}

/**
 * share_forget() - Drop a ticket that is still out as the NIC ends.
 * @s:		its share; may be gone afterwards
 */
void share_forget(struct share *s)
{
	s->tickets--;
	share_free(s);
}
