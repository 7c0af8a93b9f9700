/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy.c: every strategy, chosen for a NIC, a QP or a region, at random, so that
 * each meets every other at the peer, and on the same pages; with loss, reordering
 * and evictions. Whatever is chosen, all data is right and in order. And each of them
 * alone, in equal parts ("fixed").
 */
#include "base/check.h"
#include "base/counters.h"
#include "scenarios.h"

/* Senders find out in their own time that something was dropped. Pages that are
 * evicted sooner than that would never be met. */
static void run_drop(struct world *w)
{
	w->cfg.strategies = strategy_set(STRATEGY_DROP);
	w->cfg.evict_ns = 5 * SIM_MS;
	w->cfg.force = false;
	w->cfg.ops = 20;
	w->cfg.big = 0;
	world_build(w);
	world_finish(w);
	world_close(w);
}

static void run(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_CHEAP,
						       SIM_FILE);
	if (sim_chance(sim, SIM_PPM / 3))
		w->cfg.backing = SIM_SWAP;
	if (sim_chance(sim, SIM_PPM / 8)) {
		run_drop(w);
		return;
	}
	w->cfg.evict_ns = sim_between(sim, 10, 300) * SIM_US;
	w->cfg.force = sim_chance(sim, SIM_PPM / 2);
	w->cfg.mem.major_max_ns = sim_between(sim, 60, 2000) * SIM_US;
	w->cfg.strategies = strategy_set(world_strategy(w, false));
	w->cfg.choose = sim_chance(sim, SIM_PPM / 4 * 3);
	w->cfg.link.loss = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 100 : 0;
	w->cfg.link.reorder = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 20 : 0;
	w->cfg.big = SIM_PPM / 2;
	world_build(w);
	world_finish(w);
	world_close(w);
	EXPECT(w, !w->cfg.exact || w->stats.exact_misses == 0,
	       "I1: a move met an absent page on an exact host");
}

static const char *never(const struct sim_stats *st)
{
	return st->dropped == 0 ? "a stored page that was overwritten" : NULL;
}

const struct scenario scenario_strategy = {
	.name = "strategy",
	.run = run,
	.musts = 8,
	.must = {CNT_fault_park, CNT_fault_inline, CNT_fault_redirect,
		 CNT_fault_resume, CNT_fault_rnr, CNT_fault_overwrite,
		 CNT_fault_replay, CNT_fault_drop},
	.never = never,
};

/* --- one strategy for all --------------------------------------------------------- */

/* What was forgotten too often is kept, whoever answers. */
static uint64_t rescued(const struct world *w, enum strategy s)
{
	return s == STRATEGY_REDIRECT ? w->total.v[CNT_fault_rescued] : 0;
}

/* Whoever may not answer did not. A response that comes for a page of ours that is
 * missing can always be asked for again. */
static void check_answers(const struct world *w, strategies_t set)
{
	static const struct {
		enum counter counter;
		enum strategy strategy;
	} t[] = {
		{CNT_fault_park, STRATEGY_PARK},
		{CNT_fault_inline, STRATEGY_INLINE},
		{CNT_fault_overwrite, STRATEGY_OVERWRITE},
		{CNT_fault_redirect, STRATEGY_REDIRECT},
		{CNT_fault_resume, STRATEGY_RESUME},
		{CNT_fault_drop, STRATEGY_DROP},
		{CNT_fault_block, STRATEGY_BLOCK},
	};

	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		EXPECT((struct world *)w,
		       set & STRATEGY_BIT(t[i].strategy) ||
			       w->total.v[t[i].counter] <=
				       rescued(w, t[i].strategy),
		       "%s answered, which nobody chose",
		       counter_info[t[i].counter].name);
}

/* Who is lost, or asleep, needs longer than pages may live in the others' worlds. */
static void slow_down(struct world_config *c)
{
	c->evict_ns = 5 * SIM_MS;
	c->force = false;
	c->ops = 20;
	c->big = 0;
}

/* The same test for each strategy, a seed for each in turn: all data, in order and
 * exactly once, with loss, reordering and evictions. */
static void run_fixed(struct world *w)
{
	const enum strategy s = (enum strategy)(STRATEGY_NONE + 1 +
						w->seed % (STRATEGY_NUM - 1));
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;

	c->strategies = strategy_set(s);
	c->backing = (enum sim_backing)sim_between(sim, SIM_CHEAP, SIM_FILE);
	c->evict_ns = sim_between(sim, 10, 300) * SIM_US;
	c->force = sim_chance(sim, SIM_PPM / 2);
	c->mem.major_max_ns = sim_between(sim, 70, 1000) * SIM_US;
	c->link.loss = SIM_PPM / 200;
	c->link.reorder = SIM_PPM / 20;
	c->big = SIM_PPM / 4;
	if (s == STRATEGY_DROP || s == STRATEGY_BLOCK)
		slow_down(c);
	if (s == STRATEGY_OVERWRITE || s == STRATEGY_BLOCK)
		c->backing = SIM_SWAP;
	world_build(w);
	world_finish(w);
	world_close(w);
	check_answers(w, c->strategies);
}

static const char *never_fixed(const struct sim_stats *st)
{
	return st->lost == 0	    ? "a loss"
	       : st->reordered == 0 ? "a packet that overtook another"
	       : st->evictions == 0 ? "an eviction"
				    : never(st);
}

const struct scenario scenario_fixed = {
	.name = "fixed",
	.run = run_fixed,
	.musts = 9,
	.must = {CNT_fault_park, CNT_fault_inline, CNT_fault_redirect,
		 CNT_fault_resume, CNT_fault_rnr, CNT_fault_overwrite,
		 CNT_fault_replay, CNT_fault_drop, CNT_fault_block},
	.never = never_fixed,
	.long_soak = true,
};
