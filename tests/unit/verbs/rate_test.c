/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"

#include <stddef.h>
#include <stdlib.h>

/* The table against a formula: lanes of 2.5, 5, 10, 14.0625, 25.78125, 28.125,
 * 53.125 and 106.25 Gb/s times 1, 4, 8 or 12.
 */
static bool is_signalled(int mbps)
{
	static const double lanes[] = {2500,	 5000,	10000, 14062.5,
				       25781.25, 28125, 53125, 106250};
	static const int widths[] = {1, 4, 8, 12};

	for (size_t i = 0; i < ARRAY_SIZE(lanes); i++)
		for (size_t w = 0; w < ARRAY_SIZE(widths); w++)
			if (abs((int)(lanes[i] * widths[w]) - mbps) <= 1)
				return true;
	return false;
}

static void rate__round_trips(void **state)
{
	(void)state;
	for (int rate = IBV_RATE_2_5_GBPS; rate <= IBV_RATE_1200_GBPS; rate++) {
		const int mult = ibv_rate_to_mult((enum ibv_rate)rate);
		const int mbps = ibv_rate_to_mbps((enum ibv_rate)rate);

		assert_true(mult > 0);
		assert_true(is_signalled(mbps));
		/* a multiple of 2.5 Gb/s, within what line coding adds */
		assert_in_range(mbps, mult * 2500 - 1250, mult * 2500 * 1.07);
		assert_int_equal(mult_to_ibv_rate(mult), rate);
		assert_int_equal(mbps_to_ibv_rate(mbps), rate);
	}
}

static void rate__unknown(void **state)
{
	(void)state;
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_MAX), -1);
	assert_int_equal(ibv_rate_to_mbps(IBV_RATE_MAX), -1);
	assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)99), -1);
	assert_int_equal(mult_to_ibv_rate(3), IBV_RATE_MAX);
	assert_int_equal(mbps_to_ibv_rate(2501), IBV_RATE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate__round_trips),
		cmocka_unit_test(rate__unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
