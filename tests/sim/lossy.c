/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lossy.c: packets and bursts are lost, doubled, overtaken and corrupted, or cannot be
 * sent as their source address is away; pages are always there.
 */
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	struct sim_link_config *l = &w->cfg.link;
	struct sim *sim = w->sim;
	const uint32_t most = SIM_PPM / 20;

	w->cfg.backing = SIM_CHEAP;
	l->loss = (uint32_t)sim_between(sim, 0, most);
	l->burst_loss = (uint32_t)sim_between(sim, 0, most);
	l->dup = (uint32_t)sim_between(sim, 0, most);
	l->reorder = (uint32_t)sim_between(sim, 0, most);
	l->corrupt = (uint32_t)sim_between(sim, 0, most / 4);
	l->reorder_ns = sim_between(sim, 1, 300) * SIM_US;
	if (sim_chance(sim, SIM_PPM / 4))
		w->cfg.cut_ns = 50 * SIM_MS;
	if (sim_chance(sim, SIM_PPM / 4))
		w->cfg.deaf = (unsigned)sim_between(sim, 3, 9);
	if (sim_chance(sim, SIM_PPM / 4))
		w->cfg.away_ns = 50 * SIM_MS;
	world_build(w);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_lossy = {
	.name = "lossy",
	.run = run,
	.musts = 7,
	.must = {CNT_retransmits, CNT_dups_rx, CNT_gaps_rx, CNT_replays,
		 CNT_read_restarts, CNT_drop_icrc, CNT_fault_inline},
};
