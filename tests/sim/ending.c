/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ending.c: I8: every request ends. A peer, or the way to it, becomes one of those in
 * enum ending while requests are under way. What is honest ends well, however long it
 * takes and however few retries there are; whatever else ends with an error, soon.
 */
#include "base/page.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "nic/suspension.h"
#include "oracle.h"
#include "scenarios.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/kept.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/window.h"

#include <inttypes.h>
#include <stdlib.h>

/*
 * HONEST: the reason to wait goes after seconds or minutes.
 * SILENT: nothing comes from it any more.
 * BEHIND: it was reset and connected again, and begins anew.
 * AHEAD: likewise, and has one READ more behind it than we.
 * REBORN: we were, and begin anew; it was not.
 * SMALL: small packets pass, others do not, and nobody says so.
 * SHRUNK: our interface takes only small packets; or only for a while.
 * FORGETS: it accepts, and forgets what it accepted, in turn.
 * LEASE: there is a reason to wait, until it is silent.
 */
enum ending {
	HONEST,
	SILENT,
	BEHIND,
	AHEAD,
	REBORN,
	SMALL,
	SHRUNK,
	FORGETS,
	LEASE,
	ENDING_NUM,
};

/*
 * PAGES: of the target, PAGES_BOTH: of both, while each works on the other's.
 * REGION: it is suspended. RECEIVE: none is posted.
 * OURS: it is our page, of a READ. STOPPED: our process does not run.
 */
enum reason {
	PAGES,
	PAGES_BOTH,
	REGION,
	RECEIVE,
	OURS,
	STOPPED,
	REASON_NUM,
};

enum { BYTES = 64 << 10, LEN = 3000, WARM = 3, HUB_CONNS = 8 };

#define SECOND_NS	  (1000 * (uint64_t)SIM_MS)
#define FLOOR_NS	  (2 * SECOND_NS) /* of the first ACK timeout, and of others */
#define FLOOR_NEXT_NS	  (SECOND_NS / 4)
#define FLOOR_STANDARD_NS SIM_MS
#define SLACK_NS	  (100 * (uint64_t)SIM_MS) /* for two questions */

/** struct side - A node's memory: @bytes of a region, and what it posts from. */
struct side {
	struct node *node;
	uint64_t mem;
	uint32_t key;
};

/** struct play
 * @done:	of each connection: completions of its first end; @back: of the second
 *		ones, and @to_come so many
 * @status:	of the last of them; @at_ns: when it came
 * @stranger:	the end that stays never knew the life of the other that is over
 * @plain:	of each connection: its last request ended while its peer was taken for a
 *		standard NIC, as somebody forged an ICMP error
 */
struct play {
	struct world *w;
	enum ending ending;
	enum reason reason;
	struct side side[2];
	unsigned done[CONNS_MAX], back, to_come;
	enum wc_status status[CONNS_MAX];
	uint16_t cause[CONNS_MAX];
	uint64_t at_ns[CONNS_MAX], small;
	uint32_t first_psn;
	bool stranger, stop, plain[CONNS_MAX];
};

/* --- the programs ----------------------------------------------------------------- */

static void post(struct play *p, unsigned from, struct end *e, enum wr_op op)
{
	const struct side *mine = &p->side[from], *other = &p->side[!from];
	struct wqe *w;

	EXPECT(p->w, nic_send_begin(e->qp) == 0, "nic_send_begin");
	w = nic_send_slot(e->qp);
	EXPECT(p->w, w, "nic_send_slot");
	w->wr_id = 0;
	w->op = (uint16_t)op;
	w->flags = WQE_SIGNALED;
	w->length = LEN;
	w->raddr = other->mem;
	w->rkey = other->key;
	w->num_sge = 1;
	wqe_sge(w)[0] = (struct sge){mine->mem + BYTES / 2, LEN, mine->key};
	nic_send_publish(e->qp);
	nic_send_end(e->qp);
}

static void post_receive(struct play *p, struct end *e)
{
	const struct side *mine = &p->side[1];
	struct wqe *w;

	EXPECT(p->w, nic_recv_begin(e->qp) == 0, "nic_recv_begin");
	w = nic_recv_slot(e->qp);
	EXPECT(p->w, w, "nic_recv_slot");
	w->wr_id = 0;
	w->op = WR_RECV;
	w->flags = 0;
	w->length = LEN;
	w->num_sge = 1;
	wqe_sge(w)[0] = (struct sge){mine->mem + BYTES / 2, LEN, mine->key};
	nic_recv_publish(e->qp);
	nic_recv_end(e->qp);
}

static bool taken_for_standard(const struct qp *qp)
{
	return !qp_open(qp) && qp->peer->kind == PEER_STANDARD;
}

static void completed(struct play *p, const struct node *node,
		      const struct cqe *e)
{
	for (unsigned i = 0; i < p->w->cfg.conns; i++) {
		const struct end *end = p->w->conn[i].end;

		if (e->op == WR_RECV)
			continue;
		if (end[1].node == node && end[1].qpn == e->qpn) {
			p->back++;
			EXPECT(p->w, p->ending != HONEST || !e->status,
			       "I7: what went back ends with status %u",
			       e->status);
		}
		if (end[0].node != node || end[0].qpn != e->qpn)
			continue;
		p->done[i]++;
		p->status[i] = e->status;
		p->cause[i] = e->vendor_err;
		p->at_ns[i] = sim_now(p->w->sim);
		p->plain[i] = taken_for_standard(&end[0].qp->qp);
		sim_say(p->w->sim, "connection %u: completion %u, status %u", i,
			p->done[i], e->status);
	}
}

static void poll_thread(void *arg)
{
	struct node *node = arg;
	struct play *p = node->w->own;
	struct cqe e;

	while (!p->stop) {
		for (unsigned i = 0; i < NODE_CQS; i++)
			while (node_poll(node, node->cq[i], 1, &e) > 0)
				completed(p, node, &e);
		sim_sleep(node->w->sim, sim_between(node->w->sim, 1, SIM_MS));
	}
}

static void side_open(struct play *p, unsigned i)
{
	struct side *s = &p->side[i];
	struct mr_attr attr;

	s->node = &p->w->node[i];
	s->mem = area_add(s->node, AREA_SYNC, BYTES, NULL);
	attr = (struct mr_attr){.pd = s->node->pd,
				.addr = s->mem,
				.iova = s->mem,
				.length = BYTES,
				.access = ACCESS_LOCAL_WRITE |
					  ACCESS_REMOTE_WRITE |
					  ACCESS_REMOTE_READ};
	EXPECT(p->w, nic_mr_reg(s->node->nic, &attr, &s->key) == 0, "reg");
	node_thread(s->node, poll_thread, s->node);
}

/* --- how it ends ------------------------------------------------------------------- */

/* Only what is said, and answered, passes. */
static bool small_only(void *arg, const uint8_t *bytes, uint32_t len)
{
	const struct play *p = arg;

	(void)bytes; /* also plain ones, of a connection that is not open yet */
	return !len || len < p->small;
}

static void slow_pages(struct side *s, uint64_t ns)
{
	for (uint64_t at = s->mem; at < s->mem + BYTES / 2; at += PAGE_BYTES) {
		sim_evict(s->node->os, at, true);
		sim_slow(s->node->os, at, ns);
	}
}

/* Of what the responder has accepted it knows nothing any more. */
static void forget_thread(void *arg)
{
	struct node *node = arg;
	struct play *p = node->w->own;
	struct nic *nic = node->nic;

	while (!p->stop) {
		struct qp *qp = &p->w->conn[0].end[1].qp->qp;

		handoff_lock(&nic->engine);
		if (!qp->rx_moving && qp->resp.win.num)
			win_truncate(&nic->x, &qp->resp.win, qp->resp.win.head);
		handoff_unlock(&nic->engine);
		sim_sleep(p->w->sim, sim_between(p->w->sim, 1, 80 * SIM_MS));
	}
}

static enum wr_op draw_op(const struct play *p)
{
	if (p->ending == AHEAD)
		return WR_READ;
	if (p->ending == FORGETS || p->ending == REBORN || p->ending == SHRUNK)
		return WR_WRITE;
	if (p->ending != HONEST && p->ending != LEASE)
		return p->w->seed / ENDING_NUM % 2 ? WR_READ : WR_WRITE;
	if (p->reason == RECEIVE)
		return WR_SEND;
	if (p->reason == OURS)
		return WR_READ;
	return p->w->seed % 2 && p->reason != PAGES_BOTH ? WR_READ : WR_WRITE;
}

static void reason_begins(struct play *p, uint64_t ns)
{
	struct world *w = p->w;

	if (p->reason == PAGES || p->reason == PAGES_BOTH)
		slow_pages(&p->side[1], ns);
	if (p->reason == PAGES_BOTH)
		slow_pages(&p->side[0], ns);
	if (p->reason == OURS)
		for (uint64_t at = BYTES / 2; at < BYTES; at += PAGE_BYTES) {
			sim_evict(w->node[0].os, p->side[0].mem + at, true);
			sim_slow(w->node[0].os, p->side[0].mem + at, ns);
		}
	if (p->reason == REGION)
		EXPECT(w,
		       nic_mr_suspend(w->node[1].nic, p->side[1].key,
				      sim_between(w->sim, 0, SECOND_NS)) == 0,
		       "suspend");
}

static void reason_ends(struct play *p)
{
	struct world *w = p->w;

	if (p->reason == REGION)
		EXPECT(w, !nic_mr_resume(w->node[1].nic, p->side[1].key),
		       "resume");
	for (unsigned i = 0; i < w->cfg.conns && p->reason == RECEIVE; i++)
		post_receive(p, &w->conn[i].end[1]);
}

static unsigned told;

static void count_line(const char *line, int len)
{
	(void)len;
	told += strstr(line, "by sim0: its MTU is 200") != NULL;
}

/* Before the last requests are posted. */
static void begin(struct play *p, uint64_t ns)
{
	struct end *end = p->w->conn[0].end;
	struct world *w = p->w;

	p->small = UINT32_MAX;
	p->stranger = !qp_open(&end[p->ending == REBORN].qp->qp);
	if (p->ending == HONEST || p->ending == LEASE)
		reason_begins(p, ns);
	if (p->ending == SILENT)
		sim_partition(w->sim, 1, 2, true);
	if (p->ending == BEHIND)
		end_again(&end[1], &end[0], p->first_psn);
	if (p->ending == AHEAD)
		end_again(&end[1], &end[0],
			  psn_add(end[0].qp->qp.req.psn.max, 1));
	if (p->ending == REBORN) {
		end[0].sq_psn = p->first_psn;
		end_again(&end[0], &end[1], end[1].sq_psn);
	}
	if (p->ending == SMALL)
		p->small = 200;
	if (p->ending == SHRUNK) {
		told = 0;
		log_to(count_line);
		sim_host_mtu(w->node[0].os, 200);
	}
	if (p->ending == FORGETS) {
		slow_pages(&p->side[1], 30 * SECOND_NS);
		node_thread(&w->node[1], forget_thread, &w->node[1]);
	}
	sim_filter(w->sim, p->ending == SMALL ? small_only : NULL, p);
}

static uint64_t ack_timeout_ns(const struct world *w)
{
	return UINT64_C(4096) << w->cfg.timeout;
}

/* The least of retries of whom the peer seems a standard NIC. */
static uint64_t limit_standard_ns(const struct world *w)
{
	return (w->cfg.retry_cnt + 1) *
	       MAX(ack_timeout_ns(w), (uint64_t)FLOOR_STANDARD_NS);
}

static uint64_t limit_ns(const struct world *w)
{
	const uint64_t t = ack_timeout_ns(w);

	return MAX(t, FLOOR_NS) + w->cfg.retry_cnt * MAX(t, FLOOR_NEXT_NS);
}

static bool all_done(const struct play *p)
{
	for (unsigned i = 0; i < p->w->cfg.conns; i++)
		if (p->done[i] <= WARM)
			return false;
	return p->back == p->to_come;
}

static void run_until(struct play *p, uint64_t ns)
{
	const uint64_t end = sim_now(p->w->sim) + ns;

	while (sim_now(p->w->sim) < end && !all_done(p)) {
		world_run(p->w, SIM_MS);
		for (unsigned i = 0; i < p->w->cfg.nodes; i++)
			node_live(&p->w->node[i]);
	}
}

static void expect_ended(struct play *p, enum wc_status status,
			 uint64_t least_ns, uint64_t since, uint64_t most_ns)
{
	run_until(p, most_ns);
	for (unsigned i = 0; i < p->w->cfg.conns; i++) {
		if (p->plain[i])
			least_ns = MIN(least_ns, limit_standard_ns(p->w));
		EXPECT(p->w, p->done[i] > WARM,
		       "I8: ending %d, reason %d: no completion after %" PRIu64
		       " ms",
		       p->ending, p->reason, most_ns / SIM_MS);
		EXPECT(p->w, p->status[i] == status,
		       "ending %d, reason %d: status %d, not %d", p->ending,
		       p->reason, p->status[i], status);
		EXPECT(p->w, p->at_ns[i] - since >= least_ns,
		       "ending %d, reason %d: after %" PRIu64
		       " ms, not %" PRIu64,
		       p->ending, p->reason, (p->at_ns[i] - since) / SIM_MS,
		       least_ns / SIM_MS);
	}
}

/* The completion says which of the two ways to end it was, or that it is the MTU. Who
 * was connected again says nothing to whom it does not know, and is as good as any
 * other to a stranger. */
static void expect_cause(const struct play *p)
{
	enum wc_cause want = CAUSE_SILENCE;

	if (p->ending == SMALL || p->ending == FORGETS)
		want = CAUSE_STALLED;
	else if (p->ending == SHRUNK)
		want = CAUSE_TOO_LARGE;
	else if (p->stranger && (p->ending == BEHIND || p->ending == AHEAD ||
				 p->ending == REBORN))
		want = CAUSE_STALLED;
	for (unsigned i = 0; i < p->w->cfg.conns; i++) {
		const enum wc_cause due = p->plain[i] && want == CAUSE_STALLED
						  ? CAUSE_SILENCE
						  : want;

		EXPECT(p->w, p->cause[i] == due,
		       "ending %d, reason %d: cause %#x, not %#x", p->ending,
		       p->reason, p->cause[i], due);
	}
}

static void honest(struct play *p, uint64_t ns, uint64_t since)
{
	if (p->reason == STOPPED)
		sim_pause(p->w->node[0].os, ns);
	run_until(p, ns);
	reason_ends(p);
	expect_ended(p, WC_SUCCESS, 0, since, limit_ns(p->w) + 2 * ns);
	EXPECT(p->w, p->back == p->to_come, "nothing came back");
}

static void dishonest(struct play *p, uint64_t ns, uint64_t since)
{
	const uint64_t limit = limit_ns(p->w);
	uint64_t most = limit + limit / 2 + SLACK_NS;

	if (p->ending == SHRUNK && p->w->seed / ENDING_NUM % 4 == 1) {
		run_until(p, limit / 2);
		sim_host_mtu(p->w->node[0].os, p->w->cfg.mtu);
		expect_ended(p, WC_SUCCESS, 0, since, most);
		return;
	}
	if (p->ending == LEASE) {
		run_until(p, ns / 4);
		EXPECT(p->w, !p->done[0] || p->done[0] == WARM,
		       "ending %d, reason %d: it ended before", p->ending,
		       p->reason);
		since = sim_now(p->w->sim);
		sim_partition(p->w->sim, 1, 2, true);
		most += 4 * SECOND_NS; /* of a suspension */
	}
	if (p->ending == FORGETS)
		most = 3 * limit; /* with what was explained */
	expect_ended(p, WC_RETRY_EXC_ERR, limit / 10 * 9, since, most);
	expect_cause(p);
	EXPECT(p->w, p->ending != SHRUNK || told == 1,
	       "the log says %u times why", told);
}

/* --- the scenario ------------------------------------------------------------------- */

static void configure(struct play *p)
{
	struct world_config *c = &p->w->cfg;
	struct sim *sim = p->w->sim;

	p->ending = p->w->seed % ENDING_NUM;
	p->reason = (enum reason)sim_between(sim, 0, REASON_NUM - 1);
	if (p->ending == LEASE)
		p->reason = (enum reason)sim_between(sim, 0, RECEIVE);
	c->ops = 0;
	c->hub = HUB_CONNS;
	c->conns = p->ending == SILENT || p->ending == HONEST
			   ? (unsigned)sim_between(sim, 1, HUB_CONNS)
			   : 1;
	c->backing = SIM_FILE;
	/* else a move may meet a page that has just gone: each of a NIC's
	 * threads can sleep in one */
	c->exact |= c->conns > 1;
	c->path_mtu = (uint32_t)sim_between(sim, 0, 1) ? 1024 : 4096;
	c->timeout = (uint8_t)sim_between(sim, 4, 17);
	c->retry_cnt = (uint8_t)sim_between(sim, 0, 3);
	if (p->ending == HONEST)
		c->retry_cnt = (uint8_t)sim_between(sim, 0, 1);
	/* 0 is 1, as with cards, or a READ would wait for ever */
	c->rd_atomic = (uint8_t)sim_between(sim, 0, 2);
	c->strategies = strategy_set(world_strategy(p->w, false));
	c->slots = sim_chance(sim, SIM_PPM / 2) ? 16 : 256;
	if (p->ending == FORGETS) {
		c->strategies = strategy_set(STRATEGY_REDIRECT);
		c->slots = 256;
		c->exact = true;
	}
	if (sim_chance(sim, SIM_PPM / 2))
		c->rcvbuf = 16 << 10; /* no window is left for anybody */
	c->link.loss = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 50 : 0;
	c->link.reorder = sim_chance(sim, SIM_PPM / 2) ? SIM_PPM / 20 : 0;
}

static void warm_up(struct play *p, enum wr_op op)
{
	const uint64_t limit = sim_now(p->w->sim) + SECOND_NS;

	p->first_psn = p->w->conn[0].end[0].sq_psn;
	for (unsigned i = 0; i < p->w->cfg.conns; i++)
		for (unsigned k = 0; k < WARM; k++) {
			if (op == WR_SEND)
				post_receive(p, &p->w->conn[i].end[1]);
			post(p, 0, &p->w->conn[i].end[0], op);
		}
	for (unsigned i = 0; i < p->w->cfg.conns; i++) {
		while (p->done[i] < WARM && sim_now(p->w->sim) < limit)
			world_run(p->w, SIM_MS);
		EXPECT(p->w, p->done[i] == WARM && !p->status[i],
		       "not connected: %u completed, status %d", p->done[i],
		       p->status[i]);
	}
}

static void run(struct world *w)
{
	struct play *p = calloc(1, sizeof(*p));
	uint64_t ns, since;
	enum wr_op op;

	CHECK(p);
	p->w = w;
	configure(p);
	op = draw_op(p);
	w->own = p;
	world_build(w);
	side_open(p, 0);
	side_open(p, 1);
	warm_up(p, op);
	ns = sim_between(w->sim, 4, 60) * SECOND_NS;
	begin(p, ns);
	since = sim_now(w->sim);
	for (unsigned i = 0; i < w->cfg.conns; i++)
		post(p, 0, &w->conn[i].end[0], op);
	p->to_come = p->reason == PAGES_BOTH &&
		     (p->ending == HONEST || p->ending == LEASE);
	if (p->to_come)
		post(p, 1, &w->conn[0].end[1], op);
	if (p->ending == HONEST)
		honest(p, ns, since);
	else
		dishonest(p, ns, since);
	p->stop = true;
	sim_filter(w->sim, NULL, NULL);
	world_finish(w);
	if (p->ending == LEASE)
		reason_ends(p);
	EXPECT(w, !nic_mr_dereg(w->node[0].nic, p->side[0].key), "dereg");
	EXPECT(w, !nic_mr_dereg(w->node[1].nic, p->side[1].key), "dereg");
	world_close(w);
	free(p);
}

const struct scenario scenario_ending = {
	.name = "ending",
	.run = run,
	.musts = 4,
	.must = {CNT_timeouts, CNT_suspend_heard, CNT_suspend_silence,
		 CNT_rnr_rx},
};
