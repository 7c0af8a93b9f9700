/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c: the QPs of a node share a receive queue, on memory whose pages go, behind a
 * network that loses, and with too few receives: each message has one of its own, in which
 * it is whole; a QP that fails uses up what its message had and nothing else; no receive is
 * lost. What the oracle of a flow knows of its own receives is the node's here.
 */
#include "nic/srq.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/page.h"
#include "base/range.h"
#include "nic/async.h"
#include "nic/memory.h"
#include "nic/post.h"
#include "scenarios.h"
#include "shared.h"

#include <inttypes.h>
#include <stdlib.h>

/**
 * struct shared_recvs
 * @recv:	slots, in memory at @mem; the receives have numbers
 * @armed:	a limit that was not told; @arming: another thread arms
 */
struct shared_recvs {
	struct nic_srq *srq;
	uint32_t pd, key;
	uint64_t mem;
	struct recv recv[FLOW_SLOTS];
	uint64_t posted, done;
	struct nic_async *async;
	uint32_t armed;
	bool arming;
};

void shared_open(struct node *node)
{
	const struct nic_srq_attr attr = {FLOW_SLOTS, FLOW_SGES, 0};
	struct mr_attr mr = {.length = FLOW_SLOTS * LOCAL_BYTES,
			     .access = ACCESS_LOCAL_WRITE | ACCESS_ON_DEMAND};
	struct world *w = node->w;
	struct shared_recvs *s;
	int fd;

	if (!w->cfg.shared)
		return;
	s = node->shared = calloc(1, sizeof(*s));
	CHECK(s);
	EXPECT(w, nic_pd_alloc(node->nic, &s->pd) == 0, "nic_pd_alloc");
	s->mem = area_add(node, AREA_SHARED, mr.length, NULL);
	mr.pd = s->pd;
	mr.addr = mr.iova = s->mem;
	upcall_watch(node, &mr);
	EXPECT(w, nic_mr_reg(node->nic, &mr, &s->key) == 0, "nic_mr_reg");
	node_registered(node, s->mem);
	EXPECT(w, nic_async_open(node->nic, &s->async, &fd) == 0,
	       "nic_async_open");
	EXPECT(w,
	       nic_srq_create(node->nic, s->async, s->pd, &attr, node,
			      &s->srq) == 0,
	       "nic_srq_create");
}

/* What was told was armed, and not told before. */
static void shared_events(struct node *node)
{
	struct shared_recvs *s = node->shared;
	struct nic_event ev;

	while (nic_async_get(s->async, &ev) == 0) {
		EXPECT(node->w,
		       ev.type == NIC_EVENT_SRQ_LIMIT_REACHED && s->armed,
		       "node %u: event %d, armed %u", node->index, ev.type,
		       s->armed);
		s->armed = 0;
	}
}

static void shared_arm(struct node *node)
{
	struct sim *sim = node->w->sim;
	struct shared_recvs *s = node->shared;

	shared_events(node);
	if (s->armed || s->arming)
		return;
	s->arming = true;
	s->armed = (uint32_t)sim_between(sim, 1, FLOW_SLOTS);
	EXPECT(node->w, nic_srq_arm(s->srq, s->armed) == 0, "nic_srq_arm");
	s->arming = false;
}

void shared_close(struct node *node)
{
	struct shared_recvs *s = node->shared;
	struct world *w = node->w;
	uint64_t left;

	if (!s)
		return;
	left = srq_left(&s->srq->srq);
	shared_events(node);
	EXPECT(w, left >= s->armed,
	       "node %u: fewer than %u receives are left, and that was not "
	       "told",
	       node->index, s->armed);
	EXPECT(w, left == s->posted - s->done,
	       "node %u: %" PRIu64 " receives are left of %" PRIu64,
	       node->index, left, s->posted - s->done);
	EXPECT(w, nic_srq_destroy(s->srq) == 0, "nic_srq_destroy");
	nic_async_close(s->async);
	EXPECT(w, nic_mr_dereg(node->nic, s->key) == 0, "nic_mr_dereg");
	EXPECT(w, nic_pd_dealloc(node->nic, s->pd) == 0, "nic_pd_dealloc");
	free(s);
	node->shared = NULL;
}

struct nic_srq *shared_queue(const struct node *node)
{
	return node->shared ? node->shared->srq : NULL;
}

static void shared_post(struct node *node, struct wqe *wqe)
{
	struct shared_recvs *s = node->shared;
	unsigned slot = 0;

	while (s->recv[slot].posted)
		slot++;
	CHECK(slot < FLOW_SLOTS);
	recv_make(node->w->sim, &s->recv[slot], s->posted++,
		  s->mem + slot * LOCAL_BYTES, s->key, FLOW_SGES, wqe);
}

void shared_recv(struct node *node)
{
	const struct world *w = node->w;
	struct shared_recvs *s = node->shared;
	struct wqe *wqe;

	if (s->posted - s->done >= w->cfg.recvs ||
	    !sim_chance(w->sim, w->cfg.recv_lazy))
		return;
	if (sim_chance(w->sim, SIM_PPM / 4))
		shared_arm(node);
	EXPECT(node->w, nic_srq_recv_begin(s->srq) == 0, "nic_srq_recv_begin");
	while (s->posted - s->done < w->cfg.recvs &&
	       (wqe = nic_srq_recv_slot(s->srq))) {
		shared_post(node, wqe);
		nic_srq_recv_publish(s->srq);
	}
	nic_srq_recv_end(s->srq);
}

const struct recv *shared_done(struct node *node, const struct cqe *e)
{
	struct shared_recvs *s = node->shared;

	for (unsigned i = 0; i < FLOW_SLOTS; i++) {
		struct recv *r = &s->recv[i];

		if (r->posted && r->number == e->wr_id) {
			r->posted = false;
			s->done++;
			return r;
		}
	}
	world_fail(node->w,
		   "node %u: receive %" PRIu64 " completed, and is not posted",
		   node->index, e->wr_id);
}

static const struct recv *recv_at(const struct shared_recvs *s, uint64_t addr)
{
	return &s->recv[(addr - s->mem) / LOCAL_BYTES];
}

void shared_wrote(struct node *node, uint64_t addr, uint64_t len)
{
	const struct recv *r = recv_at(node->shared, addr);

	EXPECT(node->w, r->posted && in_parts(r->part, r->parts, addr, len),
	       "node %u: wrote %" PRIu64 " bytes to slot %ld of the shared "
	       "receives, which is not posted",
	       node->index, len, (long)(r - node->shared->recv));
}

bool shared_drops(const struct node *node, uint64_t addr)
{
	const struct recv *r = recv_at(node->shared, addr);

	return r->posted && page_in_parts(r->part, r->parts, addr, MESSAGE_MAX);
}

/* --- the scenario ------------------------------------------------------------------ */

/* Both ends: one that heard nothing of it would keep the receive of a message that never
 * ends. Once its completions were polled the QP may go. */
static void breaker_thread(void *arg)
{
	const struct qp_attr attr = {.state = QPS_ERR};
	struct conn *conn = arg;
	struct world *w = conn->end[0].node->w;

	sim_sleep(w->sim, sim_between(w->sim, 0, 2 * SIM_MS));
	for (int i = 0; i < 2; i++)
		flow_break(conn->end[i].out);
	for (int i = 0; i < 2; i++)
		EXPECT(w, nic_qp_modify(conn->end[i].qp, &attr, QPA_STATE) == 0,
		       "nic_qp_modify to ERR");
	if (sim_chance(w->sim, SIM_PPM / 2))
		return;
	sim_sleep(w->sim, 20 * SIM_MS);
	end_destroy(&conn->end[sim_between(w->sim, 0, 1)]);
}

static void run(struct world *w)
{
	static const uint32_t mix[OPK_NUM] = {
		[OPK_SEND] = 6,	     [OPK_SEND_IMM] = 3,  [OPK_SEND_INV] = 1,
		[OPK_WRITE] = 2,     [OPK_WRITE_IMM] = 3, [OPK_READ] = 1,
		[OPK_FETCH_ADD] = 1, [OPK_RELAY] = 1};
	struct world_config *c = &w->cfg;
	struct sim *sim = w->sim;
	bool breaks;

	memcpy(c->mix, mix, sizeof(mix));
	c->nodes = (unsigned)sim_between(sim, 2, 3);
	c->conns = (unsigned)sim_between(sim, 2, 5);
	c->shared = true;
	c->recvs = (unsigned)sim_between(sim, 1, FLOW_SLOTS);
	c->recv_lazy = SIM_PPM - world_some(sim, SIM_PPM * 9 / 10);
	c->evict_ns = world_some(sim, 500) * SIM_US;
	c->link.loss = world_some(sim, SIM_PPM / 50);
	c->link.reorder = world_some(sim, SIM_PPM / 50);
	c->link.dup = world_some(sim, SIM_PPM / 50);
	c->force = sim_chance(sim, SIM_PPM / 2);
	c->standard = sim_chance(sim, SIM_PPM / 4);
	breaks = sim_chance(sim, SIM_PPM / 2);
	w->expect_errors = breaks;
	world_build(w);
	if (breaks)
		node_thread(w->conn[c->conns - 1].end[0].node, breaker_thread,
			    &w->conn[c->conns - 1]);
	world_finish(w);
	world_close(w);
}

const struct scenario scenario_srq = {
	.name = "srq",
	.run = run,
	.musts = 7,
	.must = {CNT_rnr_tx, CNT_rnr_rx, CNT_retransmits, CNT_gaps_rx,
		 CNT_tickets, CNT_fault_park, CNT_fault_redirect},
};
