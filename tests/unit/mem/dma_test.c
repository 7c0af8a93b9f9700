/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dma_test.c: the one walk: checks, moves, misses, holds. */
#include "fixture.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/use.h"
#include "mem/waiter.h"

#define END47 (UINT64_C(1) << 47)

static void open_ready(struct fix *f)
{
	fix_open(f, (struct mem_config){.entries = 64, .always_ready = true});
}

/* --- checks -------------------------------------------------------------- */

static bool check_bounds(struct fix *f, uint32_t key, uint64_t at, uint64_t len,
			 uint64_t addr, enum verdict want)
{
	struct dma d = {.pd = f->pd, .key = key, .iova = at, .len = len};
	bool ok = dma_check(f->m, &d) == want && fix_run(f, &d, NULL) == want;

	ok = ok && f->mv.num == (want == V_OK);
	ok = ok && (want != V_OK || f->mv.m[0].addr == addr);
	f->mv.num = 0;
	dma_release(f->m, &f->holds, 0, false, f->now);
	return ok;
}

static void dma_check__bounds(void **state)
{
	static const uint64_t max = UINT64_MAX, k4 = 4096;
	static const struct {
		uint64_t addr, iova, length; /* the region */
		uint64_t at, len; /* the access */
		enum verdict v;
	} cases[] = {
		{k4, k4, k4, k4, 1, V_OK},
		{k4, k4, k4, k4, k4 - 1, V_OK},
		{k4, k4, k4, k4, k4, V_OK},
		{k4, k4, k4, k4, k4 + 1, V_PROT},
		{k4, k4, k4, k4 + 1, k4 - 1, V_OK},
		{k4, k4, k4, k4 + 1, k4, V_PROT},
		{k4, k4, k4, 2 * k4 - 1, 1, V_OK},
		{k4, k4, k4, 2 * k4, 1, V_PROT},
		{k4, k4, k4, k4 - 1, 1, V_PROT},
		{k4, k4, k4, k4 - 1, 2, V_PROT},
		{k4, k4, k4, 0, 1, V_PROT},
		{k4, k4, k4, max, 1, V_PROT},
		{k4, k4, k4, max, max, V_PROT},
		{k4, k4, k4, k4, max, V_PROT},
		{k4, k4, k4, k4, max - k4 + 1, V_PROT},
		{k4 + 3, 0, 10, 0, 10, V_OK},
		{k4 + 3, 0, 10, 0, 11, V_PROT},
		{k4 + 3, 0, 10, 9, 1, V_OK},
		{k4 + 3, 0, 10, 10, 1, V_PROT},
		{k4, max - 4095, k4, max, 1, V_OK},
		{k4, max - 4095, k4, max - 4095, k4, V_OK},
		{k4, max - 4095, k4, max, 2, V_PROT},
		{k4, max - 4095, k4, 0, 1, V_PROT},
		{k4, max - 4095, k4, max - 4096, 1, V_PROT},
		{END47 - k4, END47 - k4, k4, END47 - 1, 1, V_OK},
		{END47 - k4, END47 - k4, k4, END47 - k4, k4, V_OK},
		{END47 - k4, END47 - k4, k4, END47 - 1, 2, V_PROT},
		{0, 0, 0, 0, 1, V_PROT},
		{0, 0, max, 0, 1, V_OK},
		{0, 0, max, END47, k4, V_OK},
		{0, 0, max, ADDR_END - 1, 1, V_OK},
		{0, 0, max, ADDR_END - 1, 2, V_PROT},
		{0, 0, max, ADDR_END, 1, V_PROT},
		{0, 0, max, max - 1, 1, V_PROT},
		{0, 0, max, max, 1, V_PROT},
		{0, 0, max, 1, max, V_PROT},
		{max - 4095, 0, k4, 0, 1, V_PROT},
	};
	struct fix f;

	(void)state;
	open_ready(&f);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t key = fix_mr(&f, cases[i].addr, cases[i].iova,
				      cases[i].length, 0);
		uint64_t off = cases[i].at - cases[i].iova;

		if (!check_bounds(&f, key, cases[i].at, cases[i].len,
				  cases[i].addr + off, cases[i].v))
			fail_msg("case %u", i);
		assert_int_equal(mr_free(f.m, key), 0);
	}
	fix_close(&f);
}

static void dma_check__rights(void **state)
{
	enum {
		LW = ACCESS_LOCAL_WRITE,
		RW = ACCESS_REMOTE_WRITE,
		RR = ACCESS_REMOTE_READ,
		RA = ACCESS_REMOTE_ATOMIC
	};
	static const struct {
		uint32_t access, need;
		bool write, remote;
		enum verdict v;
	} cases[] = {
		{0, 0, false, false, V_OK},
		{0, LW, true, false, V_PROT},
		{0, 0, true, false, V_PROT},
		{LW, 0, true, false, V_OK},
		{LW, LW, true, false, V_OK},
		{LW, RW, true, true, V_PROT},
		{LW, RR, false, true, V_PROT},
		{LW, RA, true, true, V_PROT},
		{LW | RW, RW, true, true, V_OK},
		{LW | RW, RR, false, true, V_PROT},
		{LW | RW, RA, true, true, V_PROT},
		{LW | RA, RA, true, true, V_OK},
		{LW | RA, RW, true, true, V_PROT},
		{RR, RR, false, true, V_OK},
		{RR, RW, true, true, V_PROT},
		{RR, LW, true, false, V_PROT},
		/* remote without a right named: never */
		{LW | RW | RR | RA, 0, false, true, V_PROT},
		{LW | RW | RR | RA, LW, true, true, V_PROT},
	};
	struct fix f;

	(void)state;
	open_ready(&f);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		uint32_t key = fix_mr(&f, 4096, 4096, 4096, cases[i].access);
		struct dma d = {
			.pd = f.pd,
			.key = key,
			.iova = 4096,
			.len = 8,
			.need = cases[i].need,
			.write = cases[i].write,
			.remote = cases[i].remote,
		};

		if (dma_check(f.m, &d) != cases[i].v)
			print_error("case %u\n", i);
		assert_int_equal(dma_check(f.m, &d), cases[i].v);
		assert_int_equal(mr_free(f.m, key), 0);
	}
	fix_close(&f);
}

/* UCX flushes with an empty WRITE and any key. */
static void dma_resolve__no_bytes_any_key(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_exact(&f, 64);
	for (unsigned i = 0; i < 40; i++) {
		d = fix_dma(&f, UINT64_MAX - i, 0, i % 2);
		d.key = i * 0x01234567;
		d.pd = i;
		assert_int_equal(dma_check(f.m, &d), V_OK);
		assert_int_equal(fix_run(&f, &d, &f.w), V_OK);
	}
	assert_int_equal(f.mv.num, 0);
	assert_int_equal(f.holds.num, 0);
	fix_close(&f);
}

/* --- moves --------------------------------------------------------------- */

static void dma_resolve__pages_of_an_access(void **state)
{
	static const struct {
		uint64_t addr, len, vpn, pages;
	} cases[] = {
		{0x10000, 1, 16, 1},	  {0x10000, 4095, 16, 1},
		{0x10000, 4096, 16, 1},	  {0x10000, 4097, 16, 2},
		{0x10fff, 1, 16, 1},	  {0x10fff, 2, 16, 2},
		{0x10fff, 4097, 16, 2},	  {0x10fff, 4098, 16, 3},
		{0x10001, 4096, 16, 2},	  {0x10ff8, 8, 16, 1},
		{0x10ff9, 8, 16, 2},	  {0x10000, 65536, 16, 16},
		{0x10001, 65536, 16, 17},
	};
	struct fix f;

	(void)state;
	fix_open_exact(&f, 1024);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dma d = fix_dma(&f, cases[i].addr, cases[i].len, true);
		uint64_t vpn = cases[i].vpn, pages = cases[i].pages;

		/* one page too few, at either end */
		spt_map(f.m, vpn + 1, pages - 1, true, f.now);
		assert_int_equal(fix_run(&f, &d, NULL), V_WAIT);
		assert_int_equal(spt_unmap(f.m, 0, 100), 0);
		spt_map(f.m, vpn, pages - 1, true, f.now);
		assert_int_equal(fix_run(&f, &d, NULL), V_WAIT);
		spt_map(f.m, vpn, pages, true, f.now);
		assert_int_equal(fix_run(&f, &d, NULL), V_OK);
		assert_int_equal(f.holds.h[0].vpn, vpn);
		assert_int_equal(f.holds.h[0].pages, pages);
		assert_false(spt_held(f.m, vpn - 1, 1));
		assert_true(spt_held(f.m, vpn, 1));
		assert_true(spt_held(f.m, vpn + pages - 1, 1));
		assert_false(spt_held(f.m, vpn + pages, 1));
		dma_release(f.m, &f.holds, 0, true, f.now);
		assert_false(spt_held(f.m, 0, 100));
		assert_int_equal(spt_unmap(f.m, 0, 100), 0);
	}
	fix_close(&f);
}

static void dma_resolve__the_move(void **state)
{
	struct fix f;
	struct dma d;
	uint32_t key;

	(void)state;
	open_ready(&f);
	key = fix_mr(&f, 0x12345, 0x777, 100, FIX_RIGHTS);
	d = fix_dma(&f, 0x777 + 9, 50, true);
	d.key = key;
	assert_int_equal(dma_resolve(f.m, &d, f.slot + 3, 17, f.now, f.fresh,
				     NULL, &f.mv, &f.holds),
			 V_OK);
	d.write = false;
	d.need = ACCESS_REMOTE_READ;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(f.mv.num, 2);
	assert_int_equal(f.holds.num, 2);
	assert_int_equal(f.mv.m[0].addr, 0x12345 + 9);
	assert_int_equal(f.mv.m[0].len, 50);
	assert_int_equal(f.mv.m[0].kind, MOVE_SCATTER);
	assert_int_equal(f.mv.m[0].token, 17);
	assert_ptr_equal(f.mv.m[0].nic, f.slot + 3);
	assert_int_equal(f.mv.m[1].kind, MOVE_GATHER);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

static void dma_resolve__too_long(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	open_ready(&f);
	d = fix_dma(&f, 0, UINT64_C(1) << 32, false);
	assert_int_equal(fix_run(&f, &d, NULL), V_LENGTH);
	assert_int_equal(f.mv.num, 0);
	d.len--;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(f.mv.m[0].len, UINT32_MAX);
	assert_int_equal(f.holds.h[0].pages, 1 << 20);
	fix_close(&f);
}

/* A table that calls every page ready still knows keys and bounds. */
static void dma_resolve__always_ready(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f, (struct mem_config){.entries = 64,
						 .exact = exact,
						 .always_ready = true});
		assert_int_equal(fix_access(&f, 100, 4, true, &f.w), V_OK);
		assert_int_equal(spt_held(f.m, 101, 1), exact);
		d = fix_dma(&f, 4096, 1, true);
		d.key ^= 256;
		assert_int_equal(fix_run(&f, &d, &f.w), V_PROT);
		assert_int_equal(tickets_out(f.m), 0);
		dma_release(f.m, &f.holds, 0, true, f.now);
		assert_false(spt_held(f.m, 101, 1));
		/* what a move spoke against is asked for like any page */
		dma_fault(f.m, 101 * 4096, 4096);
		assert_int_equal(fix_access(&f, 100, 1, true, &f.w), V_OK);
		assert_int_equal(fix_access(&f, 102, 2, true, &f.w), V_OK);
		dma_release(f.m, &f.holds, 0, true, f.now);
		assert_int_equal(fix_access(&f, 100, 4, true, &f.w), V_WAIT);
		assert_int_equal(fix_next(&f).vpn, 101);
		waiter_cancel(f.m, &f.w);
		fix_close(&f);
	}
}

/* --- misses -------------------------------------------------------------- */

static void dma_resolve__all_or_nothing(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 5, true, f.now);
	spt_map(f.m, 16, 1, true, f.now);
	assert_int_equal(fix_access(&f, 10, 7, true, &f.w), V_WAIT);
	assert_int_equal(f.mv.num, 0);
	assert_int_equal(f.holds.num, 0);
	assert_false(spt_held(f.m, 0, 100));
	assert_int_equal(fix_next(&f).vpn, 15);
	fix_done(&f, (struct ticket_req){.id = f.w.ticket, .write = true}, 1,
		 false);
	assert_int_equal(fix_access(&f, 10, 7, true, &f.w), V_OK);
	assert_int_equal(f.holds.num, 1);
	fix_close(&f);
}

static void dma_resolve__without_waiter_only_looks(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	assert_int_equal(fix_access(&f, 10, 1, true, NULL), V_WAIT);
	assert_int_equal(tickets_out(f.m), 0);
	assert_int_equal(f.cnt.v[CNT_faults], 0);
	fix_close(&f);
}

/* 1 page, 2, 4, 8, and 16 in each of the other tickets there are */
#define FIX_AHEAD (15 + 16 * (FIX_TICKETS - 4))

/* Answer all tickets that come, with nothing: they must be one run, the first
 * being about @need pages. Return: how long it is.
 */
static uint64_t fix_chain(struct fix *f, uint64_t first, uint64_t need)
{
	uint64_t at = first;

	while (tickets_out(f->m) > 0) {
		struct ticket_req req = fix_next(f);

		assert_int_equal(req.vpn, at);
		assert_int_equal(req.whole, at == first && first < VPN_END - 2);
		if (at == first)
			assert_int_equal(req.pages, need);
		else
			assert_in_range(req.pages, 1, AHEAD_PAGES);
		at += req.pages;
		fix_done(f, req, 0, false);
	}
	return at - first;
}

/* What tickets ask for: the missing run, and what is ahead of it. */
static void dma_resolve__the_run_of_a_ticket(void **state)
{
	static const struct {
		uint64_t off, len, ahead; /* in a region of 400 pages and 1 B */
		uint64_t first, need; /* the first ticket */
		uint64_t pages; /* it and those ahead */
	} cases[] = {
		{0, 1, 0, 0, 1, 1},
		{0, 4096, 0, 0, 1, 1},
		{0, 4096, 1, 0, 1, 2},
		{4095, 2, 0, 0, 2, 2},
		{4096 * 2, 4096, 4096 * 3, 2, 1, 4},
		{4096 * 2, 1, 4096 * 3, 2, 1, 4},
		{4096 * 2, 4096 * 50, 0, 2, 8, 8}, /* up to the ready one */
		{4096 * 11, 1, UINT64_MAX, 11, 1, FIX_AHEAD},
		{4096 * 350, 1, UINT64_MAX, 350, 1, 51},
		{4096 * 399, 4097, 0, 399, 2, 2},
		{4096 * 10, 4096 * 4, 0, 11, 3, 3}, /* page 10 is ready */
	};
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_exact(&f, 4096);
	key = fix_mr(&f, 4096 * 1000, 0, 4096 * 400 + 1, FIX_RIGHTS);
	spt_map(f.m, 1010, 1, true, f.now);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct dma d = fix_dma(&f, cases[i].off, cases[i].len, true);

		d.key = key;
		d.ahead = cases[i].ahead;
		assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
		assert_int_equal(
			fix_chain(&f, 1000 + cases[i].first, cases[i].need),
			cases[i].pages);
	}
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

static void dma_resolve__ahead_ends_with_the_address_space(void **state)
{
	struct ticket_req req;
	struct dma d;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	d = fix_dma(&f, ADDR_END - 3 * 4096, 1, false);
	d.ahead = UINT64_MAX;
	assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
	req = fix_next(&f);
	assert_int_equal(req.pages, 1);
	fix_done(&f, req, 1, false);
	assert_int_equal(fix_run(&f, &d, &f.w), V_OK);
	assert_int_equal(fix_chain(&f, VPN_END - 2, 2), 2);
	fix_close(&f);
}

/* Asking again while waiting changes nothing. */
static void dma_resolve__asked_again(void **state)
{
	struct ticket_id id;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	assert_int_equal(fix_access(&f, 10, 2, true, &f.w), V_WAIT);
	id = f.w.ticket;
	assert_int_equal(f.w.since_ns, f.now);
	f.now += 5;
	assert_int_equal(fix_access(&f, 10, 2, true, &f.w), V_WAIT);
	assert_int_equal(f.w.ticket.v, id.v);
	assert_int_equal(f.w.since_ns, f.now - 5);
	assert_int_equal(f.cnt.v[CNT_faults], 1);
	/* a different page: one waiter waits for one ticket */
	assert_int_equal(fix_access(&f, 20, 1, true, &f.w), V_WAIT);
	assert_int_not_equal(f.w.ticket.v, id.v);
	assert_int_equal(tickets_out(f.m), 1);
	waiter_cancel(f.m, &f.w);
	fix_close(&f);
}

/* Nobody passes those who wait already, until their ticket is done. */
static void dma_resolve__busy_while_a_ticket_is_out(void **state)
{
	struct ticket_req req;
	struct waiter w;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	waiter_init(&w, NULL);
	assert_int_equal(fix_access(&f, 10, 1, false, &f.w), V_WAIT);
	req = fix_next(&f);
	spt_map(f.m, 10, 1, true, f.now);
	assert_int_equal(fix_access(&f, 10, 1, false, NULL), V_WAIT);
	/* no second ticket, although that one is for reading */
	assert_int_equal(fix_access(&f, 10, 1, true, &w), V_WAIT);
	assert_int_equal(tickets_out(f.m), 1);
	fix_done(&f, req, 1, false);
	assert_int_equal(fix_access(&f, 10, 1, true, &w), V_OK);
	fix_close(&f);
}

/* Whatever counts as fresh, who was woken just now can go on. */
static void dma_resolve__progress_after_waking(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	for (int i = 0; i < 1000; i++) {
		fix_sleep(&f, 12345679);
		f.fresh = f.now;
		assert_int_equal(fix_access(&f, 10, 2, true, &f.w), V_WAIT);
		fix_done(&f, fix_next(&f), 2, false);
		assert_int_equal(fix_access(&f, 10, 2, true, &f.w), V_OK);
		dma_release(f.m, &f.holds, 0, false, f.now);
		f.mv.num = 0;
	}
	fix_close(&f);
}

/* The run is longer than the table: what was asked for must survive. */
static void dma_resolve__progress_in_a_tiny_table(void **state)
{
	struct ticket_req req;
	struct dma d;
	struct fix f;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f,
			 (struct mem_config){.entries = 16, .exact = exact});
		for (uint64_t p = 0; p < 3000; p += 7) {
			d = fix_dma(&f, p * 4096, 8 * 4096, true);
			d.ahead = UINT64_MAX;
			assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
			fix_done(&f, fix_next(&f), 8, false);
			assert_int_equal(fix_run(&f, &d, &f.w), V_OK);
			while (ticket_next(f.m, &req))
				fix_done(&f, req, req.pages, false);
			dma_release(f.m, &f.holds, 0, true, f.now);
			f.mv.num = 0;
			assert_int_equal(spt_unmap(f.m, 0, VPN_END), 0);
		}
		fix_close(&f);
	}
}

/* --- cheap faults -------------------------------------------------------- */

static void dma_resolve__inline(void **state)
{
	struct fix f;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f,
			 (struct mem_config){.entries = 64, .exact = exact});
		cheap_learn(&f.m->cheap, 10, 20, f.now);
		mem_inline_budget(f.m, 3);
		spt_map(f.m, 9, 1, true, f.now);
		/* not enough budget: nothing of it is used */
		assert_int_equal(fix_access(&f, 10, 4, true, NULL), V_WAIT);
		/* a page that is not cheap: likewise */
		assert_int_equal(fix_access(&f, 19, 2, true, NULL), V_WAIT);
		assert_int_equal(fix_access(&f, 9, 3, true, &f.w), V_OK);
		assert_int_equal(f.cnt.v[CNT_fault_inline], 2);
		assert_int_equal(f.cnt.v[CNT_faults], 1);
		assert_int_equal(f.cnt.v[CNT_tickets], 0);
		assert_int_equal(fix_access(&f, 12, 2, true, NULL), V_WAIT);
		assert_int_equal(fix_access(&f, 12, 1, true, NULL), V_OK);
		assert_int_equal(fix_access(&f, 13, 1, true, NULL), V_WAIT);
		/* a held page may be absent: nobody unmaps it */
		assert_int_equal(spt_held(f.m, 12, 1), exact);
		assert_int_equal(spt_unmap(f.m, 12, 1), exact ? -EBUSY : 0);
		dma_release(f.m, &f.holds, 0, true, f.now);
		assert_false(spt_held(f.m, 0, 100));
		fix_close(&f);
	}
}

static void dma_resolve__not_inline_if_all_must_be_ready(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_ageing(&f, 1024);
	mem_inline_budget(f.m, 2);
	cheap_learn(&f.m->cheap, 10, 20, f.now);
	d = fix_dma(&f, 10 * 4096, 8192, true);
	d.ready = true;
	assert_int_equal(fix_run(&f, &d, NULL), V_WAIT);
	d.ready = false;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	fix_close(&f);
}

static void dma_resolve__inline_only_while_fresh(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	mem_inline_budget(f.m, 3);
	cheap_learn(&f.m->cheap, 10, 20, f.now);
	fix_sleep(&f, 10 * MS);
	assert_int_equal(fix_peek(&f, 10 * 4096, 1, true), V_OK);
	fix_sleep(&f, 1);
	assert_int_equal(fix_peek(&f, 10 * 4096, 1, true), V_WAIT);
	fix_close(&f);
}

static void dma_resolve__not_inline_after_a_change(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	mem_inline_budget(f.m, 100);
	cheap_learn(&f.m->cheap, 10, 20, f.now);
	assert_int_equal(spt_unmap(f.m, 12, 1), 0);
	assert_int_equal(spt_protect(f.m, 14, 1), 0);
	dma_fault(f.m, 16 * 4096 + 5, 1);
	for (uint64_t p = 10; p < 20; p++)
		assert_int_equal(fix_ready(&f, p, true),
				 p != 12 && p != 14 && p != 16);
	spt_protect_all(f.m);
	assert_false(fix_ready(&f, 10, true));
	fix_close(&f);
}

/* --- atomics ------------------------------------------------------------- */

static enum verdict atomic(struct fix *f, const struct dma *d,
			   enum move_kind kind)
{
	return dma_resolve_atomic(f->m, d, kind, 5, 6, 7, f->now, f->fresh,
				  &f->w, &f->mv, &f->holds);
}

static void dma_resolve_atomic__aligned_only(void **state)
{
	struct fix f;
	struct dma d;
	uint32_t key;

	(void)state;
	open_ready(&f);
	for (uint64_t off = 0; off < 16; off++) {
		d = fix_dma(&f, 4096 + off, 8, true);
		d.need = ACCESS_REMOTE_ATOMIC;
		assert_int_equal(atomic(&f, &d, MOVE_FETCH_ADD),
				 off % 8 ? V_INVALID : V_OK);
	}
	assert_int_equal(f.mv.num, 2);
	dma_release(f.m, &f.holds, 0, true, f.now);
	/* aligned iova, address that is not */
	key = fix_mr(&f, 4097, 0, 64, FIX_RIGHTS);
	d = fix_dma(&f, 0, 8, true);
	d.key = key;
	d.need = ACCESS_REMOTE_ATOMIC;
	assert_int_equal(atomic(&f, &d, MOVE_FETCH_ADD), V_INVALID);
	d.need = ACCESS_REMOTE_ATOMIC;
	d.iova = 64;
	assert_int_equal(atomic(&f, &d, MOVE_FETCH_ADD), V_PROT);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

static void dma_resolve_atomic__the_move(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_exact(&f, 64);
	d = fix_dma(&f, 4096 + 8, 8, true);
	d.need = ACCESS_REMOTE_ATOMIC;
	spt_map(f.m, 1, 1, false, f.now);
	assert_int_equal(atomic(&f, &d, MOVE_CMP_SWP), V_WAIT);
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(atomic(&f, &d, MOVE_CMP_SWP), V_OK);
	assert_int_equal(f.mv.m[0].kind, MOVE_CMP_SWP);
	assert_int_equal(f.mv.m[0].addr, 4096 + 8);
	assert_int_equal(f.mv.m[0].len, 8);
	assert_int_equal(f.mv.m[0].operand, 5);
	assert_int_equal(f.mv.m[0].compare, 6);
	assert_int_equal(f.mv.m[0].token, 7);
	assert_null(f.mv.m[0].nic);
	assert_int_equal(f.holds.num, 1);
	assert_true(spt_held(f.m, 1, 1));
	fix_close(&f);
}

/* Who was dropped comes again after longer than a page is believed in. */
static void dma_resolve__drop_is_not_for_ever(void **state)
{
	static const strategies_t sets[] = {STRATEGY_BIT(STRATEGY_DROP),
					    STRATEGY_BIT(STRATEGY_RESUME)};
	struct fix f;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(sets); i++) {
		struct dma d;

		fix_open_ageing(&f, 64);
		d = fix_dma(&f, 7 * PAGE_BYTES, PAGE_BYTES, true);
		d.set = sets[i];
		assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
		fix_done(&f, fix_next(&f), 1, false);
		fix_sleep(&f, 50 * MS);
		assert_int_equal(fix_run(&f, &d, &f.w), i ? V_WAIT : V_OK);
		waiter_cancel(f.m, &f.w);
		fix_close(&f);
	}
}

/* Nor does one of its parts grow too old while another is waited for. */
static void dma_resolve__drop_of_parts_is_not_for_ever(void **state)
{
	struct dma first, last;
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	first = fix_dma(&f, 7 * PAGE_BYTES, PAGE_BYTES, true);
	first.set = STRATEGY_BIT(STRATEGY_DROP);
	first.more = true;
	last = fix_dma(&f, 9 * PAGE_BYTES, PAGE_BYTES, true);
	last.set = first.set;
	for (unsigned done = 0; done < 2; done++) {
		if (done)
			assert_int_equal(fix_run(&f, &first, &f.w), V_OK);
		assert_int_equal(fix_run(&f, done ? &last : &first, &f.w),
				 V_WAIT);
		fix_done(&f, fix_next(&f), 1, false);
		fix_sleep(&f, 50 * MS);
	}
	assert_int_equal(fix_run(&f, &first, &f.w), V_OK);
	assert_int_equal(fix_run(&f, &last, &f.w), V_OK);
	/* what is asked for next is not believed for as long */
	assert_int_equal(fix_run(&f, &first, &f.w), V_WAIT);
	waiter_cancel(f.m, &f.w);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dma_check__bounds),
		cmocka_unit_test(dma_check__rights),
		cmocka_unit_test(dma_resolve__no_bytes_any_key),
		cmocka_unit_test(dma_resolve__pages_of_an_access),
		cmocka_unit_test(dma_resolve__the_move),
		cmocka_unit_test(dma_resolve__too_long),
		cmocka_unit_test(dma_resolve__always_ready),
		cmocka_unit_test(dma_resolve__all_or_nothing),
		cmocka_unit_test(dma_resolve__without_waiter_only_looks),
		cmocka_unit_test(dma_resolve__the_run_of_a_ticket),
		cmocka_unit_test(dma_resolve__drop_is_not_for_ever),
		cmocka_unit_test(dma_resolve__drop_of_parts_is_not_for_ever),
		cmocka_unit_test(
			dma_resolve__ahead_ends_with_the_address_space),
		cmocka_unit_test(dma_resolve__asked_again),
		cmocka_unit_test(dma_resolve__busy_while_a_ticket_is_out),
		cmocka_unit_test(dma_resolve__progress_after_waking),
		cmocka_unit_test(dma_resolve__progress_in_a_tiny_table),
		cmocka_unit_test(dma_resolve__inline),
		cmocka_unit_test(dma_resolve__not_inline_if_all_must_be_ready),
		cmocka_unit_test(dma_resolve__inline_only_while_fresh),
		cmocka_unit_test(dma_resolve__not_inline_after_a_change),
		cmocka_unit_test(dma_resolve_atomic__aligned_only),
		cmocka_unit_test(dma_resolve_atomic__the_move),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
