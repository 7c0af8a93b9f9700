/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* be_test.c: the bytes in memory are those of the network. */
#include "base/be.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void be__memory_image(void **state)
{
	const be16_t h = be16_put(0x0102);
	const be24_t t = be24_put(0xff010203);
	const be32_t w = be32_put(0x01020384);
	const be64_t d = be64_put(UINT64_C(0x0102030485060788));

	(void)state;
	assert_int_equal(sizeof(h), 2);
	assert_int_equal(sizeof(t), 3);
	assert_int_equal(sizeof(w), 4);
	assert_int_equal(sizeof(d), 8);
	assert_memory_equal(&h, "\x01\x02", 2);
	assert_memory_equal(&t, "\x01\x02\x03", 3);
	assert_memory_equal(&w, "\x01\x02\x03\x84", 4);
	assert_memory_equal(&d, "\x01\x02\x03\x04\x85\x06\x07\x88", 8);
}

static void be__get_undoes_put(void **state)
{
	(void)state;
	for (int bit = 0; bit < 64; bit++) {
		const uint64_t v = UINT64_C(1) << bit;

		assert_int_equal(be64_get(be64_put(v)), v);
		assert_int_equal(be64_get(be64_put(~v)), ~v);
		assert_int_equal(be32_get(be32_put((uint32_t)v)), (uint32_t)v);
		assert_int_equal(be24_get(be24_put((uint32_t)v)), v & 0xffffff);
		assert_int_equal(be16_get(be16_put((uint16_t)v)), (uint16_t)v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(be__memory_image),
		cmocka_unit_test(be__get_undoes_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
