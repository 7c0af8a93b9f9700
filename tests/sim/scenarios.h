/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scenarios.h: the kinds of runs there are. */
#ifndef NOPIN_TESTS_SCENARIOS_H
#define NOPIN_TESTS_SCENARIOS_H

#include "base/counters.h"
#include "world.h"

enum { MUST_MAX = 16 };

/**
 * struct scenario
 * @must:	counters that may not be 0 after a batch of seeds: a mechanism
 *		that never fires is not tested
 * @never:	the same for what the simulator does; names what did not happen
 * @long_soak:	ten minutes of soak are 10,000 seeds of this one alone: fixed, which
 *		is the integrity test of all strategies, and what data and control do
 *		together, order, notify and sync
 */
struct scenario {
	const char *name;
	void (*run)(struct world *w);
	unsigned musts;
	enum counter must[MUST_MAX];
	const char *(*never)(const struct sim_stats *stats);
	bool long_soak;
};

extern const struct scenario scenario_pair, scenario_lossy, scenario_fault,
	scenario_evict, scenario_rnr, scenario_replay, scenario_teardown,
	scenario_mixed, scenario_preempt, scenario_far, scenario_card,
	scenario_busy, scenario_slow, scenario_refuse, scenario_full,
	scenario_reg, scenario_strategy, scenario_fixed, scenario_ud,
	scenario_queue, scenario_prefetch, scenario_adaptive, scenario_suspend,
	scenario_flood, scenario_resume, scenario_notify, scenario_upcall,
	scenario_sync, scenario_order, scenario_budget, scenario_open,
	scenario_ending, scenario_rescue, scenario_reads, scenario_srq;

/** adaptive_table() - Print what scenario_adaptive compares. */
void adaptive_table(void);

#endif
