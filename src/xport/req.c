/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* req.c: requester: work requests become request packets (IBTA 9.7.3). A WQE
 * gets its PSNs when its first packet is planned; the payload is read from
 * application memory whenever a packet is sent, also again.
 *
 * READs are asked for in chunks of at most rd_chunk response packets, each a
 * READ request of its own: what comes back fills our own receive buffer, so
 * how much of it is on the way is our decision (flow.c).
 */
#include "xport/req.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/range.h"
#include "base/timerq.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/waiter.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "ring/wr_op.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/access.h"
#include "xport/ack.h"
#include "xport/ahead.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/fault.h"
#include "xport/flow.h"
#include "xport/hold.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/lend.h"
#include "xport/live.h"
#include "xport/open.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/psns.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/reply.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/revoke.h"
#include "xport/tx.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <errno.h>

enum { CWND_START = 16, CWND_MAX = 128, STD_WINDOW_BYTES = 65536 };

void req_reset(struct qp *qp)
{
	struct req *r = &qp->req;
	uint32_t at = qp->cfg.sq->cons;
	psn_t psn = qp->attr.sq_psn;

	CHECK(!r->charge.charged && !r->charge.reads && !r->charge.out);
	win_reset(qp->x, &r->win, psn);
	psns_begin(&r->psn, psn);
	r->park_psn = psn;
	r->wqe.cur = r->wqe.started = r->wqe.rsp = r->wqe.asked_to = at;
	r->loss = (struct req_loss){.base = psn, .recover = psn};
	r->reads = (struct req_reads){.again_to = psn,
				      .last_again_to = psn,
				      .chunk = flow_read_chunk(qp->x, qp->mtu)};
	r->charge = (struct req_charge){.charged = 0};
	r->suspend_ns = 0;
	r->failure = (struct req_failure){.known = false};
	/* an answer to the life before answers nothing now */
	r->probe = (struct req_probe){.max = psn,
				      .question = r->probe.question};
	r->cwnd = MIN(CWND_START, MAX(1, STD_WINDOW_BYTES / MAX(qp->mtu, 1)));
	comp_reload(qp);
	deadlines_none(r->at, REQ_DEADLINES);
	live_reset(r);
	r->gso = (struct gso_watch){.doubts = 0};
	r->revoked = false;
}

/* Does the peer know how to do @w? */
static bool peer_knows(const struct qp *qp, const struct wqe *w)
{
	return w->op != WR_WRITE_NOTIFY ||
	       (qp_open(qp) && qp->peer->features & HELLO_NOTIFY);
}

/* It may be that it did not answer in time. Return: is it to be asked again? */
static bool peer_in_doubt(struct qp *qp, const struct wqe *w)
{
	struct peer *p = qp->peer;

	if (peer_knows(qp, w))
		return false;
	if (qp_open(qp)) {
		if (p->nonce)
			return false; /* its NIC said that it does not */
	} else if (p->kind == PEER_NOPIN || p->hello.denied) {
		if (!open_insist(qp))
			return false;
	} else {
		p->hello.insist = true;
	}
	if (list_empty(&qp->on.waiting))
		list_add_tail(&p->stalled, &qp->on.waiting);
	return true;
}

/** struct refusal - How a request ends that is not sent. */
struct refusal {
	enum wc_status status;
	enum wc_cause cause;
};

/* Why @w may not be sent at all; @v: what became of the key it invalidates. An
 * atomic whose old value has no room is not done. */
static struct refusal refusal(const struct wqe *w, bool known, enum verdict v)
{
	if (v != V_OK)
		return (struct refusal){WC_MW_BIND_ERR, CAUSE_INVALIDATE};
	if (!known)
		return (struct refusal){WC_LOC_QP_OP_ERR, CAUSE_OPERATION};
	if (wqe_is_atomic(w) && w->length < ATOMIC_BYTES)
		return (struct refusal){WC_LOC_LEN_ERR, CAUSE_LENGTH};
	return (struct refusal){WC_SUCCESS, CAUSE_NONE};
}

/* The WQE's PSNs start at max. false: it has to wait for a fence, or is not sent. */
static bool start(struct qp *qp, struct wqe *w)
{
	const bool known = peer_knows(qp, w);
	struct req *r = &qp->req;
	enum verdict v = V_OK;
	struct refusal bad;

	if (!known && (r->failure.known || peer_in_doubt(qp, w)))
		return false; /* an earlier one ends them all, or it waits */
	if ((w->flags & WQE_FENCE) && comp_reads_pending(qp))
		return false;
	if (w->op == WR_LOCAL_INV)
		v = qp_invalidate(qp, w->imm, &r->revoked);
	if (v == V_WAIT)
		return false;
	r->revoked = false;
	w->first_psn = r->psn.max;
	w->num_psn = wqe_packets(qp, w);
	w->met = (struct met){.ns = 0};
	r->wqe.started++;
	bad = refusal(w, known, v);
	if (bad.status == WC_SUCCESS)
		return true;
	/* requests behind it are not sent */
	comp_fail_wqe(qp, r->wqe.cur, bad.status, bad.cause);
	return false;
}

/* What the packets of @w are. */
static uint32_t kind_flags(const struct wqe *w)
{
	static const uint32_t flags[WR_NUM] = {
#define WR_OP(name, f, packet, wc) [WR_##name] = (packet),
#include "ring/wr_op.def"
#undef WR_OP
	};

	return flags[w->op];
}

static struct pkt req_pkt_for(const struct qp *qp, const struct wqe *w,
			      bool ext)
{
	struct pkt p = {.ext = ext,
			.pkey = PKEY_DEFAULT,
			.qpn = qp->attr.dest_qpn,
			.psn = qp->req.psn.snd,
			.epoch = qp->open.theirs,
			.va = w->raddr,
			.rkey = w->rkey,
			.dma_len = (uint32_t)w->length};

	ack_headers(qp, &p);
	return p;
}

/**
 * enum next - What became of an attempt to append the next packet.
 * NEXT_OK: appended; NEXT_END: the burst is complete as it is; NEXT_STOP: this
 * QP can send nothing now.
 */
enum next { NEXT_OK, NEXT_END, NEXT_STOP };

static enum next add_atomic(struct qp *qp, struct burst *b, struct wqe *w,
			    bool again)
{
	struct pkt p = req_pkt_for(qp, w, b->ext);

	if (!again && qp->req.reads.out >= qp->attr.max_rd_atomic)
		return NEXT_STOP;
	p.opcode = w->op == WR_CMP_SWP ? OP_CMP_SWP : OP_FETCH_ADD;
	p.ack_req = true;
	p.dma_len = ATOMIC_BYTES;
	p.swap_add = w->swap_add;
	p.compare = w->compare;
	if (!burst_seg(b, &p, NULL))
		return NEXT_END;
	qp->req.reads.out += !again;
	return NEXT_OK;
}

/* The peer executes the READ @w again, of which something is not
 * here yet: forget what READs behind it have read. They are to be executed after it
 * (IBTA 10.8, ordering of work requests).
 */
static void read_again(struct qp *qp, const struct wqe *w)
{
	const psn_t end = wqe_end(w);
	struct req *r = &qp->req;

	/* also if all of it is here: that may be taken back (responses_failed()) */
	if (psn_diff(end, r->reads.last_again_to) > 0)
		r->reads.last_again_to = end;
	if (psn_diff(end, r->win.next) > 0)
		win_truncate(qp->x, &r->win, end);
}

static enum next add_read(struct qp *qp, struct burst *b, struct wqe *w,
			  uint32_t k, bool again, uint32_t *psns)
{
	struct req *r = &qp->req;
	uint32_t end = reads_chunk_end(qp, w, k);
	uint64_t off = (uint64_t)k * qp->mtu;
	uint32_t charge = reads_chunk_charge(qp, w, k);
	struct pkt p = req_pkt_for(qp, w, b->ext);

	if (!again && (r->reads.out >= qp->attr.max_rd_atomic ||
		       !reads_may_ask(qp, charge)))
		return NEXT_STOP;
	p.opcode = OP_READ_REQ;
	p.ack_req = true;
	p.va = w->raddr + off;
	p.dma_len = (uint32_t)MIN((uint64_t)(end - k) * qp->mtu,
				  w->length - off);
	if (!burst_seg(b, &p, NULL))
		return NEXT_END;
	if (r->psn.snd != r->psn.max)
		read_again(qp, w);
	r->reads.out += !again;
	if (again)
		reads_asked_again(qp, psn_add(w->first_psn, end), charge);
	else
		reads_asked(qp, charge);
	*psns = end - k;
	return NEXT_OK;
}

/* The headers of packet @k of @w, and its payload if that is inline. */
static struct seg *add_headers(struct qp *qp, struct burst *b, struct wqe *w,
			       uint32_t k, uint32_t len)
{
	bool first = k == 0, last = k + 1 == w->num_psn;
	uint8_t opcode = op_select(kind_flags(w) | (first ? OPF_FIRST : 0) |
				   (last ? OPF_LAST : 0));
	const uint8_t *inl = NULL;
	struct pkt p;

	if (w->flags & WQE_INLINE)
		inl = wqe_inline(w) + (uint64_t)k * qp->mtu;
	else if (b->ext && b->nsegs && !first && !last)
		return burst_next(b, opcode, qp->req.psn.snd, len);
	p = req_pkt_for(qp, w, b->ext);
	p.opcode = opcode;
	p.ack_req = b->ext || last || k % 16 == 15;
	p.solicited = last && (w->flags & WQE_SOLICITED);
	p.imm = w->imm;
	p.payload_len = len;
	return burst_seg(b, &p, inl);
}

static enum verdict req_gather(struct qp *qp, struct burst *b,
			       const struct wqe *w, uint64_t off, uint32_t len)
{
	struct dma d;

	if (w->num_sge > 1 || !range_ok(off, len, wqe_sge(w)->len))
		return sge_walk(qp, w, off, len, 0, false, NULL,
				(uint16_t)(b->nsegs - 1), &qp->req.wait,
				&b->gathers, &b->holds);
	d = sge_dma(qp, w, 0, off, len, false);
	return burst_gather(b, &d, &qp->req.wait);
}

/* May one more packet go into @b? What is sent again does not wait for room: its
 * loss left some. @more: new packets with it that are not counted yet. */
static bool flow_allows(struct qp *qp, const struct burst *b, bool again,
			uint32_t more)
{
	const struct peer *p = qp->peer;

	if (b->ext && qp->req.psn.snd != qp->req.psn.max &&
	    !credit_allows_again(qp))
		return flow_wait(qp);
	if (again)
		return true;
	if (b->ext && qp->req.psn.snd == qp->req.psn.max &&
	    !wqe_is_read(wq_at(qp->cfg.sq, qp->req.wqe.cur)) &&
	    !credit_allows(qp, more))
		return flow_wait(qp);
	if (!b->nsegs)
		return flow_may_send(qp, flow_charge(false, 1, qp->mtu));
	if (!b->ext)
		return flow_may_send(qp, 0);
	return (uint64_t)p->flow.in_flight +
		       flow_charge(flow_whole(p), b->nsegs + 1,
				   b->total + b->seg_len) <=
	       p->flow.budget;
}

/* The middle packets of @w from @k on whose payload is resolved already, if they
 * are sent for the first time. Return: how many. */
static uint32_t add_middle(struct qp *qp, struct burst *b, const struct wqe *w,
			   uint32_t k)
{
	uint8_t opcode = op_select(kind_flags(w));
	psn_t psn = psn_add(w->first_psn, k);
	uint32_t n = 0;

	if (qp->req.psn.snd != qp->req.psn.max)
		return 0;
	while (k + n + 1 < w->num_psn && b->ahead >= qp->mtu &&
	       flow_allows(qp, b, false, n + 2) &&
	       burst_next(b, opcode, psn_add(psn, n), qp->mtu)) {
		b->ahead -= qp->mtu;
		n++;
	}
	return n;
}

/* A retransmission of the middle of a message begins with its first packet's
 * opcode only if it is the first packet: k says where we are. */
static enum next add_data(struct qp *qp, struct burst *b, struct wqe *w,
			  uint32_t k, uint32_t *psns)
{
	uint64_t off = (uint64_t)k * qp->mtu;
	uint32_t len = (uint32_t)MIN(qp->mtu, w->length - off);
	uint32_t hold = b->holds.num, move = b->gathers.num;
	enum verdict v;

	if (moves_room(&b->gathers) < w->num_sge ||
	    hold + w->num_sge > HOLDS_MAX)
		return NEXT_END;
	if (!add_headers(qp, b, w, k, len))
		return NEXT_END;
	if ((w->flags & WQE_INLINE) || !len)
		return NEXT_OK;
	v = req_gather(qp, b, w, off, len);
	met_add(&w->met, waiter_met(&qp->req.wait));
	if (v == V_OK) {
		*psns += add_middle(qp, b, w, k + 1);
		return NEXT_OK;
	}
	burst_unseg(b, hold, move);
	if (v == V_WAIT || v == V_NO_RESOURCE) {
		qp->req.park_psn = qp->req.psn.snd;
		qp->x->starved |= v == V_NO_RESOURCE;
		fault_source(qp, qp->req.psn.snd, false);
		ahead_sources(qp);
	} else {
		comp_fail_wqe(qp, qp->req.wqe.cur, WC_LOC_PROT_ERR,
			      CAUSE_ACCESS);
	}
	return NEXT_STOP;
}

/* Append the packet at snd, WQE cur. */
static enum next add_packet(struct qp *qp, struct burst *b, bool again,
			    uint32_t *psns)
{
	struct req *r = &qp->req;
	struct wqe *w = wq_at(qp->cfg.sq, r->wqe.cur);
	uint32_t k = (uint32_t)psn_diff(r->psn.snd, w->first_psn);

	*psns = 1;
	if (w->op == WR_READ)
		return add_read(qp, b, w, k, again, psns);
	if (wqe_is_atomic(w))
		return add_atomic(qp, b, w, again);
	return add_data(qp, b, w, k, psns);
}

/* Make cur the WQE that snd belongs to. false: there is nothing to send. */
static bool find_work(struct qp *qp)
{
	struct req *r = &qp->req;
	struct wq *sq = qp->cfg.sq;

	for (;;) {
		struct wqe *w;

		if (r->failure.known && r->wqe.cur == r->failure.wqe)
			return false;
		if (r->wqe.cur == r->wqe.started) {
			if (qp->state != QPS_RTS || r->wqe.cur == wq_end(sq) ||
			    psn_diff(r->psn.max, r->psn.una) >= REQ_PSNS_AHEAD)
				return false;
			if (!start(qp, wq_at(sq, r->wqe.cur)))
				return false;
		}
		w = wq_at(sq, r->wqe.cur);
		if ((uint32_t)psn_diff(r->psn.snd, w->first_psn) < w->num_psn)
			return true;
		r->wqe.cur++;
		comp_reap(qp);
		if (qp->state == QPS_ERR)
			return false;
	}
}

static bool may_send(struct qp *qp)
{
	struct req *r = &qp->req;

	if (qp->state != QPS_RTS && qp->state != QPS_SQD)
		return false;
	return !deadline_ahead(r->at[REQ_PAUSE], qp->x->now) &&
	       !deadline_ahead(r->at[REQ_HOLD], qp->x->now);
}

/* Does the packet at snd wait for its page? */
static bool is_parked(const struct req *r)
{
	return r->wait.ticket.v && r->psn.snd == r->park_psn;
}

/* Send the lost packets again, one run of consecutive PSNs at a time: set snd
 * and cur to it for the length of this burst. */
static bool aim_at_lost(struct qp *qp, psn_t *back, uint32_t *back_cur)
{
	struct req *r = &qp->req;
	psn_t psn;
	uint32_t i;

	if (!retry_next_lost(qp, &psn) || !req_wqe_at(qp, psn, &i))
		return false;
	*back = psns_aimed(&r->psn, psn);
	*back_cur = r->wqe.cur;
	r->wqe.cur = i;
	/* It waits for its own pages, if any: those of a request that is parked are
	 * asked for again in its turn. */
	if (r->wait.ticket.v && !is_parked(r))
		waiter_cancel(qp->x->mem, &r->wait);
	return true;
}

/* What is being moved into the program's memory can be seen there before it is
 * committed, and what was posted since may be the answer to it: that leaves when
 * its headers can say so. A READ answers nothing. */
static bool before_commit(const struct qp *qp)
{
	const struct req *r = &qp->req;

	return qp->rx_moving && qp->resp.plan != qp->resp.win.head &&
	       r->psn.snd == r->psn.max &&
	       wq_at(qp->cfg.sq, r->wqe.cur)->op != WR_READ;
}

/* The last @n PSNs that were appended to @b are new. */
static void new_packets(struct qp *qp, struct burst *b, uint32_t n)
{
	ack_answered(&qp->resp);
	if (wqe_is_read(wq_at(qp->cfg.sq, qp->req.wqe.cur)))
		return;
	credit_sent(qp, n);
	b->sent.out += n;
}

static void req_fill(struct qp *qp, struct burst *b, bool again)
{
	struct req *r = &qp->req;
	uint32_t psns, fresh;

	while (!burst_full(b) && find_work(qp) && !before_commit(qp) &&
	       flow_allows(qp, b, again, 1)) {
		psn_t was = r->psn.snd;

		if (add_packet(qp, b, again, &psns) != NEXT_OK)
			return;
		fresh = psns_sent(&r->psn, psns);
		if (again)
			retry_resent(qp, was);
		if (fresh) {
			new_packets(qp, b, fresh);
		} else {
			count(qp->x->cnt, CNT_retransmits);
			if (was == r->psn.una)
				live_repeated(qp);
		}
		if (again && !(retry_is_lost(qp, r->psn.snd) && retry_may(r)))
			return;
	}
}

bool req_tx(struct qp *qp, struct burst *b)
{
	const uint64_t now_ns = qp->x->now;
	struct req *r = &qp->req;
	const bool first = r->psn.snd == r->psn.una;
	uint32_t back_cur = r->wqe.cur;
	psn_t back = r->psn.snd, to;

	if (!may_send(qp) || (is_parked(r) && !retry_wants(r))) {
		if (r->wait.ticket.v)
			ahead_sources(qp);
		return false;
	}
	if (ack_first(qp))
		return false;
	burst_reset(b, qp, qp->peer, qp_dialect(qp)->ext);
	b->sent.again = aim_at_lost(qp, &back, &back_cur);
	if (!b->sent.again && is_parked(r))
		return false;
	b->sent.from = r->psn.snd;
	b->sent.max = r->psn.max;
	req_fill(qp, b, b->sent.again);
	burst_trim(b);
	if (qp->state == QPS_ERR) {
		/* A part of the oldest request was refused: its buffers are the
		 * program's again. */
		dma_release(qp->x->mem, &b->holds, 0, false, now_ns);
		b->nsegs = 0;
		return false;
	}
	if (b->nsegs) {
		b->sent.charge = flow_charge(flow_whole(qp->peer), b->nsegs,
					     b->total);
		if (!b->sent.again)
			flow_sent(qp, r->psn.snd, b->sent.charge);
		flight_note(&qp->log, now_ns, FLIGHT_TX, b->sent.from,
			    b->bytes[b->seg[0].hdr], burst_payload(b));
		b->request = true;
		b->sent.epoch = r->psn.epoch;
	}
	to = r->psn.snd;
	if (b->sent.again && psn_diff(back, r->psn.snd) > 0) {
		(void)psns_aimed(&r->psn, back);
		r->wqe.cur = back_cur;
	}
	if (!b->nsegs) {
		live_none_sent(qp);
		return false;
	}
	if (b->sent.again)
		flow_again(qp, b->sent.from, to, b->sent.charge);
	/* The reason why the burst ended (the window, a page of ours) lasts until an
	 * ACK comes, or longer than the ACK timer: ask for one. */
	if (!b->ext)
		pkt_ask_ack(b->bytes + b->seg[b->nsegs - 1].hdr);
	gso_sent(&r->gso, b);
	open_append(b);
	ack_carry(qp, b);
	ack_append(qp, b);
	live_sent(qp, first);
	return true;
}

void req_unsent(struct qp *qp, const struct burst *b, int error)
{
	if (qp->state != QPS_RTS && qp->state != QPS_SQD)
		return;
	live_unsent(qp, b->sent.from);
	/* What is sent again is asked about again. */
	if (b->sent.epoch == qp->req.psn.epoch && !b->sent.again)
		retry_unsent(qp, b);
	if (error == -EAGAIN) {
		qp->req.at[REQ_PAUSE] = qp->x->now + PAUSE_FULL_NS;
		qp_rearm(qp);
	}
}

void req_timeout(struct qp *qp)
{
	const uint64_t now_ns = qp->x->now;
	struct req *r = &qp->req;

	if (now_ns >= r->at[REQ_PAUSE]) {
		r->at[REQ_PAUSE] = TIME_NEVER;
		qp_kick(qp);
	}
	if (now_ns >= r->at[REQ_LATE])
		flow_copies_came(qp);
	hold_timeout(qp);
	if (now_ns >= r->at[REQ_HOLD])
		retry_resume(qp);
	retry_gap_timeout(qp);
	if (now_ns >= r->at[REQ_READ_GAP])
		reply_timeout(qp);
	if (live_timeout(qp))
		retry_rewind(qp, FLIGHT_TIMEOUT);
}
