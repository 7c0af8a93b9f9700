/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resume.c: RESUME is lost, and nothing else: never, once, twice or three times in a
 * row, or always. Who holds for a page, or for a region that is suspended, goes on with
 * the next one that comes, which is soon; a few are said and no more.
 */
#include "nic/device.h"
#include "nic/qp.h"
#include "nic/suspension.h"
#include "oracle.h"
#include "scenarios.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/psn.h"

#include <inttypes.h>

enum {
	PSN_AT = 9, /* doc/wire.md */
	ACCEPTED_AT = 20,
	FLAGS_AT = 23,
	ALWAYS = 4, /* more than are said */
	SAID_MAX = 4,
};

/* Then pages of its own may be missing. */
#define SLACK_NS    (4 * (uint64_t)SIM_MS)
#define PAGES_NS    (50 * (uint64_t)SIM_MS)
#define LATE_NS	    (200 * (uint64_t)SIM_US)
#define SUSPEND_NS  (600 * 1000 * (uint64_t)SIM_MS) /* announced */
#define HOLD_MAX_NS (100 * (uint64_t)SIM_MS)

/**
 * struct thief - What it took, and what that cost.
 * @take:	so many RESUMEs in a row
 * @said:	RESUMEs that ask for @psn, since the requester was asked to hold
 * @first_ns:	the first of these, and @fresh: @psn was never sent before
 * @came_ns:	and then @psn was sent, 0: not yet
 * @gap_ns:	longest time from the one to the other, less what it may take where that
 *		was the first time that @psn was sent: the program may be waiting for
 *		the pages of all that is accepted
 * @late:	RESUMEs that were said long after it came
 */
struct thief {
	struct world *w;
	unsigned take, said, said_max, taken, late;
	psn_t psn;
	bool fresh;
	uint64_t first_ns, came_ns, gap_ns;
};

static psn_t psn_at(const uint8_t *p)
{
	return (psn_t)p[0] << 16 | (psn_t)p[1] << 8 | p[2];
}

static bool pass_resume(struct thief *t, psn_t psn)
{
	const uint64_t now = sim_now(t->w->sim);

	if (t->psn != psn)
		t->said = 0;
	t->psn = psn;
	if (!t->said++) {
		t->first_ns = now;
		t->came_ns = 0;
		t->fresh = psn == t->w->conn[0].end[0].qp->qp.req.psn.max;
	}
	t->late += t->came_ns && now - t->came_ns > LATE_NS;
	t->said_max = MAX(t->said_max, t->said);
	t->taken += t->said <= t->take;
	return t->said > t->take;
}

static void hear_data(struct thief *t, psn_t psn)
{
	uint64_t gap_ns;

	if (psn != t->psn || !t->said || t->came_ns)
		return;
	t->came_ns = sim_now(t->w->sim);
	gap_ns = t->came_ns - t->first_ns;
	if (t->fresh)
		gap_ns -= MIN(gap_ns, PAGES_NS);
	t->gap_ns = MAX(t->gap_ns, gap_ns);
}

static bool pass(void *arg, const uint8_t *bytes, uint32_t len)
{
	struct thief *t = arg;

	if (bytes[0] >= OP_X_DATA)
		hear_data(t, psn_at(bytes + PSN_AT));
	if (bytes[0] != OP_X_ACK || len <= FLAGS_AT)
		return true;
	if (bytes[FLAGS_AT] & (XACK_HOLD | XACK_SUSPEND))
		t->said = 0;
	if (bytes[FLAGS_AT] & XACK_RESUME)
		return pass_resume(t, psn_add(psn_at(bytes + ACCEPTED_AT), 1));
	return true;
}

/* One flow of WRITEs from the first NIC to the second, whose pages go, but stay
 * until what was forgotten came again. */
static void configure(struct world *w, bool always)
{
	struct world_config *c = &w->cfg;

	memset(c->mix, 0, sizeof(c->mix));
	c->mix[OPK_WRITE] = 1;
	c->conns = 1;
	c->ops = 30;
	c->backing = SIM_FILE;
	c->exact = true; /* what is there is known to be */
	c->evict_ns = (always ? 100 : 20) * SIM_MS;
	c->force = false;
	c->mem.major_min_ns = 150 * SIM_US;
	c->mem.major_max_ns = 400 * SIM_US;
	c->strategies = strategy_set(STRATEGY_RESUME);
	c->timeout = 21;
}

/* Now and then, for a moment. What waits for it is forgotten, too. */
static void suspend_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;
	const struct flow *f = w->flow[0];

	while (!w->stop) {
		EXPECT(w,
		       nic_mr_suspend(node->nic, f->remote_key, SUSPEND_NS) ==
			       0,
		       "nic_mr_suspend");
		sim_sleep(w->sim, SIM_MS / 2);
		EXPECT(w, nic_mr_resume(node->nic, f->remote_key) == 0,
		       "nic_mr_resume");
		sim_sleep(w->sim, sim_between(w->sim, 9, 12) * SIM_MS);
	}
}

static void run(struct world *w)
{
	struct thief t = {.w = w, .take = w->seed % (ALWAYS + 1)};
	uint64_t most = SLACK_NS;

	/* they are said after 1, 3 and 7 ms */
	most += t.take == ALWAYS ? HOLD_MAX_NS
				 : ((UINT64_C(1) << t.take) - 1) * SIM_MS;
	configure(w, t.take == ALWAYS);
	world_build(w);
	w->flow[1]->all = 0;
	sim_filter(w->sim, pass, &t);
	if (w->seed / (ALWAYS + 1) % 2 && t.take != ALWAYS)
		node_thread(&w->node[1], suspend_thread, &w->node[1]);
	world_finish(w);
	sim_filter(w->sim, NULL, NULL);
	world_close(w);
	EXPECT(w, !t.taken == !t.take, "%u RESUMEs were lost", t.taken);
	EXPECT(w, !t.late, "RESUME is said again although it came");
	EXPECT(w, t.gap_ns <= most,
	       "%u RESUMEs are lost, and the next request comes %" PRIu64
	       " us later",
	       t.take, t.gap_ns / SIM_US);
	EXPECT(w, t.said_max <= SAID_MAX, "RESUME is said %u times",
	       t.said_max);
	EXPECT(w, w->total.v[CNT_timeouts] == 0, "%" PRIu64 " timeouts",
	       w->total.v[CNT_timeouts]);
}

const struct scenario scenario_resume = {
	.name = "resume",
	.run = run,
	.musts = 3,
	.must = {CNT_fault_resume, CNT_resumes_again, CNT_suspend_heard},
};
