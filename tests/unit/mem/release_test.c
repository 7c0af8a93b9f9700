/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* release_test.c: after the walk: what was held is let go, what was touched is
 * remembered, what was wrong is forgotten.
 */
#include "fixture.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/limits.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/use.h"

/* What is used stays fresh, with nobody else's help. */
static void dma_release__touches(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	spt_map(f.m, 10, 2, true, f.now);
	for (int i = 0; i < 100; i++) {
		fix_sleep(&f, 8 * MS);
		assert_int_equal(fix_access(&f, 10, 1, i % 2, NULL), V_OK);
		dma_release(f.m, &f.holds, 0, true, f.now);
		f.mv.num = 0;
	}
	assert_false(fix_ready(&f, 11, false));
	fix_sleep(&f, 8 * MS);
	assert_int_equal(fix_access(&f, 10, 1, false, NULL), V_OK);
	dma_release(f.m, &f.holds, 0, false, f.now);
	fix_sleep(&f, 8 * MS);
	assert_false(fix_ready(&f, 10, false));
	fix_close(&f);
}

/* A write made the page writable, a read did not. */
static void dma_release__inlined_pages_become_ready(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 1024);
	mem_inline_budget(f.m, 2);
	cheap_learn(&f.m->cheap, 10, 20, f.now);
	assert_int_equal(fix_access(&f, 10, 1, true, NULL), V_OK);
	assert_int_equal(fix_access(&f, 11, 1, false, NULL), V_OK);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_true(fix_ready(&f, 10, true));
	assert_true(fix_ready(&f, 11, false));
	assert_false(fix_ready(&f, 11, true));
	fix_close(&f);
}

/* The page may be gone since the move. */
static void dma_release__concludes_nothing_after_a_change(void **state)
{
	struct fix f;

	(void)state;
	for (int how = 0; how < 4; how++) {
		fix_open_ageing(&f, 1024);
		spt_map(f.m, 10, 1, true, f.now);
		assert_int_equal(fix_access(&f, 10, 1, true, NULL), V_OK);
		if (how == 0)
			spt_unmap(f.m, 10, 1);
		else if (how == 1)
			spt_protect(f.m, 10, 1);
		else if (how == 2)
			spt_protect_all(f.m);
		else
			dma_fault(f.m, 10 * 4096, 1);
		dma_release(f.m, &f.holds, 0, true, f.now);
		assert_false(fix_ready(&f, 10, true));
		assert_int_equal(fix_ready(&f, 10, false),
				 how == 1 || how == 2);
		fix_close(&f);
	}
}

static void dma_release__from_an_index(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 0, 10, true, f.now);
	for (uint64_t p = 0; p < 10; p++)
		assert_int_equal(fix_access(&f, p, 1, true, NULL), V_OK);
	dma_release(f.m, &f.holds, 10, true, f.now);
	assert_int_equal(f.holds.num, 10);
	dma_release(f.m, &f.holds, 4, true, f.now);
	assert_int_equal(f.holds.num, 4);
	for (uint64_t p = 0; p < 10; p++)
		assert_int_equal(spt_held(f.m, p, 1), p < 4);
	assert_int_equal(mr_free(f.m, f.all), -EBUSY);
	fix_close(&f);
}

/* What was not accessed after all is neither held nor known to be in use. */
static void dma_trim__holds_and_touches_less(void **state)
{
	static const struct {
		uint64_t len, bytes, pages;
	} t[] = {{8192, 1, 2},	  {8192, 4095, 2}, {8192, 4096, 1},
		 {8192, 8191, 1}, {8193, 1, 2},	   {40960, 40959, 1}};
	struct fix f;

	(void)state;
	for (size_t i = 0; i < 2 * ARRAY_SIZE(t); i++) {
		const size_t k = i / 2;
		struct dma d;

		if (i % 2)
			fix_open_exact(&f, 64);
		else
			fix_open_ageing(&f, 1024);
		spt_map(f.m, 10, 10, true, f.now);
		fix_sleep(&f, 8 * MS);
		assert_int_equal(fix_access(&f, 10, 1, true, NULL), V_OK);
		d = fix_dma(&f, 10 * 4096, t[k].len, true);
		assert_int_equal(fix_run(&f, &d, NULL), V_OK);
		dma_trim(f.m, t[k].bytes, &f.mv, &f.holds);
		assert_int_equal(f.mv.m[1].len, t[k].len - t[k].bytes);
		for (uint64_t p = 10; i % 2 && p < 20; p++)
			assert_int_equal(spt_held(f.m, p, 1),
					 p < 10 + t[k].pages);
		dma_release(f.m, &f.holds, 0, true, f.now);
		for (uint64_t p = 10; p < 20; p++)
			assert_false(spt_held(f.m, p, 1));
		fix_sleep(&f, 8 * MS);
		for (uint64_t p = 10; !(i % 2) && p < 20; p++)
			assert_int_equal(fix_ready(&f, p, true),
					 p < 10 + t[k].pages);
		f.mv.num = 0;
		fix_close(&f);
	}
}

static void dma_fault__drops_what_the_table_said(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 6, true, f.now);
	assert_int_equal(fix_access(&f, 12, 1, true, NULL), V_OK);
	dma_fault(f.m, 11 * 4096 + 4095, 4098);
	dma_fault(f.m, 15 * 4096, 0);
	for (uint64_t p = 10; p < 16; p++)
		assert_int_equal(fix_ready(&f, p, false), p < 11 || p > 13);
	/* the hold is still there, and still to be released */
	assert_true(spt_held(f.m, 12, 1));
	dma_release(f.m, &f.holds, 0, false, f.now);
	assert_false(spt_held(f.m, 12, 1));
	dma_fault(f.m, ADDR_END - 1, UINT64_MAX - ADDR_END);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dma_release__touches),
		cmocka_unit_test(dma_release__inlined_pages_become_ready),
		cmocka_unit_test(dma_release__concludes_nothing_after_a_change),
		cmocka_unit_test(dma_release__from_an_index),
		cmocka_unit_test(dma_trim__holds_and_touches_less),
		cmocka_unit_test(dma_fault__drops_what_the_table_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
