/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fixture.h: a struct mem with one PD, one implicit region, one waiter and
 * virtual time, for the tests of mem/.
 */
#ifndef NOPIN_TESTS_MEM_FIXTURE_H
#define NOPIN_TESTS_MEM_FIXTURE_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/page.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "mem/ticket.h"
#include "mem/waiter.h"

enum { MS = 1000000, FIX_SLOTS = 8, FIX_TICKETS = 8, FIX_PAGERS = 4 };

/** struct fix - @all: R_Key of a region of all but the last page, every right. */
struct fix {
	struct mem *m;
	struct counters cnt;
	uint32_t pd, all;
	uint64_t now, fresh;
	struct waiter w;
	struct moves mv;
	struct holds holds;
	struct list woken;
	uint8_t slot[FIX_SLOTS * SLOT_BYTES];
};

#define FIX_RIGHTS                                                             \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |       \
	 ACCESS_REMOTE_ATOMIC)

static inline uint32_t fix_mr(struct fix *f, uint64_t addr, uint64_t iova,
			      uint64_t length, uint32_t access)
{
	struct mr_attr a = {.pd = f->pd,
			    .addr = addr,
			    .iova = iova,
			    .length = length,
			    .access = access};
	uint32_t key = 0;

	assert_int_equal(mr_register(f->m, &a, &key), 0);
	return key;
}

/* @cfg: entries, exact, always_ready, ahead, tickets if not FIX_TICKETS; the rest is filled
 * in. */
static inline void fix_open_any(struct fix *f, struct mem_config cfg)
{
	*f = (struct fix){.now = UINT64_C(1000) * MS};
	cfg.slots = FIX_SLOTS;
	cfg.slot_base = f->slot;
	cfg.tickets = cfg.tickets ? cfg.tickets : FIX_TICKETS;
	cfg.pagers = FIX_PAGERS;
	cfg.seed[0] = 0x0123456789abcdef;
	cfg.seed[1] = 42;
	cfg.counters = &f->cnt;
	assert_int_equal(mem_open(&f->m, &cfg), 0);
	f->pd = (uint32_t)pd_alloc(f->m);
	f->all = fix_mr(f, 0, 0, UINT64_MAX - 4095, FIX_RIGHTS);
	f->fresh = f->now - 10 * MS;
	waiter_init(&f->w, f);
	list_init(&f->woken);
}

/* Nothing is asked for but what the message needs. */
static inline void fix_open(struct fix *f, struct mem_config cfg)
{
	cfg.ahead = AHEAD_MESSAGE;
	fix_open_any(f, cfg);
}

static inline void fix_open_exact(struct fix *f, uint32_t entries)
{
	fix_open(f, (struct mem_config){.entries = entries, .exact = true});
}

static inline void fix_open_ageing(struct fix *f, uint32_t entries)
{
	fix_open(f, (struct mem_config){.entries = entries});
}

static inline void fix_close(struct fix *f)
{
	dma_release(f->m, &f->holds, 0, false, f->now);
	assert_int_equal(mr_free(f->m, f->all), 0);
	mem_close(f->m);
}

static inline void fix_sleep(struct fix *f, uint64_t ns)
{
	f->now += ns;
	f->fresh = f->now - 10 * MS;
}

/* A remote access through the implicit region. */
static inline struct dma fix_dma(const struct fix *f, uint64_t addr,
				 uint64_t len, bool write)
{
	return (struct dma){
		.pd = f->pd,
		.key = f->all,
		.iova = addr,
		.len = len,
		.set = STRATEGY_BIT(STRATEGY_INLINE),
		.need = write ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ,
		.write = write,
		.remote = true,
	};
}

static inline enum verdict fix_run(struct fix *f, const struct dma *d,
				   struct waiter *w)
{
	return dma_resolve(f->m, d, f->slot, 0, f->now, f->fresh, w, &f->mv,
			   &f->holds);
}

/* What a resolve of @addr would say; changes nothing. */
static inline enum verdict fix_peek(struct fix *f, uint64_t addr, uint64_t len,
				    bool write)
{
	struct dma d = fix_dma(f, addr, len, write);
	unsigned holds = f->holds.num, moves = f->mv.num;
	enum verdict v = fix_run(f, &d, NULL);

	dma_release(f->m, &f->holds, holds, false, f->now);
	f->mv.num = moves;
	return v;
}

static inline bool fix_ready(struct fix *f, uint64_t vpn, bool write)
{
	return fix_peek(f, vpn * PAGE_BYTES, PAGE_BYTES, write) == V_OK;
}

/* Resolve and keep the hold; wait with @w. */
static inline enum verdict fix_access(struct fix *f, uint64_t vpn,
				      uint64_t pages, bool write,
				      struct waiter *w)
{
	struct dma d = fix_dma(f, vpn * PAGE_BYTES, pages * PAGE_BYTES, write);

	return fix_run(f, &d, w);
}

static inline struct ticket_req fix_next(struct fix *f)
{
	struct ticket_req req = {.vpn = 0};

	assert_true(ticket_next(f->m, &req));
	return req;
}

/* Answer: @ready pages, and @failed behind them. */
static inline void fix_done(struct fix *f, struct ticket_req req,
			    uint64_t ready, bool failed)
{
	list_init(&f->woken);
	ticket_done(f->m, req.id, ready, failed, req.write, 0, 0, 1000, f->now,
		    &f->woken);
}

#endif
