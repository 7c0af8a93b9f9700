/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder_test.c: how long is a packet waited for, after what was seen? */
#include "xport/impl.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { US = 1000, MS = 1000 * US, PERIOD = 16 };

static void gaps(struct lateness *l, unsigned n)
{
	while (n--)
		late_gap(l);
}

static void late__nothing_seen(void **state)
{
	struct lateness l = {0};

	(void)state;
	gaps(&l, 10 * PERIOD);
	assert_int_equal(l.wait_ns, 0);
}

static void late__twice_as_late_as_seen(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 100 * US);
	assert_int_equal(l.wait_ns, 200 * US);
	late_came(&l, 40 * US);
	assert_int_equal(l.wait_ns, 200 * US);
	late_came(&l, 1);
	assert_int_equal(l.wait_ns, 200 * US);
}

static void late__bounds(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 1);
	assert_int_equal(l.wait_ns, 10 * US);
	late_came(&l, 3600 * (uint64_t)1000 * MS);
	assert_int_equal(l.wait_ns, 10 * MS);
	late_doubted(&l, UINT64_MAX);
	assert_int_equal(l.wait_ns, 10 * MS);
}

/* How late it was at most is known; or else twice as long as before it is. */
static void late__doubted(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_doubted(&l, 300 * US);
	assert_int_equal(l.wait_ns, 300 * US);
	late_doubted(&l, 50 * US);
	assert_int_equal(l.wait_ns, 600 * US);
}

static void late__shrinks(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 400 * US);
	gaps(&l, PERIOD);
	assert_int_equal(l.wait_ns, 800 * US);
	late_came(&l, 300 * US);
	gaps(&l, PERIOD - 1);
	assert_int_equal(l.wait_ns, 800 * US);
	gaps(&l, 1);
	assert_int_equal(l.wait_ns, 600 * US);
	gaps(&l, PERIOD);
	assert_int_equal(l.wait_ns, 300 * US);
	/* and where nothing is overtaken any more, ends */
	gaps(&l, 5 * PERIOD);
	assert_int_equal(l.wait_ns, 0);
}

/* Where packets overtake others bursts arrive in pieces, and are charged so: also
 * before that is known. */
static void flow_whole__once_seen_in_order(void **state)
{
	struct peer p = {.gso = true, .features = HELLO_GRO};

	(void)state;
	assert_false(flow_whole(&p));
	flow_even(&p, 1000, false);
	assert_true(flow_whole(&p));
	flow_even(&p, 1, true);
	flow_even(&p, 1, false);
	assert_false(flow_whole(&p));
	flow_even(&p, 1000, false);
	late_came(&p.late, 400 * US);
	assert_false(flow_whole(&p));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late__nothing_seen),
		cmocka_unit_test(late__twice_as_late_as_seen),
		cmocka_unit_test(late__bounds),
		cmocka_unit_test(late__doubted),
		cmocka_unit_test(late__shrinks),
		cmocka_unit_test(flow_whole__once_seen_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
