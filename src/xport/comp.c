/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* comp.c: requests complete, in the order they were posted (IBTA 9.9): well, as far as
 * all is placed over there and answered, or with an error, and those behind it with it.
 * req.una only passes a READ or atomic when its response was placed.
 */
#include "xport/comp.h"
#include "base/flight.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/psn.h"
#include "xport/attr.h"
#include "xport/credit.h"
#include "xport/flow.h"
#include "xport/kept.h"
#include "xport/life.h"
#include "xport/psns.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/requester.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

static enum wr_op cqe_op(const struct wqe *w)
{
	return w->op;
}

static void complete(struct qp *qp, struct wqe *w, enum wc_status status,
		     uint16_t cause)
{
	struct cqe e = {.wr_id = w->wr_id,
			.status = (uint8_t)status,
			.vendor_err = cause,
			.op = (uint8_t)cqe_op(w),
			.qpn = qp->cfg.qpn};
	const bool signaled = status != WC_SUCCESS || qp->cfg.sq_sig_all ||
			      (w->flags & WQE_SIGNALED);

	/* else it was flushed, and no engine ever wrote to it */
	if ((int32_t)(qp->req.wqe.started - qp->cfg.sq->cons) > 0)
		e.met = w->met;
	if (wqe_is_read(w))
		e.byte_len = wqe_is_atomic(w) ? ATOMIC_BYTES
					      : (uint32_t)w->length;
	/* from here on the slot is the program's */
	wq_release(qp->cfg.sq, qp->cfg.sq->cons + 1);
	if (signaled)
		qp_push_cqe(qp, qp->cfg.send_cq, &e);
}

void comp_oldest(struct qp *qp, enum wc_status status, uint16_t cause)
{
	complete(qp, wq_at(qp->cfg.sq, qp->cfg.sq->cons), status, cause);
}

/* @data: of a SEND or WRITE. In ERR nothing counts any more. */
static void una_to(struct qp *qp, psn_t to, bool data)
{
	if (data && qp->state != QPS_ERR)
		credit_placed(qp, (uint32_t)psn_diff(to, qp->req.psn.una));
	psns_completed(&qp->req.psn, to);
}

void comp_placed(struct qp *qp, psn_t target)
{
	struct wq *sq = qp->cfg.sq;
	struct req *r = &qp->req;
	psn_t una = r->psn.una;

	/* What is said while a response before it is being placed, say, is not
	 * said again. */
	target = psns_placed(&r->psn, target);
	while (sq->cons != r->wqe.started && qp->state != QPS_ERR) {
		struct wqe *w = wq_at(sq, sq->cons);
		psn_t end = wqe_end(w);

		if (r->failure.known && sq->cons == r->failure.wqe)
			break;
		if (wqe_is_read(w) && !wqe_passed(w, r->psn.una)) {
			if (wqe_offset(w, target) > 0)
				target = w->first_psn;
			break;
		}
		if (!wqe_passed(w, target))
			break;
		una_to(qp, end, !wqe_is_read(w));
		if (r->wqe.cur == sq->cons)
			r->wqe.cur++;
		complete(qp, w, WC_SUCCESS, CAUSE_NONE);
	}
	/* in the middle of one; what has failed gives all back as it ends */
	if (psn_diff(target, r->psn.una) > 0)
		una_to(qp, target,
		       !r->failure.known || sq->cons != r->failure.wqe);
	if (r->psn.una != una)
		comp_reload(qp);
	/* WRITEs alone must not leave them half the PSNs behind */
	if (psn_diff(r->psn.una, r->win.next) > 0)
		r->win.next = r->psn.una;
	if (psn_diff(r->psn.una, r->reads.last_again_to) > 0)
		r->reads.last_again_to = r->psn.una;
	flow_accepted(qp, r->psn.acc);
	reads_answered(qp, r->psn.una);
	comp_reap(qp);
}

void comp_drained(struct qp *qp)
{
	if (qp->state == QPS_SQD && qp->req.psn.una == qp->req.psn.max &&
	    qp->attr.en_sqd_async_notify) {
		qp->attr.en_sqd_async_notify = false;
		qp_event(qp, QP_EVENT_SQ_DRAINED);
	}
}

void comp_reap(struct qp *qp)
{
	struct wq *sq = qp->cfg.sq;
	struct req *r = &qp->req;

	while (sq->cons != r->wqe.started && qp->state != QPS_ERR) {
		struct wqe *w = wq_at(sq, sq->cons);

		if (r->failure.known && sq->cons == r->failure.wqe) {
			qp_fail(qp, QP_NO_EVENT);
			return;
		}
		if (w->num_psn || sq->cons == r->wqe.cur)
			break;
		complete(qp, w, WC_SUCCESS, CAUSE_NONE);
	}
	comp_drained(qp);
}

void comp_fail_wqe(struct qp *qp, uint32_t index, enum wc_status status,
		   uint16_t cause)
{
	struct req *r = &qp->req;

	if (r->failure.known && (int32_t)(index - r->failure.wqe) >= 0)
		return;
	flight_note(&qp->log, qp->x->now, FLIGHT_ERROR, r->psn.una,
		    (uint16_t)status, index);
	r->failure.known = true;
	r->failure.wqe = index;
	r->failure.status = (uint8_t)status;
	qp->cause = cause;
	if (index == qp->cfg.sq->cons)
		qp_fail(qp, QP_NO_EVENT);
}

void comp_flush(struct qp *qp)
{
	struct wq *sq = qp->cfg.sq;
	struct req *r = &qp->req;

	win_reset(qp->x, &r->win, r->win.next);
	waiter_cancel(qp->x->mem, &r->wait);
	waiter_cancel(qp->x->mem, &r->rsp_wait);
	while (sq->cons != wq_end(sq)) {
		bool bad = r->failure.known && sq->cons == r->failure.wqe;

		complete(qp, wq_at(sq, sq->cons),
			 bad ? r->failure.status : WC_WR_FLUSH_ERR, qp->cause);
	}
	r->failure.known = false;
	r->wqe.cur = r->wqe.started = sq->cons;
}

bool comp_reads_pending(const struct qp *qp)
{
	const struct wq *sq = qp->cfg.sq;

	for (uint32_t i = sq->cons; i != qp->req.wqe.started; i++)
		if (wqe_is_read(wq_at(sq, i)))
			return true;
	return false;
}

void comp_reload(struct qp *qp)
{
	qp->req.retries = qp->attr.retry_cnt;
	qp->req.rnr_retries = qp->attr.rnr_retry;
	qp->req.failure.too_large = false;
}
