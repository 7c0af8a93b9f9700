/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* teardown.c: QPs are put into error or destroyed, regions deregistered and
 * their memory unmapped, a process killed, at random moments. What was broken is
 * flushed, nothing is written where nothing may be any more, and everybody else
 * goes on as before.
 */
#include "base/check.h"
#include "base/counters.h"
#include "nic/memory.h"
#include "oracle.h"
#include "scenarios.h"

#include <errno.h>
#include <inttypes.h>

enum { CANARY_BYTES = 64 };

static void conn_break(struct conn *conn)
{
	flow_break(conn->end[0].out);
	flow_break(conn->end[1].out);
}

/* Sends that have to come back. The last ones may have ended well, in silence,
 * before the QP broke: nobody asked for their completions.
 */
static uint64_t unflushed(const struct end *e)
{
	struct flow *f = e->out;
	uint64_t end = f->posted;

	while (end > f->completed && !e->init.sq_sig_all && op_at(f, end - 1) &&
	       !op_at(f, end - 1)->signaled)
		end--;
	return end - f->completed;
}

/* All work of a QP in error comes back. */
static void expect_flushed(struct world *w, const struct end *e)
{
	const uint64_t limit = sim_now(w->sim) + 100 * (uint64_t)SIM_MS;

	while (e->qp &&
	       (unflushed(e) != 0 || e->in->recv_done != e->in->recv_posted)) {
		EXPECT(w, sim_now(w->sim) < limit,
		       "QP %u in error: %" PRIu64 " sends and %" PRIu64
		       " receives were not flushed",
		       e->qpn, unflushed(e),
		       e->in->recv_posted - e->in->recv_done);
		sim_sleep(w->sim, 10 * SIM_US);
	}
}

static void break_error(struct world *w, struct conn *conn)
{
	struct end *e = &conn->end[sim_between(w->sim, 0, 1)];
	const struct qp_attr attr = {.state = QPS_ERR};
	int err;

	if (!e->qp)
		return;
	conn_break(conn);
	err = nic_qp_modify(e->qp, &attr, QPA_STATE);
	EXPECT(w, err == 0, "nic_qp_modify to ERR: %d", err);
	expect_flushed(w, e);
}

/* What only this QP may write to is nobody's after it was destroyed. */
static void break_destroy(struct world *w, struct conn *conn)
{
	struct end *e = &conn->end[sim_between(w->sim, 0, 1)];

	if (!e->qp)
		return;
	conn_break(conn);
	end_destroy(e);
	area_kill(e->node, e->out->local);
	area_kill(e->node, e->in->recv_mem);
}

/* lab/late-copy: what is mapped anew must not get what was meant for the old. */
static void break_dereg(struct world *w, struct conn *conn)
{
	struct flow *f = conn->end[sim_between(w->sim, 0, 1)].out;
	uint8_t canary[CANARY_BYTES], now[CANARY_BYTES];
	struct os *os = f->to->node->os;
	const uint64_t began = sim_now(w->sim);
	int err;

	if (f->remote_gone)
		return;
	conn_break(conn);
	f->remote_gone = true;
	err = nic_mr_dereg(f->to->node->nic, f->remote_key);
	EXPECT(w, err == 0, "nic_mr_dereg: %d", err);
	EXPECT(w, !w->cfg.exact || sim_now(w->sim) - began < 10 * SIM_MS,
	       "nic_mr_dereg took %" PRIu64 " us",
	       (sim_now(w->sim) - began) / SIM_US);
	area_kill(f->to->node, f->target);
	while (sim_munmap(os, f->target) == -EBUSY)
		sim_sleep(w->sim, SIM_US);
	err = sim_mmap_at(os, f->target, TARGET_BYTES, SIM_CHEAP,
			  SIM_READ | SIM_WRITE);
	CHECK(err == 0);
	memset(canary, 0xca, sizeof(canary));
	sim_write(os, f->target, canary, sizeof(canary));
	sim_sleep(w->sim, 5 * SIM_MS);
	sim_peek(os, f->target, now, sizeof(now));
	EXPECT(w, memcmp(now, canary, sizeof(now)) == 0, "the canary is dead");
}

static void break_node(struct world *w, struct node *node)
{
	for (unsigned i = 0; i < w->cfg.conns; i++) {
		struct conn *conn = &w->conn[i];

		if (conn->end[0].node == node || conn->end[1].node == node)
			conn_break(conn);
	}
	sim_kill(node->os);
}

static void breaker_thread(void *arg)
{
	struct node *node = arg;
	struct world *w = node->w;

	for (uint64_t n = sim_between(w->sim, 1, w->cfg.conns - 1); n > 0;
	     n--) {
		struct conn *conn =
			&w->conn[sim_between(w->sim, 0, w->cfg.conns - 1)];

		sim_sleep(w->sim, sim_between(w->sim, 0, 2 * SIM_MS));
		switch (sim_between(w->sim, 0, 12) / 4) {
		case 0:
			break_error(w, conn);
			break;
		case 1:
			break_destroy(w, conn);
			break;
		case 2:
			break_dereg(w, conn);
			break;
		default:
			break_node(w, &w->node[w->cfg.nodes - 1]);
		}
	}
	w->busy = false;
}

static void run(struct world *w)
{
	struct sim *sim = w->sim;

	w->cfg.nodes = 3;
	w->cfg.conns = 5;
	w->cfg.timeout = 8;
	w->cfg.retry_cnt = 7;
	w->cfg.evict_ns = sim_chance(sim, SIM_PPM / 2) ? 100 * SIM_US : 0;
	if (sim_chance(sim, SIM_PPM / 2))
		w->cfg.link.loss = SIM_PPM / 100;
	w->expect_errors = true;
	world_build(w);
	w->busy = true;
	node_thread(&w->node[0], breaker_thread, &w->node[0]);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_teardown = {
	.name = "teardown",
	.run = run,
	.musts = 2,
	.must = {CNT_timeouts, CNT_retransmits},
};
