/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* psns_test.c: how far the requests are, in a life that passes the largest PSN. */
#include "base/check.h"
#include "xport/psns.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { FIRST = PSN_MASK - 1 };

/* The @n th of the life. */
static psn_t psn(uint32_t n)
{
	return psn_add(FIRST, n);
}

/* Sent up to the 8th, of which the peer accepted 4 and placed 2. */
static struct req_psns begun(void)
{
	struct req_psns p = {.epoch = 0};

	psns_begin(&p, psn(0));
	assert_int_equal(psns_sent(&p, 8), 8);
	psns_accepted(&p, psn(4), false);
	psns_completed(&p, psns_placed(&p, psn(2)));
	psns_check(&p);
	return p;
}

#define assert_psns(p, una_, acc_, snd_, max_)                                 \
	do {                                                                   \
		psns_check(p);                                                 \
		assert_int_equal((p)->una, psn(una_));                         \
		assert_int_equal((p)->acc, psn(acc_));                         \
		assert_int_equal((p)->snd, psn(snd_));                         \
		assert_int_equal((p)->max, psn(max_));                         \
	} while (0)

static void psns_begin__anew(void **state)
{
	struct req_psns p = begun();
	const uint32_t epoch = p.epoch;

	(void)state;
	psns_begin(&p, psn(1));
	assert_psns(&p, 1, 1, 1, 1);
	assert_int_equal(p.placed, psn(1));
	assert_true(p.epoch != epoch);
}

static void psns_sent__again_and_beyond(void **state)
{
	struct req_psns p = begun();
	const uint32_t epoch = p.epoch;

	(void)state;
	psns_gone_back(&p, p.una);
	assert_psns(&p, 2, 2, 2, 8);
	assert_true(p.epoch != epoch);
	assert_int_equal(psns_sent(&p, 5), 0);
	assert_psns(&p, 2, 2, 7, 8);
	assert_int_equal(psns_sent(&p, 1), 0);
	assert_int_equal(psns_sent(&p, 3), 3);
	assert_psns(&p, 2, 2, 11, 11);
	assert_int_equal(psns_sent(&p, 0), 0);
}

static void psns_unsent__of_what_is_new_and_not(void **state)
{
	struct req_psns p = begun();

	(void)state;
	(void)psns_sent(&p, 3);
	psns_unsent(&p, psn(8), psn(8));
	assert_psns(&p, 2, 4, 8, 8);
	psns_gone_back(&p, p.acc);
	(void)psns_sent(&p, 5);
	psns_unsent(&p, psn(4), psn(8));
	assert_psns(&p, 2, 4, 4, 8);
}

static void psns_aimed__and_back(void **state)
{
	struct req_psns p = begun();
	const uint32_t epoch = p.epoch;

	(void)state;
	assert_int_equal(psns_aimed(&p, psn(5)), psn(8));
	assert_int_equal(psns_sent(&p, 1), 0);
	assert_int_equal(psns_aimed(&p, psn(8)), psn(6));
	assert_psns(&p, 2, 4, 8, 8);
	assert_int_equal(p.epoch, epoch);
}

static void psns_accepted__each(void **state)
{
	static const struct {
		uint32_t to;
		bool newest;
		uint32_t acc;
	} cases[] = {
		{4, false, 4}, {5, false, 5}, {8, true, 8},
		{9, true, 4},  {3, false, 4}, {3, true, 3},
		{2, true, 2},  {1, true, 4},  {0, false, 4},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct req_psns p = begun();

		psns_accepted(&p, psn(cases[i].to), cases[i].newest);
		assert_psns(&p, 2, cases[i].acc, 8, 8);
	}
}

static void psns_placed__what_was_said_stays(void **state)
{
	struct req_psns p = begun();

	(void)state;
	assert_int_equal(psns_placed(&p, psn(6)), psn(6));
	assert_int_equal(psns_placed(&p, psn(3)), psn(6));
	assert_psns(&p, 2, 4, 8, 8);
}

/* It was accepted, and is not sent again. */
static void psns_completed__beyond_acc_and_snd(void **state)
{
	struct req_psns p = begun();

	(void)state;
	psns_completed(&p, psn(3));
	assert_psns(&p, 3, 4, 8, 8);
	psns_gone_back(&p, p.una);
	psns_completed(&p, psn(7));
	assert_psns(&p, 7, 7, 7, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psns_begin__anew),
		cmocka_unit_test(psns_sent__again_and_beyond),
		cmocka_unit_test(psns_unsent__of_what_is_new_and_not),
		cmocka_unit_test(psns_aimed__and_back),
		cmocka_unit_test(psns_accepted__each),
		cmocka_unit_test(psns_placed__what_was_said_stays),
		cmocka_unit_test(psns_completed__beyond_acc_and_snd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
