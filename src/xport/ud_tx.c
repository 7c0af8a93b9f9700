/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_tx.c: datagrams go out (IBTA 9.8.3). One is complete as soon as it was handed
 * to the host's network. What goes to one NIC in a row is one burst, of standard
 * packets to nopins too: there is no connection whose nonce an extension packet
 * could show to every NIC that may be reached.
 */
#include "base/account.h"
#include "base/addr.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/access.h"
#include "xport/aim.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/deadline.h"
#include "xport/fault.h"
#include "xport/kick.h"
#include "xport/life.h"
#include "xport/peer.h"
#include "xport/psns.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/tx.h"
#include "xport/ud.h"
#include "xport/xport.h"

#include <errno.h>

enum { QKEY_OWN_BIT = 31 };

static bool idle(const struct qp *qp)
{
	return qp->state != QPS_RTS || qp->tx_moving ||
	       deadline_waits(qp->req.at[REQ_PAUSE]) || qp->req.wait.ticket.v ||
	       qp->cfg.sq->cons == wq_end(qp->cfg.sq);
}

/* Is that the same NIC, marked in the same way? A QPN's upper bits name its port. */
static bool same_nic(const struct wqe_to *a, const struct wqe_to *b)
{
	return a->qpn >> 10 == b->qpn >> 10 && a->scope == b->scope &&
	       ip_mark_eq(a->mark, b->mark) &&
	       ipaddr_eq(&a->local, &b->local) && ipaddr_eq(&a->dgid, &b->dgid);
}

const struct wqe_to *ud_next(const struct qp *qp)
{
	const struct wqe_to *to;

	if (idle(qp))
		return NULL;
	to = &wq_at(qp->cfg.sq, qp->cfg.sq->cons)->to;
	return qp->peer && same_nic(to, &qp->ud.to) ? NULL : to;
}

struct peer *ud_aim(struct qp *qp, const struct wqe_to *to, struct peer *peer)
{
	struct peer *before = qp->peer;

	list_del(&qp->on.waiting);
	qp->ud.to = *to;
	qp->peer = peer;
	return before;
}

/* The oldest request fails, and all behind it; receiving goes on (IBTA 10.3.1). */
static void ud_tx_fail(struct qp *qp, enum wc_status status,
		       enum wc_cause cause)
{
	comp_oldest(qp, status, (uint16_t)cause);
	if (qp->state != QPS_RTS)
		return;
	qp_set_state(qp, QPS_SQE);
	qp->cause = (uint16_t)cause;
	comp_flush(qp);
}

void ud_refused(struct qp *qp)
{
	ud_tx_fail(qp, WC_LOC_QP_OP_ERR, CAUSE_OPERATION);
}

static struct pkt ud_tx_pkt_for(const struct qp *qp, const struct wqe *w,
				psn_t psn)
{
	const bool own = w->to.qkey >> QKEY_OWN_BIT;

	return (struct pkt){.opcode = w->op == WR_SEND_IMM ? OP_UD_SEND_ONLY_IMM
							   : OP_UD_SEND_ONLY,
			    .pkey = PKEY_DEFAULT,
			    .qpn = w->to.qpn,
			    .psn = psn,
			    .qkey = own ? qp->attr.qkey : w->to.qkey,
			    .src_qpn = qp->cfg.qpn,
			    .solicited = w->flags & WQE_SOLICITED,
			    .imm = w->imm,
			    .payload_len = (uint32_t)w->length};
}

/* V_NO_RESOURCE: it does not fit this burst. */
static enum verdict ud_tx_add(struct qp *qp, struct burst *b, struct wqe *w)
{
	const uint32_t hold = b->holds.num, move = b->gathers.num;
	struct pkt p = ud_tx_pkt_for(qp, w, psn_add(qp->req.psn.snd, b->nsegs));
	const bool inl = w->flags & WQE_INLINE;
	enum verdict v;

	if (w->length > qp->mtu)
		return V_LENGTH;
	if (moves_room(&b->gathers) < w->num_sge ||
	    hold + w->num_sge > HOLDS_MAX ||
	    !burst_seg(b, &p, inl ? wqe_inline(w) : NULL))
		return V_NO_RESOURCE;
	if (inl || !w->length)
		return V_OK;
	v = sge_walk(qp, w, 0, (uint32_t)w->length, 0, false, NULL,
		     (uint16_t)(b->nsegs - 1), &qp->req.wait, &b->gathers,
		     &b->holds);
	met_add(&w->met, waiter_met(&qp->req.wait));
	if (v == V_OK)
		return v;
	burst_unseg(b, hold, move);
	qp->x->starved |= v == V_NO_RESOURCE;
	if (v == V_WAIT || v == V_NO_RESOURCE)
		fault_source(qp, p.psn, false);
	return v;
}

static enum verdict ud_tx_fill(struct qp *qp, struct burst *b)
{
	struct wq *sq = qp->cfg.sq;
	enum verdict v = V_OK;

	for (uint32_t i = sq->cons; v == V_OK && i != wq_end(sq); i++) {
		struct wqe *w = wq_at(sq, i);

		if (!same_nic(&w->to, &qp->ud.to))
			break;
		qp->req.wqe.started = i + 1;
		v = ud_tx_add(qp, b, w);
	}
	return v;
}

bool ud_tx(struct qp *qp, struct burst *b)
{
	struct req *r = &qp->req;
	enum verdict v;

	if (idle(qp) || ud_next(qp))
		return false;
	if (qp->peer->kind == PEER_PROBING) {
		if (list_empty(&qp->on.waiting))
			list_add_tail(&qp->peer->stalled, &qp->on.waiting);
		return false;
	}
	burst_reset(b, qp, qp->peer, false);
	v = ud_tx_fill(qp, b);
	if (b->nsegs) {
		flight_note(&qp->log, qp->x->now, FLIGHT_TX, r->psn.snd,
			    b->bytes[b->seg[0].hdr], burst_payload(b));
		(void)psns_sent(&r->psn, b->nsegs);
		return true;
	}
	if (v == V_PROT)
		ud_tx_fail(qp, WC_LOC_PROT_ERR, CAUSE_ACCESS);
	else if (v == V_LENGTH)
		ud_tx_fail(qp, WC_LOC_LEN_ERR, CAUSE_LENGTH);
	return false;
}

void ud_tx_commit(struct qp *qp, const struct burst *b, int error)
{
	struct req *r = &qp->req;

	if (error == -EFAULT || error == -EAGAIN) {
		psns_unsent(&r->psn, r->psn.una, r->psn.una);
		if (error == -EAGAIN)
			r->at[REQ_PAUSE] = qp->x->now + PAUSE_FULL_NS;
	} else {
		/* Other errors: as if it had been lost on the way. */
		for (unsigned i = 0; i < b->nsegs; i++)
			comp_oldest(qp, WC_SUCCESS, CAUSE_NONE);
		psns_completed(&r->psn, psns_placed(&r->psn, r->psn.max));
	}
	r->wqe.cur = qp->cfg.sq->cons;
	comp_drained(qp);
	qp_rearm(qp);
}

void ud_timeout(struct qp *qp)
{
	if (qp->x->now < qp->req.at[REQ_PAUSE])
		return;
	qp->req.at[REQ_PAUSE] = TIME_NEVER;
	qp_kick(qp);
}
