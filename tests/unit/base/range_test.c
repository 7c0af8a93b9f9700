/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* range_test.c: bounds arithmetic at both ends of 64 bits. */
#include "base/check.h"
#include "base/range.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MAX64 UINT64_MAX

static void range_ok__table(void **state)
{
	static const struct {
		uint64_t off, len, size;
		bool ok;
	} t[] = {
		{0, 0, 0, true},
		{1, 0, 0, false},
		{0, 1, 0, false},
		{0, 10, 10, true},
		{10, 0, 10, true},
		{11, 0, 10, false},
		{9, 1, 10, true},
		{9, 2, 10, false},
		{10, 1, 10, false},
		{0, 11, 10, false},
		{MAX64, 1, 10, false},
		{MAX64, 2, MAX64, false},
		{1, MAX64, 10, false},
		{1, MAX64, MAX64, false},
		{0, MAX64, MAX64, true},
		{MAX64, 0, MAX64, true},
		{MAX64 - 1, 1, MAX64, true},
		{MAX64, 1, MAX64, false},
		{MAX64, MAX64, MAX64, false},
		{6, MAX64 - 4, 10, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		if (range_ok(t[i].off, t[i].len, t[i].size) != t[i].ok)
			fail_msg("row %zu", i);
}

static void range_wraps__table(void **state)
{
	(void)state;
	assert_false(range_wraps(0, 0));
	assert_false(range_wraps(MAX64, 0));
	assert_false(range_wraps(MAX64, 1));
	assert_true(range_wraps(MAX64, 2));
	assert_false(range_wraps(0, MAX64));
	assert_false(range_wraps(1, MAX64));
	assert_true(range_wraps(2, MAX64));
	assert_false(range_wraps(MAX64 - 4095, 4096));
	assert_true(range_wraps(MAX64 - 4095, 4097));
}

static void sat_add__table(void **state)
{
	(void)state;
	assert_int_equal(sat_add(0, 0), 0);
	assert_int_equal(sat_add(1, 2), 3);
	assert_int_equal(sat_add(MAX64, 0), MAX64);
	assert_int_equal(sat_add(MAX64 - 1, 1), MAX64);
	assert_int_equal(sat_add(MAX64, 1), MAX64);
	assert_int_equal(sat_add(MAX64, MAX64), MAX64);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(range_ok__table),
		cmocka_unit_test(range_wraps__table),
		cmocka_unit_test(sat_add__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
