/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mixed.c: everything at once, each of it or not as the seed says. */
#include "base/check.h"
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;

	c->nodes = (unsigned)sim_between(sim, 2, 3);
	c->conns = (unsigned)sim_between(sim, 1, 5);
	c->ops = 40;
	c->link.loss = world_some(sim, SIM_PPM / 25);
	c->link.burst_loss = world_some(sim, SIM_PPM / 25);
	c->link.dup = world_some(sim, SIM_PPM / 25);
	c->link.reorder = world_some(sim, SIM_PPM / 25);
	c->link.corrupt = world_some(sim, SIM_PPM / 100);
	c->link.bytes_per_us = world_some(sim, 10000);
	c->recv_lazy = SIM_PPM - world_some(sim, SIM_PPM * 9 / 10);
	c->evict_ns = world_some(sim, 500) * SIM_US;
	c->fork_ns = world_some(sim, 4) * SIM_MS;
	c->pause_ns = world_some(sim, 50) * SIM_MS;
	c->cut_ns = world_some(sim, 100) * SIM_MS;
	c->preempt = world_some(sim, SIM_PPM / 20);
	c->preempt_ns = 20 * SIM_MS;
	c->full = world_some(sim, SIM_PPM / 50);
	c->force = sim_chance(sim, SIM_PPM / 2);
	c->standard = sim_chance(sim, SIM_PPM / 4);
	/* Who is off its CPU most of the time outlasts seven retries. */
	if (c->standard)
		c->preempt /= 4;
	/* Else the link may be cut at each of a program's seven retries, which
	 * for a nopin take 4 s, but for a standard peer half a second. */
	if (c->standard && c->cut_ns)
		c->cut_ns += 100 * SIM_MS;
	if (sim_chance(sim, SIM_PPM / 4)) {
		c->mtu = 1500;
		c->path_mtu = MIN(c->path_mtu, 1024);
	}
	world_build(w);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_mixed = {
	.name = "mixed",
	.run = run,
	.musts = 14,
	.must = {CNT_retransmits, CNT_timeouts, CNT_rnr_tx, CNT_rnr_rx,
		 CNT_dups_rx, CNT_gaps_rx, CNT_replays, CNT_read_restarts,
		 CNT_tickets, CNT_fault_park, CNT_fault_redirect,
		 CNT_slots_used_max, CNT_drop_icrc, CNT_fault_resume},
};
