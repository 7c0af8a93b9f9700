/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.c: WRITEs raise counters, under everything that mixed.c does; threads and
 * handlers wait for that. The model is a sequence: the n-th WRITE of a flow that
 * notifies makes its counter n, and then it and all before it is placed (I3).
 */
#include "base/check.h"
#include "base/counters.h"
#include "base/timerq.h"
#include "nic/event_counter.h"
#include "oracle.h"
#include "scenarios.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>

static uint64_t value_of(const struct flow *f)
{
	return *nic_counter_word(f->count.counter);
}

uint32_t count_note(struct flow *f, const struct op *op)
{
	const uint32_t id = nic_counter_id(f->count.counter);

	f->count.seq[f->count.posted++ % EXPECTS] = op->seq;
	return op->wr == WR_WRITE_IMM ? htonl(id) : id;
}

void count_check(struct flow *f)
{
	struct count *c = &f->count;
	uint64_t missing, value;

	if (!c->counter || f->failed)
		return;
	value = value_of(f);
	EXPECT(f->w, value >= c->seen && value <= c->posted,
	       "flow %u: counter %" PRIu64 " after %" PRIu64 ", of %" PRIu64
	       " notifications",
	       f->index, value, c->seen, c->posted);
	for (; c->seen < value; c->seen++) {
		const uint64_t seq = c->seq[c->seen % EXPECTS];

		EXPECT(f->w, flow_placed(f, seq + 1, &missing),
		       "flow %u: I3: counter %" PRIu64 " by number %" PRIu64
		       ", while number %" PRIu64 " is not placed",
		       f->index, value, seq, missing);
	}
}

void count_completed(struct flow *f, const struct op *op)
{
	count_check(f);
	for (uint64_t i = f->count.seen; i < f->count.posted; i++)
		EXPECT(f->w, f->count.seq[i % EXPECTS] != op->seq,
		       "flow %u: number %" PRIu64
		       " completed, and raised no counter",
		       f->index, op->seq);
}

static void woken(struct flow *f, uint64_t value)
{
	EXPECT(f->w, value <= value_of(f),
	       "flow %u: woken for %" PRIu64 " at %" PRIu64, f->index, value,
	       value_of(f));
	f->count.woken = MAX(f->count.woken, value);
	count_check(f);
}

/* May do something else for a while. */
static int handler(void *arg, uint64_t value)
{
	struct flow *f = arg;
	struct sim *sim = f->w->sim;

	woken(f, value);
	if (sim_chance(sim, SIM_PPM / 10))
		sim_sleep(sim, sim_between(sim, 0, 3 * SIM_MS));
	return 0;
}

/* Who waits for ever is not helped by a deadline. Spinning takes the simulator
 * long: a world of 15 s in which a thread did little else took it a minute.
 */
static uint64_t patience(const struct flow *f, uint64_t target,
			 enum nic_wait how)
{
	if (how == NIC_WAIT_SPIN)
		return sim_between(f->w->sim, 1, 5 * SIM_US);
	return target <= f->count.posted ? TIME_NEVER
					 : sim_between(f->w->sim, 1, SIM_MS);
}

static void waiter(void *arg)
{
	struct flow *f = arg;
	struct sim *sim = f->w->sim;
	int err = 0;

	while (err == 0 || err == -ETIMEDOUT) {
		const uint64_t target = f->count.woken + sim_between(sim, 1, 2);
		const enum nic_wait how =
			(enum nic_wait)sim_between(sim, 0, NIC_WAIT_NUM - 1);

		err = nic_counter_wait(f->count.counter, target,
				       patience(f, target, how), how);
		if (err == 0)
			woken(f, target);
	}
	EXPECT(f->w, err == -ECANCELED || err == -ENODEV,
	       "nic_counter_wait: %d", err);
}

void count_open(struct flow *f)
{
	struct node *node = f->to->node;
	const bool handled = sim_chance(f->w->sim, SIM_PPM / 3);
	int err;

	f->count.imm = f->w->cfg.standard || sim_chance(f->w->sim, SIM_PPM / 2);
	err = nic_counter_create(node->nic, node->pd, handled ? handler : NULL,
				 f, &f->count.counter);
	EXPECT(f->w, err == 0, "nic_counter_create: %d", err);
	if (f->count.imm)
		EXPECT(f->w, nic_qp_set_counting(f->to->qp, true) == 0,
		       "nic_qp_set_counting");
	if (!handled)
		node_thread(node, waiter, f);
}

void count_stop(struct flow *f)
{
	if (f->count.counter)
		nic_counter_close(f->count.counter);
}

void count_close(struct flow *f)
{
	if (f->count.counter)
		EXPECT(f->w, nic_counter_free(f->count.counter) == 0,
		       "nic_counter_free");
}

bool count_done(const struct flow *f)
{
	return !f->count.counter || f->count.woken == f->count.posted;
}

/* --- the scenario ------------------------------------------------------------ */

static void run(struct world *w)
{
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;

	c->conns = (unsigned)sim_between(sim, 1, 4);
	c->ops = 50;
	c->counters = true;
	c->mix[OPK_NOTIFY] = 8;
	c->mix[OPK_WRITE] = 3;
	c->link.loss = world_some(sim, SIM_PPM / 25);
	c->link.dup = world_some(sim, SIM_PPM / 25);
	c->standard = sim_chance(sim, SIM_PPM / 4);
	c->deaf = c->standard ? 0 : world_some(sim, 20);
	/* to a standard peer, or one that is taken for that, each gap is a retry */
	c->link.reorder = world_some(sim, c->standard || c->deaf ? SIM_PPM / 25
								 : SIM_PPM / 2);
	c->evict_ns = world_some(sim, 500) * SIM_US;
	c->fork_ns = world_some(sim, 4) * SIM_MS;
	c->preempt = world_some(sim, SIM_PPM / 20);
	c->preempt_ns = 20 * SIM_MS;
	/* Who is off its CPU most of the time outlasts seven retries. */
	if (c->standard || c->deaf)
		c->preempt /= 4;
	c->full = world_some(sim, SIM_PPM / 50);
	c->choose = !c->standard && sim_chance(sim, SIM_PPM / 4);
	c->choose &= !c->deaf;
	world_build(w);
	world_finish(w);
	world_close(w);
}

static const char *never(const struct sim_stats *st)
{
	return st->reordered == 0 ? "a packet that overtook another"
	       : st->lost == 0	  ? "a lost packet"
				  : NULL;
}

const struct scenario scenario_notify = {
	.name = "notify",
	.run = run,
	.long_soak = true,
	.musts = 6,
	.must = {CNT_notified, CNT_fault_redirect, CNT_retransmits, CNT_dups_rx,
		 CNT_gaps_rx, CNT_rnr_tx},
	.never = never,
};
