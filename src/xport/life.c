/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.c: states of a QP, its events and completions, and how it fails. A QP that has
 * failed is only marked: qp.c flushes its queues.
 */
#include "xport/life.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/log.h"
#include "ring/cq.h"
#include "ring/cqe.h"
#include "xport/attr.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/xport.h"

void qp_set_state(struct qp *qp, enum qp_state to)
{
	flight_note(&qp->log, qp->x->now, FLIGHT_STATE, 0, (uint16_t)qp->state,
		    to);
	/* Posters read it without the lock: who flushes then sees what they
	 * published, or they see ERR (nic/pair.c). */
	__atomic_store_n(&qp->state, to, __ATOMIC_SEQ_CST);
	qp->attr.state = to;
}

void qp_event(struct qp *qp, unsigned event)
{
	qp->events |= 1u << event;
	if (list_empty(&qp->on.errors))
		list_add_tail(&qp->x->work.errors, &qp->on.errors);
}

void qp_enter_error(struct qp *qp)
{
	qp_set_state(qp, QPS_ERR);
	flow_forget(qp);
	reads_forget(qp);
	credit_leave(qp);
	list_del(&qp->on.waiting);
	qp_rearm(qp);
}

void qp_fail(struct qp *qp, uint8_t event)
{
	if (qp->state == QPS_ERR)
		return;
	log_debug("qp 0x%06x failed, event %d; before that:", qp->cfg.qpn,
		  event);
	flight_log(&qp->log, qp->x->now);
	if (event != QP_NO_EVENT)
		qp_event(qp, event);
	qp_enter_error(qp);
}

void qp_blame(struct qp *qp, uint16_t cause, uint8_t event)
{
	/* in SQE it is what ended sending alone */
	if (!qp->cause || qp->state == QPS_SQE)
		qp->cause = cause;
	qp_fail(qp, event);
}

void qp_push_cqe(struct qp *qp, struct cq *cq, const struct cqe *e)
{
	bool full;

	if (qp->abandoned)
		return;
	full = cq_push(cq, e) != 0;
	flight_note(&qp->log, qp->x->now, FLIGHT_CQE, 0, e->status, e->wr_id);
	if ((full || cq->fired) && list_empty(&cq->link))
		list_add_tail(&qp->x->work.fired, &cq->link);
	if (full && qp->state != QPS_ERR)
		qp_blame(qp, CAUSE_CQ_FULL, QP_EVENT_FATAL);
}
