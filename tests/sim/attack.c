/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attack.c: somebody who can send from any address and port, and knows everything
 * but secrets: who is connected to whom, PSNs, keys, addresses, what is outstanding.
 * What the programs see stays as it was, which their oracle watches, and each forged
 * packet that names an open connection is a counted drop.
 */
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/qp.h"
#include "oracle.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/peer.h"

#include <inttypes.h>

enum { EVIL_BYTES = 64, PKT_BYTES = PKT_HDR_MAX + EVIL_BYTES + ICRC_BYTES };

/** struct forgery - To the QP @to of @os, as if its peer @as had sent it. */
struct forgery {
	struct world *w;
	const struct qp *to;
	struct os *os, *as;
	uint16_t sport;
	struct endpoint dst;
};

static uint32_t guess(const struct forgery *f)
{
	uint32_t epoch;

	do
		epoch = (uint32_t)sim_rand(f->w->sim);
	while (epoch == 0 || epoch == f->to->open.mine);
	return epoch;
}

static void forge(const struct forgery *f, struct pkt *p)
{
	const struct path path = {
		.src = sim_host_ip(f->as, !ipaddr_is_v4(&f->dst.ip)),
		.dst = f->dst.ip,
		.sport = f->sport,
		.dport = f->dst.port};
	uint8_t bytes[PKT_BYTES];
	struct span span = {bytes, 0};
	unsigned n;

	p->qpn = f->to->cfg.qpn;
	p->pkey = PKEY_DEFAULT;
	n = pkt_build(p, bytes);
	memset(bytes + n, 0xee, p->payload_len);
	span.len = n + p->payload_len;
	icrc_store(p->ext ? xcrc(bytes, n) : icrc(&path, 0, &span, 1),
		   bytes + span.len);
	sim_forge(f->as, f->sport, &f->dst, bytes,
		  (uint32_t)span.len + ICRC_BYTES);
}

/* A request that is due, or soon. */
static struct pkt request(const struct forgery *f)
{
	static const uint8_t opcodes[] = {OP_SEND_ONLY,	   OP_WRITE_ONLY,
					  OP_READ_REQ,	   OP_FETCH_ADD,
					  OP_WRITE_MIDDLE, OP_WRITE_LAST};
	const uint64_t i = sim_between(f->w->sim, 0, ARRAY_SIZE(opcodes) - 1);
	const struct flow *flow = f->w->flow[0];
	struct pkt p = {.opcode = opcodes[i],
			.psn = psn_add(f->to->resp.win.next,
				       (uint32_t)sim_between(f->w->sim, 0, 3)),
			.ack_req = true,
			.payload_len = i == 2 || i == 3 ? 0 : EVIL_BYTES,
			.dma_len = EVIL_BYTES};

	if (p.opcode == OP_WRITE_MIDDLE)
		p.payload_len = EVIL_BYTES; /* any MTU is longer */
	if (flow) {
		p.va = flow->iova;
		p.rkey = flow->remote_key;
	}
	return p;
}

/* All is accepted and placed, or nothing can be: what says so is believed by who has
 * something outstanding. */
static struct pkt response(const struct forgery *f)
{
	static const uint8_t syndromes[] = {
		AETH_ACK | AETH_CREDIT_INVALID, AETH_RNR | 1,
		AETH_NAK | NAK_PSN_SEQUENCE, AETH_NAK | NAK_REMOTE_ACCESS};
	const struct req *r = &f->to->req;
	const uint64_t i = sim_between(f->w->sim, 0, ARRAY_SIZE(syndromes) - 1);
	struct pkt p = {.opcode = OP_ACK,
			.psn = psn_add(r->psn.max, PSN_MASK),
			.accepted = psn_add(r->psn.max, PSN_MASK),
			.syndrome = syndromes[i],
			.credit = UINT32_MAX};

	if (sim_chance(f->w->sim, SIM_PPM / 4)) {
		p.opcode = OP_READ_RESP_ONLY;
		p.psn = r->psn.una;
		p.payload_len = EVIL_BYTES;
	}
	return p;
}

static void count_forged(void *arg, uint64_t val)
{
	(void)val;
	((struct world *)arg)->forged++;
}

/* What is on its way, or waits in a socket, when the world ends is not counted. */
static void must_drop(struct world *w)
{
	const struct sim_link_config *l = &w->cfg.link;
	const bool slow = l->bytes_per_us || w->cfg.pause_ns;
	const uint64_t ns = l->latency_max_ns + l->path_ns +
			    (slow ? 200 : 2) * (uint64_t)SIM_MS;

	sim_at(w->sim, sim_now(w->sim) + ns, count_forged, w, 0);
}

static void forge_data(struct forgery *f)
{
	struct pkt p = sim_chance(f->w->sim, SIM_PPM / 2) ? request(f)
							  : response(f);

	p.ext = !qp_open(f->to) || sim_chance(f->w->sim, SIM_PPM / 2);
	p.epoch = guess(f);
	if (p.ext && p.opcode == OP_ACK) {
		p.opcode = OP_X_ACK;
		p.xack_flags = (uint32_t)sim_rand(f->w->sim) & XACK_KNOWN;
	}
	forge(f, &p);
	must_drop(f->w);
}

/* From the right port a question is answered, unless the connection is open. */
static void forge_open(struct forgery *f)
{
	struct sim *sim = f->w->sim;
	struct pkt p = {.opcode = OP_X_OPEN,
			.ext = true,
			.src_qpn = f->to->attr.dest_qpn,
			.epoch = sim_chance(sim, SIM_PPM / 2) ? guess(f) : 0,
			.my_epoch = guess(f),
			.open_flags = (uint32_t)sim_rand(sim) & OPEN_KNOWN};

	if (sim_chance(sim, SIM_PPM / 2))
		f->sport ^= 1; /* another user of that host */
	if (p.epoch || qp_open(f->to))
		must_drop(f->w);
	forge(f, &p);
}

static void forge_hello(struct forgery *f)
{
	struct sim *sim = f->w->sim;
	struct pkt p = {.opcode = sim_chance(sim, SIM_PPM / 2)
					  ? OP_X_HELLO
					  : OP_X_HELLO_REPLY,
			.ext = true,
			.version = 4,
			.my_nonce = guess(f),
			.nonce = guess(f),
			.credit = UINT32_MAX,
			.slots = UINT32_MAX,
			.serial = guess(f)};

	forge(f, &p);
}

/* Nobody is where it sends to. Of who has answered that is not believed. */
static void forge_error(const struct forgery *f)
{
	sim_forge_error(f->os, &f->to->peer->asked);
	if (f->to->peer->kind == PEER_NOPIN)
		must_drop(f->w);
}

static void attack(struct world *w)
{
	const unsigned i = (unsigned)sim_between(w->sim, 0,
						 2 * w->cfg.conns - 1);
	const struct end *e = &w->conn[i / 2].end[i % 2];
	const struct end *peer = &w->conn[i / 2].end[i % 2 == 0];
	struct forgery f = {.w = w};

	if (!e->qp || !peer->qp || !qp_receives(&e->qp->qp))
		return;
	f.to = &e->qp->qp;
	f.os = e->node->os;
	f.as = peer->node->os;
	f.sport = peer->qp->port->number;
	f.dst = (struct endpoint){.ip = sim_host_ip(e->node->os, w->cfg.v6),
				  .port = e->qp->port->number};
	switch (sim_between(w->sim, 0, 7)) {
	case 0:
		forge_hello(&f);
		break;
	case 1:
		forge_error(&f);
		break;
	case 2:
	case 3:
		forge_open(&f);
		break;
	default:
		forge_data(&f);
	}
}

static void attack_again(void *arg, uint64_t val)
{
	struct world *w = arg;

	(void)val;
	if (w->stop)
		return;
	attack(w);
	sim_at(w->sim,
	       sim_now(w->sim) + sim_between(w->sim, 1, 2 * w->cfg.attack_ns),
	       attack_again, w, 0);
}

void attack_start(struct world *w)
{
	attack_again(w, 0);
}

void attack_watch(struct world *w)
{
	const uint64_t *v = w->total.v;
	const uint64_t drops = v[CNT_drop_epoch] + v[CNT_drop_open] +
			       v[CNT_drop_peer] + v[CNT_drop_state] +
			       v[CNT_drop_qpn] + v[CNT_drop_unreachable] +
			       w->stats.kernel_drops + w->stats.unreachable;

	EXPECT(w, drops >= w->forged,
	       "of %" PRIu64 " forged packets %" PRIu64 " were dropped",
	       w->forged, drops);
}
