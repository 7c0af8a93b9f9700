/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* preempt.c: threads lose the CPU just after they looked at a burst or took it,
 * and others overtake them. Large messages, so that most are placed as they are
 * received.
 */
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	struct world_config *c = &w->cfg;

	c->preempt = SIM_PPM / 50;
	c->preempt_ns = 250 * SIM_MS;
	c->big = SIM_PPM / 2;
	c->no_gso = c->no_gro = false;
	c->slots = 256;
	world_build(w);
	world_finish(w);
	world_close(w);
}

static const char *never(const struct sim_stats *st)
{
	return st->preempts == 0 ? "a thread that lost the CPU" : NULL;
}

const struct scenario scenario_preempt = {
	.name = "preempt",
	.run = run,
	.musts = 4,
	.must = {CNT_rx_scattered, CNT_drop_psn, CNT_retransmits,
		 CNT_redirected_bytes},
	.never = never,
};
