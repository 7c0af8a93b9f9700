/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* renew_test.c: what is known of pages does not outlive their mapping, as far
 * as registrations show it. The kernel's counters stand still in here: nothing
 * ages.
 */
#include "base/check.h"
#include "fixture.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/use.h"
#include "mem/waiter.h"

/* A one-page access through @key; does not stay. */
static enum verdict try_page(struct fix *f, uint32_t key, uint64_t vpn,
			     bool write, struct waiter *w)
{
	struct dma d = fix_dma(f, vpn * 4096, 8, write);
	enum verdict v;

	d.key = key;
	f->mv.num = 0;
	v = dma_resolve(f->m, &d, f->slot, 0, f->now, 0, w, &f->mv, &f->holds);
	dma_release(f->m, &f->holds, 0, true, f->now);
	return v;
}

static uint32_t pages(struct fix *f, uint64_t vpn, uint64_t num)
{
	return fix_mr(f, vpn * 4096, vpn * 4096, num * 4096, FIX_RIGHTS);
}

/* A peer WRITEs a buffer; it is deregistered, unmapped, and a file mapped in its
 * place and registered.
 */
static void mr_register__knows_nothing_of_its_pages(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	for (int later = 0; later < 2; later++) {
		fix_open_ageing(&f, 1024);
		key = pages(&f, 10, 4);
		spt_map(f.m, 10, 4, true, f.now);
		for (uint64_t p = 10; p < 14; p++)
			assert_int_equal(try_page(&f, key, p, true, NULL),
					 V_OK);
		assert_int_equal(mr_free(f.m, key), 0);
		f.now += later ? 1000 * (uint64_t)MS : 0;
		key = pages(&f, 10, 4);
		for (uint64_t p = 10; p < 14; p++) {
			assert_int_equal(try_page(&f, key, p, false, NULL),
					 V_WAIT);
			/* those that were registered before lose nothing */
			assert_int_equal(try_page(&f, f.all, p, false, NULL),
					 V_OK);
		}
		assert_int_equal(mr_free(f.m, key), 0);
		fix_close(&f);
	}
}

/* Learned anew, in the same tick if need be, and no more than was learned. */
static void mr_register__learns_anew(void **state)
{
	struct ticket_req req;
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 1024);
	spt_map(f.m, 10, 1, true, f.now);
	assert_int_equal(try_page(&f, f.all, 10, true, NULL), V_OK);
	key = pages(&f, 10, 1);
	assert_int_equal(try_page(&f, key, 10, false, &f.w), V_WAIT);
	req = fix_next(&f);
	assert_false(req.write);
	fix_done(&f, req, 1, false);
	assert_int_equal(try_page(&f, key, 10, false, &f.w), V_OK);
	assert_int_equal(try_page(&f, key, 10, true, &f.w), V_WAIT);
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(try_page(&f, key, 10, true, &f.w), V_OK);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* A read through it says nothing about writing, whatever was known before. */
static void dma_release__keeps_no_older_right(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 1024);
	spt_map(f.m, 10, 1, true, f.now);
	key = pages(&f, 10, 2);
	cheap_learn(&f.m->cheap, 10, 11, f.now);
	mem_inline_budget(f.m, 1);
	assert_int_equal(try_page(&f, key, 10, false, NULL), V_OK);
	cheap_forget(&f.m->cheap, 10, 11);
	assert_int_equal(try_page(&f, key, 10, false, NULL), V_OK);
	assert_int_equal(try_page(&f, key, 10, true, NULL), V_WAIT);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

static void mr_register__forgets_what_is_cheap(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 1024);
	mem_inline_budget(f.m, 100);
	cheap_learn(&f.m->cheap, 10, 20, f.now);
	key = fix_mr(&f, 12 * 4096 + 4095, 0, 2, FIX_RIGHTS);
	for (uint64_t p = 10; p < 20; p++)
		assert_int_equal(try_page(&f, f.all, p, true, NULL),
				 p == 12 || p == 13 ? V_WAIT : V_OK);
	assert_int_equal(mr_free(f.m, key), 0);
	key = fix_mr(&f, 0, 0, UINT64_MAX, 0);
	assert_int_equal(f.m->cheap.num, 0);
	assert_int_equal(mr_free(f.m, key), 0);
	key = fix_mr(&f, 0, 0, 0, 0);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* A pager looked before or after the registration: its answer is good for who
 * asked, through an older region, but not for the new one.
 */
static void mr_register__while_a_pager_looks(void **state)
{
	struct ticket_req req;
	struct list woken;
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 1024);
	assert_int_equal(try_page(&f, f.all, 10, true, &f.w), V_WAIT);
	req = fix_next(&f);
	key = pages(&f, 9, 2);
	fix_sleep(&f, 5 * MS);
	list_init(&woken);
	ticket_done(f.m, req.id, 1, false, true, 9 * 4096, 11 * 4096, 1, f.now,
		    &woken);
	assert_ptr_equal(woken.next, &f.w.link);
	list_del(&f.w.link);
	assert_int_equal(f.m->cheap.num, 0);
	assert_int_equal(try_page(&f, key, 10, false, NULL), V_WAIT);
	assert_int_equal(try_page(&f, f.all, 10, true, &f.w), V_OK);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* The table's time runs ahead by touches between registrations, and not far. */
static void spt_renew__stays_close_to_the_clock(void **state)
{
	uint32_t key[20];
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	spt_map(f.m, 10, 1, true, f.now);
	for (unsigned i = 0; i < ARRAY_SIZE(key); i++)
		key[i] = pages(&f, 10, 1);
	assert_int_equal(f.m->spt.time.tick, f.m->spt.time.now_tick + 1);
	for (unsigned i = 0; i < ARRAY_SIZE(key); i++) {
		assert_int_equal(mr_free(f.m, key[i]), 0);
		spt_map(f.m, 10, 1, true, f.now);
		key[i] = pages(&f, 10, 1);
	}
	assert_in_range(f.m->spt.time.tick - f.m->spt.time.now_tick, 2, 4);
	for (unsigned i = 0; i < ARRAY_SIZE(key); i++)
		assert_int_equal(mr_free(f.m, key[i]), 0);
	fix_close(&f);
}

/* Where all memory is registered none is registered anew: what is mapped in the
 * place of something else is found out by looking again soon.
 */
static void implicit__knows_nothing_for_long(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 1024);
	key = fix_mr(&f, 0, 0, UINT64_MAX, FIX_RIGHTS);
	fix_sleep(&f, 20 * MS);
	spt_map(f.m, 10, 1, true, f.now);
	fix_sleep(&f, 8 * MS);
	assert_int_equal(try_page(&f, key, 10, true, NULL), V_OK);
	fix_sleep(&f, 8 * MS); /* it was touched meanwhile */
	assert_int_equal(try_page(&f, key, 10, true, NULL), V_OK);
	fix_sleep(&f, 12 * MS);
	assert_int_equal(try_page(&f, f.all, 10, false, NULL), V_OK);
	fix_sleep(&f, 12 * MS);
	assert_int_equal(try_page(&f, key, 10, false, NULL), V_WAIT);
	assert_int_equal(try_page(&f, f.all, 10, false, NULL), V_OK);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* An exact host says itself what becomes of pages. */
static void mr_register__exact_hosts_know(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_exact(&f, 1024);
	spt_map(f.m, 10, 1, true, f.now);
	cheap_learn(&f.m->cheap, 11, 12, f.now);
	key = pages(&f, 10, 2);
	mem_inline_budget(f.m, 1);
	assert_int_equal(try_page(&f, key, 10, true, NULL), V_OK);
	assert_int_equal(try_page(&f, key, 11, true, NULL), V_OK);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mr_register__knows_nothing_of_its_pages),
		cmocka_unit_test(implicit__knows_nothing_for_long),
		cmocka_unit_test(mr_register__learns_anew),
		cmocka_unit_test(dma_release__keeps_no_older_right),
		cmocka_unit_test(mr_register__forgets_what_is_cheap),
		cmocka_unit_test(mr_register__while_a_pager_looks),
		cmocka_unit_test(spt_renew__stays_close_to_the_clock),
		cmocka_unit_test(mr_register__exact_hosts_know),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
