/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owe.c: what is owed to a requester: an ACK, a NAK, or a word to a nopin. It leaves later
 * (ack.c).
 */
#include "xport/owe.h"
#include "base/check.h"
#include "base/list.h"
#include "base/probe.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/psn.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/responder.h"
#include "xport/tx.h"
#include "xport/xport.h"

/* After so many receives in turn, each with a request behind it, the next has one. */
enum { ANSWERS_KNOWN = 8 };

void owe_by(struct qp *qp, uint64_t due_ns)
{
	struct peer *p = qp->peer;

	qp->resp.ack.owed = true;
	if (list_empty(&qp->on.owed)) {
		if (list_empty(&p->acks.owed))
			p->acks.due_ns = due_ns;
		list_add_tail(&p->acks.owed, &qp->on.owed);
	}
	p->acks.due_ns = MIN(p->acks.due_ns, due_ns);
	if (list_empty(&p->acks.link))
		list_add_tail(&qp->x->work.ack_peers, &p->acks.link);
}

void ack_owe(struct qp *qp)
{
	owe_by(qp, qp->x->now + qp->x->ack_delay_ns);
}

void ack_received(struct qp *qp)
{
	struct resp *r = &qp->resp;

	if (r->ack.received)
		r->ack.answers = 0;
	r->ack.received = true;
	if (r->ack.answers == ANSWERS_KNOWN && qp_dialect(qp)->carries)
		ack_owe(qp);
	else
		owe_by(qp, qp->x->now);
}

void ack_answered(struct resp *r)
{
	if (r->ack.received && r->ack.answers < ANSWERS_KNOWN)
		r->ack.answers++;
	r->ack.received = false;
}

void ack_repeat(struct qp *qp)
{
	struct resp *r = &qp->resp;
	const uint64_t at = r->ack.said_ns + qp->x->ack_delay_ns;

	if (qp->x->now >= at) {
		ack_owe(qp);
	} else if (!deadline_waits(r->at[RESP_REPEAT])) {
		r->at[RESP_REPEAT] = at;
		qp_rearm(qp);
	}
}

void ack_repeat_timeout(struct qp *qp)
{
	if (qp->x->now < qp->resp.at[RESP_REPEAT])
		return;
	qp->resp.at[RESP_REPEAT] = TIME_NEVER;
	owe_by(qp, qp->x->now);
}

void ack_nak(struct qp *qp, uint8_t syndrome, psn_t psn)
{
	PROBE3(nak, qp->cfg.qpn, psn, syndrome);
	qp->resp.ack.nak = (struct nak){psn, syndrome, true};
	owe_by(qp, qp->x->now);
}

void ack_page_rnr(struct qp *qp, uint8_t code, psn_t psn)
{
	PROBE3(nak, qp->cfg.qpn, psn, AETH_RNR | code);
	qp->resp.ack.page_rnr = (struct nak){psn, AETH_RNR | code, true};
	owe_by(qp, qp->x->now);
}

void ack_answer(struct qp *qp, uint16_t question)
{
	struct resp *r = &qp->resp;

	r->ack.answer = question;
	r->ack.busy = qp->rx_moving || r->replay.answering;
	ack_say(qp, XACK_PROBED);
}

void ack_say(struct qp *qp, uint32_t xack_flags)
{
	/* It is said when its epoch is known. */
	if (!qp_dialect(qp)->answers && !qp->open.known)
		return;
	if (xack_flags & (XACK_HOLD | XACK_RESUME)) /* the newer one */
		qp->resp.ack.xack &= ~(uint32_t)(XACK_HOLD | XACK_RESUME);
	qp->resp.ack.xack |= xack_flags;
	owe_by(qp, qp->x->now);
}

bool ack_credit(struct qp *qp)
{
	if (!qp_receives(qp) || !qp_dialect(qp)->budgets)
		return false;
	ack_owe(qp);
	return true;
}

bool ack_last(struct qp *qp)
{
	const struct resp *r = &qp->resp;

	if (!qp->connected)
		return false; /* no peer is told anything */
	if (!(qp_receives(qp) && (r->ack.lossy || r->ack.owed)) &&
	    !(qp->state == QPS_ERR && r->ack.nak.owed))
		return false;
	ack_owe(qp);
	return true;
}

bool ack_leaving(const struct qp *qp)
{
	return qp->resp.ack.out ||
	       (qp->resp.ack.owed && qp->peer->acks.after_ns > qp->x->now);
}

void ack_again(struct qp *qp)
{
	if (qp->resp.ack.owed && list_empty(&qp->peer->acks.link))
		list_add_tail(&qp->x->work.ack_peers, &qp->peer->acks.link);
}

void ack_cancel(struct qp *qp)
{
	struct peer *p = qp->peer;

	qp->resp.ack.owed = false;
	list_del(&qp->on.owed);
	if (p && list_empty(&p->acks.owed))
		list_del(&p->acks.link);
}

void ack_rest(struct qp *qp)
{
	if (qp->resp.ack.rest)
		ack_owe(qp);
	qp->resp.ack.rest = false;
}

void owe_check(const struct qp *qp)
{
	const struct resp_ack *a = &qp->resp.ack;

	CHECK(a->owed == !list_empty(&qp->on.owed));
	CHECK(a->answers <= ANSWERS_KNOWN);
	CHECK((a->xack & (XACK_HOLD | XACK_RESUME)) !=
	      (XACK_HOLD | XACK_RESUME));
	CHECK(!a->nak.owed || a->nak.syndrome);
	CHECK(!a->busy || (a->xack & XACK_PROBED));
	CHECK(!(a->nak.owed || a->page_rnr.owed) || a->owed || a->out);
}
