/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model.h: the naive model of model_test.c: an array of pages, a list of
 * tickets, no table, no hash.
 */
#ifndef NOPIN_TESTS_MEM_MODEL_H
#define NOPIN_TESTS_MEM_MODEL_H

#include "fixture.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/share.h"
#include "mem/state.h"
#include "mem/use.h"
#include "mem/waiter.h"

enum {
	PAGES = 400, /* that exist in the model */
	PLAY = 96, /* that are accessed; tickets may run ahead of them */
	REGIONS = 24,
	ACCESSES = 10,
	WAITERS = 12,
	TICKETS = 10,
	OPS = 12000,
	SEEDS = 20,
	IMPLICIT_FRESH = 10 * 1000 * 1000, /* ns */
};

struct m_page {
	int state;
	uint64_t tick;
	unsigned holds;
	bool cheap;
	uint64_t cheap_ns;
};

struct m_region {
	struct mr_attr attr;
	uint32_t key;
	bool exists, live;
	unsigned holds;
	int64_t since; /* what was learned up to this tick does not count */
};

struct m_ticket {
	bool used, sent, write;
	bool whole, ahead; /* ahead: sent without a waiter */
	bool protect; /* the answer is about reading only */
	uint64_t first, num; /* pages */
	uint64_t valid; /* the answer is about these */
	uint64_t at; /* and about this tick; 0: when it comes */
	uint64_t queued; /* order of ticket_next(), by first waiter if any */
	struct ticket_id id;
};

struct m_waiter {
	struct waiter w;
	int ticket; /* index or -1 */
	bool moving; /* waits for the move that writes @page */
	uint64_t page;
	uint64_t joined;
	uint64_t first, num;
	bool bad, bad_write;
	uint64_t bad_page;
};

/* Is that the access which it began to wait for? */
static inline bool m_waited_for(const struct m_waiter *w, uint64_t first,
				uint64_t num)
{
	const struct waiter_access *a = &w->w.access;

	return a->begun_ns && a->vpn == first && a->pages == num;
}

struct m_access {
	bool used, write;
	int region;
	uint64_t first, num;
	unsigned gen;
	struct holds holds;
};

struct model {
	struct mem *m;
	struct counters cnt, want;
	struct rnd rnd;
	bool exact;
	bool lazy; /* waiters of more than one move may be let go at once */
	uint64_t base; /* first page */
	uint64_t now, tick, now_tick, stamped;
	int64_t renewed;
	unsigned gen, budget;
	uint64_t seq, front;
	int pd[2];
	struct m_page page[PAGES];
	struct m_region region[REGIONS];
	struct m_ticket ticket[TICKETS];
	struct m_waiter waiter[WAITERS];
	struct m_access access[ACCESSES];
	unsigned seen[V_NUM];
};

static uint64_t seed_now, op_now; /* for messages */

#define REQUIRE(x, cond)                                                       \
	do {                                                                   \
		if (!(cond)) {                                                 \
			print_error("seed %d op %d: %s\n", (int)seed_now,      \
				    (int)op_now, #cond);                       \
			fail();                                                \
		}                                                              \
	} while (0)

static inline uint64_t pick(struct model *x, uint64_t n)
{
	return rnd_next(&x->rnd) % n;
}

static inline bool chance(struct model *x, unsigned percent)
{
	return pick(x, 100) < percent;
}

/* --- the model ----------------------------------------------------------- */

static inline struct m_page *page_at(struct model *x, uint64_t vpn)
{
	assert_true(vpn >= x->base && vpn < x->base + PAGES);
	return &x->page[vpn - x->base];
}

static inline void model_time(struct model *x)
{
	x->now_tick = x->now >> 20;
	if (x->now_tick > x->tick)
		x->tick = x->now_tick;
}

static inline bool model_ready(struct model *x, uint64_t vpn, bool write,
			       uint64_t fresh, const struct m_region *r)
{
	const struct m_page *p = page_at(x, vpn);

	if (p->state < (write ? 2 : 1))
		return false;
	if (x->exact)
		return true;
	if (fresh > x->now || x->tick - p->tick > 1 << 18 ||
	    (int64_t)p->tick <= r->since)
		return false;
	return p->tick == x->tick || p->tick << 20 >= fresh;
}

static inline void model_install(struct model *x, uint64_t vpn, bool writable,
				 int64_t since, uint64_t at)
{
	struct m_page *p = page_at(x, vpn);

	if (!x->exact && p->state > 0 && p->tick > at)
		return;
	if (!x->exact && x->tick - at > 1 << 18)
		return;
	/* nothing new: not even what would be lost by it is */
	if (!x->exact && p->tick == at && p->state >= 1 + writable)
		return;
	if (!x->exact && p->state == 2 &&
	    (x->tick - p->tick > 64 || (int64_t)p->tick <= since))
		p->state = 1;
	if (p->state < 1 + writable)
		p->state = 1 + writable;
	p->tick = at;
	x->stamped = MAX(x->stamped, at);
}

/* A region is made. Return: its m_region.since. */
static inline int64_t model_renew(struct model *x, const struct mr_attr *a)
{
	const uint64_t first = a->addr / 4096;
	const uint64_t last = (a->addr + a->length - 1) / 4096;

	if (x->exact)
		return -1;
	if (x->stamped == x->tick && x->tick - x->now_tick < 4)
		x->tick++;
	x->renewed = (int64_t)x->tick - 1;
	for (uint64_t p = 0; p < PAGES && a->length > 0; p++)
		if (x->base + p >= first && x->base + p <= last)
			x->page[p].cheap = false;
	for (int i = 0; i < TICKETS; i++) {
		struct m_ticket *t = &x->ticket[i];

		if (t->used && t->sent && t->valid > 0 && a->length > 0 &&
		    t->first <= last && t->first + t->valid > first)
			t->at = x->tick - 1;
	}
	return x->renewed;
}

static inline bool ticket_has(const struct m_ticket *t, uint64_t vpn)
{
	return t->used && vpn >= t->first && vpn < t->first + t->valid;
}

static inline bool model_busy(struct model *x, uint64_t vpn)
{
	for (int i = 0; i < TICKETS; i++)
		if (ticket_has(&x->ticket[i], vpn))
			return true;
	return false;
}

/* Is a move out that writes the page? */
static inline bool model_moving(struct model *x, uint64_t vpn)
{
	for (int i = 0; i < ACCESSES; i++) {
		const struct m_access *a = &x->access[i];

		if (a->used && a->write && vpn >= a->first &&
		    vpn < a->first + a->num)
			return true;
	}
	return false;
}

static inline struct m_region *model_region(struct model *x, uint32_t key)
{
	for (int i = 0; i < REGIONS; i++)
		if (x->region[i].exists && x->region[i].key == key)
			return &x->region[i];
	return NULL;
}

static inline bool model_waited(struct model *x, int t)
{
	for (int i = 0; i < WAITERS; i++)
		if (x->waiter[i].ticket == t)
			return true;
	return false;
}

static inline int model_ticket(struct model *x, const struct dma *d,
			       uint64_t first, uint64_t num,
			       struct ticket_id id)
{
	for (int i = 0; i < TICKETS; i++)
		if (!x->ticket[i].used) {
			x->ticket[i] = (struct m_ticket){
				.used = true,
				.write = d->write,
				.first = first,
				.num = num,
				.valid = num,
				.queued = ++x->seq,
				.id = id,
			};
			x->want.v[CNT_tickets]++;
			return i;
		}
	return -1;
}

static inline void model_leave(struct model *x, struct m_waiter *w)
{
	int t = w->ticket;

	w->ticket = -1;
	w->moving = false;
	if (t < 0 || x->ticket[t].sent || model_waited(x, t))
		return;
	x->ticket[t].used = false;
}

/* The pages of [first, first + num) lost a right, or (@gone) are not there. */
static inline void model_stale(struct model *x, uint64_t first, uint64_t num,
			       bool gone)
{
	for (int i = 0; i < TICKETS; i++) {
		struct m_ticket *t = &x->ticket[i];

		if (!t->used || !t->sent || num == 0 ||
		    t->first >= first + num || first >= t->first + t->valid)
			continue;
		if (gone)
			t->valid = first < t->first ? 0 : first - t->first;
		else
			t->protect = true;
	}
}

/* The ticket that op_next() will get, or NULL. */
static inline struct m_ticket *model_next(struct model *x)
{
	struct m_ticket *want[2] = {NULL, NULL};
	unsigned ahead = 0;

	for (int i = 0; i < TICKETS; i++) {
		struct m_ticket *t = &x->ticket[i];
		bool waited = model_waited(x, i);

		ahead += t->used && t->sent && t->ahead;
		if (t->used && !t->sent &&
		    (!want[waited] || t->queued < want[waited]->queued))
			want[waited] = t;
	}
	if (want[1])
		return want[1];
	return ahead < ahead_max(x->m) ? want[0] : NULL;
}

/* Everything is ready, but somebody else is writing there. */
static inline bool model_waits(struct model *x, uint64_t first, uint64_t num,
			       struct m_waiter *w, enum verdict got)
{
	bool moving = false;

	for (uint64_t p = first; p < first + num; p++)
		moving |= model_moving(x, p);
	if (!moving)
		return false;
	REQUIRE(x, got == V_WAIT);
	if (!w)
		return true;
	if (!w->moving || w->page != w->w.access.vpn) {
		model_leave(x, w);
		w->joined = ++x->seq;
		w->bad = false;
		x->want.v[CNT_moving_waits]++;
	}
	w->moving = true;
	w->page = w->w.access.vpn;
	REQUIRE(x, w->w.ticket.v != 0 && w->w.access.pages == 1);
	REQUIRE(x, model_moving(x, w->page) && w->page >= first &&
			   w->page < first + num);
	return true;
}

/* Those go on, in the order they came, whose page nobody writes any more. */
static inline void model_moved(struct model *x)
{
	uint64_t last = 0;
	struct list woken;

	list_init(&woken);
	moved_take(x->m, &woken);
	list_for_each_safe(pos, tmp, &woken) {
		struct waiter *real = list_entry(pos, struct waiter, link);
		struct m_waiter *w = real->owner;

		list_del(pos);
		REQUIRE(x, w->moving && real->ticket.v == 0);
		REQUIRE(x, x->lazy || w->joined > last);
		last = w->joined;
		w->moving = false;
	}
	x->lazy = false;
	for (int i = 0; i < WAITERS; i++)
		REQUIRE(x, !x->waiter[i].moving ||
				   model_moving(x, x->waiter[i].page));
}

/* An address, often where somebody else is moving. */
static inline uint64_t model_addr(struct model *x)
{
	const struct m_access *a = &x->access[pick(x, ACCESSES)];
	uint64_t off = pick(x, PLAY * 4096 - 12000);

	if (a->used && chance(x, 50))
		off = MIN((a->first - x->base) * 4096 + off % 4096,
			  (uint64_t)PLAY * 4096 - 12001);
	return x->base * 4096 + off;
}

/* There is room for all pages still: nobody notices. */
static inline void model_resize(struct model *x)
{
	if (chance(x, 20))
		entries_bound(x->m, 1024 + pick(x, 1100));
	(void)entries_resize(x->m, (unsigned)pick(x, 40));
	REQUIRE(x, x->cnt.v[CNT_spt_evictions] == 0);
}

#endif
