/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_adaptive_test.c: the rule, a case for each of its reasons and for each side
 * of each limit. What it is worth is in tests/sim/adaptive.c.
 */
#include "xport/strategy.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* Large, slow and in the way of others. */
static const struct known crowd = {.site = SITE_REQUEST,
				   .asks = true,
				   .shared = true,
				   .fault_ns = 10 * 1000 * 1000,
				   .coming = 256,
				   .room = 400};

static void adaptive_rule__sources(void **state)
{
	struct known k = crowd;

	(void)state;
	k.site = SITE_SOURCE;
	assert_int_equal(adaptive_rule(&k), STRATEGY_PARK);
	k.site = SITE_READ_SOURCE;
	assert_int_equal(adaptive_rule(&k), STRATEGY_PARK);
}

static void adaptive_rule__crowd(void **state)
{
	struct known k = crowd;

	(void)state;
	assert_int_equal(adaptive_rule(&k), STRATEGY_RESUME);
	k.site = SITE_RESPONSE;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REPLAY);
	k.asks = false;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REPLAY);
	k.site = SITE_REQUEST;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REDIRECT);
}

static void adaptive_rule__alone(void **state)
{
	struct known k = crowd;

	(void)state;
	k.shared = false;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REDIRECT);
}

static void adaptive_rule__soon(void **state)
{
	struct known k = crowd;

	(void)state;
	k.fault_ns = 0;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REDIRECT);
	k.fault_ns = 150 * 1000;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REDIRECT);
	k.fault_ns = 1000 * 1000;
	assert_int_equal(adaptive_rule(&k), STRATEGY_RESUME);
}

static void adaptive_rule__little(void **state)
{
	struct known k = crowd;

	(void)state;
	k.coming = 100;
	assert_int_equal(adaptive_rule(&k), STRATEGY_REDIRECT);
	k.coming = 101;
	assert_int_equal(adaptive_rule(&k), STRATEGY_RESUME);
	k.room = 0;
	k.coming = 1;
	assert_int_equal(adaptive_rule(&k), STRATEGY_RESUME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adaptive_rule__sources),
		cmocka_unit_test(adaptive_rule__crowd),
		cmocka_unit_test(adaptive_rule__alone),
		cmocka_unit_test(adaptive_rule__soon),
		cmocka_unit_test(adaptive_rule__little),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
