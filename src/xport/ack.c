/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.c: what is owed to a requester, and when it is said. An ACK is owed, not
 * sent: it leaves behind the next packet to that peer, or when the engine finds
 * nothing else to do, or at peer.ack_due_ns. One ACK stands for all requests
 * before it (IBTA 9.7.5.1.3); it never passes a READ that is not answered.
 */
#include "xport/impl.h"

#include <errno.h>

static void owe_by(struct qp *qp, uint64_t due_ns)
{
	struct peer *p = qp->peer;

	qp->resp.ack_owed = true;
	if (list_empty(&qp->ack_link)) {
		if (list_empty(&p->owed))
			p->ack_due_ns = due_ns;
		list_add_tail(&p->owed, &qp->ack_link);
	}
	p->ack_due_ns = MIN(p->ack_due_ns, due_ns);
	if (list_empty(&p->ack_link))
		list_add_tail(&qp->x->ack_peers, &p->ack_link);
}

void ack_owe(struct qp *qp, uint64_t now_ns)
{
	owe_by(qp, now_ns + qp->x->ack_delay_ns);
}

void ack_nak(struct qp *qp, uint8_t syndrome, psn_t psn, uint64_t now_ns)
{
	qp->resp.nak = syndrome;
	qp->resp.nak_fault = false;
	qp->resp.nak_psn = psn;
	owe_by(qp, now_ns);
}

void ack_say(struct qp *qp, uint32_t xack_flags, uint64_t now_ns)
{
	if (qp->peer->kind != PEER_NOPIN)
		return;
	qp->resp.xack |= xack_flags;
	owe_by(qp, now_ns);
}

bool ack_credit(struct qp *qp, uint64_t now_ns)
{
	if (!qp_receives(qp) || qp->peer->kind != PEER_NOPIN)
		return false;
	qp->resp.ext = true;
	ack_owe(qp, now_ns);
	return true;
}

bool ack_last(struct qp *qp, uint64_t now_ns)
{
	const struct resp *r = &qp->resp;

	if (!(qp_receives(qp) && (r->lossy || r->ack_owed)) &&
	    !(qp->state == QPS_ERR && r->nak))
		return false;
	qp->peer->ack_after_ns = 0;
	ack_owe(qp, now_ns);
	return true;
}

void ack_again(struct qp *qp)
{
	if (qp->resp.ack_owed && list_empty(&qp->peer->ack_link))
		list_add_tail(&qp->x->ack_peers, &qp->peer->ack_link);
}

void ack_cancel(struct qp *qp)
{
	struct peer *p = qp->peer;

	qp->resp.ack_owed = false;
	list_del(&qp->ack_link);
	if (p && list_empty(&p->owed))
		list_del(&p->ack_link);
}

void ack_rest(struct qp *qp, uint64_t now_ns)
{
	if (qp->resp.ack_rest)
		ack_owe(qp, now_ns);
	qp->resp.ack_rest = false;
}

/* First PSN that may not be acknowledged yet. */
static psn_t ack_limit(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	psn_t limit = r->win.head;

	for (uint32_t i = r->res_at; i != r->res_next; i++) {
		const struct resource *s = &r->res[i % RESOURCES_MAX];

		if (s->at < s->num && psn_diff(s->psn, limit) < 0)
			limit = s->psn;
	}
	return limit;
}

/* The question that goes out now: the one that is not answered, or the next. */
static uint16_t question_now(const struct req *r)
{
	return r->asked ? r->question : (uint16_t)(r->question + 1);
}

static void extend(struct qp *qp, struct pkt *p)
{
	struct resp *r = &qp->resp;
	psn_t next = qp->rx_moving ? r->win.head : r->win.next;

	p->opcode = OP_X_ACK;
	p->ext = true;
	p->nonce = qp->peer->nonce;
	p->accepted = psn_add(next, PSN_MASK);
	p->credit = flow_grant(qp->x, qp->peer);
	p->xack_flags = r->xack;
	if (p->syndrome != (AETH_ACK | AETH_CREDIT_INVALID) && r->nak_fault)
		p->xack_flags |= XACK_FAULT;
	if (r->xack & XACK_PROBE)
		p->question = question_now(&qp->req);
	if (r->xack & XACK_PROBED)
		p->answer = r->answer;
	p->sack = qp->rx_moving ? 0 : win_sack(&r->win);
	if (p->sack)
		p->xack_flags |= XACK_SACK;
}

/* Who asks in the standard format before we know who it is may be either: both
 * are reached through 4791. */
bool peer_unsure(const struct qp *qp)
{
	return qp->peer->kind == PEER_PROBING && !qp->resp.ext;
}

/* Make the ACK of @qp. false: there is nothing that may be said now. */
static bool make(struct qp *qp, struct pkt *p)
{
	struct resp *r = &qp->resp;
	bool ext = qp->peer->kind == PEER_NOPIN && (r->ext || r->xack);
	psn_t limit = ack_limit(qp);
	bool nak;

	/* The page came before that was said. */
	if (r->nak_fault && psn_diff(r->nak_psn, limit) < 0)
		r->nak = 0;
	nak = r->nak && psn_diff(r->nak_psn, limit) <= 0;
	if ((r->nak && !nak && !(ext && r->xack)) ||
	    (qp->state == QPS_ERR && !nak) || r->answering)
		return false;
	/* A question must not overtake the data that it asks about, and the
	 * answer must know where that data is. */
	if (((r->xack & XACK_PROBE) && qp->tx_moving) ||
	    ((r->xack & XACK_PROBED) && qp->rx_moving))
		return false;
	*p = (struct pkt){.opcode = OP_ACK,
			  .pkey = PKEY_DEFAULT,
			  .qpn = qp->attr.dest_qpn,
			  .psn = nak ? r->nak_psn : psn_add(limit, PSN_MASK),
			  .syndrome = nak ? r->nak
					  : AETH_ACK | AETH_CREDIT_INVALID,
			  .aeth_msn = r->msg.msn};
	if (ext)
		extend(qp, p);
	return true;
}

static void question_asked(struct req *r)
{
	if (r->asked)
		return;
	r->question = question_now(r);
	r->asked = true;
	r->probe_max = r->snd;
}

static void said(struct qp *qp, const struct pkt *p, uint64_t now_ns)
{
	struct resp *r = &qp->resp;
	uint8_t kind = p->syndrome & AETH_KIND_MASK;

	if (kind != AETH_ACK) {
		r->nak = 0;
		flight_note(&qp->log, now_ns, FLIGHT_NAK_TX, p->psn,
			    p->syndrome, r->msg.msn);
	}
	if (kind == AETH_ACK)
		r->ack_rest = psn_diff(r->ack_to, p->psn) > 0;
	if (kind == AETH_NAK)
		count(qp->x->cnt, CNT_naks_tx);
	if (p->opcode == OP_X_ACK && (r->xack & XACK_PROBE))
		question_asked(&qp->req);
	if (p->opcode == OP_X_ACK)
		r->xack = 0;
	count(qp->x->cnt, CNT_acks_tx);
	if (!r->nak)
		ack_cancel(qp);
}

/* The answer to a question is as old as its plan: behind payload, whose page
 * may block the send, it could arrive after the next question and be taken for
 * the answer to that. */
static bool must_go_alone(const struct qp *qp)
{
	return qp->resp.xack & XACK_PROBED;
}

/* Programs rely on it that a request completes before its answer does, as with
 * cards. So whatever else there is to say goes behind, but the ACK does not, nor
 * does it rely on one that another thread is about to send. */
void ack_carry(struct qp *qp, struct burst *b, uint64_t now_ns)
{
	const struct resp *r = &qp->resp;
	uint32_t told = qp->peer->granted;
	struct pkt p;

	if ((!r->ack_owed && !b->peer->acks_out) || r->nak || !b->ext ||
	    b->nsegs != 1 || !make(qp, &p) || !p.ext)
		return;
	b->says = !(p.xack_flags & ~(uint32_t)(XACK_PROBE | XACK_PROBED)) &&
		  p.accepted == p.psn && burst_carry(b, p.psn);
	count_add(qp->x->cnt, CNT_acks_carried, b->says);
	if (p.credit != told)
		ack_owe(qp, now_ns);
	else if (b->says && r->ack_owed && !p.xack_flags)
		said(qp, &p, now_ns);
}

/* @b says @p: should it not leave, that is owed again. */
static void remember(struct qp *qp, const struct burst *b, const struct pkt *p)
{
	struct resp *r = &qp->resp;

	r->said_in = b->acks;
	r->said_nak = (p->syndrome & AETH_KIND_MASK) == AETH_ACK ? 0 : r->nak;
	r->said_xack = p->opcode == OP_X_ACK ? r->xack : 0;
}

bool ack_append(struct qp *qp, struct burst *b, uint64_t now_ns)
{
	list_for_each_safe(l, tmp, &b->peer->owed) {
		struct qp *q = list_entry(l, struct qp, ack_link);
		struct pkt p;

		if ((qp && must_go_alone(q)) || !make(q, &p) ||
		    p.ext != b->ext || (b->nsegs && b->roce != peer_unsure(q)))
			continue;
		if (!burst_seg(b, &p, NULL))
			break;
		b->roce |= peer_unsure(q);
		if (!b->acks) {
			b->acks = ++q->x->ack_seq;
			b->peer->acks_out++;
		}
		remember(q, b, &p);
		said(q, &p, now_ns);
		if (qp)
			count(qp->x->cnt, CNT_acks_behind);
	}
	return b->acks != 0;
}

void ack_unsaid(struct qp *qp, const struct burst *b, int error,
		uint64_t now_ns)
{
	struct resp *r = &qp->resp;

	if (r->said_in != b->acks ||
	    !(qp_receives(qp) || (qp->state == QPS_ERR && r->said_nak)))
		return;
	if (!r->nak)
		r->nak = r->said_nak;
	r->xack |= r->said_xack;
	if (error == -EAGAIN)
		b->peer->ack_after_ns = now_ns + PAUSE_FULL_NS;
	ack_owe(qp, now_ns);
}

/* ACKs that must wait (for a READ before them, for moves) stay owed; whatever
 * they wait for owes them again. */
bool peer_ack_burst(struct xport *x, struct peer *peer, struct burst *b,
		    uint64_t now_ns)
{
	(void)x;
	list_del(&peer->ack_link);
	for (int ext = 1; ext >= 0; ext--) {
		burst_reset(b, NULL, peer, ext);
		if (!ack_append(NULL, b, now_ns))
			continue;
		if (!list_empty(&peer->owed))
			list_add_tail(&x->ack_peers, &peer->ack_link);
		return true;
	}
	return false;
}
