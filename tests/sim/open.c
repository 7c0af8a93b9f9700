/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.c: how a connection becomes open (xport/open.c) when OPENs are lost or late,
 * one side is long ready before the other, somebody says that nobody is there, the
 * peer is the QP itself, was connected to an earlier life of ours, is a standard one
 * behind whose QPN an unrelated nopin has the port, does not run for a while, is a
 * neighbour that is late, or sends what it may not; and beside connections that nobody
 * answers. Requests are WRITEs of nothing.
 */
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "oracle.h"
#include "scenarios.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/peer.h"

#include <inttypes.h>

#define SECOND (1000 * (uint64_t)SIM_MS)

/** struct gate - What becomes of packets. */
struct gate {
	struct world *w;
	unsigned lose; /* so many OPENs */
	uint64_t until_ns; /* and all before this */
	bool third; /* lose the first that is SURE */
	bool card; /* answer standard requests of end 0 */
};

static struct end *end_of(struct world *w, unsigned i)
{
	return &w->conn[0].end[i];
}

static struct qp *qp_of(struct world *w, unsigned i)
{
	return &end_of(w, i)->qp->qp;
}

/* The card that @w->conn[0].end[0] is connected to placed all up to @psn. */
static void card_acks(void *arg, uint64_t psn)
{
	struct world *w = arg;
	struct os *as = w->node[1].os;
	const struct endpoint dst = {
		.ip = sim_host_ip(w->node[0].os, w->cfg.v6),
		.port = end_of(w, 0)->qp->port->number};
	const struct path path = {.src = sim_host_ip(as, w->cfg.v6),
				  .dst = dst.ip,
				  .sport = ROCE_PORT,
				  .dport = dst.port};
	struct pkt p = {.opcode = OP_ACK,
			.qpn = end_of(w, 0)->qpn,
			.psn = (psn_t)psn,
			.syndrome = AETH_ACK | AETH_CREDIT_INVALID};
	uint8_t bytes[PKT_HDR_MAX + ICRC_BYTES];
	struct span span = {bytes, pkt_build(&p, bytes)};

	icrc_store(icrc(&path, 0, &span, 1), bytes + span.len);
	sim_forge(as, ROCE_PORT, &dst, bytes, (uint32_t)span.len + ICRC_BYTES);
}

static bool pass(void *arg, const uint8_t *bytes, uint32_t len)
{
	struct gate *g = arg;
	struct sim *sim = g->w->sim;

	if (len < BTH_BYTES)
		return true;
	if (g->card && bytes[0] == OP_WRITE_ONLY)
		sim_at(sim, sim_now(sim) + SIM_US, card_acks, g->w,
		       (uint64_t)bytes[9] << 16 | (uint64_t)bytes[10] << 8 |
			       bytes[11]);
	if (bytes[0] != OP_X_OPEN)
		return true;
	if (g->third && len > BTH_BYTES + 8 &&
	    (bytes[BTH_BYTES + 8] & OPEN_SURE)) {
		g->third = false;
		return false;
	}
	if (sim_now(sim) < g->until_ns)
		return false;
	if (!g->lose)
		return true;
	g->lose--;
	return false;
}

static void post(struct world *w, struct end *e)
{
	struct wqe *slot;

	EXPECT(w, nic_send_begin(e->qp) == 0, "nic_send_begin");
	slot = nic_send_slot(e->qp);
	CHECK(slot);
	*slot = (struct wqe){.op = WR_WRITE, .flags = WQE_SIGNALED};
	nic_send_publish(e->qp);
	nic_send_end(e->qp);
}

/* Its request ends within @ns, so. */
static void completes(struct world *w, struct end *e, enum wc_status status,
		      uint64_t ns)
{
	const uint64_t end = sim_now(w->sim) + ns;
	struct cqe c;

	while (node_poll(e->node, e->init.send_cq, 1, &c) == 0) {
		EXPECT(w, sim_now(w->sim) < end,
		       "QP %u: no completion in %" PRIu64 " ms", e->qpn,
		       ns / SIM_MS);
		world_run(w, 100 * SIM_US);
	}
	EXPECT(w, c.status == status, "QP %u: status %u instead of %u", e->qpn,
	       c.status, status);
}

static void both_open(struct world *w)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct open *o = &qp_of(w, i)->open;

		EXPECT(w,
		       o->theirs == qp_of(w, !i)->open.mine && o->known &&
			       o->ask_at == TIME_NEVER,
		       "end %u is not open, or goes on asking", i);
	}
}

static void both_work(struct world *w, uint64_t ns)
{
	for (unsigned i = 0; i < 2; i++)
		post(w, end_of(w, i));
	for (unsigned i = 0; i < 2; i++)
		completes(w, end_of(w, i), WC_SUCCESS, ns);
	world_run(w, SECOND);
	both_open(w);
}

static void connect_both(struct world *w)
{
	end_connect(w, end_of(w, 0), end_of(w, 1));
	end_connect(w, end_of(w, 1), end_of(w, 0));
}

static void run_lost(struct world *w, struct gate *g)
{
	g->lose = (unsigned)sim_between(w->sim, 0, 12);
	connect_both(w);
	both_work(w, 10 * SECOND);
}

static void run_one_side(struct world *w, struct gate *g)
{
	const bool early = sim_chance(w->sim, SIM_PPM / 2);

	(void)g;
	w->cfg.timeout = early ? 0 : w->cfg.timeout; /* it waits for ever */
	end_connect(w, end_of(w, 0), end_of(w, 1));
	if (early)
		post(w, end_of(w, 0));
	world_run(w, 10 * SECOND);
	end_connect(w, end_of(w, 1), end_of(w, 0));
	if (early)
		completes(w, end_of(w, 0), WC_SUCCESS, SECOND);
	both_work(w, 100 * SIM_MS);
}

static void run_late(struct world *w, struct gate *g)
{
	w->cfg.retry_cnt = 0;
	w->cfg.timeout = (uint8_t)sim_between(w->sim, 1, 14);
	g->until_ns = sim_now(w->sim) + 100 * SIM_MS;
	connect_both(w);
	both_work(w, SECOND);
}

static void run_unreachable(struct world *w, struct gate *g)
{
	(void)g;
	connect_both(w);
	for (unsigned k = 0; k < 100; k++) {
		for (unsigned i = 0; i < 2; i++)
			sim_forge_error(end_of(w, i)->node->os,
					&qp_of(w, i)->peer->asked);
		world_run(w, 20 * SIM_US);
	}
	both_work(w, SECOND);
}

static void run_itself(struct world *w, struct gate *g)
{
	const struct end *e = end_of(w, 0);

	(void)g;
	end_connect(w, end_of(w, 0), e);
	post(w, end_of(w, 0));
	completes(w, end_of(w, 0), WC_SUCCESS, SECOND);
	EXPECT(w, qp_of(w, 0)->open.theirs == qp_of(w, 0)->open.mine,
	       "a QP does not know itself");
}

static void reset(struct world *w, unsigned i)
{
	struct qp_attr attr = {.port = 1};

	end_modify(w, end_of(w, i), &attr, QPS_RESET, 0);
}

/* With the same PSN; the peer is that of the life before. */
static void run_again(struct world *w, struct gate *g)
{
	(void)g;
	connect_both(w);
	both_work(w, SECOND);
	reset(w, 0);
	end_connect(w, end_of(w, 0), end_of(w, 1));
	post(w, end_of(w, 0));
	completes(w, end_of(w, 0), WC_RETRY_EXC_ERR, 10 * SECOND);
	reset(w, 0);
	reset(w, 1);
	connect_both(w);
	both_work(w, SECOND);
}

static void run_unrelated(struct world *w, struct gate *g)
{
	struct end card = *end_of(w, 1);

	g->card = true;
	card.qpn ^= 1;
	end_connect(w, end_of(w, 0), &card);
	post(w, end_of(w, 0));
	completes(w, end_of(w, 0), WC_SUCCESS, 2 * SECOND);
	EXPECT(w, !qp_open(qp_of(w, 0)), "a card has no secret");
}

/* A WRITE of nothing that comes @ahead of what is due. */
static void forge_ahead(struct world *w, uint32_t ahead)
{
	const struct qp *qp = qp_of(w, 1);
	struct pkt p = {.opcode = OP_WRITE_ONLY,
			.ext = true,
			.qpn = qp->cfg.qpn,
			.psn = psn_add(qp->resp.win.next, ahead),
			.epoch = qp->open.mine};
	const struct endpoint dst = {
		.ip = sim_host_ip(w->node[1].os, w->cfg.v6),
		.port = end_of(w, 1)->qp->port->number};
	uint8_t bytes[PKT_HDR_MAX + ICRC_BYTES];
	const unsigned n = pkt_build(&p, bytes);

	icrc_store(xcrc(bytes, n), bytes + n);
	sim_forge(w->node[0].os, qp->peer->asked.port, &dst, bytes,
		  n + ICRC_BYTES);
	world_run(w, 100 * SIM_US);
}

/* A peer that is connected and does not keep to what it was lent. */
static void run_ahead(struct world *w, struct gate *g)
{
	const struct window *win = &qp_of(w, 1)->resp.win;
	const struct peer *peer;
	uint32_t most, far;

	(void)g;
	connect_both(w);
	both_work(w, SECOND);
	peer = qp_of(w, 1)->peer;
	most = peer->lend.lent + 1 + w->cfg.rd_atomic;
	far = peer->read_chunk * w->cfg.rd_atomic + most;
	EXPECT(w, peer->read_chunk != 0, "HELLO says nothing of READs");
	forge_ahead(w, far);
	EXPECT(w, win->num == 0, "kept %u packets ahead", far);
	forge_ahead(w, far - 1);
	EXPECT(w, win->num == 1, "not kept %u packets ahead", far - 1);
	for (uint32_t i = 1; i < most + 10; i++)
		forge_ahead(w, i);
	EXPECT(w, win->num <= most, "%u packets are kept, not %u", win->num,
	       most);
	/* I4 is about who keeps to it */
	w->node[1].nic->cnt.v[CNT_beyond_credit] = 0;
}

/* A process of the same host, which runs no thread of its own and none of its
 * program's, as on a busy machine: it is no standard peer for that. */
static void run_paused(struct world *w, struct gate *g)
{
	(void)g;
	sim_pause(w->node[2].os, 900 * SIM_MS);
	connect_both(w);
	post(w, end_of(w, 0));
	world_run(w, 800 * SIM_MS);
	EXPECT(w, qp_of(w, 0)->peer->kind == PEER_PROBING,
	       "a neighbour that does not run is of kind %d",
	       qp_of(w, 0)->peer->kind);
	completes(w, end_of(w, 0), WC_SUCCESS, SECOND);
	both_work(w, SECOND);
}

/* One that is in RTR nearly a second later: no standard packet is for it. */
static void run_late_neighbour(struct world *w, struct gate *g)
{
	(void)g;
	w->cfg.timeout = 0;
	end_connect(w, end_of(w, 0), end_of(w, 1));
	post(w, end_of(w, 0));
	world_run(w, 9 * SECOND / 10);
	EXPECT(w, qp_of(w, 0)->req.psn.snd == qp_of(w, 0)->req.psn.una,
	       "a request left before the connection is open");
	end_connect(w, end_of(w, 1), end_of(w, 0));
	completes(w, end_of(w, 0), WC_SUCCESS, 3 * SECOND);
	both_work(w, SECOND);
}

/* @n connections between the two processes; those but the first are in RESET. */
static void create_beside(struct world *w, unsigned n)
{
	w->cfg.conns = n;
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = 0; k < 2; k++)
			end_create(w, &w->conn[i].end[k], end_of(w, k)->node);
}

/* One QP of each process waits for a peer that is not in RTR; then others connect. */
static void run_beside(struct world *w, struct gate *g)
{
	(void)g;
	create_beside(w, 3);
	end_connect(w, &w->conn[1].end[0], &w->conn[1].end[1]);
	end_connect(w, &w->conn[2].end[1], &w->conn[2].end[0]);
	world_run(w, 30 * SECOND + sim_between(w->sim, 0, 1000) * SIM_MS);
	connect_both(w);
	world_run(w, 400 * SIM_MS);
	both_open(w);
	both_work(w, 100 * SIM_MS);
}

/* One side has many QPs, of whose peers one is in RTR; and its proof is lost. */
static void run_third(struct world *w, struct gate *g)
{
	create_beside(w, CONNS_MAX);
	g->third = true;
	end_connect(w, end_of(w, 1), end_of(w, 0));
	world_run(w, 300 * SIM_US);
	for (unsigned i = 0; i < CONNS_MAX; i++)
		end_connect(w, &w->conn[i].end[0], &w->conn[i].end[1]);
	world_run(w, sim_between(w->sim, 1, 400) * SIM_MS);
	EXPECT(w, !g->third, "none was lost");
	for (unsigned i = 0; i < 2; i++)
		post(w, end_of(w, i));
	for (unsigned i = 0; i < 2; i++)
		completes(w, end_of(w, i), WC_SUCCESS, 20 * SECOND);
	world_run(w, 100 * SIM_MS);
	both_open(w);
}

static void run(struct world *w)
{
	static void (*const kinds[])(struct world * w, struct gate * g) = {
		run_lost,   run_one_side,	run_late,      run_unreachable,
		run_itself, run_again,		run_unrelated, run_ahead,
		run_paused, run_late_neighbour, run_beside,    run_third};
	const unsigned kind = w->seed % ARRAY_SIZE(kinds);
	struct gate g = {.w = w};

	w->cfg.conns = 1;
	w->cfg.retry_cnt = 7;
	w->cfg.neighbours = kinds[kind] == run_paused ||
			    kinds[kind] == run_late_neighbour;
	w->cfg.nodes = w->cfg.neighbours ? 3 : 2;
	world_nodes(w);
	sim_filter(w->sim, pass, &g);
	end_create(w, end_of(w, 0), &w->node[w->cfg.nodes - 2]);
	end_create(w, end_of(w, 1), &w->node[w->cfg.nodes - 1]);
	kinds[kind](w, &g);
	world_close(w);
}

const struct scenario scenario_open = {
	.name = "open",
	.run = run,
	.musts = 3,
	.must = {CNT_drop_epoch, CNT_drop_open, CNT_drop_psn},
};
