/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* overwrite_test.c: which pages may lose their old content, and who may say so. */
#include "base/check.h"
#include "fixture.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/key_table.h"
#include "mem/overwrite.h"
#include "mem/regions.h"

#include <stddef.h>

static void over_pages__whole_ones_only(void **state)
{
	static const struct {
		uint64_t addr, len, follow, behind, start, end;
	} rows[] = {
		{0x1000, 0x1000, 0, 0x1000, 1, 2},
		{0x1000, 0xfff, 0, 0x1000, 1, 1},
		{0x1001, 0x1fff, 0, 0x9000, 2, 3},
		{0x1001, 1, 0, 0x9000, 2, 2},
		{0x1000, 1, 0xfff, 0x9000, 1, 2},
		{0x1000, 0x3000, 0, 0x2fff, 1, 3}, /* the region ends */
		{0x1000, 1, UINT64_MAX, 0x2000, 1, 3},
		{0x1fff, 2, 0x1000, 0x9000, 2, 3},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct dma d = {.len = rows[i].len,
				      .follow = rows[i].follow};
		const struct pages p = over_pages(&d, rows[i].addr,
						  rows[i].behind);

		assert_int_equal(p.start, rows[i].start);
		assert_int_equal(p.end, rows[i].end);
	}
}

/* By L_Key nobody looks before the completion; by R_Key the region must say so. */
static void over_allowed__who_may(void **state)
{
	const strategies_t set = STRATEGY_BIT(STRATEGY_OVERWRITE) |
				 STRATEGY_BIT(STRATEGY_INLINE);
	static const struct {
		bool write, ready, remote, region, chosen, allowed;
	} rows[] = {
		{true, false, false, false, true, true},
		{true, false, true, true, true, true},
		{true, false, true, false, true, false},
		{true, true, false, false, true, false},
		{false, false, false, false, true, false},
		{true, false, false, false, false, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct dma d = {.write = rows[i].write,
				      .ready = rows[i].ready,
				      .remote = rows[i].remote};
		const struct key_row row = {
			.fault = rows[i].region ? STRATEGY_OVERWRITE
						: STRATEGY_NONE};

		assert_int_equal(
			over_allowed(&row, &d,
				     rows[i].chosen
					     ? set
					     : STRATEGY_BIT(STRATEGY_INLINE)),
			rows[i].allowed);
	}
}

/* For a second; then it is asked again. */
static void over_look__as_long_as_it_counts(void **state)
{
	enum { SECOND = 1000 * MS };
	const struct mr *mr;
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	mr = mr_live(f.m, f.all);
	f.now = UINT64_C(9) * SECOND;
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_LOOK);
	over_looked(f.m, f.all ^ 0x100, false, f.now); /* that is gone */
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_LOOK);
	over_looked(f.m, f.all, false, f.now);
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_NO);
	cheap_learn(&f.m->plain, 7, 8, f.now);
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_YES);
	assert_int_equal(over_look(f.m, mr, 8, f.now), OVER_NO);
	f.now += SECOND;
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_YES);
	assert_int_equal(over_look(f.m, mr, 8, f.now), OVER_NO);
	f.now++;
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_LOOK);
	assert_int_equal(over_look(f.m, mr, 8, f.now), OVER_LOOK);
	fix_close(&f);
}

/* A pager that could not say asks for another look, but not at once: the page comes
 * meanwhile. */
static void over_look__too_early(void **state)
{
	const struct mr *mr;
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	mr = mr_live(f.m, f.all);
	f.now = 9 * MS;
	over_looked(f.m, f.all, true, f.now);
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_NO);
	f.now += 10 * MS;
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_NO);
	f.now++;
	assert_int_equal(over_look(f.m, mr, 7, f.now), OVER_LOOK);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_pages__whole_ones_only),
		cmocka_unit_test(over_allowed__who_may),
		cmocka_unit_test(over_look__as_long_as_it_counts),
		cmocka_unit_test(over_look__too_early),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
