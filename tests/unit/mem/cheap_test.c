/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cheap_test.c: the list of cheap ranges. */
#include "base/check.h"
#include "fixture.h"
#include "mem/cheap.h"

static void check_sorted(const struct cheap *c)
{
	for (unsigned i = 0; i < c->num; i++) {
		assert_true(c->r[i].start < c->r[i].end);
		if (i > 0)
			assert_true(c->r[i - 1].end <= c->r[i].start);
	}
}

static void cheap_learn__covers(void **state)
{
	struct cheap c = {0};

	(void)state;
	cheap_learn(&c, 10, 20, 5);
	cheap_learn(&c, 30, 30, 5);
	assert_int_equal(c.num, 1);
	assert_false(cheap_covers(&c, 9, 0));
	assert_true(cheap_covers(&c, 10, 0));
	assert_true(cheap_covers(&c, 19, 5));
	assert_false(cheap_covers(&c, 19, 6));
	assert_false(cheap_covers(&c, 20, 0));
}

static void cheap_learn__replaces_older(void **state)
{
	struct cheap c = {0};

	(void)state;
	cheap_learn(&c, 10, 20, 5);
	cheap_learn(&c, 15, 25, 9);
	assert_false(cheap_covers(&c, 14, 6));
	assert_true(cheap_covers(&c, 15, 9));
	assert_true(cheap_covers(&c, 24, 9));
	assert_true(cheap_covers(&c, 14, 5));
}

static void cheap_learn__full_drops_the_oldest(void **state)
{
	struct cheap c = {0};

	(void)state;
	for (uint64_t i = 0; i < CHEAP_MAX; i++)
		cheap_learn(&c, i * 10, i * 10 + 5, i == 7 ? 1 : 100 + i);
	cheap_learn(&c, 5000, 5001, 50);
	assert_int_equal(c.num, CHEAP_MAX);
	check_sorted(&c);
	assert_false(cheap_covers(&c, 70, 0));
	assert_true(cheap_covers(&c, 60, 0));
	assert_true(cheap_covers(&c, 80, 0));
	assert_true(cheap_covers(&c, 5000, 0));
}

static void cheap_forget__splits(void **state)
{
	struct cheap c = {0};

	(void)state;
	cheap_learn(&c, 10, 20, 5);
	cheap_forget(&c, 13, 16);
	assert_int_equal(c.num, 2);
	assert_true(cheap_covers(&c, 12, 5));
	assert_false(cheap_covers(&c, 13, 0));
	assert_false(cheap_covers(&c, 15, 0));
	assert_true(cheap_covers(&c, 16, 5));
	cheap_forget(&c, 0, UINT64_MAX);
	assert_int_equal(c.num, 0);
}

/* Splitting a full list loses a range, never order. */
static void cheap_forget__splits_when_full(void **state)
{
	struct cheap c = {0};

	(void)state;
	for (uint64_t i = 0; i < CHEAP_MAX; i++)
		cheap_learn(&c, i * 10, i * 10 + 9, i);
	cheap_forget(&c, 634, 635);
	assert_int_equal(c.num, CHEAP_MAX);
	check_sorted(&c);
	assert_false(cheap_covers(&c, 634, 0));
	assert_true(cheap_covers(&c, 633, 0));
	assert_true(cheap_covers(&c, 635, 0));
	assert_false(cheap_covers(&c, 0, 0));
	cheap_forget(&c, 63, 64);
	check_sorted(&c);
	assert_false(cheap_covers(&c, 63, 0));
}

/* Against an array with the time of each page. */
static void cheap__random(void **state)
{
	struct rnd r = {3, 4, 0};
	uint64_t when[60] = {0};
	struct cheap c = {0};

	(void)state;
	for (uint64_t now = 1; now < 30000; now++) {
		uint64_t a = rnd_next(&r) % 60, b = rnd_next(&r) % 61;
		bool learn = rnd_next(&r) % 2;
		uint64_t fresh = now - rnd_next(&r) % MIN(now, 20);

		if (learn)
			cheap_learn(&c, a, b, now);
		else
			cheap_forget(&c, a, b);
		for (; a < b; a++)
			when[a] = learn ? now : 0;
		check_sorted(&c);
		for (uint64_t p = 0; p < 60; p++)
			assert_int_equal(cheap_covers(&c, p, fresh),
					 when[p] >= fresh);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_learn__covers),
		cmocka_unit_test(cheap_learn__replaces_older),
		cmocka_unit_test(cheap_learn__full_drops_the_oldest),
		cmocka_unit_test(cheap_forget__splits),
		cmocka_unit_test(cheap_forget__splits_when_full),
		cmocka_unit_test(cheap__random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
