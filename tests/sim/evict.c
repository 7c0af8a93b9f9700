/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* evict.c: pages are taken away as fast as they come, also those in use, and the
 * process forks. An exact host waits for holds and its table is never wrong; on
 * any other a move may meet an absent page, which delays it and nothing else.
 */
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_SWAP, SIM_FILE);
	w->cfg.evict_ns = 10 * SIM_US;
	w->cfg.force = true;
	w->cfg.fork_ns = sim_chance(sim, SIM_PPM / 2) ? SIM_MS : 0;
	w->cfg.mem.major_max_ns = sim_between(sim, 100, 1000) * SIM_US;
	w->cfg.mem.tear = SIM_PPM / 5;
	world_build(w);
	world_finish(w);
	world_close(w);
	EXPECT(w, !w->cfg.exact || w->stats.exact_misses == 0,
	       "I1: a move met an absent page on an exact host");
}

static const char *never(const struct sim_stats *st)
{
	return st->evict_busy == 0 ? "an eviction that waited for a hold"
	       : st->major == 0	   ? "a move that met an absent page"
	       : st->cows == 0	   ? "a copy on write"
	       : st->torn == 0	   ? "a torn move"
				   : NULL;
}

const struct scenario scenario_evict = {
	.name = "evict",
	.run = run,
	.musts = 5,
	.must = {CNT_tickets, CNT_fault_redirect, CNT_engine_majflt,
		 CNT_spt_evictions, CNT_fault_park},
	.never = never,
};
