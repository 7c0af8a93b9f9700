/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* nic.c: fuzzes a whole NIC on the simulated host: a connected QP with requests
 * of every kind outstanding gets packets from a peer that is there only in the
 * fuzzer's bytes. They are well formed and carry good CRCs and the right nonce,
 * so that what is behind the parser is reached, and are near the PSNs that are
 * due. Whatever comes, the PSNs keep their order, memory that is not registered
 * stays as it was, nothing is held for ever, and CHECK() is not reached.
 */
#include "nic/nic.h"
#include "base/page.h"
#include "mem/mr.h"
#include "nic/completion.h"
#include "nic/config.h"
#include "nic/cq.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/engine.h"
#include "nic/event_counter.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/qp.h"
#include "nic/step.h"
#include "os/net.h"
#include "os/run.h"
#include "simhost/sim.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "xport/lend.h"
#include "xport/peer.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	MTU = 1024,
	PAGES = 4, /* registered; as many before and behind are not */
	BYTES = PAGES * PAGE_BYTES,
	DEPTH = 8,
	NONCE = 0x5eed,
	PACKETS_MAX = 64,
	STEPS_ENOUGH = 1000,
};

struct input {
	const uint8_t *at;
	size_t left;
};

struct rig {
	struct sim *sim;
	struct os *os;
	struct nic *nic;
	struct nic_cq *cq;
	struct nic_qp *qp, *dg; /* dg: datagrams */
	struct nic_counter *counter;
	struct ipaddr peer_ip;
	uint64_t memory, target; /* all of it, and what is registered */
	uint32_t pd, qpn, dg_qpn, key;
	bool ext;
};

static uint32_t eat(struct input *in, unsigned bytes)
{
	uint32_t v = 0;

	for (; bytes && in->left; bytes--, in->left--)
		v = v << 8 | *in->at++;
	return v;
}

/* --- the NIC ----------------------------------------------------------------- */

static void rig_connect(struct rig *r)
{
	static const uint32_t mask[] = {
		QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
		QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
			QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
		QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
			QPA_MAX_RD_ATOMIC};
	struct qp_attr a = {.port = 1,
			    .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
				      ACCESS_REMOTE_ATOMIC,
			    .path_mtu = MTU,
			    .dest_qpn = 0x1234,
			    .dgid = r->peer_ip,
			    .has_grh = true,
			    .rq_psn = 0xfffffa,
			    .sq_psn = 0xfffffa,
			    .max_rd_atomic = 4,
			    .max_dest_rd_atomic = 4,
			    .timeout = 14,
			    .retry_cnt = 7,
			    .rnr_retry = 7,
			    .min_rnr_timer = 1};
	struct peer *peer;

	for (unsigned i = 0; i < ARRAY_SIZE(mask); i++) {
		a.state = QPS_INIT + i;
		CHECK(nic_qp_modify(r->qp, &a, QPA_STATE | mask[i]) == 0);
	}
	/* as if it had answered */
	peer = r->qp->qp.peer;
	peer->kind = r->ext ? PEER_NOPIN : PEER_STANDARD;
	peer->nonce = NONCE;
	r->qp->qp.open.mine = r->qp->qp.open.theirs = r->ext ? NONCE : 0;
	r->qp->qp.open.known = r->ext;
	peer->flow.budget = 1 << 20;
	timerq_set(&r->nic->peers.timers, &peer->hello.timer, TIME_NEVER);
	peer_answered(&r->nic->x, peer);
}

static void rig_datagrams(struct rig *r)
{
	static const uint32_t mask[] = {QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY, 0,
					QPA_SQ_PSN};
	struct qp_attr a = {.port = 1, .qkey = NONCE};

	for (unsigned i = 0; i < ARRAY_SIZE(mask); i++) {
		a.state = QPS_INIT + i;
		CHECK(nic_qp_modify(r->dg, &a, QPA_STATE | mask[i]) == 0);
	}
}

static void rig_memory(struct rig *r)
{
	struct mr_attr mr = {
		.length = BYTES,
		.pd = r->pd,
		.access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			  ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC};
	static uint8_t fill[3 * BYTES];

	memset(fill, 0xca, sizeof(fill));
	r->memory = sim_mmap(r->os, sizeof(fill), SIM_SWAP,
			     SIM_READ | SIM_WRITE);
	r->target = r->memory + BYTES;
	CHECK(sim_write(r->os, r->memory, fill, sizeof(fill)) == 0);
	mr.addr = mr.iova = r->target;
	CHECK(nic_mr_reg(r->nic, &mr, &r->key) == 0);
}

static void rig_open(struct rig *r, struct input *in)
{
	const uint32_t how = eat(in, 1);
	const struct sim_host_config host = {
		.machine = 1, .mtu = 1500, .rcvbuf = 212992};
	const struct nic_config cfg = {.os = {.pagers = 1},
				       .manual = true,
				       .entries = 1 << 10,
				       .pool_bytes = how & 2 ? 8 * MTU_MAX
							     : 64 * MTU_MAX,
				       .strategies = how >> 4};
	struct nic_qp_init init = {.max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = 1,
				   .max_recv_sge = 1};

	r->ext = how & 1;
	r->sim = sim_open(how);
	r->os = sim_host_add(r->sim, &host);
	r->peer_ip = sim_host_ip(r->os, false);
	r->peer_ip.b[15] ^= 0x80;
	sim_host_use(r->os);
	CHECK(nic_open(&r->nic, &cfg) == 0);
	r->nic->x.checked = true;
	CHECK(nic_pd_alloc(r->nic, &r->pd) == 0);
	CHECK(nic_cq_create(r->nic, NULL, NULL, 4 * DEPTH, NULL, &r->cq) == 0);
	rig_memory(r);
	CHECK(nic_counter_create(r->nic, r->pd, NULL, NULL, &r->counter) == 0);
	init.pd = r->pd;
	init.send_cq = init.recv_cq = r->cq;
	CHECK(nic_qp_create(r->nic, NULL, &init, &r->qp, &r->qpn) == 0);
	rig_connect(r);
	init.ud = true;
	CHECK(nic_qp_create(r->nic, NULL, &init, &r->dg, &r->dg_qpn) == 0);
	rig_datagrams(r);
}

static void rig_close(struct rig *r)
{
	static uint8_t is[3 * BYTES];

	CHECK(nic_qp_destroy(r->qp) == 0);
	CHECK(nic_qp_destroy(r->dg) == 0);
	CHECK(nic_cq_destroy(r->cq) == 0);
	CHECK(*nic_counter_word(r->counter) == r->nic->cnt.v[CNT_notified]);
	CHECK(nic_counter_free(r->counter) == 0);
	CHECK(nic_mr_dereg(r->nic, r->key) == 0);
	CHECK(nic_pd_dealloc(r->nic, r->pd) == 0);
	CHECK(sim_peek(r->os, r->memory, is, sizeof(is)) == 0);
	for (unsigned i = 0; i < BYTES; i++)
		CHECK(is[i] == 0xca && is[2 * BYTES + i] == 0xca);
	nic_close(r->nic);
	sim_close(r->sim);
}

/* --- what is done to it ---------------------------------------------------------- */

static void rig_check(const struct rig *r)
{
	const struct qp *qp = &r->qp->qp;
	const struct req *q = &qp->req;

	CHECK(psn_diff(r->dg->qp.resp.win.head, r->dg->qp.resp.plan) <= 0);
	CHECK(psn_diff(r->dg->qp.resp.plan, r->dg->qp.resp.win.next) <= 0);
	CHECK(!r->dg->qp.rx_moving && !r->dg->qp.tx_moving);
	if (qp->state < QPS_RTS || qp->state > QPS_SQE)
		return;
	CHECK(psn_diff(q->psn.una, q->psn.snd) <= 0 &&
	      psn_diff(q->psn.snd, q->psn.max) <= 0);
	CHECK(psn_diff(q->psn.una, q->psn.acc) <= 0 &&
	      psn_diff(q->psn.acc, q->psn.max) <= 0);
	CHECK(psn_diff(qp->resp.win.head, qp->resp.plan) <= 0);
	CHECK(psn_diff(qp->resp.plan, qp->resp.win.next) <= 0);
	CHECK(!qp->rx_moving && !qp->tx_moving);
}

/* A receive of datagrams, or one to the peer. */
static void post_datagram(struct rig *r, struct input *in, bool recv)
{
	struct wqe *w;

	if (recv ? nic_recv_begin(r->dg) : nic_send_begin(r->dg))
		return;
	w = recv ? nic_recv_slot(r->dg) : nic_send_slot(r->dg);
	if (w) {
		*w = (struct wqe){.op = recv ? WR_RECV : WR_SEND,
				  .flags = WQE_SIGNALED,
				  .length = eat(in, 2) % (3 * MTU),
				  .num_sge = 1,
				  .to = {.dgid = r->peer_ip,
					 .qpn = eat(in, 3),
					 .qkey = NONCE}};
		wqe_sge(w)[0] =
			(struct sge){r->target + eat(in, 2) % (BYTES - 3 * MTU),
				     (uint32_t)w->length, r->key};
		if (recv)
			nic_recv_publish(r->dg);
		else
			nic_send_publish(r->dg);
	}
	if (recv)
		nic_recv_end(r->dg);
	else
		nic_send_end(r->dg);
}

static void post(struct rig *r, struct input *in)
{
	static const uint8_t ops[] = {WR_SEND, WR_WRITE,     WR_WRITE_NOTIFY,
				      WR_READ, WR_FETCH_ADD, WR_WRITE_IMM,
				      WR_RECV, WR_RECV};
	const uint8_t op = ops[eat(in, 1) % ARRAY_SIZE(ops)];
	const bool recv = op == WR_RECV;
	uint32_t len = op == WR_FETCH_ADD ? 8 : eat(in, 2) % (3 * MTU);
	struct wqe *w;

	if (recv ? nic_recv_begin(r->qp) : nic_send_begin(r->qp))
		return;
	w = recv ? nic_recv_slot(r->qp) : nic_send_slot(r->qp);
	if (w) {
		*w = (struct wqe){.op = op,
				  .flags = WQE_SIGNALED,
				  .length = len,
				  .num_sge = 1,
				  .raddr = 0x10000,
				  .rkey = 0x100};
		wqe_sge(w)[0] =
			(struct sge){r->target + eat(in, 2) % (BYTES - 3 * MTU),
				     len, r->key};
		if (recv)
			nic_recv_publish(r->qp);
		else
			nic_send_publish(r->qp);
	}
	if (recv)
		nic_recv_end(r->qp);
	else
		nic_send_end(r->qp);
}

/* Any opcode of this format but those that name NICs. */
static uint8_t some_opcode(struct input *in, bool ext)
{
	static const uint8_t data[] = {OP_READ_REQ, OP_CMP_SWP, OP_FETCH_ADD,
				       OP_ATOMIC_ACK};
	uint8_t op = (uint8_t)eat(in, 1);

	if (op & 0x80 && !(op & 0x60))
		return data[op % ARRAY_SIZE(data)];
	if (ext && (op & 0x60) == 0x60)
		return OP_X_ACK;
	if (!ext && (op & 0x60) == 0x60)
		return OP_ACK;
	op &= 0x1f;
	while (!opcode_info(ext ? op | OP_X_DATA : op)->flags)
		op = (op + 1) & 0x1f;
	return op;
}

static psn_t near(struct input *in, const struct qp *qp, uint32_t op)
{
	const psn_t due[] = {qp->req.psn.una, qp->req.psn.acc, qp->req.psn.max,
			     qp->req.win.next};
	const int8_t by = (int8_t)eat(in, 1);
	psn_t base = qp->resp.win.next;

	if (op & OPF_RESPONSE)
		base = due[eat(in, 1) % ARRAY_SIZE(due)];
	return psn_add(base, (uint32_t)(by / 8) & PSN_MASK);
}

/* Also to the QP that is none of these, and now and then with another Q_Key. */
static struct pkt some_datagram(struct rig *r, struct input *in)
{
	const uint32_t how = eat(in, 1);

	return (struct pkt){.opcode = how & 1 ? OP_UD_SEND_ONLY
					      : OP_UD_SEND_ONLY_IMM,
			    .pkey = PKEY_DEFAULT,
			    .qpn = (how & 0xe) == 2 ? r->qpn : r->dg_qpn,
			    .qkey = NONCE + ((how & 0x70) == 0x10),
			    .src_qpn = eat(in, 3),
			    .solicited = how & 0x80,
			    .payload_len = eat(in, 2) % (MTU_MAX + 1)};
}

static struct pkt some_packet(struct rig *r, struct input *in)
{
	struct pkt p = {.ext = r->ext,
			.opcode = some_opcode(in, r->ext),
			.pkey = PKEY_DEFAULT,
			.qpn = r->qpn,
			.epoch = NONCE};
	const uint32_t flags = eat(in, 1);
	const bool data = p.ext && p.opcode < OP_X_HELLO;
	const uint32_t op =
		opcode_info(data ? p.opcode | OP_X_DATA : p.opcode)->flags;

	p.psn = near(in, &r->qp->qp, op);
	p.ack_req = flags & 1;
	p.solicited = flags & 2;
	p.va = r->target - 64 + eat(in, 2) % (BYTES + 128);
	if (flags & 4)
		p.va &= ~7ull;
	p.rkey = flags & 8 && flags & 16 ? eat(in, 4) : r->key;
	p.payload_len = flags & 32 ? MTU : eat(in, 2) % (MTU + 4);
	if (!(op & OPF_PAYLOAD))
		p.payload_len = 0;
	p.dma_len = flags & 64 ? p.payload_len : eat(in, 2);
	p.imm = op & OPF_NOTIFY ? nic_counter_id(r->counter) : r->key;
	p.syndrome = flags & 128 ? (uint8_t)eat(in, 1) : AETH_ACK;
	p.aeth_msn = eat(in, 1);
	p.accepted = near(in, &r->qp->qp, OPF_RESPONSE);
	p.placed_to = near(in, &r->qp->qp, OPF_RESPONSE);
	p.unanswered = eat(in, 1) & 1;
	p.credit = eat(in, 3);
	p.question = (uint16_t)eat(in, 2);
	p.answer = (uint16_t)eat(in, 2);
	p.xack_flags = eat(in, 1) & XACK_KNOWN;
	p.sack = (uint64_t)eat(in, 4) << 32 | eat(in, 4);
	return p;
}

static void finish(struct nic *nic, struct step *s)
{
	engine_move(nic, s);
	engine_commit(nic, s, os_now(nic->os));
}

static void work(struct rig *r)
{
	struct step *s = &r->nic->steps.v[1];
	unsigned n = 0;

	while (engine_plan(r->nic, s, true, os_now(r->os))) {
		finish(r->nic, s);
		CHECK(++n < STEPS_ENOUGH);
	}
}

/* One to four packets in a burst, of the first one's length. */
static void receive(struct rig *r, struct input *in)
{
	struct step *s = &r->nic->steps.v[2];
	const unsigned num = 1 + eat(in, 1) % 4;
	struct nic_gid gid;

	CHECK(nic_gid(r->nic, 0, &gid) == 0);
	s->kind = STEP_RX;
	s->at = s->npkts = s->taken = 0;
	s->scatter.qp = NULL;
	s->lost = s->efault = false;
	rx_run_init(&s->run);
	s->rx = (struct os_rx){.src = {.ip = r->peer_ip, .port = 49152},
			       .dst = gid.ip,
			       .dport = r->qp->port->number,
			       .port = 0};
	for (unsigned i = 0; i < num; i++) {
		struct path path = {.src = s->rx.src.ip,
				    .dst = s->rx.dst,
				    .sport = s->rx.src.port,
				    .dport = s->rx.dport};
		struct pkt p = !r->ext && eat(in, 1) % 4 == 0
				       ? some_datagram(r, in)
				       : some_packet(r, in);
		uint8_t *at = s->buf + s->rx.len;
		struct span span = {at, 0};
		uint32_t hdr = (uint32_t)pkt_build(&p, at);

		memset(at + hdr, (int)i, p.payload_len + p.pad);
		span.len = hdr + p.payload_len + p.pad;
		icrc_store(r->ext ? xcrc(at, hdr)
				  : icrc(&path, (uint16_t)i, &span, 1),
			   at + span.len);
		if (i && span.len + ICRC_BYTES > s->rx.seg)
			break; /* no such burst */
		if (!i)
			s->rx.seg = (uint32_t)span.len + ICRC_BYTES;
		s->rx.len += (uint32_t)span.len + ICRC_BYTES;
		if (span.len + ICRC_BYTES < s->rx.seg)
			break; /* only the last one is shorter */
	}
	while (engine_rx_plan(r->nic, s, os_now(r->os)))
		finish(r->nic, s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct rig r = {0};
	struct cqe e[DEPTH];

	rig_open(&r, &in);
	for (int i = 0; i < PACKETS_MAX && in.left; i++) {
		const uint32_t what = eat(&in, 1);

		if (what % 32 == 8)
			post_datagram(&r, &in, eat(&in, 1) & 1);
		else if (what % 8 == 0)
			post(&r, &in);
		else if (what % 8 == 1)
			for (uint32_t n = eat(&in, 1); n && sim_step(r.sim);)
				n--;
		else if (what % 8 == 2)
			sim_evict(r.os,
				  r.target + eat(&in, 1) % PAGES * PAGE_BYTES,
				  false);
		else if (what % 8 == 3)
			CHECK(nic_cq_poll(r.cq, DEPTH, e) >= 0);
		else
			receive(&r, &in);
		if (what & 0x80)
			work(&r);
		rig_check(&r);
	}
	work(&r);
	rig_close(&r);
	return 0;
}
