/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timecode_test.c: the RNR table against the rule behind it, both directions.
 */
#include "wire/timecode.h"
#include "wire_test.h"

/* Powers of two, and between two of them 3/2 of the lower; the row begins with
 * 0.01, 0.02, 0.03 ms, and code 0 is what code 32 would be.
 */
static uint64_t rnr_formula_ns(unsigned code)
{
	const uint64_t unit = 10000;

	code = code ? code : 32;
	if (code == 1)
		return unit;
	return code % 2 ? unit * 3 << (code - 3) / 2 : unit << code / 2;
}

static void rnr_code_to_ns__formula(void **state)
{
	(void)state;
	for (unsigned code = 0; code < 32; code++)
		assert_int_equal(rnr_code_to_ns((uint8_t)code),
				 rnr_formula_ns(code));
	/* the ones that implementations got wrong, or are known by heart */
	assert_int_equal(rnr_code_to_ns(0), 655360000);
	assert_int_equal(rnr_code_to_ns(12), 640000);
	assert_int_equal(rnr_code_to_ns(25), 61440000);
	assert_int_equal(rnr_code_to_ns(31), 491520000);
}

static void rnr_code_to_ns__five_bits(void **state)
{
	(void)state;
	assert_int_equal(rnr_code_to_ns(32 + 12), rnr_code_to_ns(12));
	assert_int_equal(rnr_code_to_ns(0xe0), rnr_code_to_ns(0));
}

static void rnr_ns_to_code__smallest_that_is_enough(void **state)
{
	(void)state;
	for (unsigned code = 1; code <= 32; code++) {
		uint64_t ns = rnr_formula_ns(code);

		assert_int_equal(rnr_ns_to_code(ns), code % 32);
		assert_int_equal(rnr_ns_to_code(ns - 1), code % 32);
		assert_int_equal(rnr_ns_to_code(ns + 1),
				 code >= 31 ? 0 : code + 1);
	}
	assert_int_equal(rnr_ns_to_code(0), 1);
	assert_int_equal(rnr_ns_to_code(UINT64_MAX), 0);
}

static void ack_timeout_to_ns__table(void **state)
{
	(void)state;
	assert_true(ack_timeout_to_ns(0) == UINT64_MAX);
	assert_int_equal(ack_timeout_to_ns(1), 8192);
	assert_int_equal(ack_timeout_to_ns(14), 67108864);
	assert_int_equal(ack_timeout_to_ns(31), UINT64_C(8796093022208));
	assert_int_equal(ack_timeout_to_ns(32 + 14), 67108864);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rnr_code_to_ns__formula),
		cmocka_unit_test(rnr_code_to_ns__five_bits),
		cmocka_unit_test(rnr_ns_to_code__smallest_that_is_enough),
		cmocka_unit_test(ack_timeout_to_ns__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
