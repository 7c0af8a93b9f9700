/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model_test.c: random operations on mem/ against a naive model: an array of pages, a
 * list of tickets, no table, no hash, 128-bit bounds. Every verdict, move, hold, waiter
 * and ticket is compared. The table has room for all pages here; dma_test.c has tables
 * that are too small. A failure prints its seed: `model_test SEED` runs that alone.
 */
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/spt.h"
#include "mem/tickets.h"
#include "model.h"

#include <stdlib.h>

static uint64_t seed_only, moving_waits;

/* --- resolving ----------------------------------------------------------- */

struct want {
	enum verdict v;
	struct m_region *r;
	uint64_t addr, first, num, missing;
	unsigned inlined;
	bool again; /* the same access missed a page before */
};

static bool want_legal(struct model *x, const struct dma *d, struct want *want)
{
	struct m_region *r = model_region(x, d->key);
	const unsigned __int128 one = 1;
	uint32_t need = d->need;

	if (!r || !r->live || r->attr.pd != d->pd)
		return false;
	if (!d->remote && d->write)
		need |= ACCESS_LOCAL_WRITE;
	if (d->remote && (need & (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE |
				  ACCESS_REMOTE_ATOMIC)) == 0)
		return false;
	if ((r->attr.access & need) != need || d->iova < r->attr.iova ||
	    one * d->iova + d->len > one * r->attr.iova + r->attr.length)
		return false;
	want->r = r;
	want->addr = r->attr.addr + (d->iova - r->attr.iova);
	want->first = want->addr / 4096;
	want->num = (want->addr + d->len - 1) / 4096 - want->first + 1;
	return one * want->addr + d->len <= one << 56;
}

static void want_pages(struct model *x, const struct dma *d, uint64_t fresh,
		       struct m_waiter *w, struct want *want)
{
	want->v = V_OK;
	for (uint64_t p = want->first; p < want->first + want->num; p++) {
		const struct m_page *pg = page_at(x, p);
		bool cheap = pg->cheap && (x->exact || pg->cheap_ns >= fresh);

		if (!model_busy(x, p)) {
			if (model_ready(x, p, d->write, fresh, want->r))
				continue;
			if (cheap && d->set && want->inlined < x->budget) {
				want->inlined++;
				continue;
			}
		}
		want->v = V_WAIT;
		want->missing = p;
		break;
	}
	if (want->v == V_WAIT && w && w->bad && (d->write || !w->bad_write) &&
	    w->bad_page >= want->first &&
	    w->bad_page < want->first + want->num &&
	    (model_busy(x, w->bad_page) ||
	     !model_ready(x, w->bad_page, d->write, fresh, want->r)))
		want->v = V_PROT;
}

static bool ticket_fits(struct model *x, const struct m_ticket *t,
			const struct dma *d, uint64_t fresh,
			const struct want *want)
{
	return ticket_has(t, want->missing) &&
	       (!d->write || t->write ||
		model_ready(x, want->missing, true, fresh, want->r));
}

/* The first page that is asked for: all that it needs, if it was here before. */
static uint64_t want_from(const struct model *x, const struct want *want)
{
	if (!want->again || want->missing - want->first >= 256)
		return want->missing;
	for (uint64_t p = want->first; p < want->missing; p++)
		for (int i = 0; i < TICKETS; i++)
			if (ticket_has(&x->ticket[i], p))
				return want->missing;
	return want->first;
}

static void check_opened(struct model *x, const struct dma *d, uint64_t fresh,
			 const struct want *want, struct m_waiter *w)
{
	const uint64_t from = want_from(x, want),
		       need = want->first + want->num;

	unsigned __int128 span = (unsigned __int128)d->len + d->ahead;
	uint64_t left = want->r->attr.length - (d->iova - want->r->attr.iova);
	struct list *pos = &x->m->own.queue[QUEUE_AHEAD];
	uint64_t last, end, num, pieces = 0;

	span = span > left ? left : span;
	if (span + want->addr > (unsigned __int128)1 << 56)
		span = ((unsigned __int128)1 << 56) - want->addr;
	last = (uint64_t)((want->addr + span - 1) / 4096);
	for (end = want->missing + 1; end <= last; end++) {
		bool start = false;

		for (int i = 0; i < TICKETS; i++)
			start |= ticket_has(&x->ticket[i], end) &&
				 x->ticket[i].first == end;
		if (start || end - from == 256 ||
		    (model_ready(x, end, d->write, fresh, want->r) &&
		     (from == want->missing || end >= need)))
			break;
	}
	/* what the access needs, then what is ahead in growing pieces */
	num = MIN(need, end) - from;
	w->ticket = model_ticket(x, d, from, num, w->w.ticket);
	REQUIRE(x, w->ticket >= 0);
	x->ticket[w->ticket].whole = true;
	for (uint64_t p = from + num; p < end; p += num) {
		num = MIN(MIN(2 * num, (uint64_t)AHEAD_PAGES), end - p);
		if (model_ticket(x, d, p, num, (struct ticket_id){0}) < 0)
			break;
		pieces++;
	}
	/* what they are called is mem/'s own */
	while (pieces-- > 0)
		pos = pos->prev;
	for (int i = 0; pos != &x->m->own.queue[QUEUE_AHEAD]; pos = pos->next) {
		const struct ticket *t = list_entry(pos, struct ticket, link);

		for (i = 0; i < TICKETS; i++)
			if (x->ticket[i].used && x->ticket[i].id.v == 0 &&
			    x->ticket[i].first == t->vpn)
				break;
		REQUIRE(x, i < TICKETS);
		x->ticket[i].id.v = t->gen * (uint32_t)TICKETS_MAX +
				    (uint32_t)(t - x->m->tickets.v);
	}
}

static void check_waits(struct model *x, const struct dma *d, uint64_t fresh,
			const struct want *want, struct m_waiter *w,
			enum verdict got)
{
	int old = w->ticket, fits = 0, used = 0;

	w->bad = false;
	for (int i = 0; i < TICKETS; i++)
		fits += ticket_fits(x, &x->ticket[i], d, fresh, want);
	if (old >= 0 && got == V_WAIT && fits > 0 &&
	    w->w.ticket.v == x->ticket[old].id.v)
		return;
	model_leave(x, w);
	for (int i = fits = 0; i < TICKETS; i++) {
		fits += ticket_fits(x, &x->ticket[i], d, fresh, want);
		used += x->ticket[i].used;
	}
	if (fits == 0 && used == TICKETS) {
		REQUIRE(x, got == V_NO_RESOURCE);
		return;
	}
	REQUIRE(x, got == V_WAIT && w->w.ticket.v != 0);
	w->ticket = -1;
	if (fits > 0) {
		struct m_ticket *t = x->ticket;

		while (t < x->ticket + TICKETS &&
		       !(t->used && t->id.v == w->w.ticket.v))
			t++;
		REQUIRE(x, t < x->ticket + TICKETS);
		REQUIRE(x, ticket_fits(x, t, d, fresh, want));
		if (!t->sent && !model_waited(x, (int)(t - x->ticket)))
			t->queued = ++x->seq;
		w->ticket = (int)(t - x->ticket);
		x->want.v[CNT_tickets_merged]++;
	} else {
		check_opened(x, d, fresh, want, w);
	}
	REQUIRE(x, w->w.since_ns == x->now);
	x->want.v[CNT_faults]++;
	w->joined = ++x->seq;
	w->first = want->first;
	w->num = want->num;
}

static void check_moved(struct model *x, const struct dma *d,
			const struct want *want, const struct moves *mv,
			struct m_access *a)
{
	const struct move *mo = &mv->m[0];

	REQUIRE(x, mv->num == 1 && a->holds.num == 1);
	REQUIRE(x, mo->addr == want->addr && mo->len == d->len);
	a->used = true;
	a->write = d->write;
	a->region = (int)(want->r - x->region);
	a->first = want->first;
	a->num = want->num;
	a->gen = x->gen;
	want->r->holds++;
	for (uint64_t p = 0; p < want->num; p++)
		page_at(x, want->first + p)->holds++;
	x->budget -= want->inlined;
	x->want.v[CNT_fault_inline] += want->inlined;
	x->want.v[CNT_faults] += want->inlined > 0;
}

static enum verdict run_resolve(struct model *x, const struct dma *d,
				bool atomic, uint64_t fresh, struct waiter *w,
				struct moves *mv, struct holds *h)
{
	enum verdict v;

	moves_reset(mv);
	h->num = 0;
	if (!atomic) {
		v = dma_resolve(x->m, d, x, 7, x->now, fresh, w, mv, h);
		if (v == V_OK && d->len > 0) {
			REQUIRE(x, mv->m[0].nic == x && mv->m[0].token == 7);
			REQUIRE(x, mv->m[0].kind == (d->write ? MOVE_SCATTER
							      : MOVE_GATHER));
		}
		return v;
	}
	v = dma_resolve_atomic(x->m, d, MOVE_CMP_SWP, 11, 12, 9, x->now, fresh,
			       w, mv, h);
	if (v == V_OK)
		REQUIRE(x, mv->m[0].kind == MOVE_CMP_SWP && !mv->m[0].nic &&
				   mv->m[0].operand == 11 &&
				   mv->m[0].compare == 12 &&
				   mv->m[0].token == 9);
	return v;
}

static void resolve(struct model *x, const struct dma *d, bool atomic,
		    uint64_t given, struct m_waiter *w, struct m_access *a)
{
	struct want want = {.v = V_PROT};
	uint64_t fresh = given;
	static struct moves mv;
	enum verdict got;
	bool legal;

	model_time(x);
	legal = want_legal(x, d, &want);
	if (legal && want.r->attr.length == UINT64_MAX)
		fresh = MAX(given, x->now - IMPLICIT_FRESH);
	want.again = w && m_waited_for(w, want.first, want.num);
	if (atomic && d->iova % 8 != 0)
		want.v = V_INVALID;
	else if (legal && atomic && want.addr % 8 != 0)
		want.v = V_INVALID;
	else if (d->len == 0)
		want.v = V_OK;
	else if (legal)
		want_pages(x, d, fresh, w, &want);
	REQUIRE(x,
		dma_check(x->m, d) == (legal || d->len == 0 ? V_OK : V_PROT));
	got = run_resolve(x, d, atomic, given, w ? &w->w : NULL, &mv,
			  &a->holds);
	x->seen[got]++;
	if (got != V_OK || d->len == 0)
		REQUIRE(x, mv.num == 0 && a->holds.num == 0);
	if (want.v == V_WAIT && w) {
		check_waits(x, d, fresh, &want, w, got);
		return;
	}
	if (legal && d->len > 0 && want.v == V_OK &&
	    model_waits(x, want.first, want.num, w, got))
		return;
	REQUIRE(x, got == want.v);
	if (w && legal && d->len > 0 && (got == V_OK || got == V_PROT)) {
		model_leave(x, w);
		w->bad = false;
	}
	if (got == V_OK && d->len > 0)
		check_moved(x, d, &want, &mv, a);
}

/* --- operations ---------------------------------------------------------- */

static uint64_t some_len(struct model *x)
{
	static const uint64_t len[] = {0,    1,	   8,	 4095, 4096,
				       4097, 8192, 8193, 12000};

	return len[pick(x, ARRAY_SIZE(len))];
}

static void op_resolve(struct model *x)
{
	static const uint64_t ahead[] = {0, 0, 1, 4096, 65536, UINT64_MAX};
	static const uint32_t need[] = {0, ACCESS_REMOTE_READ,
					ACCESS_REMOTE_WRITE,
					ACCESS_REMOTE_ATOMIC};
	struct m_region *r = &x->region[pick(x, REGIONS)];
	struct m_access *a = &x->access[pick(x, ACCESSES)];
	struct m_waiter *w = &x->waiter[pick(x, WAITERS)];
	bool atomic = chance(x, 15);
	uint64_t fresh = x->now - IMPLICIT_FRESH;
	struct dma d = {
		.pd = chance(x, 96) ? r->attr.pd : (uint32_t)x->pd[pick(x, 2)],
		.key = r->key,
		.iova = r->attr.iova,
		.len = atomic ? 8 : some_len(x),
		.write = atomic || chance(x, 50),
		.set = chance(x, 75) ? STRATEGY_BIT(STRATEGY_INLINE) : 0,
		.remote = chance(x, 50),
		.ahead = ahead[pick(x, ARRAY_SIZE(ahead))],
	};

	if (a->used)
		return;
	if (chance(x, 5))
		d.key ^= 1U << pick(x, 32);
	if (d.remote && chance(x, 80))
		d.need = d.write ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ;
	else if (d.remote)
		d.need = need[pick(x, 4)];
	if (r->attr.length == UINT64_MAX)
		d.iova += model_addr(x);
	else
		d.iova += pick(x, r->attr.length + 2) * chance(x, 80);
	if (atomic && chance(x, 80))
		d.iova &= ~UINT64_C(7);
	if (!x->exact && chance(x, 20))
		fresh = x->now - pick(x, 3) * pick(x, 20000000) + pick(x, 2);
	resolve(x, &d, atomic, fresh, chance(x, 90) ? w : NULL, a);
}

static void op_release(struct model *x)
{
	struct m_access *a = &x->access[pick(x, ACCESSES)];
	bool ok = chance(x, 80);

	if (!a->used)
		return;
	model_time(x);
	dma_release(x->m, &a->holds, 0, ok, x->now);
	REQUIRE(x, a->holds.num == 0);
	x->region[a->region].holds--;
	for (uint64_t p = a->first; p < a->first + a->num; p++) {
		page_at(x, p)->holds--;
		if (ok && !x->exact && a->gen == x->gen)
			model_install(x, p, a->write,
				      x->region[a->region].since, x->tick);
	}
	a->used = false;
	x->lazy |= chance(x, 20);
	if (!x->lazy || chance(x, 50))
		model_moved(x);
}

static void op_register(struct model *x)
{
	struct m_region *r = &x->region[pick(x, REGIONS)];
	uint64_t bytes = PLAY * 4096;
	struct mr_attr a = {
		.pd = (uint32_t)x->pd[pick(x, 2)],
		.addr = x->base * 4096 + pick(x, bytes - 12000),
		.access = ACCESS_LOCAL_WRITE | (uint32_t)pick(x, 16),
	};

	if (r->exists)
		return;
	if (chance(x, 70))
		a.access = FIX_RIGHTS;
	else if (chance(x, 60))
		a.access = chance(x, 50) ? 0 : ACCESS_REMOTE_READ;
	a.length = pick(x, x->base * 4096 + bytes - a.addr + 1);
	a.iova = chance(x, 50) ? a.addr : rnd_next(&x->rnd);
	if (chance(x, 20))
		a.iova = UINT64_MAX - a.length + 1;
	else if (a.iova > UINT64_MAX - a.length)
		a.iova = 0;
	if (chance(x, 40)) {
		a.addr = a.iova = 0;
		a.length = UINT64_MAX;
	}
	*r = (struct m_region){.attr = a, .exists = true, .live = true};
	r->since = model_renew(x, &a);
	REQUIRE(x, mr_register(x->m, &a, &r->key) == 0);
	for (int i = 0; i < REGIONS; i++)
		REQUIRE(x, &x->region[i] == r || !x->region[i].exists ||
				   x->region[i].key != r->key);
}

static void op_unregister(struct model *x)
{
	struct m_region *r = &x->region[pick(x, REGIONS)];
	uint32_t pd = (uint32_t)x->pd[pick(x, 2)];
	int ret;

	switch (pick(x, 6)) {
	case 0:
		ret = mr_revoke(x->m, r->key);
		REQUIRE(x, ret == (r->exists ? 0 : -ENOENT));
		r->live = false;
		break;
	default:
		ret = mr_free(x->m, r->key);
		REQUIRE(x, ret == (!r->exists ? -ENOENT
				   : r->holds ? -EBUSY
					      : 0));
		r->live = false;
		r->exists = r->exists && r->holds > 0;
		break;
	case 1:
		REQUIRE(x,
			mr_invalidate(x->m, pd, r->key) ==
				(r->live && r->attr.pd == pd ? V_OK : V_PROT));
		r->live = r->live && r->attr.pd != pd;
	}
}

/* A range, seldom the whole address space. */
static void some_range(struct model *x, uint64_t *first, uint64_t *num)
{
	*first = x->base + pick(x, PLAY);
	*num = pick(x, 4) == 0 ? pick(x, 64) : pick(x, 4);
	*num = *num > PAGES - (*first - x->base) ? 1 : *num;
	if (chance(x, 2)) {
		*first = 0;
		*num = UINT64_MAX;
	}
}

static bool in_range(struct model *x, int i, uint64_t first, uint64_t num)
{
	uint64_t vpn = x->base + (uint64_t)i;

	return vpn >= first && vpn - first < num;
}

static bool model_held(struct model *x, uint64_t first, uint64_t num)
{
	for (int i = 0; i < PAGES; i++)
		if (in_range(x, i, first, num) && x->page[i].holds > 0)
			return x->exact;
	return false;
}

static void op_map(struct model *x)
{
	uint64_t first = x->base + pick(x, PLAY), num = pick(x, 6);
	bool writable = chance(x, 60);

	model_time(x);
	spt_map(x->m, first, MIN(num, VPN_END - first), writable, x->now);
	for (uint64_t i = 0; i < num && first + i < VPN_END; i++)
		model_install(x, first + i, writable, x->renewed, x->tick);
}

static void op_unmap(struct model *x, int limit)
{
	uint64_t first, num;
	bool busy;
	int ret;

	some_range(x, &first, &num);
	busy = model_held(x, first, num);
	REQUIRE(x, spt_held(x->m, first, num) == busy);
	ret = limit == 0 ? spt_unmap(x->m, first, num)
			 : spt_protect(x->m, first, num);
	REQUIRE(x, ret == (busy ? -EBUSY : 0));
	if (busy)
		return;
	x->gen++;
	for (int i = 0; i < PAGES; i++)
		if (in_range(x, i, first, num)) {
			x->page[i].cheap = false;
			x->page[i].state = MIN(x->page[i].state, limit);
		}
	model_stale(x, first, MIN(num, VPN_END), limit == 0);
}

static void op_fault(struct model *x)
{
	uint64_t off = pick(x, PLAY * 4096), len = some_len(x);
	uint64_t first = x->base + off / 4096;

	dma_fault(x->m, x->base * 4096 + off, len);
	x->gen++;
	if (len == 0)
		return;
	for (; first <= x->base + (off + len - 1) / 4096 && first < VPN_END;
	     first++) {
		page_at(x, first)->state = 0;
		page_at(x, first)->cheap = false;
	}
}

static void op_protect_all(struct model *x)
{
	spt_protect_all(x->m);
	x->gen++;
	for (int i = 0; i < PAGES; i++) {
		x->page[i].state = MIN(x->page[i].state, 1);
		x->page[i].cheap = false;
	}
	if (!x->exact && x->tick - x->now_tick < 8)
		x->tick++;
	model_stale(x, 0, VPN_END, false);
}

/* --- the pagers ---------------------------------------------------------- */

static void op_next(struct model *x)
{
	struct m_ticket *want = model_next(x);
	struct ticket_req req;

	REQUIRE(x, ticket_next(x->m, &req) == (want != NULL));
	if (!want)
		return;
	REQUIRE(x, req.id.v == want->id.v && req.vpn == want->first);
	REQUIRE(x, req.pages == want->num && req.write == want->write);
	REQUIRE(x, req.whole == want->whole);
	want->sent = true;
	want->ahead = !model_waited(x, (int)(want - x->ticket));
	if (!chance(x, 20))
		return;
	ticket_unsent(x->m, req.id);
	want->sent = want->protect = false;
	want->at = 0;
	want->valid = want->num;
	want->queued = --x->front;
	want->used = !want->ahead;
	want->ahead = false;
}

static void model_wake(struct model *x, int t, bool failed, uint64_t bad_page,
		       struct list *woken)
{
	uint64_t last = 0;

	list_for_each_safe(pos, tmp, woken) {
		struct waiter *real = list_entry(pos, struct waiter, link);
		struct m_waiter *w = real->owner;

		list_del(pos);
		REQUIRE(x, w->ticket == t && w->joined > last);
		REQUIRE(x, real->ticket.v == 0);
		last = w->joined;
		w->ticket = -1;
		if (failed && bad_page >= w->first &&
		    bad_page < w->first + w->num) {
			w->bad = true;
			w->bad_page = bad_page;
			w->bad_write = x->ticket[t].write;
		}
	}
	for (int i = 0; i < WAITERS; i++)
		REQUIRE(x, x->waiter[i].ticket != t);
}

static void op_done(struct model *x)
{
	int i = (int)pick(x, TICKETS);
	struct m_ticket *t = &x->ticket[i];
	uint64_t ready = chance(x, 60) ? t->num : pick(x, t->num + 1);
	bool failed = chance(x, 25), writable = t->write || chance(x, 30);
	uint64_t c0 = pick(x, PLAY), c1 = c0 + pick(x, PLAY) * chance(x, 30);
	struct list woken;

	if (!t->used || !t->sent)
		return;
	if (chance(x, 10))
		writable = false;
	list_init(&woken);
	model_time(x);
	ticket_done(x->m, t->id, ready, failed, writable, (x->base + c0) * 4096,
		    (x->base + c1) * 4096, 5, x->now, &woken);
	x->want.v[CNT_fault_prot] += failed && ready < t->num;
	x->want.v[CNT_service_ns] += 5;
	for (uint64_t p = 0; p < MIN(ready, t->valid); p++)
		model_install(x, t->first + p, writable && !t->protect,
			      x->renewed, t->at ? t->at : x->tick);
	if (t->valid == t->num && !t->protect && !t->at) {
		for (; c0 < c1; c0++) {
			x->page[c0].cheap = true;
			x->page[c0].cheap_ns = x->now;
		}
	}
	model_wake(x, i, failed && ready < t->valid, t->first + ready, &woken);
	t->used = false;
}

static void op_cancel(struct model *x)
{
	struct m_waiter *w = &x->waiter[pick(x, WAITERS)];

	waiter_cancel(x->m, &w->w);
	w->bad = false;
	model_leave(x, w);
}

static void op_time(struct model *x)
{
	if (chance(x, 60))
		x->now += pick(x, 400000);
	else if (chance(x, 70))
		x->now += pick(x, 15000000);
	else if (chance(x, 80))
		x->now += pick(x, 100) << 20;
	else if (chance(x, 50))
		x->now += pick(x, UINT64_C(1500000000000));
	else /* stamps wrap */
		x->now += UINT64_C(1) << 40;
	spt_map(x->m, x->base, 0, false, x->now);
	model_time(x);
	x->budget = (unsigned)pick(x, 5);
	mem_inline_budget(x->m, x->budget);
}

static void op(struct model *x)
{
	uint64_t n = pick(x, 100);

	if (chance(x, 5))
		model_resize(x);
	else if (n < 40)
		op_resolve(x);
	else if (n < 56)
		op_release(x);
	else if (n < 63)
		op_map(x);
	else if (n < 68)
		op_next(x);
	else if (n < 77)
		op_done(x);
	else if (n < 81)
		op_unmap(x, 0);
	else if (n < 84)
		op_unmap(x, 1);
	else if (n < 85)
		op_fault(x);
	else if (n < 86)
		op_protect_all(x);
	else if (n < 89)
		op_cancel(x);
	else if (n < 93)
		op_time(x);
	else if (n < 98)
		op_register(x);
	else
		op_unregister(x);
}

/* --- running ------------------------------------------------------------- */

static void check_counts(struct model *x)
{
	static const enum counter same[] = {
		CNT_faults,	  CNT_tickets,	  CNT_tickets_merged,
		CNT_fault_prot,	  CNT_service_ns, CNT_fault_inline,
		CNT_moving_waits,
	};
	unsigned out = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(same); i++)
		REQUIRE(x, x->cnt.v[same[i]] == x->want.v[same[i]]);
	for (int i = 0; i < TICKETS; i++)
		out += x->ticket[i].used;
	REQUIRE(x, tickets_out(x->m) == out);
	REQUIRE(x, x->cnt.v[CNT_spt_evictions] == 0);
	for (int i = 0; i < WAITERS; i++) {
		const struct m_waiter *w = &x->waiter[i];

		REQUIRE(x, w->bad == w->w.bad.any);
		REQUIRE(x,
			(w->ticket >= 0 || w->moving) == (w->w.ticket.v != 0));
	}
}

static void model_open(struct model *x, bool exact)
{
	/* low, at the edge of two stretches of the table, at the very end */
	const uint64_t bases[] = {1, 7 * 1024 - 40, VPN_END - PLAY};
	struct mem_config cfg = {
		.entries = 2048,
		.slots = 1,
		.tickets = TICKETS,
		.pagers = TICKETS,
		.exact = exact,
		.ahead = AHEAD_MESSAGE,
		.seed = {seed_now, 1},
		.counters = &x->cnt,
	};

	x->rnd = (struct rnd){.k0 = seed_now, .k1 = exact};
	x->exact = exact;
	x->base = bases[pick(x, ARRAY_SIZE(bases))];
	x->now = 1000000000;
	x->front = UINT64_C(1) << 40;
	x->renewed = -1;
	x->seq = x->front;
	REQUIRE(x, mem_open(&x->m, &cfg) == 0);
	x->pd[0] = pd_alloc(x->m);
	x->pd[1] = pd_alloc(x->m);
	for (int i = 0; i < WAITERS; i++) {
		waiter_init(&x->waiter[i].w, &x->waiter[i]);
		x->waiter[i].ticket = -1;
	}
}

static void model_close(struct model *x)
{
	for (int i = 0; i < WAITERS; i++)
		waiter_cancel(x->m, &x->waiter[i].w);
	for (int i = 0; i < TICKETS; i++) {
		struct list woken;

		list_init(&woken);
		if (x->ticket[i].used && x->ticket[i].sent)
			ticket_done(x->m, x->ticket[i].id, 0, false, false, 0,
				    0, 0, x->now, &woken);
		REQUIRE(x, list_empty(&woken));
	}
	for (int i = 0; i < ACCESSES; i++)
		dma_release(x->m, &x->access[i].holds, 0, true, x->now);
	for (int i = 0; i < REGIONS; i++)
		if (x->region[i].exists)
			REQUIRE(x, mr_free(x->m, x->region[i].key) == 0);
	REQUIRE(x, pd_dealloc(x->m, (uint32_t)x->pd[0]) == 0);
	REQUIRE(x, !spt_held(x->m, 0, VPN_END));
	mem_close(x->m);
}

static void run(uint64_t seed, bool exact)
{
	struct model *x = calloc(1, sizeof(*x));

	assert_non_null(x);
	seed_now = seed;
	model_open(x, exact);
	for (op_now = 0; op_now < OPS; op_now++) {
		op(x);
		check_counts(x);
	}
	/* A mechanism that never fires tests nothing. */
	for (int v = V_OK; v <= V_PROT; v++)
		REQUIRE(x, x->seen[v] > 50);
	REQUIRE(x, x->seen[V_NO_RESOURCE] > 0 && x->seen[V_INVALID] > 0);
	REQUIRE(x, x->cnt.v[CNT_fault_inline] > 0);
	REQUIRE(x, x->cnt.v[CNT_fault_prot] > 0);
	REQUIRE(x, x->cnt.v[CNT_tickets_merged] > 0);
	moving_waits += x->cnt.v[CNT_moving_waits];
	model_close(x);
	free(x);
}

static void run_seeds(bool exact)
{
	if (seed_only != 0) {
		run(seed_only, exact);
		return;
	}
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		run(seed, exact);
	/* too rare to ask it of every seed */
	assert_true(moving_waits > SEEDS);
	moving_waits = 0;
}

static void model__exact(void **state)
{
	(void)state;
	run_seeds(true);
}

static void model__ageing(void **state)
{
	(void)state;
	run_seeds(false);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(model__exact),
		cmocka_unit_test(model__ageing),
	};

	if (argc > 1)
		seed_only = strtoull(argv[1], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
