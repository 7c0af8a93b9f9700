/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy_test.c: what users may choose, and that no choice leaves a missing page
 * without an answer.
 */
#include "base/check.h"
#include "base/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void strategy_by_name__every_name(void **state)
{
	(void)state;
	for (int s = STRATEGY_NONE + 1; s < STRATEGY_NUM; s++)
		assert_int_equal(strategy_by_name(strategy_name(s)), s);
}

static void strategy_by_name__no_name(void **state)
{
	static const char *const bad[] = {"",	  "none",  "?",
					  "Park", "park ", "redirect resume"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(strategy_by_name(bad[i]), STRATEGY_NONE);
	assert_string_equal(strategy_name(STRATEGY_NUM), "?");
}

static void strategy_names__lists_each_once(void **state)
{
	char names[] = STRATEGY_NAMES, *at = names, *name;
	strategies_t seen = 0;

	(void)state;
	while ((name = strsep(&at, " "))) {
		enum strategy s = strategy_by_name(name);

		assert_int_not_equal(s, STRATEGY_NONE);
		assert_int_equal(seen & STRATEGY_BIT(s), 0);
		seen |= STRATEGY_BIT(s);
	}
	assert_int_equal(seen, STRATEGY_BIT(STRATEGY_NUM) - 2);
}

/* Requests, responses, sources and datagrams each have somebody left. */
static void strategy_set__always_an_answer(void **state)
{
	(void)state;
	for (int s = STRATEGY_NONE + 1; s < STRATEGY_NUM; s++) {
		strategies_t set = strategy_set(s);

		if (s == STRATEGY_BLOCK) {
			assert_int_equal(set, STRATEGY_BIT(STRATEGY_BLOCK));
			continue;
		}
		assert_true(set & STRATEGY_BIT(STRATEGY_PARK));
		assert_true(set & (STRATEGY_BIT(STRATEGY_RNR) |
				   STRATEGY_BIT(STRATEGY_DROP)));
		assert_true(set & STRATEGY_BIT(s));
	}
	assert_int_equal(strategy_set(STRATEGY_NONE), 0);
}

/* To be compared means to be alone: nobody better answers first. */
static void strategy_set__only_what_was_chosen(void **state)
{
	const strategies_t moves = STRATEGY_BIT(STRATEGY_INLINE) |
				   STRATEGY_BIT(STRATEGY_OVERWRITE);

	(void)state;
	assert_int_equal(strategy_set(STRATEGY_REDIRECT) & moves, 0);
	assert_int_equal(strategy_set(STRATEGY_INLINE) & moves,
			 STRATEGY_BIT(STRATEGY_INLINE));
	assert_int_equal(strategy_set(STRATEGY_OVERWRITE) & moves,
			 STRATEGY_BIT(STRATEGY_OVERWRITE));
	assert_int_equal(strategy_set(STRATEGY_ADAPTIVE) & moves, moves);
	assert_false(strategy_set(STRATEGY_RESUME) &
		     STRATEGY_BIT(STRATEGY_REDIRECT));
	assert_false(strategy_set(STRATEGY_RNR) &
		     (STRATEGY_BIT(STRATEGY_REDIRECT) |
		      STRATEGY_BIT(STRATEGY_RESUME)));
	assert_false(strategy_set(STRATEGY_DROP) &
		     (STRATEGY_BIT(STRATEGY_REDIRECT) |
		      STRATEGY_BIT(STRATEGY_BACKUP) |
		      STRATEGY_BIT(STRATEGY_RNR)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strategy_by_name__every_name),
		cmocka_unit_test(strategy_by_name__no_name),
		cmocka_unit_test(strategy_names__lists_each_once),
		cmocka_unit_test(strategy_set__always_an_answer),
		cmocka_unit_test(strategy_set__only_what_was_chosen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
