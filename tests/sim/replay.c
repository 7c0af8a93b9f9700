/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c: READs and atomics whose requests and answers are lost or doubled:
 * answered again, executed once (I5).
 */
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	static const uint32_t mix[OPK_NUM] = {
		[OPK_READ] = 4,	     [OPK_READ_BACK] = 2, [OPK_RELAY] = 2,
		[OPK_FETCH_ADD] = 4, [OPK_CMP_SWP] = 3,	  [OPK_WRITE] = 2};
	struct sim *sim = w->sim;

	memcpy(w->cfg.mix, mix, sizeof(mix));
	/* One try in ten fails. At one in five, eight in a row did, which ends
	 * the connection of a standard peer, in one of 1,000 worlds. */
	w->cfg.link.loss = SIM_PPM / 40;
	w->cfg.link.burst_loss = SIM_PPM / 40;
	w->cfg.link.dup = SIM_PPM / 20;
	w->cfg.link.reorder = SIM_PPM / 20;
	w->cfg.timeout = 10;
	w->cfg.standard = sim_chance(sim, SIM_PPM / 2);
	if (sim_chance(sim, SIM_PPM / 2)) {
		w->cfg.evict_ns = 100 * SIM_US;
		/* A page takes up to 13 ms then: ACK timeouts of 4 ms would
		 * be spent by waiting, and what is lost has none left. */
		w->cfg.timeout = 12;
	}
	world_build(w);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_replay = {
	.name = "replay",
	.run = run,
	.musts = 5,
	.must = {CNT_replays, CNT_dups_rx, CNT_read_restarts, CNT_timeouts,
		 CNT_naks_tx},
};
