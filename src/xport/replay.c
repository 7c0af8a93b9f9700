/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay.c: responder resources: READs and atomics that were executed and are
 * answered here, and answered again when a duplicate asks for them (IBTA
 * 9.7.5.1.2). An atomic is executed once; its result is kept.
 */
#include "xport/replay.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/heap.h"
#include "base/moves.h"
#include "base/range.h"
#include "base/verdict.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/waiter.h"
#include "ring/cqe.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/access.h"
#include "xport/ack.h"
#include "xport/ahead.h"
#include "xport/burst.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/fault.h"
#include "xport/hold.h"
#include "xport/kick.h"
#include "xport/life.h"
#include "xport/owe.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/tx.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <errno.h>

int replay_reserve(struct qp *qp, uint32_t rd_atomic)
{
	struct resp_replay *r = &qp->resp.replay;
	struct resp_replay old = *r;
	uint32_t size = 2;

	while (size < 2 * rd_atomic)
		size *= 2;
	if (size <= r->size)
		return 0;
	r->res = heap_array(size, sizeof(*r->res));
	if (!r->res) {
		r->res = old.res;
		return -ENOMEM;
	}
	r->size = size;
	for (uint32_t i = old.next - old.size; i != old.next; i++)
		*resource_at(r, i) = *resource_at(&old, i);
	heap_free(old.res);
	return 0;
}

void replay_release(struct qp *qp)
{
	heap_free(qp->resp.replay.res);
	qp->resp.replay.res = NULL;
	qp->resp.replay.size = 0;
}

uint32_t replay_pending(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	uint32_t n = 0;

	for (uint32_t i = r->replay.at; i != r->replay.next; i++) {
		const struct resource *s = resource_at(&r->replay, i);

		n += !s->again && s->at < s->num;
	}
	return n;
}

/* Go on to what is not answered whole. */
static void pass_answered(struct resp_replay *r)
{
	for (; r->at != r->next; r->at++) {
		const struct resource *s = resource_at(r, r->at);

		if (s->at < s->num)
			break;
	}
}

bool replay_make_room(struct qp *qp)
{
	struct resp_replay *r = &qp->resp.replay;

	while (r->next - r->at + r->coming >= r->size) {
		struct resource *s = resource_at(r, r->at);

		if (!s->again && s->at < s->num)
			return false;
		if (r->wait.ticket.v && r->waits == r->at) {
			waiter_cancel(qp->x->mem, &r->wait);
			hold_over(qp);
		}
		s->at = s->num;
		pass_answered(r);
		ack_rest(qp);
		qp_kick(qp);
	}
	return true;
}

void replay_planned(struct qp *qp)
{
	qp->resp.replay.coming++;
}

void replay_run_over(struct qp *qp)
{
	qp->resp.replay.coming = 0;
}

void replay_add(struct qp *qp, const struct pkt *p, uint64_t original)
{
	struct resp *r = &qp->resp;

	CHECK(r->replay.next - r->replay.at < r->replay.size);
	qp_kick(qp);
	*resource_at(&r->replay, r->replay.next++) =
		(struct resource){.used = true,
				  .atomic = p->op & OPF_ATOMIC,
				  .psn = p->psn,
				  .num = request_psns(p, qp->mtu),
				  .va = p->va,
				  .rkey = p->rkey,
				  .len = p->dma_len,
				  .original = original,
				  .msn = qp->resp.msg.msn};
}

/* A duplicate READ may ask for the tail of the original (C9-110). */
static bool covers(const struct qp *qp, const struct resource *s,
		   const struct pkt *p)
{
	int32_t k = psn_diff(p->psn, s->psn);
	uint64_t off = (uint64_t)(uint32_t)k * qp->mtu;

	if (!s->used || k < 0 || (uint32_t)k >= s->num)
		return false;
	if (s->atomic)
		return (p->op & OPF_ATOMIC) && s->va == p->va &&
		       s->rkey == p->rkey;
	return (p->op & OPF_READ) && s->rkey == p->rkey &&
	       p->va == s->va + off && range_ok(off, p->dma_len, s->len);
}

/* In place: the record may be needed once more, so nothing is put on top of the
 * ring for a repetition. */
static void answer_again(struct qp *qp, const struct pkt *p, uint32_t i)
{
	struct resp *r = &qp->resp;
	struct resource *s = resource_at(&r->replay, i);
	uint32_t k = (uint32_t)psn_diff(p->psn, s->psn);

	/* What is on its way anyway, or would take room that a run counts on,
	 * is not answered twice. */
	if (s->at <= k || qp->rx_moving)
		return;
	count(qp->x->cnt, CNT_replays);
	gso_missing(qp, &r->gso, p->psn);
	s->again |= s->at == s->num;
	s->at = s->from = s->was = k;
	if ((int32_t)(r->replay.at - i) > 0)
		r->replay.at = i;
	qp_kick(qp);
}

void replay_duplicate(struct qp *qp, const struct pkt *p)
{
	struct resp *r = &qp->resp;
	/* the count wraps; what was never used covers nothing */
	const uint32_t first = r->replay.next - r->replay.size;

	if (!(p->op & (OPF_READ | OPF_ATOMIC))) {
		ack_repeat(qp);
		return;
	}
	for (uint32_t i = r->replay.next; i-- != first;)
		if (covers(qp, resource_at(&r->replay, i), p)) {
			answer_again(qp, p, i);
			return;
		}
	count(qp->x->cnt, CNT_drop_psn);
}

static bool answer_atomic(struct qp *qp, struct burst *b, struct resource *s)
{
	struct pkt p = {.opcode = OP_ATOMIC_ACK,
			.ext = b->ext,
			.pkey = PKEY_DEFAULT,
			.qpn = qp->attr.dest_qpn,
			.psn = s->psn,
			.epoch = qp->open.theirs,
			.syndrome = AETH_ACK | AETH_CREDIT_INVALID,
			.aeth_msn = s->msn,
			.swap_add = s->original};

	if (!burst_seg(b, &p, NULL))
		return false;
	s->at = 1;
	return true;
}

static void source_failed(struct qp *qp, psn_t psn)
{
	qp->resp.replay.at = qp->resp.replay.next;
	ack_nak(qp, AETH_NAK | NAK_REMOTE_ACCESS, psn);
	qp_blame(qp, CAUSE_NAKED | AETH_NAK | NAK_REMOTE_ACCESS,
		 QP_EVENT_ACCESS_ERR);
}

/* @next: the packet before it in @b is the one before it of @s. */
static struct seg *response_headers(struct qp *qp, struct burst *b,
				    const struct resource *s, bool next,
				    uint32_t len)
{
	bool first = s->at == s->from, last = s->at + 1 == s->num;
	psn_t psn = psn_add(s->psn, s->at);
	uint8_t opcode = op_select(OPF_READ | OPF_RESPONSE |
				   (first ? OPF_FIRST : 0) |
				   (last ? OPF_LAST : 0));
	struct pkt p;

	if (b->ext && next && !first && !last)
		return burst_next(b, opcode, psn, len);
	p = (struct pkt){.opcode = opcode,
			 .ext = b->ext,
			 .pkey = PKEY_DEFAULT,
			 .qpn = qp->attr.dest_qpn,
			 .psn = psn,
			 .epoch = qp->open.theirs,
			 .dma_len = s->len,
			 .syndrome = AETH_ACK | AETH_CREDIT_INVALID,
			 .aeth_msn = s->msn,
			 .payload_len = len};
	return burst_seg(b, &p, NULL);
}

/* One READ response packet. false: the burst or the QP can take no more. */
static bool answer_read(struct qp *qp, struct burst *b, struct resource *s,
			bool next)
{
	uint64_t off = (uint64_t)s->at * qp->mtu;
	uint32_t len = (uint32_t)MIN(qp->mtu, s->len - off);
	uint32_t hold = b->holds.num, move = b->gathers.num;
	psn_t psn = psn_add(s->psn, s->at);
	struct dma d = remote_dma(qp, s->rkey, s->va + off, len,
				  ACCESS_REMOTE_READ);
	enum verdict v;

	d.ahead = s->len - off - len;
	if (!moves_room(&b->gathers) || hold == HOLDS_MAX ||
	    !response_headers(qp, b, s, next, len))
		return false;
	v = len ? burst_gather(b, &d, &qp->resp.replay.wait) : V_OK;
	if (v == V_OK) {
		s->at++;
		return true;
	}
	burst_unseg(b, hold, move);
	qp->x->starved |= v == V_NO_RESOURCE;
	if (v == V_WAIT || v == V_NO_RESOURCE) {
		qp->resp.replay.waits = qp->resp.replay.at;
		fault_source(qp, psn, true);
		ahead_responses(qp);
	} else if (!b->nsegs) {
		source_failed(qp, psn);
	}
	return false;
}

bool replay_tx(struct qp *qp, struct burst *b)
{
	const struct resource *before = NULL;
	struct resp *r = &qp->resp;

	if (!replay_busy(qp) || r->replay.wait.ticket.v ||
	    deadline_waits(r->at[RESP_PAUSE]))
		return false;
	if (!qp_open(qp) && qp->open.known)
		return false;
	burst_reset(b, qp, qp->peer, qp_dialect(qp)->ext);
	b->res = r->replay.at;
	r->replay.bursts++;
	while (replay_busy(qp)) {
		struct resource *s = resource_at(&r->replay, r->replay.at);

		if (s->at == s->num) {
			r->replay.at++;
			continue;
		}
		if (s != before)
			s->was = s->at;
		s->burst = r->replay.bursts;
		if (s->atomic ? !answer_atomic(qp, b, s)
			      : !answer_read(qp, b, s, s == before))
			break;
		before = s;
	}
	burst_trim(b);
	if (!b->nsegs)
		return false;
	flight_note(&qp->log, qp->x->now, FLIGHT_TX, 0, b->bytes[0],
		    burst_payload(b));
	gso_sent(&r->gso, b);
	ack_rest(qp);
	ack_append(qp, b);
	r->replay.answering = true;
	return true;
}

void replay_unsent(struct qp *qp, const struct burst *b, int error)
{
	struct resp *r = &qp->resp;
	const uint32_t has_room = r->replay.next + r->replay.coming -
				  r->replay.size;
	uint32_t from = b->res;

	if (!qp_receives(qp))
		return;
	/* What would take the room that a run counts on is lost, and so is what has no
	 * place any more: there are more since then, or others were asked for. */
	if ((int32_t)(has_room - from) > 0)
		from = has_room;
	while (from != r->replay.next && !resource_at(&r->replay, from)->used)
		from++;
	for (uint32_t i = from; i != r->replay.next; i++) {
		struct resource *s = resource_at(&r->replay, i);

		/* unless more of it was asked for again meanwhile */
		if (s->burst != r->replay.bursts)
			continue;
		/* the peer may have it, if only the burst's end did not leave */
		s->again |= s->at == s->num;
		s->at = MIN(s->at, s->was);
	}
	if ((int32_t)(r->replay.at - from) > 0)
		r->replay.at = from;
	if (error == -EAGAIN) {
		r->at[RESP_PAUSE] = qp->x->now + PAUSE_FULL_NS;
		qp_rearm(qp);
	}
}

void replay_check(const struct qp *qp)
{
	const struct resp_replay *r = &qp->resp.replay;

	CHECK(r->next - r->at + r->coming <= r->size);
	for (uint32_t i = r->at; i != r->next; i++) {
		const struct resource *s = resource_at(r, i);

		CHECK(s->used && s->from <= s->at && s->at <= s->num);
	}
	CHECK(!r->answering || qp->tx_moving);
}
