/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ticket.c: outstanding faults and their waiters. A ticket covers a run
 * of at most TICKET_PAGES pages and goes to a pager once; accesses that miss
 * the same pages join it. Which pages are missing is decided in dma.c.
 *
 * Tickets that can be joined are in a hash by block of 2^TICKET_BLOCK_SHIFT
 * pages. A run lies in one or two blocks and is in the chain of each: a chain
 * link is ticket index * 2 + (0: first block, 1: last block) + 1, 0 ends it.
 *
 * When pages are unmapped while a pager has their ticket, its answer may have
 * been true before or after: it counts only for the pages in front of them. A
 * ticket of which nothing counts leaves the hash, and ticket_done() only wakes
 * its waiters. When pages are protected, they may be read only: so a program
 * that forks more often than a fault takes still makes progress.
 */
#include "mem/ticket.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/page.h"
#include "base/probe.h"
#include "base/range.h"
#include "mem/account.h"
#include "mem/ageing.h"
#include "mem/cheap.h"
#include "mem/fault.h"
#include "mem/overwrite.h"
#include "mem/share.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/waiter.h"
#include "mem/waiting.h"

#include <errno.h>
#include <stdlib.h>

static_assert(TICKET_PAGES <= 1 << TICKET_BLOCK_SHIFT, "two blocks at most");

static uint32_t *ticket_bucket_of(struct tickets *t, uint64_t block)
{
	uint64_t h = block * UINT64_C(0x9e3779b97f4a7c15);

	return &t->bucket[h >> 32 & t->bucket_mask];
}

static uint64_t block_of(const struct ticket *t, unsigned which)
{
	uint64_t vpn = which == 0 ? t->vpn : t->vpn + t->pages - 1;

	return vpn >> TICKET_BLOCK_SHIFT;
}

static unsigned num_blocks(const struct ticket *t)
{
	return block_of(t, 0) == block_of(t, 1) ? 1 : 2;
}

static void ticket_hash(struct tickets *ts, struct ticket *t)
{
	uint32_t link = (uint32_t)(t - ts->v) * 2 + 1;

	for (unsigned i = 0; i < num_blocks(t); i++) {
		uint32_t *b = ticket_bucket_of(ts, block_of(t, i));

		t->hash[i] = *b;
		*b = link + i;
	}
	ts->hashed++;
}

static uint32_t *link_next(struct tickets *ts, uint32_t link)
{
	return &ts->v[(link - 1) / 2].hash[(link - 1) % 2];
}

static void ticket_unhash(struct tickets *ts, struct ticket *t)
{
	uint32_t link = (uint32_t)(t - ts->v) * 2 + 1;

	for (unsigned i = 0; i < num_blocks(t); i++) {
		uint32_t *p = ticket_bucket_of(ts, block_of(t, i));

		while (*p != link + i) {
			CHECK(*p != 0);
			p = link_next(ts, *p);
		}
		*p = t->hash[i];
	}
	ts->hashed--;
}

static bool ticket_covers(const struct ticket *t, uint64_t vpn)
{
	return range_ok(vpn - t->vpn, 1, t->answer.valid);
}

/**
 * ticket_find() - Find a ticket that can be joined.
 * @ts:		all tickets
 * @vpn:	page it must cover
 * @write:	it must be for writing; else any will do
 *
 * Return: the ticket, or NULL.
 */
struct ticket *ticket_find(struct tickets *ts, uint64_t vpn, bool write)
{
	uint32_t link;

	if (ts->hashed == 0)
		return NULL;
	link = *ticket_bucket_of(ts, vpn >> TICKET_BLOCK_SHIFT);
	for (; link != 0; link = *link_next(ts, link)) {
		struct ticket *t = &ts->v[(link - 1) / 2];

		if (ticket_covers(t, vpn) && t->write >= write)
			return t;
	}
	return NULL;
}

/**
 * ticket_of() - Return the ticket of an id.
 * @ts:		all tickets
 * @id:		of a ticket that is out
 */
struct ticket *ticket_of(struct tickets *ts, struct ticket_id id)
{
	struct ticket *t = &ts->v[id.v % TICKETS_MAX];

	CHECK(id.v % TICKETS_MAX < ts->num);
	CHECK(t->state != TICKET_FREE && t->gen == id.v / TICKETS_MAX);
	return t;
}

static struct ticket_id ticket_id(const struct tickets *ts,
				  const struct ticket *t)
{
	return (struct ticket_id){t->gen * (uint32_t)TICKETS_MAX +
				  (uint32_t)(t - ts->v)};
}

/**
 * ticket_room() - Find where a new ticket must end.
 * @ts:		all tickets
 * @vpn:	its first page
 * @end:	it need not go beyond this
 *
 * Return: @end, or before it: TICKET_PAGES, or where another ticket starts.
 */
uint64_t ticket_room(struct tickets *ts, uint64_t vpn, uint64_t end)
{
	uint64_t block = vpn >> TICKET_BLOCK_SHIFT, last;

	end = MIN(end, vpn + TICKET_PAGES);
	last = (end - 1) >> TICKET_BLOCK_SHIFT;
	for (; ts->hashed > 0 && block <= last; block++) {
		uint32_t link = *ticket_bucket_of(ts, block);

		for (; link != 0; link = *link_next(ts, link)) {
			const struct ticket *t = &ts->v[(link - 1) / 2];

			if (t->vpn > vpn && t->vpn < end)
				end = t->vpn;
		}
	}
	return end;
}

/**
 * ticket_open() - Open a ticket, for ticket_next() to give out: soon if a waiter waits for
 * it, which share_claim() allowed it then.
 * @m:		the NIC's memory
 * @s:		the share that pays for it, or NULL: the NIC's own
 * @vpn, @pages: its run, 1 to TICKET_PAGES pages
 * @write:	the pages are to be made writable
 * @whole:	of no use before all of them are there
 *
 * Return: the ticket, or NULL: too many are out.
 */
struct ticket *ticket_open(struct mem *m, struct share *s, uint64_t vpn,
			   uint64_t pages, bool write, bool whole)
{
	struct tickets *ts = &m->tickets;
	struct ticket *t;

	CHECK(pages > 0 && pages <= TICKET_PAGES);
	if (list_empty(&ts->free))
		return NULL;
	t = list_entry(ts->free.next, struct ticket, link);
	list_del(&t->link);
	t->share = s ? s : &m->own;
	t->line.guests = t->line.handed = false;
	share_enqueue(m, t, QUEUE_AHEAD);
	t->vpn = vpn;
	t->pages = (uint32_t)pages;
	t->answer.valid = (uint32_t)pages;
	t->write = write;
	t->whole = whole;
	t->answer.protect = t->major = t->early = false;
	t->look = 0;
	t->guess = 0;
	t->answer.at = TICK_NOW;
	t->state = TICKET_NEW;
	if (++t->gen == 0)
		t->gen = 1;
	share_opened(m, t->share);
	ticket_hash(ts, t);
	count(m->cnt, CNT_tickets);
	return t;
}

static void ticket_close(struct mem *m, struct ticket *t)
{
	struct tickets *ts = &m->tickets;

	CHECK(list_empty(&t->waiters));
	count(m->cnt, t->state == TICKET_NEW ? CNT_tickets_unasked
					     : CNT_tickets_answered);
	if (t->answer.valid > 0)
		ticket_unhash(ts, t);
	if (t->state == TICKET_SENT)
		share_answered(m, t->share, t->ahead);
	else
		share_dequeue(t);
	t->ahead = false;
	t->state = TICKET_FREE;
	list_del(&t->link);
	list_add_tail(&ts->free, &t->link);
	share_closed(m, t->share);
}

/**
 * ticket_give_up() - Close the last of those tickets of @s that have no waiter: it is not
 * needed so much as one for a waiter.
 * @m:		the NIC's memory
 * @s:		has such a ticket
 */
void ticket_give_up(struct mem *m, struct share *s)
{
	ticket_close(
		m, list_entry(s->queue[QUEUE_AHEAD].prev, struct ticket, link));
}

/* Pages of a ticket in front of a range; all if they do not overlap. */
static uint64_t ticket_front(const struct ticket *t, uint64_t vpn,
			     uint64_t pages)
{
	if (pages > 0 && ticket_covers(t, vpn))
		return vpn - t->vpn;
	return range_ok(t->vpn - vpn, 1, pages) ? 0 : t->answer.valid;
}

/**
 * ticket_outdate() - Mark answers for pages that went away as out of date, and those for
 * pages behind them in the same ticket.
 * @m:		the NIC's memory
 * @vpn, @pages: the range
 */
void ticket_outdate(struct mem *m, uint64_t vpn, uint64_t pages)
{
	list_for_each(pos, &m->tickets.sent) {
		struct ticket *t = list_entry(pos, struct ticket, link);
		uint64_t front = ticket_front(t, vpn, pages);

		if (front == 0 && t->answer.valid > 0)
			ticket_unhash(&m->tickets, t);
		t->answer.valid = (uint32_t)front;
	}
}

/**
 * ticket_protect() - Note that pages became readable only: answers for tickets with any of
 * them will say so, too.
 * @m:		the NIC's memory
 * @vpn, @pages: the range
 */
void ticket_protect(struct mem *m, uint64_t vpn, uint64_t pages)
{
	list_for_each(pos, &m->tickets.sent) {
		struct ticket *t = list_entry(pos, struct ticket, link);

		if (ticket_front(t, vpn, pages) < t->answer.valid)
			t->answer.protect = true;
	}
}

static void unguess(struct mem *m, struct share *s, uint32_t key)
{
	s->refs++;
	list_for_each_safe(pos, tmp, &s->queue[QUEUE_AHEAD]) {
		struct ticket *t = list_entry(pos, struct ticket, link);

		if (t->guess == key)
			ticket_close(m, t);
	}
	share_unref(s);
}

/**
 * ticket_unguess() - Close the tickets that a region foresaw which is gone: no pager is
 * asked for them.
 * @m:		the NIC's memory
 * @key:	its key
 */
void ticket_unguess(struct mem *m, uint32_t key)
{
	for (unsigned i = 0; i < 2; i++) {
		struct list *turns = i ? m->tickets.over : m->tickets.ready;

		list_for_each_safe(l, tmp, &turns[QUEUE_AHEAD])
			unguess(m,
				list_entry(l - QUEUE_AHEAD, struct share,
					   turn[0]),
				key);
	}
}

/**
 * ticket_renew() - Let answers about a range that are still to come count as of @at:
 * something else may be mapped there, and they were found before, maybe. They do count, so
 * that a waiter that asked through an older region goes on, however often regions are made.
 * @m:		the NIC's memory
 * @vpn, @pages: the range
 * @at:		tick
 */
void ticket_renew(struct mem *m, uint64_t vpn, uint64_t pages, uint64_t at)
{
	list_for_each(pos, &m->tickets.sent) {
		struct ticket *t = list_entry(pos, struct ticket, link);

		if (ticket_front(t, vpn, pages) < t->answer.valid)
			t->answer.at = at;
	}
}

/**
 * ticket_plain() - See ticket.h.
 * @m:		the NIC's memory
 * @id:		of the ticket
 * @start, @end: addresses of plain memory, or equal
 * @early:	nothing can be said yet
 * @now_ns:	now
 */
void ticket_plain(struct mem *m, struct ticket_id id, uint64_t start,
		  uint64_t end, bool early, uint64_t now_ns)
{
	struct ticket *t = ticket_of(&m->tickets, id);

	t->early = early;
	if (t->answer.valid == t->pages)
		cheap_learn(&m->plain, page_of(start + PAGE_BYTES - 1),
			    page_of(end), now_ns);
}

/* --- waiters ------------------------------------------------------------- */

/**
 * waiter_init() - Make a waiter, which is idle.
 * @w:		embedded in its owner
 * @owner:	handed back by ticket_done()
 */
void waiter_init(struct waiter *w, void *owner)
{
	*w = (struct waiter){.owner = owner};
	list_init(&w->link);
}

/**
 * waiter_idle() - Stop waiting and forget the verdict, but for the fault: the
 * access may go on, or wait for something else.
 * @m:		the NIC's memory
 * @w:		waiting or not
 */
void waiter_idle(struct mem *m, struct waiter *w)
{
	w->bad.any = w->bad.write = false;
	ticket_leave(m, w);
	share_turn_over(m, w);
}

/**
 * waiter_cancel() - Stop waiting and forget the verdict. A ticket that no pager was asked
 * for yet goes with its last waiter.
 * @m:		the NIC's memory
 * @w:		waiting or not; idle afterwards
 */
void waiter_cancel(struct mem *m, struct waiter *w)
{
	fault_give_up(m, w);
	w->met = (struct met){.ns = 0};
	w->access.begun_ns = 0;
	waiter_idle(m, w);
}

/**
 * ticket_hurry() - Give a new ticket out as if a waiter waited for it.
 * @m:		the NIC's memory
 * @t:		ticket, not given out yet
 */
void ticket_hurry(struct mem *m, struct ticket *t)
{
	if (t->line.queue == QUEUE_FRESH)
		return;
	share_dequeue(t);
	share_enqueue(m, t, QUEUE_FRESH);
}

/**
 * ticket_wait() - Put a waiter at the end of a ticket's queue.
 * @m:		the NIC's memory
 * @t:		ticket
 * @w:		idle, not with a verdict; @w->vpn and @w->pages are set
 */
void ticket_wait(struct mem *m, struct ticket *t, struct waiter *w)
{
	CHECK(w->ticket.v == 0);
	w->ticket = ticket_id(&m->tickets, t);
	if (t->state == TICKET_NEW && list_empty(&t->waiters)) {
		ticket_hurry(m, t);
		t->guess = 0;
	}
	if (t->state == TICKET_NEW)
		share_takes_over(m, t, w);
	list_add_tail(&t->waiters, &w->link);
}

/**
 * ticket_leave() - Take a waiter from its ticket, or from what else it waits for.
 * @m:		the NIC's memory
 * @w:		waiter
 */
void ticket_leave(struct mem *m, struct waiter *w)
{
	struct ticket *t;

	if (w->ticket.v == 0)
		return;
	if (w->ticket.v == TICKET_STARVED) {
		share_starved_leave(w);
		w->ticket.v = 0;
		return;
	}
	list_del(&w->link);
	if (!ticket_real(w->ticket)) {
		w->ticket.v = 0;
		return;
	}
	t = ticket_of(&m->tickets, w->ticket);
	w->ticket.v = 0;
	if (t->state == TICKET_NEW && list_empty(&t->waiters))
		ticket_close(m, t);
}

/* --- the pagers' side ---------------------------------------------------- */

/**
 * ticket_new() - See ticket.h.
 * @m:		the NIC's memory
 */
bool ticket_new(const struct mem *m)
{
	const struct tickets *ts = &m->tickets;

	return !list_empty(&ts->ready[QUEUE_FRESH]) ||
	       !list_empty(&ts->ready[QUEUE_AHEAD]);
}

/**
 * ticket_next() - Take the next new ticket to hand to os/, of the share whose turn it is.
 * Tickets without a waiter come last, and few at a time, so that they delay no others.
 * @m:		the NIC's memory
 * @req:	set on success
 *
 * Return: false if there is none.
 */
bool ticket_next(struct mem *m, struct ticket_req *req)
{
	struct tickets *ts = &m->tickets;
	struct ticket *t;

	t = share_next(m, QUEUE_FRESH);
	if (!t)
		t = share_next(m, QUEUE_AHEAD);
	if (!t)
		return false;
	t->ahead = t->line.queue == QUEUE_AHEAD;
	share_dequeue(t);
	share_asked(m, t->share, t->ahead);
	list_add_tail(&ts->sent, &t->link);
	t->state = TICKET_SENT;
	*req = (struct ticket_req){
		.id = ticket_id(ts, t),
		.vpn = t->vpn,
		.pages = t->pages,
		.write = t->write,
		.whole = t->whole,
		.look = t->look != 0,
	};
	return true;
}

/**
 * ticket_unsent() - See ticket.h.
 * @m:		the NIC's memory
 * @id:		from ticket_next()
 */
void ticket_unsent(struct mem *m, struct ticket_id id)
{
	struct ticket *t = ticket_of(&m->tickets, id);

	CHECK(t->state == TICKET_SENT);
	if (t->answer.valid == 0)
		ticket_hash(&m->tickets, t);
	t->answer.valid = t->pages;
	t->answer.protect = false;
	t->answer.at = TICK_NOW;
	share_answered(m, t->share, t->ahead);
	t->ahead = false;
	t->state = TICKET_NEW;
	list_del(&t->link);
	share_enqueue_first(m, t);
	if (list_empty(&t->waiters))
		ticket_close(m, t);
}

static void ticket_wake(struct mem *m, struct ticket *t, bool bad,
			uint64_t bad_page, uint64_t service_ns,
			struct list *woken)
{
	while (!list_empty(&t->waiters)) {
		struct waiter *w = list_entry(t->waiters.next, struct waiter,
					      link);

		enum account_item what = t->major ? ACCT_major : ACCT_minor;

		list_del(&w->link);
		w->ticket.v = 0;
		if (bad &&
		    range_ok(bad_page - w->access.vpn, 1, w->access.pages)) {
			w->bad.any = true;
			w->bad.write = t->write;
			w->bad.vpn = bad_page;
			what = ACCT_access;
		}
		fault_answered(m, w, what, service_ns);
		list_add_tail(woken, &w->link);
	}
}

/* A page that was foreseen is ready. If a waiter waits for it already, that is a hit. */
static void ticket_foreseen(struct mem *m, const struct ticket *t, uint64_t vpn,
			    bool writable, uint64_t at)
{
	list_for_each(l, &t->waiters) {
		const struct waiter *w = list_entry(l, struct waiter, link);

		if (w->advice ||
		    !range_ok(vpn - w->access.vpn, 1, w->access.pages))
			continue;
		count(m->cnt, CNT_prefetch_pages);
		mem_account(m, NULL, t->guess, ACCT_prefetch_pages, 1);
		count(m->cnt, CNT_prefetch_hits);
		mem_account(m, w->account, t->guess, ACCT_prefetch_hits, 1);
		spt_install(m, vpn, writable, m->spt.time.renewed, at);
		return;
	}
	spt_install_ahead(m, vpn, writable, at, t->guess);
}

static void ticket_install(struct mem *m, const struct ticket *t, uint64_t vpn,
			   bool writable)
{
	const uint64_t at = MIN(t->answer.at, m->spt.time.tick);

	if (t->guess)
		ticket_foreseen(m, t, vpn, writable, at);
	else
		spt_install(m, vpn, writable, m->spt.time.renewed, at);
}

/**
 * ticket_major() - See ticket.h.
 * @m:		the NIC's memory
 * @id:		from ticket_next()
 */
void ticket_major(struct mem *m, struct ticket_id id)
{
	ticket_of(&m->tickets, id)->major = true;
}

/**
 * ticket_done() - See ticket.h.
 * @m:		the NIC's memory
 * @id:		from ticket_next(); gone afterwards
 * @pages_ready: from the start
 * @failed:	the page behind them gave an error: waiters whose access needs it
 *		are marked
 * @writable:	they are ready for writing too
 * @cheap_start, @cheap_end: addresses where misses are cheap, or equal
 * @service_ns:	what the faults took
 * @now_ns:	now
 * @woken:	the waiters are appended (waiter.link), their ticket cleared
 */
void ticket_done(struct mem *m, struct ticket_id id, uint64_t pages_ready,
		 bool failed, bool writable, uint64_t cheap_start,
		 uint64_t cheap_end, uint64_t service_ns, uint64_t now_ns,
		 struct list *woken)
{
	struct ticket *t = ticket_of(&m->tickets, id);

	CHECK(t->state == TICKET_SENT && pages_ready <= t->pages);
	PROBE4(resolve, t->vpn, pages_ready, t->pages, service_ns);
	spt_tick(&m->spt, now_ns);
	if (t->look)
		over_looked(m, t->look, t->early, now_ns);
	count_add(m->cnt, CNT_service_ns, service_ns);
	if (failed && pages_ready < t->pages)
		count(m->cnt, CNT_fault_prot);
	failed = failed && pages_ready < t->answer.valid;
	/* The last page first: if the table is so small that the run displaces
	 * itself, what was asked for stays, not what is ahead of it.
	 */
	for (uint64_t i = MIN(pages_ready, t->answer.valid); i-- > 0;)
		ticket_install(m, t, t->vpn + i,
			       writable && !t->answer.protect);
	if (t->answer.valid == t->pages && !t->answer.protect &&
	    t->answer.at == TICK_NOW)
		cheap_learn(&m->cheap,
			    page_of(cheap_start) +
				    (cheap_start % PAGE_BYTES != 0),
			    page_of(cheap_end), now_ns);
	ticket_wake(m, t, failed, t->vpn + pages_ready, service_ns, woken);
	ticket_close(m, t);
}

/**
 * tickets_out() - Count the tickets not yet answered, whether handed out or not.
 * @m:		the NIC's memory
 */
unsigned tickets_out(const struct mem *m)
{
	return m->tickets.out;
}

/* --- making -------------------------------------------------------------- */

/**
 * ticket_init() - Make the tickets, all free.
 * @m:		with cfg set
 *
 * Return: 0 or -ENOMEM.
 */
int ticket_init(struct mem *m)
{
	struct tickets *ts = &m->tickets;
	uint32_t buckets = 2;

	while (buckets < m->cfg.tickets * 2)
		buckets *= 2;
	list_init(&ts->free);
	list_init(&ts->sent);
	ts->v = heap_array(m->cfg.tickets, sizeof(*ts->v));
	ts->bucket = heap_array(buckets, sizeof(*ts->bucket));
	if (!ts->v || !ts->bucket)
		return -ENOMEM;
	ts->bucket_mask = buckets - 1;
	ts->num = m->cfg.tickets;
	for (uint32_t i = 0; i < ts->num; i++) {
		list_init(&ts->v[i].waiters);
		list_add_tail(&ts->free, &ts->v[i].link);
	}
	return 0;
}

/**
 * ticket_fini() - Free the tables.
 * @m:		also after a ticket_init() that failed
 */
void ticket_fini(struct mem *m)
{
	struct tickets *ts = &m->tickets;

	for (uint32_t i = 0; i < ts->num; i++)
		if (ts->v[i].state != TICKET_FREE)
			share_forget(ts->v[i].share);
	heap_free(ts->v);
	heap_free(ts->bucket);
}
