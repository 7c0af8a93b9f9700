/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy.c: names of strategies, and what a user's choice of one allows. */
#include "base/strategy.h"

#include <string.h>

/* Whatever is chosen, a request waits for its source, and the last resort is
 * there: a choice never makes a legal access an error (I7). DROP relies on the
 * requester's patience instead, as cold rings do. */
enum {
	LAST_RESORT =
		STRATEGY_BIT(STRATEGY_PARK) | STRATEGY_BIT(STRATEGY_BACKUP) |
		STRATEGY_BIT(STRATEGY_REPLAY) | STRATEGY_BIT(STRATEGY_RNR),
	NO_SLOTS = LAST_RESORT | STRATEGY_BIT(STRATEGY_RESUME),
	WITH_SLOTS = NO_SLOTS | STRATEGY_BIT(STRATEGY_REDIRECT),
};

static const struct {
	const char *name;
	strategies_t set;
} strategies[STRATEGY_NUM] = {
	[STRATEGY_NONE] = {"none", 0},
	[STRATEGY_PARK] = {"park", NO_SLOTS},
	[STRATEGY_INLINE] = {"inline",
			     WITH_SLOTS | STRATEGY_BIT(STRATEGY_INLINE)},
	[STRATEGY_OVERWRITE] = {"overwrite",
				WITH_SLOTS | STRATEGY_BIT(STRATEGY_OVERWRITE)},
	[STRATEGY_BACKUP] = {"backup", WITH_SLOTS},
	[STRATEGY_REDIRECT] = {"redirect", WITH_SLOTS},
	[STRATEGY_REPLAY] = {"replay", NO_SLOTS},
	[STRATEGY_RESUME] = {"resume", NO_SLOTS},
	[STRATEGY_RNR] = {"rnr", LAST_RESORT},
	[STRATEGY_DROP] = {"drop", STRATEGY_BIT(STRATEGY_PARK) |
					   STRATEGY_BIT(STRATEGY_DROP)},
	[STRATEGY_BLOCK] = {"block", STRATEGY_BIT(STRATEGY_BLOCK)},
	[STRATEGY_ADAPTIVE] = {"adaptive",
			       WITH_SLOTS | STRATEGY_BIT(STRATEGY_INLINE) |
				       STRATEGY_BIT(STRATEGY_OVERWRITE) |
				       STRATEGY_BIT(STRATEGY_ADAPTIVE)},
};

const char *strategy_name(enum strategy s)
{
	return s < STRATEGY_NUM ? strategies[s].name : "?";
}

enum strategy strategy_by_name(const char *name)
{
	for (int s = STRATEGY_NONE + 1; s < STRATEGY_NUM; s++)
		if (!strcmp(name, strategies[s].name))
			return (enum strategy)s;
	return STRATEGY_NONE;
}

strategies_t strategy_set(enum strategy s)
{
	return strategies[s].set;
}
