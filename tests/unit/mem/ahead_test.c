/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead_test.c: what is fetched before it is needed: what a message to come needs
 * (dma_ahead()), and what accesses so far make likely (dma.c, spt.c).
 */
#include "fixture.h"
#include "mem/account.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/waiter.h"

/* Pages that tickets are out for; every ticket is answered. */
static uint64_t fetched(struct fix *f)
{
	struct ticket_req req;
	uint64_t n = 0;

	while (ticket_next(f->m, &req)) {
		n += req.pages;
		fix_done(f, req, req.pages, false);
	}
	return n;
}

static void ask_ahead(struct fix *f, const struct dma *d)
{
	dma_ahead(f->m, d, f->now, f->fresh);
	assert_int_equal(f->m->holds, 0);
	assert_int_equal(f->cnt.v[CNT_faults], 0);
}

static void dma_ahead__what_is_missing(void **state)
{
	struct ticket_req req;
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 64});
	spt_map(f.m, 12, 1, true, f.now);
	d = fix_dma(&f, 10 * PAGE_BYTES + 100, 4 * PAGE_BYTES, true);
	ask_ahead(&f, &d);
	req = fix_next(&f);
	assert_true(req.vpn == 10 && req.pages == 2 && req.write);
	assert_false(req.whole);
	/* what is asked for is not asked for again */
	ask_ahead(&f, &d);
	fix_done(&f, req, 2, false);
	assert_int_equal(fetched(&f), 2);
	for (uint64_t p = 10; p < 15; p++)
		assert_true(fix_ready(&f, p, true));
	ask_ahead(&f, &d);
	assert_int_equal(fetched(&f), 0);
	fix_close(&f);
}

static void dma_ahead__nothing_that_is_refused(void **state)
{
	struct fix f;
	struct dma d;
	uint32_t key;

	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 64});
	key = fix_mr(&f, 10 * PAGE_BYTES, 0, 2 * PAGE_BYTES,
		     ACCESS_REMOTE_READ);
	d = fix_dma(&f, 0, 2 * PAGE_BYTES, false);
	d.key = key + 1;
	ask_ahead(&f, &d);
	d.key = key;
	d.len++;
	ask_ahead(&f, &d);
	d.len--;
	d.pd++;
	ask_ahead(&f, &d);
	d.pd--;
	d.need = ACCESS_REMOTE_WRITE;
	ask_ahead(&f, &d);
	d.need = ACCESS_REMOTE_READ;
	d.len = 0;
	ask_ahead(&f, &d);
	assert_int_equal(tickets_out(f.m), 0);
	d.len = 2 * PAGE_BYTES;
	ask_ahead(&f, &d);
	assert_int_equal(fetched(&f), 2);
	assert_int_equal(mr_free(f.m, key), 0);
	ask_ahead(&f, &d);
	assert_int_equal(tickets_out(f.m), 0);
	fix_close(&f);
}

/* Half of the tickets are left for who waits. */
static void dma_ahead__bounded(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 4096});
	for (uint64_t p = 0; p < 100; p++) {
		d = fix_dma(&f, p * 3 * PAGE_BYTES, 1, false);
		ask_ahead(&f, &d);
	}
	assert_int_equal(tickets_out(f.m), FIX_TICKETS / 2);
	assert_int_equal(fetched(&f), FIX_TICKETS / 2);
	/* of one message only the beginning */
	d = fix_dma(&f, 1000 * PAGE_BYTES, 2000 * PAGE_BYTES, false);
	ask_ahead(&f, &d);
	assert_true(fetched(&f) <= FIX_TICKETS / 2 * AHEAD_PAGES);
	fix_close(&f);
}

/* What the message overwrites is not fetched. */
static void dma_ahead__not_what_is_dropped(void **state)
{
	struct fix f;
	struct dma d;

	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 64});
	cheap_learn(&f.m->plain, 0, 100, f.now);
	d = fix_dma(&f, 10 * PAGE_BYTES + 1, 3 * PAGE_BYTES, true);
	d.remote = false;
	d.need = 0;
	d.set = STRATEGY_BIT(STRATEGY_OVERWRITE);
	ask_ahead(&f, &d);
	assert_int_equal(fetched(&f), 2);
	assert_true(fix_ready(&f, 10, true) && fix_ready(&f, 13, true));
	fix_close(&f);
}

/* Each way leaves out more. */
/* Until a pager has said what kind of memory it is, nothing is brought in. */
static void over_look__until_it_is_answered(void **state)
{
	struct ticket_req first, second, third;
	struct waiter w[3];
	struct dma d;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	d = fix_dma(&f, 100 * PAGE_BYTES, PAGE_BYTES, true);
	d.remote = false;
	d.need = ACCESS_LOCAL_WRITE;
	d.set = STRATEGY_BIT(STRATEGY_OVERWRITE);
	for (int i = 0; i < 3; i++)
		waiter_init(&w[i], &w[i]);
	assert_int_equal(fix_run(&f, &d, &w[0]), V_WAIT);
	first = fix_next(&f);
	assert_true(first.look);
	d.iova += PAGE_BYTES;
	assert_int_equal(fix_run(&f, &d, &w[1]), V_WAIT);
	second = fix_next(&f);
	assert_true(second.look);
	fix_done(&f, first, 0, false); /* it is not plain */
	d.iova += PAGE_BYTES;
	assert_int_equal(fix_run(&f, &d, &w[2]), V_WAIT);
	third = fix_next(&f);
	assert_false(third.look);
	fix_done(&f, second, 1, false);
	fix_done(&f, third, 1, false);
	fix_close(&f);
}

static void ahead__as_chosen(void **state)
{
	static const uint64_t pages[AHEAD_NUM][2] = {
		{4, 3}, {4, 3}, {4, 0}, {1, 0}};

	(void)state;
	for (int i = 0; i < AHEAD_NUM; i++) {
		struct fix f;
		struct dma d;

		fix_open_any(&f, (struct mem_config){.entries = 64,
						     .ahead = (enum ahead)i});
		d = fix_dma(&f, 10 * PAGE_BYTES, 1, true);
		d.ahead = 3 * PAGE_BYTES;
		assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
		assert_int_equal(fetched(&f), pages[i][0]);
		d = fix_dma(&f, 20 * PAGE_BYTES, 3 * PAGE_BYTES, true);
		dma_ahead(f.m, &d, f.now, f.fresh);
		assert_int_equal(fetched(&f), pages[i][1]);
		waiter_cancel(f.m, &f.w);
		fix_close(&f);
	}
}

/* --- what is likely ------------------------------------------------------ */

/* A fault at each page of a stride, up to where pages are fetched ahead. */
static void begin_stream(struct fix *f, uint32_t key, uint64_t vpn, bool write)
{
	for (uint64_t i = 0; i < 3; i++) {
		struct dma d = fix_dma(f, (vpn + 3 * i) * PAGE_BYTES, 1, write);

		d.key = key;
		assert_int_equal(fix_run(f, &d, &f->w), V_WAIT);
		fix_done(f, fix_next(f), 1, false);
		assert_int_equal(fix_run(f, &d, &f->w), V_OK);
		dma_release(f->m, &f->holds, 0, true, f->now);
		f->mv.num = 0;
	}
}

static void open_stream(struct fix *f, bool exact, bool write)
{
	fix_open_any(f, (struct mem_config){.entries = 64, .exact = exact});
	fix_sleep(f, 10 * MS);
	begin_stream(f, f->all, 100, write);
	assert_int_equal(tickets_out(f->m), 1);
}

static void expect_ahead(const struct fix *f, uint64_t pages, uint64_t hits,
			 uint64_t waste)
{
	assert_int_equal(f->cnt.v[CNT_prefetch_pages], pages);
	assert_int_equal(f->cnt.v[CNT_prefetch_hits], hits);
	assert_int_equal(f->cnt.v[CNT_prefetch_waste], waste);
}

static void foresee__is_used_without_a_fault(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		bool write = i & 1;
		struct ticket_req req;
		struct fix f;

		open_stream(&f, i & 2, write);
		req = fix_next(&f);
		assert_true(req.vpn == 109 && req.pages == 1);
		assert_int_equal(req.write, write);
		fix_done(&f, req, 1, false);
		expect_ahead(&f, 1, 0, 0);
		assert_int_equal(f.m->holds, 0);
		assert_false(spt_held(f.m, 0, VPN_END));
		/* and the next one is asked for */
		assert_int_equal(fix_access(&f, 109, 1, write, &f.w), V_OK);
		expect_ahead(&f, 1, 1, 0);
		assert_int_equal(f.cnt.v[CNT_faults], 3);
		assert_int_equal(fix_next(&f).vpn, 112);
		/* once */
		assert_int_equal(fix_access(&f, 109, 1, write, &f.w), V_OK);
		expect_ahead(&f, 1, 1, 0);
		fix_close(&f);
	}
}

/* Who is sooner than the pager waits for it, and no second one is asked. */
static void foresee__comes_late(void **state)
{
	struct ticket_req req;
	struct fix f;

	(void)state;
	open_stream(&f, false, true);
	req = fix_next(&f);
	assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_tickets_merged], 1);
	fix_done(&f, req, 1, false);
	expect_ahead(&f, 1, 1, 0);
	assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_OK);
	expect_ahead(&f, 1, 1, 0);
	fix_close(&f);
	/* before a pager has it it is a fault like others */
	open_stream(&f, false, true);
	assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_WAIT);
	fix_done(&f, fix_next(&f), 1, false);
	expect_ahead(&f, 0, 0, 0);
	assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_OK);
	fix_close(&f);
}

/* What becomes of a page that is not used: it is a waste, once. */
static void foresee__in_vain(void **state)
{
	(void)state;
	for (int how = 0; how < 5; how++) {
		struct fix f;

		open_stream(&f, how == 1, true);
		fix_done(&f, fix_next(&f), 1, false);
		if (how == 0 || how == 1)
			assert_int_equal(spt_unmap(f.m, 109, 1), 0);
		else if (how == 2)
			for (uint64_t p = 1000; p < 3000; p += 64)
				spt_map(f.m, p, 64, true, f.now);
		else if (how == 3)
			fix_sleep(&f, 20 * MS);
		else
			fix_sleep(&f, UINT64_C(400000) * MS);
		assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_WAIT);
		expect_ahead(&f, 1, 0, 1);
		waiter_cancel(f.m, &f.w);
		fix_close(&f);
	}
}

/* For reading only is not for writing. */
static void foresee__protected(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++) {
		struct fix f;

		open_stream(&f, i & 1, true);
		fix_done(&f, fix_next(&f), 1, false);
		if (i & 2)
			spt_protect_all(f.m);
		else
			assert_int_equal(spt_protect(f.m, 109, 1), 0);
		assert_int_equal(fix_access(&f, 109, 1, true, NULL), V_WAIT);
		assert_int_equal(fix_access(&f, 109, 1, false, &f.w), V_OK);
		expect_ahead(&f, 1, 1, 0);
		fix_close(&f);
	}
}

/* With the region goes what was fetched for it, and is to be. */
static void foresee__ends_with_the_region(void **state)
{
	struct ticket_req req;
	struct fix f;
	uint32_t key;

	(void)state;
	for (int fetched = 0; fetched < 2; fetched++) {
		fix_open_any(&f, (struct mem_config){.entries = 64});
		key = fix_mr(&f, 100 * PAGE_BYTES, 100 * PAGE_BYTES,
			     10 * PAGE_BYTES, FIX_RIGHTS);
		fix_sleep(&f, 10 * MS);
		begin_stream(&f, key, 100, true);
		if (fetched)
			fix_done(&f, fix_next(&f), 1, false);
		assert_int_equal(mr_free(f.m, key), 0);
		assert_false(ticket_next(f.m, &req));
		expect_ahead(&f, fetched, 0, fetched);
		fix_close(&f);
	}
	/* nor does it go beyond it */
	fix_open_any(&f, (struct mem_config){.entries = 64});
	key = fix_mr(&f, 100 * PAGE_BYTES, 100 * PAGE_BYTES, 9 * PAGE_BYTES,
		     FIX_RIGHTS);
	begin_stream(&f, key, 100, true);
	assert_int_equal(tickets_out(f.m), 0);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* A fault that a move takes by itself is no reason to ask for anything. */
static void foresee__not_what_is_cheap(void **state)
{
	struct fix f;

	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 64});
	fix_sleep(&f, 10 * MS);
	cheap_learn(&f.m->cheap, 109, 200, f.now);
	begin_stream(&f, f.all, 100, true);
	assert_int_equal(tickets_out(f.m), 0);
	fix_close(&f);
}

static void account_is(const struct account *a, uint64_t pages, uint64_t hits)
{
	assert_int_equal(a->n[ACCT_prefetch_pages], pages);
	assert_int_equal(a->n[ACCT_prefetch_hits], hits);
}

static void foresee__accounted(void **state)
{
	struct account all, no_owner, no_mr, region, *owner = NULL;
	struct mr_attr attr;
	uint32_t at = 0, key;
	struct fix f;

	(void)state;
	open_stream(&f, false, true);
	f.w.account = &owner;
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(fix_access(&f, 109, 1, true, &f.w), V_OK);
	mem_account_copy(f.m, &all, &no_owner, &no_mr);
	assert_true(mr_account_next(f.m, &at, &key, &attr, &region));
	assert_int_equal(key, f.all);
	account_is(&all, 1, 1);
	account_is(&no_owner, 1, 0);
	account_is(owner, 0, 1);
	account_is(&region, 1, 1);
	account_is(&no_mr, 0, 0);
	mem_account_gone(f.m, &owner);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dma_ahead__what_is_missing),
		cmocka_unit_test(dma_ahead__nothing_that_is_refused),
		cmocka_unit_test(dma_ahead__bounded),
		cmocka_unit_test(dma_ahead__not_what_is_dropped),
		cmocka_unit_test(over_look__until_it_is_answered),
		cmocka_unit_test(ahead__as_chosen),
		cmocka_unit_test(foresee__is_used_without_a_fault),
		cmocka_unit_test(foresee__comes_late),
		cmocka_unit_test(foresee__in_vain),
		cmocka_unit_test(foresee__protected),
		cmocka_unit_test(foresee__ends_with_the_region),
		cmocka_unit_test(foresee__not_what_is_cheap),
		cmocka_unit_test(foresee__accounted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
