/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fair.h: how much of a bounded resource each of several may have. Pure: each of
 * them computes it from what all say, and finds what the others find.
 */
#ifndef NOPIN_BASE_FAIR_H
#define NOPIN_BASE_FAIR_H

#include <stdbool.h>
#include <stdint.h>

enum { FAIR_MAX = 256, FAIR_WEIGHT_MAX = 1000 };

#define FAIR_BUDGET_MAX (UINT64_C(1) << 34)

/* SHARES: weighted max-min shares. FIRST: the one that comes first. */
enum fair_rule { FAIR_SHARES, FAIR_FIRST };

/**
 * struct fair - What one of them says; anything goes.
 * @weight:	1..FAIR_WEIGHT_MAX; other values are taken for the nearest
 * @minimum:	what it gets, if it wants so much, whatever its weight is. All of
 *		them together get half of the budget by their minimum, at most, and
 *		each an equal part of that
 * @demand:	what it would use
 * @used:	what it has now
 */
struct fair {
	uint32_t weight;
	uint64_t minimum, demand, used;
};

/**
 * fair_shares() - Divide @budget among @n (<= FAIR_MAX).
 * @budget:	at most FAIR_BUDGET_MAX
 * @share:	set: what each may use, @n of them; their sum is @budget at most
 *		(FIRST: their sum with what is used stays within it, as far as all
 *		wait for each other)
 *
 * SHARES: one that wants no more than its part gets what it wants, the others share
 * the rest by weight (water filling); what is left then is dealt out by weight, too,
 * so that there is room to grow into.
 * Bounded work: a few hundred passes.
 */
void fair_shares(const struct fair *v, unsigned n, uint64_t budget,
		 enum fair_rule rule, uint64_t *share);

#endif
