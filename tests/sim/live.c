/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live.c: I8: whatever is posted and not complete waits for something that ends: the
 * engine is about to look at it, or something of its own host is under way, or a
 * deadline is set. Looked at all the time in every scenario; ending.c tries the
 * endings.
 */
#include "nic/device.h"
#include "nic/qp.h"
#include "oracle.h"
#include "os/run.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/peer.h"

/* To a standard peer an ACK that is owed leaves first (ack_first()). */
static bool ack_leaves(const struct qp *qp)
{
	return qp->resp.ack.out ||
	       (qp->resp.ack.owed && !list_empty(&qp->peer->acks.link));
}

static bool engine_acts(const struct nic_qp *nq)
{
	const struct qp *qp = &nq->qp;

	return nq->posted || !list_empty(&qp->on.runnable) ||
	       !list_empty(&qp->on.drainable) || !qp_idle(qp) ||
	       ack_leaves(qp) || qp->timer.at_ns <= os_now(nq->nic->os);
}

/* Nobody can ask a standard peer whether it lives: who has the room for responses
 * ends, and then it may be sent to. */
static bool waits_for_room(const struct qp *qp)
{
	return !qp_open(qp) && !list_empty(&qp->on.waiting) &&
	       qp->x->budget.read_out;
}

/* A page, a ticket, moves in a region that was revoked; or what the peer is. */
static bool host_acts(const struct qp *qp)
{
	return waits_for_room(qp) || qp->req.wait.ticket.v ||
	       qp->req.rsp_wait.ticket.v || !list_empty(&qp->on.idle) ||
	       qp->peer->hello.timer.at_ns != TIME_NEVER;
}

static bool has_work(const struct nic_qp *nq)
{
	const struct qp *qp = &nq->qp;

	if (!qp->connected)
		return false;
	if (qp->state == QPS_SQD)
		return qp->req.psn.una != qp->req.psn.max;
	return qp->state == QPS_RTS && nq->sq.cons != wq_end(&nq->sq);
}

/* timeout 0 is for ever, but for what the peer says. A WRITE that notifies waits until
 * a peer that seems a standard one was asked often enough whether it is. */
static uint64_t deadline(const struct qp *qp)
{
	const struct req *r = &qp->req;
	const struct open *o = &qp->open;
	uint64_t at = MIN(r->at[REQ_HOLD], r->at[REQ_SUSPEND]);

	if (!qp->attr.timeout)
		return qp->timer.at_ns;
	if (o->insisted && !o->plain && !qp_open(qp))
		at = MIN(at, o->ask_at);
	return MIN(at, MIN(r->at[REQ_PAUSE], r->at[REQ_SILENT]));
}

void node_live(const struct node *node)
{
	list_for_each(l, &node->nic->qps.all) {
		const struct nic_qp *nq = list_entry(l, struct nic_qp, all);
		const struct qp *qp = &nq->qp;

		if (!has_work(nq) || engine_acts(nq) || host_acts(qp))
			continue;
		EXPECT(node->w, deadline(qp) != TIME_NEVER,
		       "node %u: I8: QP %u waits for nothing: una %u, acc %u, "
		       "snd %u, max %u, %u posted",
		       node->index, qp->cfg.qpn, qp->req.psn.una,
		       qp->req.psn.acc, qp->req.psn.snd, qp->req.psn.max,
		       wq_end(&nq->sq) - nq->sq.cons);
	}
}
