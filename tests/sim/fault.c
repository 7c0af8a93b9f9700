/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: nothing is lost, but pages are missing: first touches, and major
 * faults that are slow. Nothing may time out, be retried or refused for it (I2),
 * with the smallest budgets that programs ask for.
 */
#include "base/check.h"
#include "base/counters.h"
#include "scenarios.h"

#include <inttypes.h>

/* No receive is ever missing. */
static void run_polite(struct world *w)
{
	w->cfg.recvs = 16;
	w->cfg.window = MIN(w->cfg.window, 8);
	w->cfg.polite = true;
	world_build(w);
	world_finish(w);
	world_close(w);
}

static void run(struct world *w)
{
	static const enum counter never[] = {CNT_kernel_drops, CNT_timeouts,
					     CNT_engine_majflt};
	struct sim *sim = w->sim;

	w->cfg.backing = (enum sim_backing)sim_between(sim, SIM_SWAP, SIM_FILE);
	w->cfg.mem.major_max_ns = sim_between(sim, 1, 12) * SIM_MS;
	w->cfg.evict_ns = 200 * SIM_US;
	w->cfg.retry_cnt = 1;
	w->cfg.rnr_retry = 0;
	run_polite(w);
	for (unsigned i = 0; i < ARRAY_SIZE(never); i++)
		EXPECT(w, w->total.v[never[i]] == 0,
		       "I2: %s is %" PRIu64 " where only pages were missing",
		       counter_info[never[i]].name, w->total.v[never[i]]);
	/* where a READ is asked for again, what READs behind it have read is forgotten */
	EXPECT(w, w->forgotten == 0 || w->total.v[CNT_read_restarts],
	       "I3: %" PRIu64 " bytes were redirected and not placed",
	       w->forgotten);
	EXPECT(w, w->stats.exact_misses == 0,
	       "I1: a move met an absent page on an exact host");
}

const struct scenario scenario_fault = {
	.name = "fault",
	.run = run,
	.musts = 9,
	.must = {CNT_faults, CNT_tickets, CNT_fault_park, CNT_fault_redirect,
		 CNT_redirected_bytes, CNT_slots_used_max, CNT_tickets_merged,
		 CNT_fault_resume, CNT_fault_replay},
};

/* Whatever forgets a packet for its page, the page is gone again when the packet comes:
 * in the end it is kept (I1). */
static void run_rescue(struct world *w)
{
	static const enum strategy forgets[] = {
		STRATEGY_REPLAY, STRATEGY_RESUME, STRATEGY_RNR, STRATEGY_DROP};

	w->cfg.strategies = 1u << forgets[w->seed % ARRAY_SIZE(forgets)];
	w->cfg.backing = SIM_SWAP;
	w->cfg.mem.major_max_ns = 100 * SIM_US;
	w->cfg.evict_ns = 500 * SIM_US;
	w->cfg.flush_ns = 100 * SIM_US;
	w->cfg.force = true;
	w->cfg.ops = 10;
	w->cfg.big = 0;
	run_polite(w);
}

const struct scenario scenario_rescue = {
	.name = "rescue",
	.run = run_rescue,
	.musts = 4,
	.must = {CNT_fault_rescued, CNT_fault_resume, CNT_fault_rnr,
		 CNT_fault_drop},
};

/* Pages that take longer than an ACK timeout, and standard peers that allow six
 * RNR NAKs. */
static void run_slow(struct world *w)
{
	w->cfg.backing = SIM_FILE;
	w->cfg.standard = true;
	w->cfg.mem.major_min_ns = 10 * SIM_MS;
	w->cfg.mem.major_max_ns = 150 * SIM_MS;
	w->cfg.evict_ns = 100 * SIM_MS;
	w->cfg.pagers = 32;
	w->cfg.big = 0;
	w->cfg.rnr_retry = 6;
	w->cfg.rnr_timer = 12;
	w->cfg.ops = 20;
	w->cfg.slots = sim_chance(w->sim, SIM_PPM / 2) ? 8 : 64;
	run_polite(w);
}

const struct scenario scenario_slow = {
	.name = "slow",
	.run = run_slow,
	.musts = 3,
	.must = {CNT_fault_rnr, CNT_rnr_rx, CNT_fault_silence},
};

/* RNR is all that a nopin may say of a missing page: it costs no budget. */
static void run_refuse(struct world *w)
{
	w->cfg.backing = SIM_SWAP;
	w->cfg.mem.major_max_ns = 3 * SIM_MS;
	w->cfg.evict_ns = 500 * SIM_US;
	w->cfg.strategies = 1u << STRATEGY_RNR;
	w->cfg.retry_cnt = 0;
	w->cfg.rnr_retry = 0;
	run_polite(w);
	EXPECT(w, w->total.v[CNT_timeouts] == 0, "I2: %" PRIu64 " timeouts",
	       w->total.v[CNT_timeouts]);
}

const struct scenario scenario_refuse = {
	.name = "refuse",
	.run = run_refuse,
	.musts = 2,
	.must = {CNT_fault_rnr, CNT_rnr_rx},
};
