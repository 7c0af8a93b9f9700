/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* page_test.c: how many pages a range touches. */
#include "base/check.h"
#include "base/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void pages_spanned__table(void **state)
{
	static const struct {
		uint64_t addr, len, pages;
	} t[] = {
		{0, 0, 0},
		{4095, 0, 0},
		{0, 1, 1},
		{4095, 1, 1},
		{4095, 2, 2},
		{4096, 4095, 1},
		{4096, 4096, 1},
		{4096, 4097, 2},
		{4097, 4096, 2},
		{1, 8192, 3},
		{0, UINT64_MAX, UINT64_C(1) << 52},
		{UINT64_MAX, 1, 1},
		{UINT64_MAX - 4096, 4097, 2},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++)
		assert_int_equal(pages_spanned(t[i].addr, t[i].len),
				 t[i].pages);
	assert_int_equal(page_of(4095), 0);
	assert_int_equal(page_of(4096), 1);
	assert_int_equal(page_of(UINT64_MAX), (UINT64_C(1) << 52) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_spanned__table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
