/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rand_test.c: SipHash-2-4 against its authors' vector, and the counter. */
#include "base/rand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Key 00..0f, message 00..07: vectors_sip64[8] of the reference code. */
static void siphash_u64__published_vector(void **state)
{
	(void)state;
	assert_int_equal(siphash_u64(UINT64_C(0x0706050403020100),
				     UINT64_C(0x0f0e0d0c0b0a0908),
				     UINT64_C(0x0706050403020100)),
			 UINT64_C(0x93f5f5799a932462));
}

static void rnd_next__counts(void **state)
{
	struct rnd a = {7, 8, 0}, b = {7, 8, 1}, c = {8, 7, 0};
	uint64_t first = rnd_next(&a), second = rnd_next(&a);

	(void)state;
	assert_int_equal(first, siphash_u64(7, 8, 0));
	assert_int_equal(second, rnd_next(&b));
	assert_int_not_equal(first, second);
	assert_int_not_equal(first, rnd_next(&c));
	assert_int_equal(a.ctr, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(siphash_u64__published_vector),
		cmocka_unit_test(rnd_next__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
