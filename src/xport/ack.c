/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.c: what is owed to a requester, and when it is said. An ACK is owed, not
 * sent: it leaves behind the next packet to that peer, or when the engine finds
 * nothing else to do, or at peer.acks.due_ns. One ACK stands for all requests
 * before it (IBTA 9.7.5.1.3); it never passes a READ that is not answered.
 * A request completes before its answer does: every request to a nopin says what is
 * placed here (ack_headers()), whether an ACK is owed or not; to others an ACK that
 * is owed leaves first (ack_first()).
 */
#include "xport/ack.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/hold.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/lend.h"
#include "xport/live.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/tx.h"
#include "xport/window.h"
#include "xport/xport.h"

#include <errno.h>

/* First PSN that may not be acknowledged yet. */
static psn_t ack_limit(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	psn_t limit = r->win.head;

	for (uint32_t i = r->replay.at; i != r->replay.next; i++) {
		const struct resource *s = resource_at(&r->replay, i);

		if (s->at < s->num && psn_diff(s->psn, limit) < 0)
			limit = s->psn;
	}
	/* what is about to be answered must not be overtaken */
	for (uint32_t i = 0; i < r->replay.size && r->replay.answering; i++) {
		const struct resource *s = &r->replay.res[i];

		if (s->used && s->burst == r->replay.bursts &&
		    psn_diff(s->psn, limit) < 0)
			limit = s->psn;
	}
	return limit;
}

/* The question that goes out now: the one that is not answered, or the next. None
 * has the number 0. */
static uint16_t question_now(const struct req *r)
{
	const uint16_t next = (uint16_t)(r->probe.question + 1);

	return r->probe.asked ? r->probe.question : next ? next : 1;
}

/* What is to be said and cannot be now. A question must not overtake the data that
 * it asks about, and the answer must know where that data is. */
static uint32_t unsayable(const struct qp *qp)
{
	const bool busy = qp->rx_moving || qp->resp.replay.answering;

	return qp->resp.ack.xack &
	       ((qp->tx_moving ? XACK_PROBE : 0) | (busy ? XACK_PROBED : 0));
}

static void extend(struct qp *qp, struct pkt *p, bool page)
{
	struct resp *r = &qp->resp;
	psn_t next = qp->rx_moving ? r->win.head : r->win.next;

	p->opcode = OP_X_ACK;
	p->ext = true;
	p->epoch = qp->open.theirs;
	p->accepted = psn_add(next, PSN_MASK);
	p->credit = flow_grant(qp->x, qp->peer);
	p->xack_flags = (r->ack.xack & ~unsayable(qp)) |
			(page ? XACK_FAULT : 0);
	if (p->xack_flags & XACK_PROBE)
		p->question = question_now(&qp->req);
	if (r->ack.xack & XACK_PROBED) /* or, without the flag: we are busy */
		p->answer = r->ack.answer;
	hold_extend(qp, p);
	p->sack = qp->rx_moving ? 0 : win_sack(&r->win);
	if (p->sack)
		p->xack_flags |= XACK_SACK;
}

static bool nak_owed(const struct resp *r)
{
	return r->ack.nak.owed || r->ack.page_rnr.owed;
}

/* The page came before its RNR was said. If the peer was to learn by that what
 * was dropped meanwhile, it is asked for. */
static void page_came(struct resp *r)
{
	r->ack.page_rnr.owed = false;
	if (!next_rnr(r->next) || r->ack.nak.syndrome)
		return;
	resp_next(r, NEXT_RNR_UNSAID);
	if (next_forgot(r->next))
		return; /* fault_resolved() will */
	r->ack.nak = (struct nak){r->win.next, AETH_NAK | NAK_PSN_SEQUENCE,
				  true};
}

/* What is to be said in place of an ACK of what is before @limit. */
static const struct nak *nak_now(const struct qp *qp, psn_t limit)
{
	const struct resp *r = &qp->resp;

	if (r->ack.page_rnr.owed && psn_diff(r->ack.page_rnr.psn, limit) <= 0 &&
	    qp->state != QPS_ERR)
		return &r->ack.page_rnr;
	if (r->ack.nak.owed && psn_diff(r->ack.nak.psn, limit) <= 0)
		return &r->ack.nak;
	return NULL;
}

/* A NAK is owed for what is not placed yet. Is there something before it that is, and
 * that a standard peer was not told? */
static bool placed_unsaid(const struct qp *qp, psn_t limit)
{
	return !qp_dialect(qp)->carries &&
	       psn_diff(limit, qp->resp.ack.said) > 1;
}

/* Make the ACK of @qp. false: there is nothing that may be said now. */
static bool make(struct qp *qp, struct pkt *p)
{
	struct resp *r = &qp->resp;
	const bool ext = qp_dialect(qp)->ext;
	psn_t limit = ack_limit(qp);
	const struct nak *nak;

	if (!ext && qp->open.known)
		return false; /* it takes nothing without its epoch */
	if (r->ack.page_rnr.owed && psn_diff(r->ack.page_rnr.psn, limit) < 0)
		page_came(r);
	nak = nak_now(qp, limit);
	if ((nak_owed(r) && !nak && !(ext && r->ack.xack) &&
	     !placed_unsaid(qp, limit)) ||
	    (qp->state == QPS_ERR && !nak))
		return false;
	if ((unsayable(qp) || r->replay.answering) && !(ext && r->ack.busy))
		return false;
	*p = (struct pkt){.opcode = OP_ACK,
			  .pkey = PKEY_DEFAULT,
			  .qpn = qp->attr.dest_qpn,
			  .psn = nak ? nak->psn : psn_add(limit, PSN_MASK),
			  .syndrome = nak ? nak->syndrome
					  : AETH_ACK | AETH_CREDIT_INVALID,
			  .aeth_msn = r->msg.msn};
	if (ext)
		extend(qp, p, nak == &r->ack.page_rnr);
	return true;
}

static void question_asked(struct req *r)
{
	if (r->probe.asked)
		return;
	r->probe.question = question_now(r);
	r->probe.asked = true;
	r->probe.max = r->psn.snd;
}

/* What @syndrome and @psn said was said, or (@owed) is to be said still. */
static void set_owed(struct resp *r, uint8_t syndrome, psn_t psn, bool owed)
{
	struct nak *naks[] = {&r->ack.nak, &r->ack.page_rnr};

	for (unsigned i = 0; i < ARRAY_SIZE(naks); i++)
		if (naks[i]->syndrome == syndrome && naks[i]->psn == psn)
			naks[i]->owed = owed;
}

static void said(struct qp *qp, const struct pkt *p)
{
	struct resp *r = &qp->resp;
	uint8_t kind = p->syndrome & AETH_KIND_MASK;
	uint32_t more = 0;

	r->ack.said_ns = qp->x->now;
	r->at[RESP_REPEAT] = TIME_NEVER;
	if (kind != AETH_ACK) {
		set_owed(r, p->syndrome, p->psn, false);
		flight_note(&qp->log, qp->x->now, FLIGHT_NAK_TX, p->psn,
			    p->syndrome, r->msg.msn);
	}
	if (kind == AETH_ACK) {
		r->ack.rest = psn_diff(r->ack.to, p->psn) > 0;
		r->ack.said = p->psn;
	}
	if (kind == AETH_NAK)
		count(qp->x->cnt, CNT_naks_tx);
	if (p->xack_flags & XACK_PROBE) {
		question_asked(&qp->req);
		live_asked(qp);
	}
	if (p->opcode == OP_X_ACK) {
		more = unsayable(qp);
		r->ack.xack = more;
		r->ack.busy = false;
	}
	if (p->xack_flags & XACK_SUSPEND)
		hold_said(qp);
	count(qp->x->cnt, CNT_acks_tx);
	if (!nak_owed(r) && !more)
		ack_cancel(qp);
}

/* The answer to a question is as old as its plan: behind payload, whose page
 * may block the send, it could arrive after the next question and be taken for
 * the answer to that. */
static bool must_go_alone(const struct qp *qp)
{
	return qp->resp.ack.xack & XACK_PROBED;
}

void ack_headers(const struct qp *qp, struct pkt *p)
{
	const psn_t head = qp->resp.win.head;

	p->placed_to = psn_add(head, PSN_MASK);
	p->unanswered = ack_limit(qp) != head;
}

bool ack_first(struct qp *qp)
{
	const struct resp *r = &qp->resp;
	struct pkt p;

	if (qp_dialect(qp)->carries)
		return false;
	if (r->ack.out)
		return true;
	if (!r->ack.owed || !make(qp, &p))
		return false;
	owe_by(qp, qp->x->now);
	return true;
}

/* The headers say it anyway (ack_headers()); credit and gaps they do not. */
void ack_carry(struct qp *qp, struct burst *b)
{
	const struct resp *r = &qp->resp;
	uint32_t told = qp->peer->flow.granted;
	struct pkt p;

	if (!r->ack.owed || nak_owed(r) || r->ack.busy || !b->ext ||
	    !make(qp, &p) || !p.ext)
		return;
	b->acks.says = !(p.xack_flags &
			 ~(uint32_t)(XACK_PROBE | XACK_PROBED)) &&
		       p.accepted == p.psn;
	count_add(qp->x->cnt, CNT_acks_carried, b->acks.says);
	if (p.credit != told)
		ack_owe(qp);
	else if (b->acks.says && !p.xack_flags)
		said(qp, &p);
}

/* @b says @p: should it not leave, that is owed again. */
static void ack_remember(struct qp *qp, struct burst *b, const struct pkt *p)
{
	struct resp *r = &qp->resp;

	b->peer->acks.out += !b->acks.num;
	r->ack.out++;
	b->acks.v[b->acks.num++] = (struct burst_ack){
		.qpn = qp->cfg.qpn,
		.life = r->life,
		.xack = p->opcode == OP_X_ACK ? r->ack.xack : 0,
		.psn = p->psn,
		.syndrome = p->syndrome};
}

bool ack_append(struct qp *qp, struct burst *b)
{
	list_for_each_safe(l, tmp, &b->peer->acks.owed) {
		struct qp *q = list_entry(l, struct qp, on.owed);
		struct pkt p;

		if (qp && must_go_alone(q))
			continue;
		if (!make(q, &p)) {
			/* nor do requests wait for it, then (ack_first()) */
			if (!qp && !qp_dialect(q)->carries)
				qp_kick(q);
			continue;
		}
		if (p.ext != b->ext || (b->nsegs && !burst_suits(b, q)))
			continue;
		if (!burst_seg(b, &p, NULL))
			break;
		if (b->nsegs == 1)
			burst_mark(b, q);
		ack_remember(q, b, &p);
		said(q, &p);
		if (qp)
			count(qp->x->cnt, CNT_acks_behind);
	}
	return b->acks.num != 0;
}

/* All of @a that is still so is owed again. */
static void ack_unsaid(struct qp *qp, const struct burst_ack *a)
{
	struct resp *r = &qp->resp;
	uint32_t old = next_forgot(r->next) ? XACK_RESUME : XACK_HOLD;

	/* an order that is owed is newer */
	if (r->ack.xack & (XACK_HOLD | XACK_RESUME))
		old = XACK_HOLD | XACK_RESUME;
	set_owed(r, a->syndrome, a->psn, true);
	/* a failed QP does not say that a page is missing */
	r->ack.page_rnr.owed &= qp_receives(qp);
	r->ack.said = psn_add(r->win.head, PSN_MASK - 1);
	r->ack.xack |= a->xack & ~old;
	if (qp_receives(qp) || (qp->state == QPS_ERR && r->ack.nak.owed))
		ack_owe(qp);
}

void ack_commit(struct qp *qp, const struct burst_ack *a, int error, bool again)
{
	if (qp->resp.life != a->life)
		return;
	qp->resp.ack.out--;
	if (error == -EAGAIN)
		qp->peer->acks.after_ns = qp->x->now + PAUSE_FULL_NS;
	if (error && again)
		ack_unsaid(qp, a);
	if (!qp_dialect(qp)->carries)
		qp_kick(qp); /* ack_first() */
}

/* ACKs that must wait (for a READ before them, for moves) stay owed; ack_again()
 * comes to them when that is over. */
bool peer_ack_burst(struct xport *x, struct peer *peer, struct burst *b)
{
	list_del(&peer->acks.link);
	for (int ext = 1; ext >= 0; ext--) {
		burst_reset(b, NULL, peer, ext);
		if (!ack_append(NULL, b))
			continue;
		if (!list_empty(&peer->acks.owed))
			list_add_tail(&x->work.ack_peers, &peer->acks.link);
		return true;
	}
	return false;
}
