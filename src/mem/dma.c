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
#include "mem/impl.h"

enum {
	ACCESS_REMOTE = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
			ACCESS_REMOTE_ATOMIC,
	ATOMIC_BYTES = 8,
};

/**
 * struct walk - One access on its way to moves.
 * @vpn, @pages: the pages of the access
 * @addr:	its application address
 * @behind:	bytes of the region from @addr on
 * @inlined:	cheap misses so far
 * @touch:	some page was not touched in this tick
 */
struct walk {
	struct mem *m;
	const struct dma *d;
	struct mr *mr;
	uint32_t mr_index;
	uint64_t addr, behind;
	uint64_t vpn, pages;
	uint64_t now_ns, fresh_ns;
	struct spt_view view;
	unsigned inlined;
	bool touch;
};

/* BUSY: a ticket is out for it; wait behind it, whatever the table says.
 * NOW: ready, and to touch it would tell the table nothing new. */
enum page {
	PAGE_MISSING,
	PAGE_BUSY,
	PAGE_CHEAP,
	PAGE_READY,
	PAGE_NOW,
	PAGE_NUM
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

static enum verdict walk_check(struct walk *w, struct mem *m,
			       const struct dma *d)
{
	struct mr *mr = mr_lookup(m, d->key, &w->mr_index);
	uint64_t off;

	if (!mr || mr->attr.pd != d->pd || !rights_ok(d, mr->attr.access))
		return V_PROT;
	off = d->iova - mr->attr.iova;
	if (d->iova < mr->attr.iova || !range_ok(off, d->len, mr->attr.length))
		return V_PROT;
	w->addr = mr->attr.addr + off;
	if (!range_ok(w->addr, d->len, ADDR_END))
		return V_PROT;
	w->behind = MIN(mr->attr.length - off, ADDR_END - w->addr);
	w->m = m;
	w->d = d;
	w->mr = mr;
	w->vpn = page_of(w->addr);
	w->pages = pages_spanned(w->addr, d->len);
	return V_OK;
}

/**
 * dma_check() - Key, PD, rights and bounds only, no page. An address that no
 * application page can have is out of bounds, too.
 * @m:		the NIC's memory
 * @d:		the access
 *
 * Return: V_OK (always for no bytes), or V_PROT.
 */
enum verdict dma_check(struct mem *m, const struct dma *d)
{
	struct walk w;

	return d->len == 0 ? V_OK : walk_check(&w, m, d);
}

/* --- misses -------------------------------------------------------------- */

static bool page_doubted(const struct mem *m, uint64_t vpn)
{
	for (unsigned i = 0; i < DOUBTS; i++)
		if (vpn >= m->doubt[i].start && vpn < m->doubt[i].end)
			return true;
	return false;
}

static enum page page_look(const struct walk *w, uint64_t vpn)
{
	struct mem *m = w->m;
	int64_t age;

	if (m->cfg.always_ready && !page_doubted(m, vpn))
		return PAGE_READY;
	if (unlikely(m->tickets.hashed > 0) &&
	    ticket_find(&m->tickets, vpn, false))
		return PAGE_BUSY;
	age = spt_age(&m->spt, &w->view, vpn, w->d->write);
	if (likely(age >= 0))
		return age == 0 ? PAGE_NOW : PAGE_READY;
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

/* One ticket for what the access needs, and more of growing size for what is
 * ahead of it, up to the first ready page: the access does not wait for pages
 * that only those behind it need.
 */
static struct ticket *walk_open(const struct walk *w, uint64_t vpn)
{
	uint64_t bytes = MIN(sat_add(w->d->len, w->d->ahead), w->behind);
	uint64_t end = page_of(w->addr + (bytes - 1)) + 1, p;
	uint64_t num = w->vpn + w->pages - vpn;
	struct ticket *first;

	end = ticket_room(&w->m->tickets, vpn, end);
	for (p = vpn + 1; p < end; p++)
		if (spt_ready(&w->m->spt, &w->view, p, w->d->write))
			break;
	end = p;
	num = MIN(num, end - vpn);
	first = ticket_open(w->m, vpn, num, w->d->write, true);
	for (p = vpn + num; first && p < end; p += num) {
		num = MIN(MIN(2 * num, (uint64_t)AHEAD_PAGES), end - p);
		if (!ticket_open(w->m, p, num, w->d->write, false))
			break;
	}
	return first;
}

/* Did a ticket that this waiter waited for fail at a page we need? Says so
 * once.
 */
static bool walk_failed(const struct walk *w, struct waiter *wait)
{
	bool bad = wait->bad && (w->d->write || !wait->bad_write);

	wait->bad = wait->bad_write = false;
	return bad && range_ok(wait->bad_page - w->vpn, 1, w->pages) &&
	       page_look(w, wait->bad_page) < PAGE_READY;
}

static enum verdict walk_miss(const struct walk *w, uint64_t vpn,
			      struct waiter *wait)
{
	struct mem *m = w->m;
	struct ticket *t;

	if (!wait)
		return V_WAIT;
	if (walk_failed(w, wait)) {
		ticket_leave(m, wait);
		return V_PROT;
	}
	t = walk_join(w, vpn);
	if (t && wait->ticket.v > TICKET_MOVING &&
	    t == ticket_of(&m->tickets, wait->ticket))
		return V_WAIT;
	ticket_leave(m, wait);
	if (!spt_room(&m->spt, vpn))
		return V_NO_RESOURCE;
	/* Leaving may have closed it. */
	t = walk_join(w, vpn);
	if (t)
		count(m->cnt, CNT_tickets_merged);
	else
		t = walk_open(w, vpn);
	if (!t)
		return V_NO_RESOURCE;
	count(m->cnt, CNT_faults);
	if (spt_was_replaced(&m->spt, vpn))
		count(m->cnt, CNT_table_misses);
	wait->vpn = w->vpn;
	wait->pages = w->pages;
	wait->since_ns = w->now_ns;
	ticket_wait(m, t, wait);
	return V_WAIT;
}

/* --- the walk ------------------------------------------------------------ */

static enum verdict walk_pages(struct walk *w, struct waiter *wait)
{
	for (uint64_t p = w->vpn; p < w->vpn + w->pages; p++) {
		enum page page = page_look(w, p);

		if (likely(page == PAGE_NOW))
			continue;
		w->touch = true;
		if (page == PAGE_READY)
			continue;
		if (page == PAGE_CHEAP && !w->d->ready &&
		    w->inlined < w->m->inline_budget)
			w->inlined++;
		else
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

static enum verdict walk_hold(struct walk *w, struct holds *holds)
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
	w->mr->holds++;
	m->holds++;
	holds->h[holds->num++] = (struct hold){
		.mr = w->mr_index | (w->d->write ? HOLD_WRITE : 0) |
		      m->spt.gen << HOLD_GEN_SHIFT,
		.pages = (uint32_t)w->pages,
		.vpn = w->vpn,
		.touched = (uint32_t)m->spt.tick - w->touch,
	};
	if (w->inlined > 0) {
		m->inline_budget -= w->inlined;
		count_add(m->cnt, CNT_fault_inline, w->inlined);
		count(m->cnt, CNT_faults);
	}
	return V_OK;
}

/* What a region knows of its pages ends with it: whoever maps something else
 * there has to register it. But where all memory is registered nobody has to. */
static uint64_t fresh_for(const struct walk *w)
{
	enum { IMPLICIT_FRESH_NS = 10 * 1000 * 1000 };

	if (w->mr->attr.length != UINT64_MAX || w->now_ns < IMPLICIT_FRESH_NS)
		return w->fresh_ns;
	return MAX(w->fresh_ns, w->now_ns - IMPLICIT_FRESH_NS);
}

/* Everything but the move. @d->len > 0. */
static enum verdict walk_all(struct walk *w, struct mem *m, const struct dma *d,
			     struct waiter *wait, struct holds *holds)
{
	enum verdict v = walk_check(w, m, d);

	if (v != V_OK)
		return v;
	if (d->len > UINT32_MAX)
		return V_LENGTH;
	spt_tick(&m->spt, w->now_ns);
	w->fresh_ns = fresh_for(w);
	w->view = spt_view(&m->spt, w->now_ns, w->fresh_ns, w->mr->since);
	v = walk_pages(w, wait);
	if (v == V_OK && unlikely(m->holds != holds->num))
		v = walk_moving(w, wait, holds);
	if (v == V_OK)
		v = walk_hold(w, holds);
	if (v == V_OK && wait)
		waiter_cancel(m, wait);
	return v;
}

/**
 * dma_resolve() - Check an access, see that its pages are ready, append one
 * move and one hold.
 * @m:		the NIC's memory
 * @d:		the access; at most 4 GiB - 1, and at most half as many pages as
 *		the table has entries, or it may never be ready
 * @nic:	NIC side of the move
 * @token:	for the move
 * @now_ns, @fresh_ns: now, and what counts as fresh
 * @w:		waiter to use on a miss, parked with the ticket on V_WAIT; or NULL
 * @mv, @holds:	appended to on V_OK, which needs room for one more; untouched
 *		otherwise
 *
 * Return: V_OK, V_WAIT, V_PROT, V_LENGTH; V_NO_RESOURCE: no ticket, or no
 * entry, can be had now.
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
		.kind = d->write ? MOVE_SCATTER : MOVE_GATHER,
		.token = token,
	};
	return V_OK;
}

/**
 * dma_resolve_atomic() - The same for an atomic move.
 * @m:		the NIC's memory
 * @d:		the access: 8 bytes, for writing
 * @kind:	MOVE_FETCH_ADD or MOVE_CMP_SWP
 * @operand, @compare: of the move
 * @token, @now_ns, @fresh_ns, @w, @mv, @holds: as in dma_resolve()
 *
 * Return: as dma_resolve(), or V_INVALID if it is not aligned.
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

/* --- afterwards ---------------------------------------------------------- */

/* A move accessed these pages, so they are ready; an exact host says so
 * itself. If anything lost rights since the access was resolved, maybe these
 * pages did after the move: nothing is concluded then.
 */
static void hold_touch(struct mem *m, const struct mr *mr, const struct hold *h)
{
	uint32_t gen = m->spt.gen << HOLD_GEN_SHIFT >> HOLD_GEN_SHIFT;

	if (m->cfg.exact || h->mr >> HOLD_GEN_SHIFT != gen ||
	    h->touched == (uint32_t)m->spt.tick)
		return;
	for (uint64_t i = 0; i < h->pages; i++)
		spt_install(m, h->vpn + i, h->mr & HOLD_WRITE, mr->since,
			    m->spt.tick);
}

/**
 * dma_release() - The moves ended: drop holds.
 * @m:		the NIC's memory
 * @holds:	those from index @from on are dropped
 * @from:	index
 * @ok:		the moves were made: the pages were just touched
 * @now_ns:	now
 */
void dma_release(struct mem *m, struct holds *holds, unsigned from, bool ok,
		 uint64_t now_ns)
{
	spt_tick(&m->spt, now_ns);
	if (from == 0 && holds->num > 0)
		moving_remove(holds);
	for (unsigned i = from; i < holds->num; i++) {
		const struct hold *h = &holds->h[i];
		struct mr *mr = mr_at(&m->mrs, h->mr & (MR_MAX - 1));

		CHECK(mr->holds > 0);
		mr->holds--;
		m->holds--;
		if (ok)
			hold_touch(m, mr, h);
		if (unlikely(!list_empty(&m->moving_wait)))
			moving_wake(m, h);
		if (m->cfg.exact)
			for (uint64_t p = 0; p < h->pages; p++)
				spt_unhold(m, h->vpn + p);
	}
	holds->num = MIN(holds->num, from);
}

/**
 * dma_trim() - Less is moved than was resolved.
 * @m:		the NIC's memory
 * @bytes:	so much less, of the last move; fewer than it has
 * @mv, @holds:	their last entries are from the same dma_resolve()
 */
void dma_trim(struct mem *m, uint64_t bytes, struct moves *mv,
	      struct holds *holds)
{
	struct hold *h = &holds->h[holds->num - 1];
	struct move *last = &mv->m[mv->num - 1];
	uint64_t pages;

	CHECK(mv->num > 0 && holds->num > 0 && bytes < last->len);
	last->len -= (uint32_t)bytes;
	pages = pages_spanned(last->addr, last->len);
	for (uint64_t p = pages; m->cfg.exact && p < h->pages; p++)
		spt_unhold(m, h->vpn + p);
	h->pages = (uint32_t)pages;
}

/**
 * dma_fault() - A move got EFAULT: the table was wrong about these pages.
 * @m:		the NIC's memory
 * @addr, @len:	what the move was to access
 */
void dma_fault(struct mem *m, uint64_t addr, uint64_t len)
{
	uint64_t vpn = page_of(addr);
	uint64_t pages = pages_clip(vpn, pages_spanned(addr, len));

	spt_forget(m, vpn, pages);
	m->doubt[m->doubts % DOUBTS].start = vpn;
	m->doubt[m->doubts++ % DOUBTS].end = vpn + pages;
}
