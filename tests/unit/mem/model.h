/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* model.h: the naive model of model_test.c: an array of pages, a list of
 * tickets, no table, no hash.
 */
#ifndef NOPIN_TESTS_MEM_MODEL_H
#define NOPIN_TESTS_MEM_MODEL_H

#include "fixture.h"

enum {
	PAGES = 400, /* that exist in the model */
	PLAY = 96, /* that are accessed; tickets may run ahead of them */
	REGIONS = 24,
	ACCESSES = 10,
	WAITERS = 12,
	TICKETS = 10,
	OPS = 12000,
	SEEDS = 20,
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
};

struct m_ticket {
	bool used, sent, write;
	bool whole, ahead; /* ahead: sent without a waiter */
	bool protect; /* the answer is about reading only */
	uint64_t first, num; /* pages */
	uint64_t valid; /* the answer is about these */
	uint64_t queued; /* order of ticket_next(), by first waiter if any */
	struct ticket_id id;
};

struct m_waiter {
	struct waiter w;
	int ticket; /* index or -1 */
	uint64_t joined;
	uint64_t first, num;
	bool bad, bad_write;
	uint64_t bad_page;
};

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
	uint64_t base; /* first page */
	uint64_t now, tick, now_tick;
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
			       uint64_t fresh)
{
	const struct m_page *p = page_at(x, vpn);

	if (p->state < (write ? 2 : 1))
		return false;
	if (x->exact)
		return true;
	if (fresh > x->now || x->tick - p->tick > 1 << 18)
		return false;
	return p->tick == x->tick || p->tick << 20 >= fresh;
}

static inline void model_install(struct model *x, uint64_t vpn, bool writable)
{
	struct m_page *p = page_at(x, vpn);

	if (!x->exact && p->state == 2 && x->tick - p->tick > 64)
		p->state = 1;
	if (p->state < 1 + writable)
		p->state = 1 + writable;
	p->tick = x->tick;
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

static inline void model_leave(struct model *x, struct m_waiter *w)
{
	int t = w->ticket;

	w->ticket = -1;
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
	return want[1] ? want[1] : ahead < AHEAD_OUT ? want[0] : NULL;
}

#endif
