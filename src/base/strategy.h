/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy.h: the words for what may answer a missing page (design §4). What
 * each does is in xport/fault_<name>.c; those that decide whether a move may
 * meet the missing page itself take effect in mem/dma.c.
 */
#ifndef NOPIN_BASE_STRATEGY_H
#define NOPIN_BASE_STRATEGY_H

#include <stdint.h>

/*
 * In the order in which they are tried, where several are allowed.
 * ADAPTIVE answers nothing itself: it says which of the others may
 * (xport/fault_adaptive.c). BLOCK: the engine sleeps, for the NIC as a whole.
 */
enum strategy {
	STRATEGY_NONE,
	STRATEGY_PARK,
	STRATEGY_INLINE,
	STRATEGY_OVERWRITE,
	STRATEGY_BACKUP,
	STRATEGY_REDIRECT,
	STRATEGY_REPLAY,
	STRATEGY_RESUME,
	STRATEGY_RNR,
	STRATEGY_DROP,
	STRATEGY_BLOCK,
	STRATEGY_ADAPTIVE,
	STRATEGY_NUM
};

/* A set of them, one bit each; 0: not chosen here. */
typedef uint32_t strategies_t;

#define STRATEGY_BIT(s) (UINT32_C(1) << (s))

/** strategy_name() - Name @s as users write it. */
const char *strategy_name(enum strategy s);

/** strategy_by_name() - Return: STRATEGY_NONE if there is none of this name. */
enum strategy strategy_by_name(const char *name);

/**
 * strategy_set() - Return all that may answer where a user chose @s: @s, and what
 * takes over where it cannot.
 */
strategies_t strategy_set(enum strategy s);

/* All of strategy_name(), with blanks between. */
#define STRATEGY_NAMES                                                         \
	"adaptive park inline redirect resume rnr overwrite replay backup "    \
	"drop block"

#endif
