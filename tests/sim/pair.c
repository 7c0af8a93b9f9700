/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.c: nothing is lost and every page is cheap: nothing may be sent twice,
 * nothing may time out, no kernel buffer may overflow (D14).
 */
#include "base/check.h"
#include "base/counters.h"
#include "scenarios.h"

#include <inttypes.h>

static void expect_quiet(struct world *w)
{
	static const enum counter never[] = {
		CNT_kernel_drops, CNT_retransmits, CNT_timeouts, CNT_naks_tx,
		CNT_dups_rx,	  CNT_gaps_rx,	   CNT_replays,
	};

	for (unsigned i = 0; i < ARRAY_SIZE(never); i++)
		/* A forged "port unreachable" may have it begin as with a card. */
		EXPECT(w, w->total.v[never[i]] == 0 || w->cfg.attack_ns,
		       "%s is %" PRIu64 " where nothing was lost",
		       counter_info[never[i]].name, w->total.v[never[i]]);
}

static void build(struct world *w)
{
	w->cfg.backing = SIM_CHEAP;
	/* as many as a NIC has: a first touch waits for a pager, and what
	 * finds no slot, because READ responses need no credit, comes again */
	w->cfg.slots = 4096;
	w->cfg.recvs = 16;
	w->cfg.window = MIN(w->cfg.window, w->cfg.recvs);
	w->cfg.polite = true;
	world_build(w);
}

static void finish(struct world *w)
{
	world_finish(w);
	world_close(w);
	EXPECT(w, w->stats.kernel_drops == 0, "the receive buffer overflowed");
	if (w->total.v[CNT_rnr_tx] == 0)
		expect_quiet(w);
}

static void run_pair(struct world *w)
{
	if (w->seed % 4 == 2) { /* what an Ethernet of cards often has */
		w->cfg.mtu = 4200;
		w->cfg.path_mtu = 4096;
	}
	build(w);
	finish(w);
}

static void set_latency(struct world *w, uint64_t ns)
{
	w->cfg.link.latency_min_ns = ns;
	w->cfg.link.latency_max_ns = sim_between(w->sim, ns, 3 * ns);
	sim_link_default(w->sim, &w->cfg.link);
}

/* The answer to a question takes longer than it takes to ask the next one, or
 * the next ten: as over a long line, or when the other side gets no CPU.
 */
static void run_far(struct world *w)
{
	w->cfg.timeout = 21; /* 8.6 s */
	w->cfg.ops = 30;
	set_latency(w, 2 * SIM_MS);
	build(w);
	world_run(w, 50 * SIM_MS);
	if (w->seed % 2)
		set_latency(w, 20 * SIM_MS);
	finish(w);
}

const struct scenario scenario_far = {
	.name = "far",
	.run = run_far,
	.musts = 2,
	.must = {CNT_rx_packets, CNT_acks_tx},
};

/* More programs spin than there are CPUs: any thread loses its CPU now and then
 * while it sends or receives, and others go on in its place.
 */
static void run_busy(struct world *w)
{
	w->cfg.preempt = SIM_PPM / 50;
	w->cfg.preempt_ns = 30 * SIM_MS;
	w->cfg.standard = w->seed % 2;
	w->cfg.timeout = 21;
	w->cfg.rcvbuf = SIZE_MAX; /* nobody tells a card to wait */
	build(w);
	finish(w);
}

/* The card is slower than we are: nothing is lost for that, and nothing that was
 * sent is sent again.
 */
static void run_full(struct world *w)
{
	w->cfg.full = SIM_PPM / 20;
	build(w);
	finish(w);
}

static const char *never_full(const struct sim_stats *st)
{
	return st->full == 0 ? "a full send buffer" : NULL;
}

const struct scenario scenario_full = {
	.name = "full",
	.run = run_full,
	.musts = 2,
	.must = {CNT_tx_packets, CNT_acks_behind},
	.never = never_full,
};

const struct scenario scenario_busy = {
	.name = "busy",
	.run = run_busy,
	.musts = 2,
	.must = {CNT_token_moving, CNT_acks_behind},
};

const struct scenario scenario_pair = {
	.name = "pair",
	.run = run_pair,
	.musts = 5,
	.must = {CNT_rx_packets, CNT_tx_packets, CNT_acks_tx, CNT_acks_behind,
		 CNT_acks_carried},
};
