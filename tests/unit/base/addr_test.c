/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr_test.c: IPv4 as IPv6, and what makes two endpoints the same. */
#include "base/addr.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const struct ipaddr v4 = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
static const struct ipaddr v6 = {{0x20, 0x01, 0x0d, 0xb8, [15] = 1}};

static void ipaddr_is_v4__only_mapped(void **state)
{
	struct ipaddr a = v4;

	(void)state;
	assert_true(ipaddr_is_v4(&v4));
	assert_false(ipaddr_is_v4(&v6));
	for (int i = 0; i < 12; i++) {
		a = v4;
		a.b[i] ^= 0x10;
		assert_false(ipaddr_is_v4(&a));
	}
	a = v4;
	memset(a.b + 12, 0, 4);
	assert_true(ipaddr_is_v4(&a));
}

static void ipaddr_is_any__only_zero(void **state)
{
	struct ipaddr a = {{0}};

	(void)state;
	assert_true(ipaddr_is_any(&a));
	for (int i = 0; i < 16; i++) {
		a = (struct ipaddr){{0}};
		a.b[i] = 1;
		assert_false(ipaddr_is_any(&a));
	}
}

static void ipaddr_eq__every_byte(void **state)
{
	(void)state;
	for (int i = 0; i < 16; i++) {
		struct ipaddr a = v6;

		assert_true(ipaddr_eq(&a, &v6));
		a.b[i] ^= 1;
		assert_false(ipaddr_eq(&a, &v6));
	}
}

static void endpoint_eq__scope_does_not_matter(void **state)
{
	struct endpoint a = {v6, 4791, 1}, b = {v6, 4791, 2};

	(void)state;
	assert_true(endpoint_eq(&a, &b));
	b.port = 4792;
	assert_false(endpoint_eq(&a, &b));
	b = a;
	b.ip = v4;
	assert_false(endpoint_eq(&a, &b));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipaddr_is_v4__only_mapped),
		cmocka_unit_test(ipaddr_is_any__only_zero),
		cmocka_unit_test(ipaddr_eq__every_byte),
		cmocka_unit_test(endpoint_eq__scope_does_not_matter),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
