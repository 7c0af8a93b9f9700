/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c: a network that has no order: up to half of the packets are overtaken, or
 * bursts take paths of different length, or both. What is in order must be made so
 * at the receiver (the oracle sees to that), where there is always a place for what
 * came too early; and what is late is not sent again, as if it were lost.
 */
#include "base/check.h"
#include "base/counters.h"
#include "scenarios.h"

#include <inttypes.h>

/* By the seed, so that a batch has all of them. */
static bool loses(const struct world *w)
{
	return w->seed % 4 == 1;
}

static bool faults(const struct world *w)
{
	return w->seed % 4 >= 2;
}

static void network(struct world *w)
{
	struct sim_link_config *l = &w->cfg.link;
	struct sim *sim = w->sim;

	if (loses(w)) {
		l->loss = (uint32_t)sim_between(sim, 0, SIM_PPM / 50);
		l->dup = (uint32_t)sim_between(sim, 0, SIM_PPM / 50);
	}
	if (w->seed % 8 == 1)
		return; /* what is lost there is soon found */
	if (w->seed % 3 != 0) {
		l->reorder = (uint32_t)sim_between(sim, 0, SIM_PPM / 2);
		l->reorder_ns = sim_between(sim, 1, 300) * SIM_US;
	}
	if (w->seed % 3 != 1) {
		w->cfg.paths = (unsigned)sim_between(sim, 2, 8);
		l->path_ns = sim_between(sim, 1, 300) * SIM_US;
	}
}

static void memory(struct world *w)
{
	w->cfg.backing = SIM_CHEAP;
	/* READs and atomics find room beyond what is lent */
	w->cfg.slots = (unsigned)sim_between(w->sim, 192, 2048);
	if (!faults(w))
		return;
	w->cfg.backing = SIM_SWAP;
	w->cfg.evict_ns = sim_between(w->sim, 100, 2000) * SIM_US;
}

/* What is late is learned to be so: of what was not lost only that was sent again
 * which came before, and one of a hundred. RESUME has its own reasons to. */
static void expect_patience(const struct world *w)
{
	enum { LEARNING = 160, PERCENT = 1, TIMES = 2 };
	const uint64_t *v = w->total.v;

	EXPECT((struct world *)w,
	       v[CNT_retransmits] <= LEARNING +
					     v[CNT_tx_packets] * PERCENT / 100 +
					     TIMES * w->stats.lost,
	       "%" PRIu64 " of %" PRIu64
	       " packets were sent again where %" PRIu64
	       " were lost; READs %" PRIu64
	       ", responses without a slot %" PRIu64 ", RESUME %" PRIu64
	       ", RNR %" PRIu64 ", doubted losses %" PRIu64,
	       v[CNT_retransmits], v[CNT_tx_packets], w->stats.lost,
	       v[CNT_read_restarts], v[CNT_fault_replay], v[CNT_fault_resume],
	       v[CNT_rnr_rx], v[CNT_losses_doubted]);
}

static void run(struct world *w)
{
	network(w);
	memory(w);
	w->cfg.conns = (unsigned)sim_between(w->sim, 1, 6);
	w->cfg.polite = true;
	if (w->seed % 5 == 0) /* many responses on their way */
		w->cfg.big = SIM_PPM / 4;
	if (w->seed % 2)
		w->cfg.rcvbuf = 8 << 20;
	w->cfg.recvs = 16;
	w->cfg.window = MIN(w->cfg.window, w->cfg.recvs);
	world_build(w);
	world_finish(w);
	world_close(w);
	EXPECT(w, w->total.v[CNT_drop_no_slot] == 0,
	       "%" PRIu64 " packets found no slot",
	       w->total.v[CNT_drop_no_slot]);
	EXPECT(w, loses(w) || w->stats.kernel_drops == 0,
	       "the receive buffer overflowed");
	EXPECT(w,
	       loses(w) || faults(w) ||
		       w->total.v[CNT_fault_replay] * 100 <=
			       w->total.v[CNT_rx_packets],
	       "%" PRIu64 " responses had no place when they came",
	       w->total.v[CNT_fault_replay]);
	if (!w->total.v[CNT_fault_resume])
		expect_patience(w);
}

const struct scenario scenario_order = {
	.name = "order",
	.run = run,
	.long_soak = true,
	.musts = 5,
	.must = {CNT_gaps_rx, CNT_retransmits, CNT_losses_doubted,
		 CNT_redirected_bytes, CNT_replays},
};
