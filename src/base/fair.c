/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fair.c: shares of a bounded resource (design D12: one NIC memory for all
 * processes of a host and user).
 *
 * Theory of operation
 *
 * Think of vessels as wide as the weights, as high as the demands, that stand on
 * their minimum, and are filled together: the level at which the budget is used up
 * says what each gets, between its minimum and its demand. The sum grows with the
 * level, so the level is found by halving. It is a fixed-point number, so that the
 * sum misses the budget by less than one for each of them; what is missing is dealt
 * out with what none of them wanted.
 */
#include "base/fair.h"

#include "base/check.h"

enum { LEVEL_SHIFT = 20 };

/** struct vessels - All of them. @most: of a minimum. */
struct vessels {
	const struct fair *v;
	unsigned n;
	uint64_t budget, most;
};

static uint64_t weight_of(const struct fair *f)
{
	return MIN(MAX(f->weight, 1u), (uint32_t)FAIR_WEIGHT_MAX);
}

static uint64_t fair_fill(const struct vessels *all, unsigned i, uint64_t level)
{
	const struct fair *f = &all->v[i];
	const uint64_t high = MIN(f->demand, all->budget);
	const uint64_t low = MIN(MIN(f->minimum, all->most), high);
	const uint64_t at = (level * weight_of(f)) >> LEVEL_SHIFT;

	return at < low ? low : MIN(at, high);
}

static uint64_t fill_all(const struct vessels *all, uint64_t level)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < all->n; i++)
		sum += fair_fill(all, i, level);
	return sum;
}

static_assert(FAIR_BUDGET_MAX < UINT64_MAX / FAIR_WEIGHT_MAX >> LEVEL_SHIFT,
	      "a level times a weight");

/* The highest level at which all together are not above the budget: at the lowest
 * they are not, as minima are half of it at most. */
static uint64_t find_level(const struct vessels *all)
{
	uint64_t low = 0, high = (all->budget + 1) << LEVEL_SHIFT;

	while (high - low > 1) {
		const uint64_t mid = low + (high - low) / 2;

		if (fill_all(all, mid) <= all->budget)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static void share_out(const struct vessels *all, uint64_t *share)
{
	const uint64_t level = find_level(all);
	uint64_t rest = all->budget, weights = 0, spare;

	for (unsigned i = 0; i < all->n; i++) {
		share[i] = fair_fill(all, i, level);
		rest -= share[i];
		weights += weight_of(&all->v[i]);
	}
	spare = rest;
	for (unsigned i = 0; i < all->n; i++) {
		const uint64_t more = spare * weight_of(&all->v[i]) / weights;

		share[i] += more;
		rest -= more;
	}
	for (unsigned i = 0; rest > 0; i++, rest--)
		share[i]++;
}

/* What the others hold stays theirs. */
static void first_come(const struct vessels *all, uint64_t *share)
{
	const uint64_t budget = all->budget;
	uint64_t used = 0;

	for (unsigned i = 0; i < all->n; i++)
		used += MIN(all->v[i].used, budget);
	for (unsigned i = 0; i < all->n; i++) {
		const uint64_t others = used - MIN(all->v[i].used, budget);

		share[i] = budget - MIN(others, budget);
		share[i] = MAX(share[i], MIN(all->v[i].minimum, all->most));
	}
}

void fair_shares(const struct fair *v, unsigned n, uint64_t budget,
		 enum fair_rule rule, uint64_t *share)
{
	const struct vessels all = {v, n, budget, n ? budget / 2 / n : 0};

	CHECK(n <= FAIR_MAX && budget <= FAIR_BUDGET_MAX);
	if (n == 0)
		return;
	if (rule == FAIR_SHARES)
		share_out(&all, share);
	else
		first_come(&all, share);
}
