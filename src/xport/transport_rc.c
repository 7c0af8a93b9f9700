/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport_rc.c: reliable connections, as a transport service. The two halves are in
 * req.c/comp.c/reply.c/retry.c and resp.c/exec.c/replay.c/ack.c.
 */
#include "xport/transport_rc.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/list.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/fault_rnr.h"
#include "xport/live.h"
#include "xport/open.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/replay.h"
#include "xport/reply.h"
#include "xport/req.h"
#include "xport/requester.h"
#include "xport/resp.h"
#include "xport/responder.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/tx.h"
#include "xport/xport.h"

#include <errno.h>

/* There are no alternate paths, as with any RoCE: the only migration state is
 * "migrated" (verbs/attr.c sees to it). */
#define RTS_MAY (QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE | QPA_MIN_RNR_TIMER)

static const struct qp_edge rc_edges[] = {
	{QPS_RESET, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
	{QPS_INIT, QPS_INIT, 0, QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS},
	{QPS_INIT, QPS_RTR,
	 QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
		 QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
	 QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
	{QPS_RTR, QPS_RTS,
	 QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
		 QPA_MAX_RD_ATOMIC,
	 RTS_MAY},
	{QPS_RTS, QPS_RTS, 0, RTS_MAY},
	{QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	{QPS_SQD, QPS_RTS, 0, RTS_MAY},
	{QPS_SQD, QPS_SQD, 0,
	 RTS_MAY | QPA_PORT | QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT |
		 QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC | QPA_PKEY_INDEX |
		 QPA_MAX_DEST_RD_ATOMIC},
};

static void rc_ready(struct qp *qp, struct peer *peer)
{
	qp->peer = peer;
	qp->req.win.held = qp->resp.win.held = &peer->lend.slots;
	qp->req.win.peer = qp->resp.win.peer = peer;
}

static void rc_timeout(struct qp *qp)
{
	if (qp->state == QPS_RTS || qp->state == QPS_SQD)
		req_timeout(qp);
}

/* Plan what a connection sends. */
static bool rc_tx(struct qp *qp, struct burst *b)
{
	const bool found = replay_tx(qp, b);

	if (!found && open_waits(qp)) {
		/* requests wait for the answer to our question */
		if (list_empty(&qp->on.waiting))
			list_add_tail(&qp->peer->stalled, &qp->on.waiting);
		live_wait_open(qp);
		return false;
	}
	if (!found && !req_tx(qp, b))
		return false;
	burst_spray(b);
	return true;
}

static void rc_tx_commit(struct qp *qp, const struct burst *b, int error)
{
	const bool unsent = error == -EFAULT || error == -EAGAIN;

	if (unsent && b->request)
		req_unsent(qp, b, error);
	else if (unsent)
		replay_unsent(qp, b, error);
	else if (!error && !b->request)
		rnr_silence_again(qp);
}

enum rx_result rc_rx(struct qp *qp, const struct pkt *pkt,
		     struct payload payload, struct rx_run *run)
{
	bool response = pkt->op & OPF_RESPONSE;

	if (pkt->ext)
		live_heard_of(qp->peer, qp->x->now);
	reads_quiet(qp, false);
	if (pkt->opcode == OP_X_ACK && (pkt->xack_flags & XACK_PROBE) &&
	    qp_receives(qp)) {
		ack_answer(qp, pkt->question);
	}
	if (pkt->opcode == OP_X_ACK && qp->state == QPS_RTR) {
		qp->peer->flow.budget = pkt->credit;
		return RX_NEXT;
	}
	if (run->qp && (run->qp != qp || run->responses != response))
		return RX_FULL;
	if (!response && pkt->ext && qp->state >= QPS_RTS &&
	    qp->state <= QPS_SQE)
		reply_carried(qp, pkt);
	if (response && qp->state >= QPS_RTS && qp->state <= QPS_SQE)
		return reply_rx(qp, pkt, payload, run);
	if (!response && qp_receives(qp))
		return resp_rx(qp, pkt, payload, run);
	count(qp->x->cnt, CNT_drop_state);
	return RX_NEXT;
}

static void rc_rx_commit(struct rx_run *run)
{
	if (run->responses)
		reply_commit(run);
	else
		resp_commit(run);
}

static bool rc_drain(struct qp *qp, struct rx_run *run)
{
	return resp_drain(qp, run) || (qp_receives(qp) && reply_drain(qp, run));
}

const struct transport transport_rc = {
	.edges = rc_edges,
	.num_edges = ARRAY_SIZE(rc_edges),
	.connected = true,
	.ready = rc_ready,
	.timeout = rc_timeout,
	.tx = rc_tx,
	.tx_commit = rc_tx_commit,
	.rx = rc_rx,
	.rx_commit = rc_rx_commit,
	.drain = rc_drain,
};
