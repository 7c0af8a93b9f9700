/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tables_test.c: the tables made from counters.def and flight.def, and the recorder. */
#include "base/counters.h"
#include "base/flight.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void counter_info__complete_and_unique(void **state)
{
	(void)state;
	for (int i = 0; i < CNT_NUM; i++) {
		assert_true(counter_info[i].name[0]);
		assert_true(counter_info[i].unit[0]);
		assert_true(counter_info[i].help[0]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(counter_info[i].name,
						counter_info[k].name);
	}
	assert_string_equal(counter_info[CNT_rx_packets].name, "rx_packets");
	assert_string_equal(counter_info[CNT_drop_icrc].name, "drop_icrc");
}

static void count__adds(void **state)
{
	static struct counters c;

	(void)state;
	count(&c, CNT_drop_short);
	count_add(&c, CNT_drop_short, 5);
	count_atomic(&c, CNT_engine_majflt, 7);
	for (int i = 0; i < CNT_NUM; i++)
		assert_int_equal(c.v[i], i == CNT_drop_short	  ? 6
					 : i == CNT_engine_majflt ? 7
								  : 0);
}

static void flight_info__complete_and_unique(void **state)
{
	(void)state;
	for (int i = 1; i < FLIGHT_NUM; i++) {
		assert_non_null(flight_info[i].name);
		assert_non_null(flight_info[i].a);
		assert_non_null(flight_info[i].b);
		assert_true(flight_info[i].help[0]);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(flight_info[i].name,
						flight_info[k].name);
	}
}

static void flight_note__keeps_the_last(void **state)
{
	static struct flight f;

	(void)state;
	for (uint32_t i = 0; i < FLIGHT_EVENTS + 10; i++)
		flight_note(&f, 1000 + i, FLIGHT_RX, i, 4, i * 2);
	assert_int_equal(f.next, FLIGHT_EVENTS + 10);
	for (uint32_t i = 10; i < FLIGHT_EVENTS + 10; i++) {
		const struct flight_event *e = &f.ev[i % FLIGHT_EVENTS];

		assert_int_equal(e->at_ns, 1000 + i);
		assert_int_equal(e->kind, FLIGHT_RX);
		assert_int_equal(e->psn, i);
		assert_int_equal(e->a, 4);
		assert_int_equal(e->b, i * 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counter_info__complete_and_unique),
		cmocka_unit_test(count__adds),
		cmocka_unit_test(flight_info__complete_and_unique),
		cmocka_unit_test(flight_note__keeps_the_last),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
