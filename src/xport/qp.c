/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.c: the life of a QP: states and their attributes (IBTA 10.3.1 and table
 * 91), flushing, and the calls from outside xport/, which it hands to the rooms below
 * (src/LAYERS has their order), by the row of its transport service.
 *
 * Theory of operation. A QP is in one of three relations to the engine:
 *  - on xport.work.runnable: qp_tx() may find something to send;
 *  - moving: a burst (tx_moving) or a run (rx_moving) of it is being executed
 *    outside the lock; that half is not planned again before the commit;
 *  - waiting: for a packet, a page (struct waiter), a time (timer) or budget
 *    (on.waiting). A function that ends a wait calls qp_kick() or qp_drainable().
 * Entering ERR takes effect at once. The queues are flushed at the end of a call from
 * outside xport/, when nothing of the QP moves any more: a flushed buffer is the
 * program's again, and a function that fails the QP half way through its requests
 * finds the queues as they were.
 */
#include "xport/qp.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/heap.h"
#include "base/list.h"
#include "base/rand.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "ring/cqe.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/aim.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/fault.h"
#include "xport/flow.h"
#include "xport/flush.h"
#include "xport/hold.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/lend.h"
#include "xport/life.h"
#include "xport/open.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/reads.h"
#include "xport/replay.h"
#include "xport/reply.h"
#include "xport/req.h"
#include "xport/requester.h"
#include "xport/resp.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/revoke.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/transport_rc.h"
#include "xport/tx.h"
#include "xport/ud.h"
#include "xport/window.h"
#include "xport/xport.h"

#include <errno.h>
#include <stdlib.h>

#define ALWAYS (QPA_STATE | QPA_CUR_STATE)

static bool edge_ok(const struct qp *qp, enum qp_state to, uint32_t mask)
{
	const struct transport *t = qp->cfg.transport;

	if (to == QPS_RESET || to == QPS_ERR)
		return (mask & ~(uint32_t)ALWAYS) == 0;
	for (size_t i = 0; i < t->num_edges; i++) {
		const struct qp_edge *e = &t->edges[i];

		if (e->from == qp->state && e->to == to)
			return (mask & e->need) == e->need &&
			       !(mask & ~(e->need | e->may | ALWAYS));
	}
	return false;
}

static bool mtu_ok(uint32_t mtu)
{
	return mtu >= MTU_MIN && mtu <= MTU_MAX && !(mtu & (mtu - 1));
}

static bool values_ok(const struct qp_attr *a, uint32_t mask)
{
	struct {
		uint32_t bit;
		bool ok;
	} const checks[] = {
		{QPA_PORT, a->port == 1},
		{QPA_PKEY_INDEX, a->pkey_index == 0},
		{QPA_PATH_MTU, mtu_ok(a->path_mtu)},
		{QPA_DEST_QPN, a->dest_qpn <= PSN_MASK},
		{QPA_TIMEOUT, a->timeout <= 31},
		{QPA_MIN_RNR_TIMER, a->min_rnr_timer <= 31},
		{QPA_MAX_RD_ATOMIC, a->max_rd_atomic <= RD_ATOMIC_MAX},
		{QPA_MAX_DEST_RD_ATOMIC,
		 a->max_dest_rd_atomic <= RD_ATOMIC_MAX},
		{QPA_AV, a->has_grh && !ipaddr_is_any(&a->dgid)},
	};

	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		if ((mask & checks[i].bit) && !checks[i].ok)
			return false;
	return true;
}

/* A connection keeps the peer that it was made with; how its packets get there may
 * change. */
static bool peer_stays(const struct qp *qp, const struct qp_attr *a,
		       uint32_t mask)
{
	return !(mask & QPA_AV) || qp->state != QPS_SQD ||
	       (ipaddr_eq(&a->dgid, &qp->attr.dgid) &&
		a->sgid_index == qp->attr.sgid_index);
}

static void copy_av(struct qp_attr *to, const struct qp_attr *from)
{
	to->dgid = from->dgid;
	to->sgid_index = from->sgid_index;
	to->flow_label = from->flow_label;
	to->hop_limit = from->hop_limit;
	to->traffic_class = from->traffic_class;
	to->sl = from->sl;
	to->static_rate = from->static_rate;
	to->has_grh = from->has_grh;
	to->port = from->port ? from->port : to->port;
}

static void copy_attr(struct qp_attr *to, const struct qp_attr *from,
		      uint32_t mask)
{
	if (mask & QPA_ACCESS_FLAGS)
		to->access = from->access;
	if (mask & QPA_QKEY)
		to->qkey = from->qkey;
	if (mask & QPA_PORT)
		to->port = from->port;
	if (mask & QPA_AV)
		copy_av(to, from);
	if (mask & QPA_PATH_MTU)
		to->path_mtu = from->path_mtu;
	if (mask & QPA_DEST_QPN)
		to->dest_qpn = from->dest_qpn;
	if (mask & QPA_RQ_PSN)
		to->rq_psn = from->rq_psn & PSN_MASK;
	if (mask & QPA_SQ_PSN)
		to->sq_psn = from->sq_psn & PSN_MASK;
	if (mask & QPA_TIMEOUT)
		to->timeout = from->timeout;
	if (mask & QPA_RETRY_CNT)
		to->retry_cnt = MIN(from->retry_cnt, 7);
	if (mask & QPA_RNR_RETRY)
		to->rnr_retry = MIN(from->rnr_retry, 7);
	if (mask & QPA_MIN_RNR_TIMER)
		to->min_rnr_timer = from->min_rnr_timer;
	if (mask & QPA_MAX_RD_ATOMIC)
		to->max_rd_atomic = MAX(from->max_rd_atomic, 1); /* as cards */
	if (mask & QPA_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if (mask & QPA_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
}

int xport_open(struct xport *x, struct mem *mem, struct counters *cnt,
	       uint32_t slots, const uint64_t seed[2])
{
	*x = (struct xport){.mem = mem, .cnt = cnt, .pool.slots = slots};
#ifdef NOPIN_DEBUG
	x->checked = true;
#endif
	x->rnd = (struct rnd){seed[0], seed[1], 0};
	x->pool.accepted = heap_array(slots, sizeof(*x->pool.accepted));
	if (!x->pool.accepted)
		return -ENOMEM;
	x->ack_delay_ns = UINT64_C(20) * 1000;
	x->strategies = strategy_set(STRATEGY_ADAPTIVE);
	list_init(&x->work.runnable);
	list_init(&x->work.drainable);
	list_init(&x->work.opens);
	list_init(&x->work.ack_peers);
	list_init(&x->work.read_waiters);
	list_init(&x->work.idle_waiters);
	list_init(&x->work.fired);
	list_init(&x->work.raised);
	list_init(&x->work.errors);
	timerq_init(&x->timers);
	return 0;
}

void xport_close(struct xport *x)
{
	CHECK(list_empty(&x->work.runnable) && list_empty(&x->work.drainable));
	timerq_fini(&x->timers);
	heap_free(x->pool.accepted);
}

void peer_init(struct peer *p, const struct endpoint *ep,
	       const struct ipaddr *local)
{
	*p = (struct peer){.ep = *ep,
			   .asked = *ep,
			   .local = *local,
			   .kind = PEER_PROBING,
			   .hello.timer.at_ns = TIME_NEVER};
	list_init(&p->link);
	list_init(&p->shares);
	list_init(&p->stalled);
	list_init(&p->acks.owed);
	list_init(&p->acks.link);
}

int qp_init(struct qp *qp, struct xport *x, const struct qp_config *cfg)
{
	*qp = (struct qp){
		.x = x, .cfg = *cfg, .connected = cfg->transport->connected};
	list_init(&qp->on.runnable);
	list_init(&qp->shares);
	list_init(&qp->on.waiting);
	list_init(&qp->on.idle);
	list_init(&qp->on.owed);
	list_init(&qp->on.errors);
	list_init(&qp->on.drainable);
	list_init(&qp->open.link);
	qp->open.ask_at = TIME_NEVER;
	waiter_init(&qp->req.wait, qp);
	waiter_init(&qp->req.rsp_wait, qp);
	waiter_init(&qp->resp.wait, qp);
	waiter_init(&qp->resp.replay.wait, qp);
	list_init(&qp->req.win.waiting);
	list_init(&qp->resp.win.waiting);
	qp->req.wait.account = qp->req.rsp_wait.account =
		qp->resp.wait.account = qp->resp.replay.wait.account =
			qp->req.win.account = qp->resp.win.account =
				&qp->account;
	qp->resp.win.held = &qp->ud.held; /* of a connection: its peer's */
	deadlines_none(qp->req.at, REQ_DEADLINES);
	deadlines_none(qp->resp.at, RESP_DEADLINES);
	qp->timer.at_ns = TIME_NEVER;
	qp->attr.port = 1;
	return 0;
}

/* What its faults cost is @s's, or (NULL) there are none any more. */
static void share_set(struct qp *qp, struct share *s)
{
	share_put(qp->share);
	qp->share = s;
	qp->req.wait.share = qp->req.rsp_wait.share = s;
	qp->resp.wait.share = qp->resp.replay.wait.share = s;
}

/* Everything that refers to the connection goes; queues and config stay. */
static void qp_disconnect(struct qp *qp)
{
	struct mem *m = qp->x->mem;

	CHECK(qp_idle(qp));
	open_end(qp);
	flow_forget(qp);
	reads_forget(qp);
	credit_leave(qp);
	ack_cancel(qp);
	resp_untake(qp);
	win_reset(qp->x, &qp->req.win, 0);
	win_reset(qp->x, &qp->resp.win, 0);
	waiter_cancel(m, &qp->req.wait);
	waiter_cancel(m, &qp->req.rsp_wait);
	waiter_cancel(m, &qp->resp.wait);
	waiter_cancel(m, &qp->resp.replay.wait);
	share_set(qp, NULL);
	list_del(&qp->on.runnable);
	list_del(&qp->on.waiting);
	list_del(&qp->on.idle);
	list_del(&qp->on.drainable);
	timerq_set(&qp->x->timers, &qp->timer, TIME_NEVER);
}

void qp_fini(struct qp *qp)
{
	qp_disconnect(qp);
	resp_release(qp);
	list_del(&qp->on.errors);
	mem_account_gone(qp->x->mem, &qp->account);
}

void qp_flush(struct qp *qp)
{
	if (qp->state != QPS_ERR || !qp_idle(qp))
		return;
	comp_flush(qp);
	resp_flush(qp);
	if (qp->cfg.rq || qp->abandoned || qp->last_told)
		return;
	qp->last_told = true;
	qp_event(qp, QP_EVENT_LAST_WQE_REACHED);
}

/* The state changes in the middle of a call, and counts at its end. */
static void qp_check(const struct qp *qp)
{
	deadline_check(qp);
	if (!qp->peer || !qp->connected)
		return;
	owe_check(qp);
	resp_check(qp);
	replay_check(qp);
	flow_check(qp);
	reads_check(qp);
	credit_check(qp);
	if (qp->state < QPS_RTS || qp->state > QPS_SQE)
		return;
	retry_check(qp);
	live_check(qp);
}

/* A call from outside xport/ returns. */
static void call_ends(struct qp *qp)
{
	qp_flush(qp);
	if (unlikely(qp->x->checked))
		qp_check(qp);
}

void qp_posted(struct qp *qp)
{
	if (qp->state == QPS_SQE)
		comp_flush(qp);
	else if (qp->state != QPS_ERR)
		qp_kick(qp);
	call_ends(qp);
}

void qp_error(struct qp *qp)
{
	if (qp->state != QPS_ERR)
		qp_enter_error(qp);
	call_ends(qp);
}

void qp_abandon(struct qp *qp)
{
	qp->abandoned = true;
	qp_error(qp);
}

static void to_reset(struct qp *qp)
{
	qp_disconnect(qp);
	wq_reset(qp->cfg.sq);
	if (qp->cfg.rq)
		rq_reset(qp->cfg.rq);
	qp->peer = NULL;
	qp->abandoned = qp->last_told = false;
	qp->attr = (struct qp_attr){.port = 1};
	qp->open.mine = 0;
	qp->cause = CAUSE_NONE;
	req_reset(qp);
	resp_reset(qp);
	resp_release(qp);
	qp_set_state(qp, QPS_RESET);
}

/* RTR: the responder starts; RTS for the first time: the requester. */
static void qp_enter(struct qp *qp, enum qp_state from, enum qp_state to,
		     struct peer *peer)
{
	if (to == QPS_RTR) {
		qp->cfg.transport->ready(qp, peer);
		qp->mtu = qp->attr.path_mtu;
		resp_reset(qp);
	}
	if (from == QPS_RTR && to == QPS_RTS)
		req_reset(qp);
	qp_set_state(qp, to);
	if (to == QPS_RTR && qp->connected)
		open_begin(qp);
	if (to == QPS_RTS)
		qp_kick(qp);
	if (to == QPS_SQD)
		comp_drained(qp);
}

static enum qp_state state_after(const struct qp *qp,
				 const struct qp_attr *attr, uint32_t mask)
{
	return mask & QPA_STATE ? attr->state : qp->state;
}

bool qp_modify_ok(const struct qp *qp, const struct qp_attr *attr,
		  uint32_t mask)
{
	if ((mask & QPA_CUR_STATE) && attr->cur_state != qp->state)
		return false;
	return edge_ok(qp, state_after(qp, attr, mask), mask) &&
	       values_ok(attr, mask) && peer_stays(qp, attr, mask);
}

int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
	      struct peer *peer)
{
	enum qp_state from = qp->state, to = state_after(qp, attr, mask);
	struct share *s;

	if (!qp_modify_ok(qp, attr, mask))
		return -EINVAL;
	if ((mask & QPA_MAX_DEST_RD_ATOMIC) &&
	    resp_reserve(qp, attr->max_dest_rd_atomic) < 0)
		return -ENOMEM;
	if (to == QPS_RTR && from != QPS_RTR) {
		s = share_get(qp->connected ? &peer->shares : &qp->shares,
			      qp->cfg.pd);
		if (!s)
			return -ENOMEM;
		share_set(qp, s);
	}
	copy_attr(&qp->attr, attr, mask);
	if (from == QPS_SQE && to != from)
		qp->cause = CAUSE_NONE;
	if (to == QPS_RESET)
		to_reset(qp);
	else if (to == QPS_ERR)
		qp_error(qp);
	else if (mask & QPA_STATE)
		qp_enter(qp, from, to, peer);
	return 0;
}

void qp_query(const struct qp *qp, struct qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = attr->cur_state = qp->state;
	attr->sq_draining = qp->state == QPS_SQD &&
			    qp->req.psn.una != qp->req.psn.max;
	if (qp->state >= QPS_RTS)
		attr->sq_psn = qp->req.psn.max;
	if (qp->state >= QPS_RTR && qp->connected)
		attr->rq_psn = qp->resp.win.next;
}

void qp_timeout(struct qp *qp)
{
	qp->cfg.transport->timeout(qp);
	if (qp->state != QPS_ERR)
		resp_timeout(qp);
	open_timeout(qp);
	qp_rearm(qp);
	call_ends(qp);
}

void qp_wake(struct waiter *w)
{
	struct qp *qp = w->owner;

	flight_note(&qp->log, qp->x->now, FLIGHT_RESOLVED, 0, w->bad.any,
		    waiter_ns(w, qp->x->now));
	hold_over(qp);
	if (w == &qp->req.wait || w == &qp->resp.replay.wait) {
		qp_kick(qp);
	} else {
		if (w == &qp->resp.wait)
			fault_resolved(qp);
		else
			reply_page_came(qp);
		qp_drainable(qp);
	}
	call_ends(qp);
}

enum rx_result qp_rx(struct qp *qp, const struct pkt *pkt,
		     struct payload payload, struct rx_run *run)
{
	enum rx_result result = RX_NEXT;

	if ((pkt->op & OPF_UD) != qp->cfg.transport->packets)
		count(qp->x->cnt, CNT_drop_opcode);
	else if (likely(qp->connected))
		result = rc_rx(qp, pkt, payload, run);
	else
		result = qp->cfg.transport->rx(qp, pkt, payload, run);
	call_ends(qp);
	return result;
}

bool qp_rx_more(struct rx_run *run, uint32_t n)
{
	struct run_pkt *last = &run->pkt[run->num - 1];
	struct qp *qp = run->qp;
	psn_t psn = psn_add(last->pkt->psn, 1);

	if (run->responses ? !reply_more(qp, psn, n) : !resp_more(qp, psn, n))
		return false;
	last->more = n;
	flight_note(&qp->log, qp->x->now, FLIGHT_RX, psn, last->pkt->opcode,
		    (uint64_t)n * qp->mtu);
	return true;
}

/* The receiving half no longer moves: all that had to wait for that goes on. */
void qp_rx_moved(struct qp *qp)
{
	qp_flush(qp);
	if (qp->req.win.num || qp->resp.win.num)
		qp_drainable(qp);
	ack_again(qp);
	retry_kick(qp);
}

void qp_rx_commit(struct rx_run *run)
{
	struct qp *qp = run->qp;

	if (!qp)
		return;
	qp->rx_moving = false;
	qp->cfg.transport->rx_commit(run);
	replay_run_over(qp);
	dma_release(qp->x->mem, &run->holds, 0, !run->moves.error, qp->x->now);
	qp_moves_ended(qp->x);
	rx_run_init(run);
	qp_rx_moved(qp);
	call_ends(qp);
}

bool qp_drain(struct qp *qp, struct rx_run *run)
{
	bool found;

	if (qp->rx_moving || !qp_receives(qp))
		return false;
	found = qp->cfg.transport->drain(qp, run);
	call_ends(qp);
	return found;
}

bool qp_tx(struct qp *qp, struct burst *b)
{
	if (qp->tx_moving || !qp_receives(qp))
		return false;
	qp->tx_moving = qp->cfg.transport->tx(qp, b);
	call_ends(qp);
	return qp->tx_moving;
}

void ud_nowhere(struct qp *qp)
{
	ud_refused(qp);
	call_ends(qp);
}

void qp_tx_commit(struct burst *b, int error)
{
	struct qp *qp = b->qp;

	count_add(qp->x->cnt, CNT_tx_packets, error ? 0 : b->nsegs);
	dma_release(qp->x->mem, &b->holds, 0, !error, qp->x->now);
	qp_moves_ended(qp->x);
	qp->tx_moving = false;
	qp->resp.replay.answering = false;
	if (error == -EFAULT)
		for (unsigned i = 0; i < b->gathers.num; i++)
			dma_fault(qp->x->mem, b->gathers.m[i].addr,
				  b->gathers.m[i].len);
	qp->cfg.transport->tx_commit(qp, b, error);
	if (error == -EMSGSIZE && b->request)
		qp->req.failure.too_large = true;
	if (error && b->acks.says && qp_receives(qp))
		ack_owe(qp);
	ack_again(qp);
	resp_settle(qp);
	call_ends(qp);
	retry_kick(qp);
}

void xport_tickets_free(struct xport *x, struct qp *qp)
{
	if (!x->starved || !qp_receives(qp))
		return;
	qp_kick(qp);
	qp_drainable(qp);
}

void peer_answered(struct xport *x, struct peer *peer)
{
	qp_kick_all(&peer->stalled);
	if (!list_empty(&peer->acks.owed) && list_empty(&peer->acks.link))
		list_add_tail(&x->work.ack_peers, &peer->acks.link);
}
