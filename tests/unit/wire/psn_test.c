/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* psn_test.c: serial arithmetic across the wrap. */
#include "base/check.h"
#include "wire_test.h"

#include <stddef.h>

static void psn_add__table(void **state)
{
	static const struct {
		psn_t a;
		uint32_t n;
		psn_t sum;
	} t[] = {
		{0, 0, 0},
		{0, 1, 1},
		{0xffffff, 1, 0},
		{0xfffffe, 3, 1},
		{0x7fffff, 1, 0x800000},
		{5, 0xffffff, 4},
		{5, 0x1000000, 5},
		{0xffffff, 0xffffffff, 0xfffffe},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(psn_add(t[i].a, t[i].n), t[i].sum);
}

static void psn_diff__table(void **state)
{
	static const struct {
		psn_t a, b;
		int32_t diff;
	} t[] = {
		{0, 0, 0},
		{1, 0, 1},
		{0, 1, -1},
		{0, 0xffffff, 1},
		{0xffffff, 0, -1},
		{2, 0xfffffd, 5},
		{0x7fffff, 0, 0x7fffff},
		{0x800000, 0, -0x800000},
		{0, 0x800000, -0x800000},
		{0x800001, 0, -0x7fffff},
		{0x400000, 0xc00001, 0x7fffff},
		{0x400000, 0xc00000, -0x800000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(psn_diff(t[i].a, t[i].b), t[i].diff);
}

static void psn_diff__undoes_add(void **state)
{
	static const uint32_t starts[] = {0, 1, 0x7fffff, 0x800000, 0xffffff};
	static const uint32_t steps[] = {0, 1, 2, 1000, 0x7ffffe, 0x7fffff};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		for (size_t k = 0; k < ARRAY_SIZE(steps); k++) {
			psn_t b = psn_add(starts[i], steps[k]);

			assert_int_equal(psn_diff(b, starts[i]), steps[k]);
			assert_int_equal(psn_diff(starts[i], b),
					 -(int32_t)steps[k]);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn_add__table),
		cmocka_unit_test(psn_diff__table),
		cmocka_unit_test(psn_diff__undoes_add),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
