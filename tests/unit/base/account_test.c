/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account_test.c: histograms, sums and limits of what is accounted. */
#include "base/account.h"
#include "base/check.h"
#include "base/strategy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void hist_bucket__bounds(void **state)
{
	(void)state;
	assert_int_equal(hist_bucket(0), 0);
	assert_int_equal(hist_bucket(UINT64_MAX), HIST_BUCKETS - 1);
	for (unsigned i = 0; i < HIST_BUCKETS - 1; i++) {
		assert_int_equal(hist_bucket(hist_le(i)), i);
		assert_int_equal(hist_bucket(hist_le(i) + 1), i + 1);
	}
}

static void hist_note__counts_once(void **state)
{
	static const uint64_t ns[] = {
		0, 1, 128, 129, 5000, 5000, UINT64_C(1) << 50};
	struct hist h = {.count = 0};
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ns); i++)
		hist_note(&h, ns[i]);
	for (int i = 0; i < HIST_BUCKETS; i++)
		sum += h.bucket[i];
	assert_int_equal(h.count, ARRAY_SIZE(ns));
	assert_int_equal(sum, ARRAY_SIZE(ns));
	assert_int_equal(h.bucket[0], 3);
	assert_int_equal(h.bucket[hist_bucket(5000)], 2);
	assert_int_equal(h.sum_ns, 10258 + (UINT64_C(1) << 50));
	assert_int_equal(h.max_ns, UINT64_C(1) << 50);
}

static void account_add__everything(void **state)
{
	struct account a = {.n = {0}}, b = {.n = {0}};

	(void)state;
	for (int i = 0; i < ACCT_NUM; i++)
		b.n[i] = (uint64_t)i + 1;
	for (int i = 0; i < STRATEGY_NUM; i++)
		b.strategy[i] = 100 + (uint64_t)i;
	hist_note(&b.service, 1000);
	hist_note(&b.delay, 2000);
	account_add(&a, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	account_add(&a, &b);
	assert_int_equal(a.n[ACCT_NUM - 1], 2 * ACCT_NUM);
	assert_int_equal(a.strategy[STRATEGY_RNR], 200 + 2 * STRATEGY_RNR);
	assert_int_equal(a.service.sum_ns, 2000);
	assert_int_equal(a.delay.max_ns, 2000);
	assert_int_equal(a.delay.bucket[hist_bucket(2000)], 2);
}

static void met_add__stops_at_its_limits(void **state)
{
	struct met m = {.ns = 5, .faults = 2};

	(void)state;
	met_add(&m, (struct met){.ns = 7, .faults = 1});
	assert_int_equal(m.ns, 12);
	assert_int_equal(m.faults, 3);
	met_add(&m, (struct met){.ns = MET_NS_MAX, .faults = MET_FAULTS_MAX});
	assert_int_equal(m.ns, MET_NS_MAX);
	assert_int_equal(m.faults, MET_FAULTS_MAX);
	met_add(&m, (struct met){.ns = 1, .faults = 1});
	assert_int_equal(m.ns, MET_NS_MAX);
	assert_int_equal(m.faults, MET_FAULTS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hist_bucket__bounds),
		cmocka_unit_test(hist_note__counts_once),
		cmocka_unit_test(account_add__everything),
		cmocka_unit_test(met_add__stops_at_its_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
