/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fair_test.c: shares of a bounded resource, against a model that hands out unit
 * by unit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/fair.h"
#include "base/rand.h"

#define ALL UINT64_MAX

#define V(w, m, d)                                                             \
	{                                                                      \
		.weight = (w), .minimum = (m), .demand = (d)                   \
	}

static void fair_shares__table(void **state)
{
	static const struct {
		unsigned n;
		uint64_t budget;
		struct fair v[4];
		uint64_t share[4];
	} cases[] = {
		/* alone: everything, whatever it wants */
		{1, 100, {V(100, 0, 0)}, {100}},
		{1, 100, {V(100, 0, ALL)}, {100}},
		/* nobody wants anything: equal parts to grow into */
		{4,
		 100,
		 {V(1, 0, 0), V(1, 0, 0), V(1, 0, 0), V(1, 0, 0)},
		 {25, 25, 25, 25}},
		{2, 100, {V(1, 0, 0), V(3, 0, 0)}, {25, 75}},
		/* all want everything */
		{4,
		 100,
		 {V(7, 0, ALL), V(7, 0, ALL), V(7, 0, ALL), V(7, 0, ALL)},
		 {25, 25, 25, 25}},
		{2, 100, {V(1, 0, ALL), V(4, 0, ALL)}, {20, 80}},
		/* what one does not want is lent to those who do */
		{3,
		 90,
		 {V(1, 0, 10), V(1, 0, ALL), V(1, 0, ALL)},
		 {10, 40, 40}},
		{3, 90, {V(1, 0, 10), V(1, 0, 35), V(1, 0, ALL)}, {10, 35, 45}},
		{2, 100, {V(1, 0, 0), V(1, 0, ALL)}, {0, 100}},
		/* a light one gets its minimum, but no more than it wants */
		{2, 1000, {V(1, 50, ALL), V(999, 0, ALL)}, {50, 950}},
		{2, 1000, {V(1, 50, 20), V(999, 0, ALL)}, {20, 980}},
		/* and a liar's minimum is half of an equal part */
		{2, 1000, {V(1, ALL, ALL), V(1000, 0, ALL)}, {250, 750}},
		{2, 1000, {V(1, ALL, ALL), V(1, 0, ALL)}, {500, 500}},
		/* weights are between 1 and 1000 */
		{2, 1001, {V(0, 0, ALL), V(UINT32_MAX, 0, ALL)}, {1, 1000}},
		/* the budget is not a multiple */
		{3, 10, {V(1, 0, ALL), V(1, 0, ALL), V(1, 0, ALL)}, {4, 3, 3}},
		{3, 2, {V(1, 0, ALL), V(1, 0, ALL), V(1, 0, ALL)}, {1, 1, 0}},
		{2, 0, {V(1, 5, ALL), V(1, 0, ALL)}, {0, 0}},
	};
	uint64_t share[4];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		fair_shares(cases[i].v, cases[i].n, cases[i].budget,
			    FAIR_SHARES, share);
		for (unsigned k = 0; k < cases[i].n; k++)
			assert_int_equal(share[k], cases[i].share[k]);
	}
}

static void fair_shares__first_come(void **state)
{
	static const struct {
		struct fair v[3];
		uint64_t share[3];
	} cases[] = {
		{{{1, 0, ALL, 0}, {1, 0, ALL, 0}, {1, 0, 0, 0}},
		 {100, 100, 100}},
		{{{1, 0, ALL, 100}, {1, 7, ALL, 0}, {1, 0, ALL, 0}},
		 {100, 7, 0}},
		{{{1, 0, 0, 60}, {9, 0, ALL, 10}, {1, 0, ALL, 0}},
		 {90, 40, 30}},
		{{{1, 0, 0, ALL}, {9, 90, ALL, ALL}, {1, 0, ALL, 0}},
		 {0, 16, 0}},
	};
	uint64_t share[3];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		fair_shares(cases[i].v, 3, 100, FAIR_FIRST, share);
		for (unsigned k = 0; k < 3; k++)
			assert_int_equal(share[k], cases[i].share[k]);
	}
}

/* --- the model ---------------------------------------------------------------- */

/* The next unit goes to whoever has least for its weight and wants more. */
static void model(const struct fair *v, unsigned n, uint64_t budget,
		  uint64_t *share)
{
	uint64_t rest = budget;

	for (unsigned i = 0; i < n; i++) {
		share[i] = MIN(MIN(v[i].minimum, v[i].demand), budget / 2 / n);
		rest -= share[i];
	}
	for (; rest > 0; rest--) {
		unsigned best = n;

		for (unsigned i = 0; i < n; i++)
			if (share[i] < v[i].demand &&
			    (best == n ||
			     (share[i] + 1) * v[best].weight <
				     (share[best] + 1) * v[i].weight))
				best = i;
		if (best == n)
			break;
		share[best]++;
	}
}

static uint64_t some(struct rnd *r, uint64_t most)
{
	const uint64_t kind = rnd_next(r) % 8;

	return kind == 0 ? 0 : kind == 1 ? ALL : rnd_next(r) % (most + 1);
}

static void fair_shares__like_the_model(void **state)
{
	struct rnd r = {3, 4, 0};

	(void)state;
	for (int round = 0; round < 3000; round++) {
		const unsigned n = 1 + (unsigned)(rnd_next(&r) % 9);
		const uint64_t budget = rnd_next(&r) % 2000;
		uint64_t share[9], want[9], sum = 0, given = 0;
		struct fair v[9];

		for (unsigned i = 0; i < n; i++)
			v[i] = (struct fair){
				.weight = 1 + (uint32_t)(rnd_next(&r) % 1000),
				.minimum = some(&r, budget / 4),
				.demand = some(&r, budget),
				.used = some(&r, budget)};
		fair_shares(v, n, budget, FAIR_SHARES, share);
		model(v, n, budget, want);
		for (unsigned i = 0; i < n; i++)
			given += want[i];
		for (unsigned i = 0; i < n; i++) {
			sum += share[i];
			/* each is rounded, and so is what is left */
			assert_true(share[i] + n >= want[i]);
			if (given == budget)
				assert_true(share[i] <= want[i] + n);
		}
		assert_int_equal(sum, budget);
	}
}

/* Whatever the others say: nobody gets less than its minimum, or than its part of
 * half the budget; of equal weights, than its part of all of it. */
static void fair_shares__whatever_others_say(void **state)
{
	static struct fair v[FAIR_MAX];
	static uint64_t share[FAIR_MAX];
	struct rnd r = {5, 6, 0};

	(void)state;
	for (int round = 0; round < 500; round++) {
		const unsigned n = 1 + (unsigned)(rnd_next(&r) % FAIR_MAX);
		const bool equal = round % 2;
		const uint64_t budget = rnd_next(&r) % (FAIR_BUDGET_MAX + 1);
		uint64_t weights = 0, sum = 0, part, least;

		for (unsigned i = 0; i < n; i++) {
			v[i].weight = equal ? 9 : (uint32_t)rnd_next(&r);
			v[i].minimum = rnd_next(&r);
			v[i].demand = rnd_next(&r);
			v[i].used = rnd_next(&r);
			weights += MIN(MAX(v[i].weight, 1u), 1000u);
		}
		v[0].weight = equal ? 9 : 100;
		v[0].minimum = some(&r, budget);
		v[0].demand = some(&r, budget);
		fair_shares(v, n, budget, FAIR_SHARES, share);
		part = equal ? budget / n : budget / 2 * 100 / (weights + 100);
		least = MAX(part, MIN(v[0].minimum, budget / 2 / n));
		assert_true(share[0] + 1 >= MIN(least, v[0].demand));
		for (unsigned i = 0; i < n; i++)
			sum += share[i];
		assert_int_equal(sum, budget);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fair_shares__table),
		cmocka_unit_test(fair_shares__first_come),
		cmocka_unit_test(fair_shares__like_the_model),
		cmocka_unit_test(fair_shares__whatever_others_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
