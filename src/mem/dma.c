/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dma.c: the one walk. Turns (key, iova, length) into moves and holds, or into
 * a verdict, or into a ticket. The only place in the tree where moves of
 * application memory are made; os/ executes them. R_Key, PD, access rights and
 * bounds are checked here, for both sides alike.
 *
 * All or nothing: first all pages are looked at, then all are held, and only
 * then is anything appended. So what waits holds nothing, and two QPs that
 * need each other's pages cannot block each other.
 */
#include "mem/dma.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/heap.h"
#include "base/moves.h"
#include "base/page.h"
#include "base/probe.h"
#include "base/range.h"
#include "base/strategy.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/ageing.h"
#include "mem/change.h"
#include "mem/cheap.h"
#include "mem/claim.h"
#include "mem/doubts.h"
#include "mem/fault.h"
#include "mem/holds.h"
#include "mem/key_table.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/moving.h"
#include "mem/mr.h"
#include "mem/overwrite.h"
#include "mem/pattern.h"
#include "mem/regions.h"
#include "mem/share.h"
#include "mem/state.h"
#include "mem/table.h"
#include "mem/tickets.h"
#include "mem/waiter.h"
#include "mem/waiting.h"

enum {
	ACCESS_REMOTE = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			ACCESS_REMOTE_ATOMIC,
};

/** struct walk_ahead - The first page that was fetched ahead, if there is @any. */
struct walk_ahead {
	uint64_t vpn;
	bool any;
};

/**
 * struct walk - One access on its way to moves.
 * @row, @index: of its key
 * @region:	row of the region that the key is of
 * @vpn, @pages: the pages of the access
 * @addr:	its application address
 * @behind:	bytes of the region from @addr on
 * @set:	what may answer a missing page
 * @inlined:	cheap misses so far
 * @touch:	some page was not touched in this tick
 */
struct walk {
	struct mem *m;
	const struct dma *d;
	struct key_row *row, *region;
	uint32_t index;
	uint64_t addr, behind;
	uint64_t vpn, pages;
	uint64_t now_ns, fresh_ns;
	struct spt_view view;
	strategies_t set;
	unsigned inlined;
	bool touch;
	struct over_drop drop;
	struct walk_ahead ahead;
};

/* BUSY: a ticket is out for it; wait behind it, whatever the table says.
 * AHEAD: ready, as it was fetched ahead; this is its first use.
 * NOW: ready, and to touch it would tell the table nothing new. */
enum page {
	PAGE_MISSING,
	PAGE_BUSY,
	PAGE_CHEAP,
	PAGE_AHEAD,
	PAGE_READY,
	PAGE_NOW
};

/* --- key, PD, rights, bounds --------------------------------------------- */

static bool rights_ok(const struct dma *d, uint32_t access)
{
	uint32_t need = d->need;

	if (d->remote && !(need & ACCESS_REMOTE))
		return false;
	if (!d->remote && d->write)
		need |= ACCESS_LOCAL_WRITE;
	return (need & ~access) == 0;
}

/* The key of a window is an R_Key. That of type 2 is for the QP that bound it. */
static bool key_for(const struct dma *d, const struct key_row *row)
{
	return likely(row->kind == KEY_REGION) ||
	       (d->remote && (row->kind == KEY_WINDOW || row->qpn == d->qpn));
}

static enum verdict walk_check(struct walk *w, struct mem *m,
			       const struct dma *d)
{
	struct key_row *row = key_lookup(&m->keys, d->key, &w->index);
	uint64_t off;

	if (!row || row->pd != d->pd || !rights_ok(d, row->access) ||
	    !key_for(d, row))
		return V_PROT;
	off = d->iova - row->iova;
	if (d->iova < row->iova || !range_ok(off, d->len, row->length))
		return V_PROT;
	w->region = key_region(row);
	w->addr = row->addr + off;
	if (unlikely(row != w->region)) {
		if (!key_reachable(w->region))
			return V_PROT;
		w->addr += w->region->addr;
	}
	if (!range_ok(w->addr, d->len, ADDR_END))
		return V_PROT;
	w->behind = MIN(row->length - off, ADDR_END - w->addr);
	w->m = m;
	w->d = d;
	w->row = row;
	w->vpn = page_of(w->addr);
	w->pages = pages_spanned(w->addr, d->len);
	return V_OK;
}

/**
 * dma_check() - See dma.h. An address that no application page can have is out of bounds,
 * too.
 * @m:		the NIC's memory
 * @d:		the access
 */
enum verdict dma_check(struct mem *m, const struct dma *d)
{
	struct walk w;

	return d->len == 0 ? V_OK : walk_check(&w, m, d);
}

/* --- misses -------------------------------------------------------------- */

static enum page page_look(const struct walk *w, uint64_t vpn)
{
	struct mem *m = w->m;
	int64_t age;

	if (m->cfg.always_ready && !doubts_cover(&m->doubts, vpn))
		return PAGE_READY;
	if (unlikely(m->tickets.hashed > 0) &&
	    ticket_find(&m->tickets, vpn, false))
		return PAGE_BUSY;
	age = spt_age(&m->spt, &w->view, vpn, w->d->write);
	if (likely(age >= 0))
		return age == 0 ? PAGE_NOW : PAGE_READY;
	if (spt_ahead(&m->spt, &w->view, vpn, w->d->write))
		return PAGE_AHEAD;
	if (m->cheap.num > 0 &&
	    cheap_covers(&m->cheap, vpn, m->cfg.exact ? 0 : w->fresh_ns))
		return PAGE_CHEAP;
	return PAGE_MISSING;
}

/* The ticket that an access waits for at its first missing page. */
static struct ticket *walk_join(const struct walk *w, uint64_t vpn)
{
	struct tickets *ts = &w->m->tickets;
	bool write = w->d->write;

	/* A page that was made ready while a ticket for reading is out needs
	 * no second one.
	 */
	if (write && spt_ready(&w->m->spt, &w->view, vpn, true))
		write = false;
	return ticket_find(ts, vpn, write);
}

/* Could the old content of this missing page be dropped? */
static enum over walk_over(const struct walk *w, uint64_t vpn)
{
	return vpn < w->drop.may.start || vpn >= w->drop.may.end
		       ? OVER_NO
		       : over_look(w->m, w->region->mr, vpn, w->now_ns);
}

/* A ticket that asks what kind of memory it is. */
static struct ticket *walk_ask(const struct walk *w, struct share *s,
			       uint64_t vpn)
{
	struct ticket *t = ticket_open(w->m, s, vpn, 1, true, true);

	if (t)
		t->look = w->region->key;
	return t;
}

/* Pages that one access needs together may go in turn, each while the other comes,
 * for ever (I1). So if it was here before and misses @vpn now, all of them are asked
 * for. Return: the first, or @vpn where a ticket is in between.
 */
static uint64_t walk_first(const struct walk *w, const struct waiter *wait,
			   uint64_t vpn)
{
	struct tickets *ts = &w->m->tickets;
	const bool again = wait->access.begun_ns &&
			   wait->access.vpn == w->vpn &&
			   wait->access.pages == w->pages;

	return again && !ticket_find(ts, w->vpn, false) &&
			       ticket_room(ts, w->vpn, vpn + 1) > vpn
		       ? w->vpn
		       : vpn;
}

/* One ticket for what the access needs, and more of growing size for what is
 * ahead of it, up to the first ready page: the access does not wait for pages
 * that only those behind it need.
 */
static struct ticket *walk_open(const struct walk *w, const struct waiter *wait,
				struct share *s, uint64_t vpn)
{
	uint64_t ahead = w->m->cfg.ahead > AHEAD_MESSAGE ? 0 : w->d->ahead;
	uint64_t bytes = MIN(sat_add(w->d->len, ahead), w->behind);
	uint64_t end = page_of(w->addr + (bytes - 1)) + 1, p;
	const uint64_t first = walk_first(w, wait, vpn);
	uint64_t num = w->vpn + w->pages - first;
	struct ticket *t;

	end = ticket_room(&w->m->tickets, first, end);
	for (p = vpn + 1; p < end; p++)
		if ((spt_ready(&w->m->spt, &w->view, p, w->d->write) &&
		     (first == vpn || p >= w->vpn + w->pages)) ||
		    walk_over(w, p) == OVER_YES)
			break;
	end = p;
	num = MIN(num, end - first);
	if (w->drop.unsure)
		return walk_ask(w, s, vpn);
	t = ticket_open(w->m, s, first, num, w->d->write, true);
	for (p = first + num; t && p < end; p += num) {
		num = MIN(MIN(2 * num, (uint64_t)AHEAD_PAGES), end - p);
		if (!share_ahead(w->m, s) ||
		    !ticket_open(w->m, s, p, num, w->d->write, false))
			break;
	}
	return t;
}

/* Half of the tickets are for waiters. */
static bool dma_room_ahead(struct mem *m, struct share *s)
{
	const struct tickets *ts = &m->tickets;

	return ts->out < ts->num / 2 && (!s || share_ahead(m, s));
}

static struct ticket *dma_ask_ahead(const struct walk *w, uint64_t vpn,
				    uint64_t pages)
{
	struct share *s = w->d->share;
	struct mem *m = w->m;

	if (!dma_room_ahead(m, s) || !spt_room(&m->spt, vpn))
		return NULL;
	return ticket_open(m, s, vpn, pages, w->d->write, false);
}

/* --- what is likely ------------------------------------------------------ */

/* Would an access wait for this page? */
static bool worth_it(const struct walk *w, uint64_t vpn)
{
	enum page page = page_look(w, vpn);

	return page == PAGE_MISSING ||
	       (page == PAGE_CHEAP &&
		!(w->set & STRATEGY_BIT(STRATEGY_INLINE)));
}

static void guess(const struct walk *w, const struct pages *likely)
{
	struct mem *m = w->m;
	uint64_t next;

	for (uint64_t p = likely->start; p < likely->end; p = next) {
		struct ticket *t;
		uint64_t end;

		next = p + 1;
		if (!worth_it(w, p))
			continue;
		end = ticket_room(&m->tickets, p, likely->end);
		while (next < end && worth_it(w, next))
			next++;
		t = dma_ask_ahead(w, p, next - p);
		if (!t)
			return;
		t->guess = w->region->key;
	}
}

static struct pattern *pattern_of(struct mr *mr)
{
	if (!mr->pattern) {
		mr->pattern = heap_alloc_ready(sizeof(*mr->pattern));
		if (mr->pattern)
			pattern_init(mr->pattern);
	}
	return mr->pattern;
}

/* How many pages from @vpn on the message is known to need. */
static uint64_t pages_known(const struct walk *w, uint64_t vpn)
{
	const struct dma *d = w->d;
	uint64_t more = d->write ? d->follow : d->ahead;
	uint64_t bytes = MIN(sat_add(d->len, more), w->behind);

	return page_of(w->addr + (bytes - 1)) + 1 - vpn;
}

/* The access met @vpn, missing or (@hit) asked for already. What is next? Of what may be
 * overwritten as a whole nothing is fetched. */
static void foresee(const struct walk *w, uint64_t vpn, bool hit)
{
	const struct key_row *row = w->region;
	struct pages all = {page_of(row->addr), VPN_END}, likely;
	struct pattern *p;
	struct stream *s;

	if (w->m->cfg.ahead != AHEAD_PREFETCH ||
	    (w->drop.may.start < w->drop.may.end &&
	     over_look(w->m, w->region->mr, vpn, w->now_ns) != OVER_NO))
		return;
	p = pattern_of(w->region->mr);
	if (!p)
		return;
	all.end = MIN(all.end, page_of(row->addr + (row->length - 1)) + 1);
	s = pattern_note(p, vpn, pages_known(w, vpn), hit);
	while (s && dma_room_ahead(w->m, w->d->share) &&
	       pattern_next(p, s, &all, &likely))
		guess(w, &likely);
}

/* All pages are ready. Of some this is the first use. */
static void walk_use(const struct walk *w, const struct waiter *wait)
{
	struct account **owner = wait ? wait->account : w->d->account;
	struct mem *m = w->m;
	unsigned hits = 0;

	for (uint64_t i = 0; i < w->pages; i++)
		hits += spt_use(m, w->vpn + i);
	count_add(m->cnt, CNT_prefetch_hits, hits);
	mem_account(m, owner, w->region->key, ACCT_prefetch_hits, hits);
	foresee(w, w->ahead.vpn, true);
}

/* Did a ticket that this waiter waited for fail at a page we need? Says so
 * once.
 */
static bool walk_failed(const struct walk *w, struct waiter *wait)
{
	bool bad = wait->bad.any && (w->d->write || !wait->bad.write);

	wait->bad.any = wait->bad.write = false;
	return bad && range_ok(wait->bad.vpn - w->vpn, 1, w->pages) &&
	       page_look(w, wait->bad.vpn) < PAGE_AHEAD;
}

static enum verdict walk_miss(const struct walk *w, uint64_t vpn,
			      struct waiter *wait)
{
	struct mem *m = w->m;
	bool merged, replaced;
	struct ticket *t;

	if (!wait)
		return V_WAIT;
	wait->set = w->set;
	if (walk_failed(w, wait)) {
		fault_end(m, wait, w->now_ns);
		ticket_leave(m, wait);
		share_turn_over(m, wait);
		return V_PROT;
	}
	t = walk_join(w, vpn);
	if (t && ticket_real(wait->ticket) &&
	    t == ticket_of(&m->tickets, wait->ticket))
		return V_WAIT;
	if (!t && wait->ticket.v == TICKET_STARVED)
		return V_WAIT;
	ticket_leave(m, wait);
	if (!spt_room(&m->spt, vpn))
		return V_NO_RESOURCE;
	/* Leaving may have closed it. */
	t = walk_join(w, vpn);
	merged = t != NULL;
	if (!merged && !share_claim(m, wait, w->now_ns))
		return wait->ticket.v ? V_WAIT : V_NO_RESOURCE;
	share_turn_over(m, wait);
	if (merged)
		count(m->cnt, CNT_tickets_merged);
	else
		t = walk_open(w, wait, wait->share ? wait->share : &m->own,
			      vpn);
	count(m->cnt, CNT_faults);
	replaced = spt_was_replaced(&m->spt, vpn);
	if (replaced)
		count(m->cnt, CNT_table_misses);
	PROBE4(fault, w->region->key, vpn, w->d->write, merged);
	fault_begin(m, wait, w->region->key, merged, replaced, w->now_ns);
	wait->access.asks = (wait->access.begun_ns ? wait->access.asks : 0) +
			    !merged;
	wait->access.vpn = w->vpn;
	wait->access.pages = w->pages;
	wait->since_ns = w->now_ns;
	if (!wait->access.begun_ns)
		wait->access.begun_ns = w->now_ns;
	ticket_wait(m, t, wait);
	spt_miss_ahead(m, vpn);
	if (!wait->advice)
		foresee(w, vpn, merged);
	else if (!merged)
		t->guess = w->region->key;
	return V_WAIT;
}

/* --- the walk ------------------------------------------------------------ */

static bool walk_drop(struct walk *w, uint64_t vpn)
{
	enum over over = walk_over(w, vpn);

	w->drop.unsure = over == OVER_LOOK;
	if (over != OVER_YES)
		return false;
	if (!w->drop.num++)
		w->drop.pages.start = vpn;
	w->drop.pages.end = vpn + 1;
	return true;
}

static enum verdict walk_pages(struct walk *w, struct waiter *wait)
{
	for (uint64_t p = w->vpn; p < w->vpn + w->pages; p++) {
		enum page page = page_look(w, p);

		if (likely(page == PAGE_NOW))
			continue;
		w->touch = true;
		if (page == PAGE_READY)
			continue;
		if (page == PAGE_AHEAD) {
			if (!w->ahead.any)
				w->ahead.vpn = p;
			w->ahead.any = true;
			continue;
		}
		if (page == PAGE_CHEAP && !w->d->ready &&
		    (w->set & STRATEGY_BIT(STRATEGY_INLINE)) &&
		    w->inlined < w->m->inline_budget)
			w->inlined++;
		else if (page == PAGE_BUSY || !walk_drop(w, p))
			return walk_miss(w, p, wait);
	}
	return V_OK;
}

static enum verdict walk_moving(const struct walk *w, struct waiter *wait,
				const struct holds *own)
{
	uint64_t page;

	if (!moving_page(w->m, own, w->vpn, w->pages, &page))
		return V_OK;
	if (wait)
		moving_wait(w->m, wait, page, w->now_ns);
	return V_WAIT;
}

static enum verdict walk_hold(struct walk *w, struct waiter *wait,
			      struct holds *holds)
{
	struct mem *m = w->m;

	if (m->cfg.exact)
		for (uint64_t i = 0; i < w->pages; i++)
			if (!spt_hold(m, w->vpn + i)) {
				while (i-- > 0)
					spt_unhold(m, w->vpn + i);
				return V_NO_RESOURCE;
			}
	if (holds->num == 0)
		moving_add(m, holds);
	key_hold(w->row);
	m->holds++;
	holds->h[holds->num++] = (struct hold){
		.row = w->index | (w->d->write ? HOLD_WRITE : 0) |
		       m->spt.gen << HOLD_GEN_SHIFT,
		.pages = (uint32_t)w->pages,
		.vpn = w->vpn,
		.touched = (uint32_t)m->spt.time.tick - w->touch,
		.cheap = w->inlined + w->drop.num,
	};
	if (w->inlined + w->drop.num > 0) {
		m->inline_budget -= w->inlined;
		count_add(m->cnt, CNT_fault_inline, w->inlined);
		count_add(m->cnt, CNT_fault_overwrite, w->drop.num);
		count(m->cnt, CNT_faults);
		fault_cheap(m, wait, w->region->mr, w->inlined, w->drop.num);
		holds->account = wait ? wait->account : NULL;
		holds->cheap_ns = w->now_ns;
	}
	return V_OK;
}

/* What a region knows of its pages ends with it: a program that maps something else
 * there has to register it. But where all memory is registered it does not have to. */
static uint64_t fresh_for(const struct walk *w)
{
	enum { IMPLICIT_FRESH_NS = 10 * 1000 * 1000 };

	if (w->region->length != UINT64_MAX || w->now_ns < IMPLICIT_FRESH_NS)
		return w->fresh_ns;
	return MAX(w->fresh_ns, w->now_ns - IMPLICIT_FRESH_NS);
}

/* An access that was dropped comes again when its sender has lost patience. By then what it
 * waited for may be too old to be believed, or its first part while its last is
 * waited for, and it would be dropped again, for ever: so that much is believed. */
static uint64_t fresh_again(const struct walk *w, const struct waiter *wait)
{
	if (!wait || !(w->set & STRATEGY_BIT(STRATEGY_DROP)) ||
	    !wait->access.begun_ns)
		return w->fresh_ns;
	/* stamps are ticks rounded down */
	return MIN(w->fresh_ns,
		   wait->access.begun_ns >> TICK_SHIFT << TICK_SHIFT);
}

static enum verdict walk_begin(struct walk *w, struct mem *m,
			       const struct dma *d, struct waiter *wait)
{
	enum verdict v = walk_check(w, m, d);

	if (v != V_OK)
		return v;
	if (d->len > UINT32_MAX)
		return V_LENGTH;
	spt_tick(&m->spt, w->now_ns);
	if (unlikely(w->region->state == KEY_SUSPENDED)) {
		suspend_wait(m, w->region->mr, wait, w->now_ns);
		return V_WAIT;
	}
	w->set = w->region->fault
			 ? strategy_set((enum strategy)w->region->fault)
			 : d->set;
	if (over_allowed(w->region, d, w->set))
		w->drop.may = over_pages(d, w->addr, w->behind);
	w->fresh_ns = fresh_for(w);
	w->fresh_ns = fresh_again(w, wait);
	w->view = spt_view(&m->spt, w->now_ns, w->fresh_ns, w->region->since);
	return V_OK;
}

/* It has all pages. A place in line that its next part has use for is kept. */
static void walk_done(const struct walk *w, struct waiter *wait)
{
	if (!w->d->more)
		wait->access.begun_ns = 0;
	else if (wait->turn || wait->ticket.v == TICKET_STARVED)
		return;
	fault_end(w->m, wait, w->now_ns);
	waiter_idle(w->m, wait);
}

/* Everything but the move. @d->len > 0. */
static enum verdict walk_all(struct walk *w, struct mem *m, const struct dma *d,
			     struct waiter *wait, struct holds *holds)
{
	enum verdict v = walk_begin(w, m, d, wait);

	if (v == V_OK)
		v = walk_pages(w, wait);
	if (v == V_OK && unlikely(m->holds != holds->num))
		v = walk_moving(w, wait, holds);
	if (v == V_OK && unlikely(w->ahead.any))
		walk_use(w, wait);
	if (v == V_OK)
		v = walk_hold(w, wait, holds);
	if (v == V_OK && wait)
		walk_done(w, wait);
	return v;
}

/**
 * dma_fetch() - See dma.h.
 * @m:		the NIC's memory
 * @d:		the access, as in dma_resolve()
 * @now_ns, @fresh_ns: now, and what counts as fresh
 * @wait:	parked with the ticket on V_WAIT
 */
enum verdict dma_fetch(struct mem *m, const struct dma *d, uint64_t now_ns,
		       uint64_t fresh_ns, struct waiter *wait)
{
	struct walk w = {.now_ns = now_ns, .fresh_ns = fresh_ns};
	enum verdict v = walk_begin(&w, m, d, wait);

	wait->advice = true;
	if (v == V_OK)
		v = walk_pages(&w, wait);
	if (v == V_OK)
		walk_done(&w, wait);
	return v;
}

/**
 * dma_resolve() - See dma.h.
 * @m:		the NIC's memory
 * @d:		the access; at most 4 GiB - 1, and at most half as many pages as
 *		the table has entries, or it may never be ready
 * @nic:	NIC side of the move
 * @token:	for the move
 * @now_ns, @fresh_ns: now, and what counts as fresh
 * @w:		waiter to use on a miss, parked with the ticket on V_WAIT; or NULL
 * @mv, @holds:	appended to on V_OK, which needs room for one more; untouched
 *		otherwise
 */
enum verdict dma_resolve(struct mem *m, const struct dma *d, void *nic,
			 uint16_t token, uint64_t now_ns, uint64_t fresh_ns,
			 struct waiter *w, struct moves *mv,
			 struct holds *holds)
{
	struct walk walk = {.now_ns = now_ns, .fresh_ns = fresh_ns};
	enum verdict v;

	if (d->len == 0)
		return V_OK;
	CHECK(mv->num < MOVES_MAX && holds->num < HOLDS_MAX);
	v = walk_all(&walk, m, d, w, holds);
	if (v != V_OK)
		return v;
	mv->m[mv->num++] = (struct move){
		.addr = walk.addr,
		.nic = nic,
		.len = (uint32_t)d->len,
		.kind = walk.drop.num ? MOVE_OVERWRITE
			: d->write    ? MOVE_SCATTER
				      : MOVE_GATHER,
		.token = token,
		.drop = walk.drop.pages.start << PAGE_SHIFT,
		.drop_len = (walk.drop.pages.end - walk.drop.pages.start)
			    << PAGE_SHIFT,
	};
	return V_OK;
}

/**
 * dma_resolve_atomic() - See dma.h.
 * @m:		the NIC's memory
 * @d:		the access: 8 bytes, for writing
 * @kind:	MOVE_FETCH_ADD or MOVE_CMP_SWP
 * @operand, @compare: of the move
 * @token, @now_ns, @fresh_ns, @w, @mv, @holds: as in dma_resolve()
 */
enum verdict dma_resolve_atomic(struct mem *m, const struct dma *d,
				enum move_kind kind, uint64_t operand,
				uint64_t compare, uint16_t token,
				uint64_t now_ns, uint64_t fresh_ns,
				struct waiter *w, struct moves *mv,
				struct holds *holds)
{
	struct walk walk = {.now_ns = now_ns, .fresh_ns = fresh_ns};
	enum verdict v;

	CHECK(d->len == ATOMIC_BYTES && d->write);
	CHECK(mv->num < MOVES_MAX && holds->num < HOLDS_MAX);
	if (d->iova % ATOMIC_BYTES != 0)
		return V_INVALID;
	v = walk_check(&walk, m, d);
	if (v != V_OK)
		return v;
	/* A region may be registered at an iova of other alignment. */
	if (walk.addr % ATOMIC_BYTES != 0)
		return V_INVALID;
	v = walk_all(&walk, m, d, w, holds);
	if (v != V_OK)
		return v;
	mv->m[mv->num++] = (struct move){
		.addr = walk.addr,
		.len = ATOMIC_BYTES,
		.kind = (uint8_t)kind,
		.token = token,
		.operand = operand,
		.compare = compare,
	};
	return V_OK;
}

/* Return: the first page behind the run of missing pages from @vpn on. */
static uint64_t ahead_run(const struct walk *w, uint64_t vpn, uint64_t end)
{
	uint64_t p = vpn + 1;

	end = ticket_room(&w->m->tickets, vpn, MIN(end, vpn + AHEAD_PAGES));
	while (p < end && page_look(w, p) == PAGE_MISSING &&
	       walk_over(w, p) == OVER_NO)
		p++;
	return p;
}

/**
 * dma_ahead() - See dma.h. Pages that may turn out to need no fetching are left out.
 * @m:		the NIC's memory
 * @d:		the access to come, checked as any
 * @now_ns, @fresh_ns: as in dma_resolve()
 */
void dma_ahead(struct mem *m, const struct dma *d, uint64_t now_ns,
	       uint64_t fresh_ns)
{
	struct walk w = {.now_ns = now_ns, .fresh_ns = fresh_ns};
	uint64_t end, next;

	if (m->cfg.ahead > AHEAD_QUEUE || d->len == 0 ||
	    walk_begin(&w, m, d, NULL) != V_OK)
		return;
	end = w.vpn + MIN(w.pages, (uint64_t)TICKET_PAGES);
	for (uint64_t p = w.vpn; p < end; p = next) {
		next = p + 1;
		if (page_look(&w, p) != PAGE_MISSING ||
		    walk_over(&w, p) != OVER_NO)
			continue;
		next = ahead_run(&w, p, end);
		if (!dma_ask_ahead(&w, p, next - p))
			return;
	}
}

/**
 * dma_too() - See dma.h. An access to several regions needs all their pages together, and
 * each may go while the other comes, for ever (I1); walk_first() is this for one region.
 * @m, @d, @now_ns, @fresh_ns: as in dma_ahead()
 */
void dma_too(struct mem *m, const struct dma *d, uint64_t now_ns,
	     uint64_t fresh_ns)
{
	struct walk w = {.now_ns = now_ns, .fresh_ns = fresh_ns};
	struct share *s = d->share ? d->share : &m->own;
	uint64_t end, next;
	struct ticket *t;

	if (d->len == 0 || walk_begin(&w, m, d, NULL) != V_OK)
		return;
	end = w.vpn + MIN(w.pages, (uint64_t)TICKET_PAGES);
	for (uint64_t p = w.vpn; p < end; p = next) {
		next = MAX(ticket_room(&m->tickets, p, end), p + 1);
		if (ticket_find(&m->tickets, p, false) ||
		    walk_over(&w, p) != OVER_NO)
			continue;
		if (!spt_room(&m->spt, p) || !share_too(m, s))
			return;
		t = ticket_open(m, s, p, next - p, d->write, true);
		if (!t)
			return;
		ticket_hurry(m, t);
	}
}
