/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peers.h: peers that wait for pages, each with a share of the tickets. */
#ifndef NOPIN_TESTS_UNIT_MEM_PEERS_H
#define NOPIN_TESTS_UNIT_MEM_PEERS_H

#include "fixture.h"
#include "mem/share.h"
#include "mem/use.h"

enum { WAITERS = 256, MANY = 256 };

/** struct peers - Shares of three peers in one PD, and who waits for what. */
struct peers {
	struct fix f;
	struct list list[3];
	struct share *s[3];
	struct waiter w[WAITERS];
	unsigned n;
};

/* @cfg: as fix_open(). */
static inline void peers_open_any(struct peers *p, struct mem_config cfg)
{
	p->n = 0;
	fix_open(&p->f, cfg);
	for (unsigned i = 0; i < 3; i++) {
		list_init(&p->list[i]);
		p->s[i] = share_get(&p->list[i], p->f.pd);
		assert_non_null(p->s[i]);
	}
}

static inline void peers_open(struct peers *p)
{
	peers_open_any(p, (struct mem_config){.entries = 4096, .exact = true});
}

/* So many pages may be with the pagers at once. */
static inline void peers_open_with(struct peers *p, uint32_t pagers)
{
	peers_open(p);
	p->f.m->tickets.pagers = p->f.m->cfg.pagers = pagers;
}

/* Likewise, and no peer runs out of tickets. */
static inline void peers_open_many(struct peers *p, uint32_t pagers)
{
	peers_open_any(p, (struct mem_config){.entries = 1 << 16,
					      .exact = true,
					      .tickets = MANY});
	p->f.m->tickets.pagers = p->f.m->cfg.pagers = pagers;
}

static inline void peers_close(struct peers *p)
{
	struct ticket_req req;

	for (unsigned i = 0; i < p->n; i++)
		waiter_cancel(p->f.m, &p->w[i]);
	while (ticket_next(p->f.m, &req))
		fix_done(&p->f, req, 0, false);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(p->s[i]->promised, 0);
		assert_int_equal(p->s[i]->guests, 0);
		share_put(p->s[i]);
		assert_true(list_empty(&p->list[i]));
	}
	fix_close(&p->f);
}

/* A waiter of peer @i wants page @vpn. */
static inline struct waiter *want(struct peers *p, unsigned i, uint64_t vpn)
{
	struct waiter *w = &p->w[p->n++];

	assert_true(p->n <= WAITERS);
	waiter_init(w, w);
	w->share = p->s[i];
	assert_int_equal(fix_access(&p->f, vpn, 1, true, w), V_WAIT);
	assert_int_not_equal(w->ticket.v, 0);
	return w;
}

#endif
