/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rnr.c: receivers are late with their receives: SENDs are refused and repeated,
 * and happen exactly once (I5), also when packets are lost meanwhile.
 */
#include "base/counters.h"
#include "scenarios.h"

static void run(struct world *w)
{
	static const uint32_t mix[OPK_NUM] = {
		[OPK_SEND] = 4,	 [OPK_SEND_IMM] = 2,  [OPK_SEND_INV] = 1,
		[OPK_WRITE] = 2, [OPK_WRITE_IMM] = 3, [OPK_FETCH_ADD] = 1,
		[OPK_READ] = 1};
	struct sim *sim = w->sim;

	memcpy(w->cfg.mix, mix, sizeof(mix));
	w->cfg.recvs = (unsigned)sim_between(sim, 1, 3);
	w->cfg.recv_lazy = (uint32_t)sim_between(sim, SIM_PPM / 50,
						 SIM_PPM / 4);
	w->cfg.rnr_timer = (uint8_t)sim_between(sim, 1, 12);
	if (sim_chance(sim, SIM_PPM / 2)) {
		w->cfg.link.loss = SIM_PPM / 100;
		w->cfg.link.reorder = SIM_PPM / 100;
		w->cfg.link.dup = SIM_PPM / 100;
	}
	w->cfg.standard = sim_chance(sim, SIM_PPM / 4);
	world_build(w);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_rnr = {
	.name = "rnr",
	.run = run,
	.musts = 2,
	.must = {CNT_rnr_tx, CNT_rnr_rx},
};
