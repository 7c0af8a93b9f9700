/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account.h: what a page fault costs, and whom (invariant I6): of the NIC, of
 * each region and of each QP, all in the same struct; and of each work request.
 * Written under the engine lock, when there is a fault and never else.
 * mem/account.c says where each is counted.
 */
#ifndef NOPIN_BASE_ACCOUNT_H
#define NOPIN_BASE_ACCOUNT_H

#include "base/strategy.h"

#include <stdint.h>

enum account_item {
#define ACCOUNT(name, unit, help) ACCT_##name,
#include "base/account.def"
#undef ACCOUNT
	ACCT_NUM
};

struct account_info {
	const char *name, *unit, *help;
};

extern const struct account_info account_info[ACCT_NUM];

enum { HIST_BUCKETS = 32, HIST_SHIFT = 7 };

/**
 * struct hist - Times. Bucket i counts those of at most 2^(HIST_SHIFT + i) ns
 * that are in no bucket before it; the last one all that are longer, too.
 */
struct hist {
	uint64_t count, sum_ns, max_ns;
	uint64_t bucket[HIST_BUCKETS];
};

/**
 * struct account
 * @strategy:	answers, by strategy: for a packet each, inline and overwrite for a page
 * @service:	of the faults that a pager answered: how long it took for that
 * @delay:	from the miss until the work that waited went on, or met the next
 *		missing page; of a cheap fault: the move that met it
 */
struct account {
	uint64_t n[ACCT_NUM];
	uint64_t strategy[STRATEGY_NUM];
	struct hist service, delay;
};

/**
 * struct met - What one work request met.
 * @ns:		waited for pages; cheap faults are not in it. At most 78 hours
 * @faults:	at most MET_FAULTS_MAX
 */
struct met {
	uint64_t ns : 48;
	uint64_t faults : 16;
};

#define MET_NS_MAX     ((UINT64_C(1) << 48) - 1)
#define MET_FAULTS_MAX 0xffff

/** met_add() - Add @more to @m; stop at the limits. */
static inline void met_add(struct met *m, struct met more)
{
	uint64_t ns = m->ns, faults = m->faults;

	ns += more.ns;
	faults += more.faults;
	m->ns = (ns > MET_NS_MAX ? MET_NS_MAX : ns) & MET_NS_MAX;
	m->faults = (faults > MET_FAULTS_MAX ? MET_FAULTS_MAX : faults) &
		    MET_FAULTS_MAX;
}

/** account_copy() - Copy @a, or (NULL) an account that nothing was counted in. */
static inline struct account account_copy(const struct account *a)
{
	return a ? *a : (struct account){.n = {0}};
}

/** hist_bucket() - Find the bucket of a time. */
static inline unsigned hist_bucket(uint64_t ns)
{
	unsigned bits;

	if (ns <= UINT64_C(1) << HIST_SHIFT)
		return 0;
	bits = 64 - (unsigned)__builtin_clzll(ns - 1);
	return bits - HIST_SHIFT < HIST_BUCKETS ? bits - HIST_SHIFT
						: HIST_BUCKETS - 1;
}

/** hist_le() - Return the longest time, in ns, of bucket @i, which is not the last. */
static inline uint64_t hist_le(unsigned i)
{
	return UINT64_C(1) << (HIST_SHIFT + i);
}

/** hist_note() - Count a time of @ns. */
void hist_note(struct hist *h, uint64_t ns);

/** account_add() - Add @from to @to. */
void account_add(struct account *to, const struct account *from);

#endif
