/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counters.h: every counter is a line of counters.def. Written by the
 * thread that holds the engine lock, except those marked ATOMIC there, which use
 * count_atomic(); read with counters_copy().
 */
#ifndef NOPIN_BASE_COUNTERS_H
#define NOPIN_BASE_COUNTERS_H

#include <stdint.h>

enum counter {
#define COUNTER(name, unit, help) CNT_##name,
#include "base/counters.def"
#undef COUNTER
	CNT_NUM
};

struct counters {
	uint64_t v[CNT_NUM];
};

struct counter_info {
	const char *name, *unit, *help;
};

extern const struct counter_info counter_info[CNT_NUM];

static inline void count(struct counters *c, enum counter i)
{
	c->v[i]++;
}

static inline void count_add(struct counters *c, enum counter i, uint64_t n)
{
	c->v[i] += n;
}

static inline void count_atomic(struct counters *c, enum counter i, uint64_t n)
{
	__atomic_fetch_add(&c->v[i], n, __ATOMIC_RELAXED);
}

/** counters_copy() - Copy all counters. Context: engine lock; the ATOMIC ones move on. */
static inline void counters_copy(struct counters *to, struct counters *from)
{
	for (int i = 0; i < CNT_NUM; i++)
		to->v[i] = __atomic_load_n(&from->v[i], __ATOMIC_RELAXED);
}

#endif
