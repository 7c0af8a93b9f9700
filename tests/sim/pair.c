/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c: nothing is lost and every page is cheap: nothing may be sent twice,
 * nothing may time out, no kernel buffer may overflow (D14).
 */
#include "scenarios.h"

#include <inttypes.h>

static void expect_quiet(struct world *w)
{
	static const enum counter never[] = {
		CNT_kernel_drops, CNT_retransmits, CNT_timeouts, CNT_naks_tx,
		CNT_dups_rx,	  CNT_gaps_rx,	   CNT_replays,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(never); i++)
		EXPECT(w, w->total.v[never[i]] == 0,
		       "%s is %" PRIu64 " where nothing was lost",
		       counter_info[never[i]].name, w->total.v[never[i]]);
}

static void run(struct world *w)
{
	w->cfg.backing = SIM_CHEAP;
	/* as many as a NIC has: a first touch waits for a pager, and READ
	 * responses that find no slot are asked for again */
	w->cfg.slots = 1024;
	w->cfg.recvs = 16;
	w->cfg.window = MIN(w->cfg.window, w->cfg.recvs);
	w->cfg.polite = true;
	world_build(w);
	world_finish(w);
	world_close(w);
	EXPECT(w, w->stats.kernel_drops == 0, "the receive buffer overflowed");
	if (w->total.v[CNT_rnr_tx] == 0)
		expect_quiet(w);
}

const struct scenario scenario_pair = {
	.name = "pair",
	.run = run,
	.musts = 4,
	.must = {CNT_rx_packets, CNT_tx_packets, CNT_acks_tx, CNT_acks_behind},
};
