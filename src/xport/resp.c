/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resp.c: responder: which request is next (PSN), what is kept for later, what
 * is a duplicate, and the commit of what was placed (IBTA 9.7.5.1, 9.9).
 *
 * Theory of operation. Three PSNs: win.head (placed) <= plan (executed, its
 * moves perhaps still out) <= win.next (accepted). A request at `plan` is
 * executed at once; one that is in order but behind something unfinished, or
 * (from a nopin) ahead of a gap, is kept (window.c). Nothing is acknowledged
 * before win.head has passed it (I3).
 */
#include "xport/resp.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/moves.h"
#include "base/verdict.h"
#include "mem/dma.h"
#include "mem/eventcount.h"
#include "mem/waiter.h"
#include "ring/cqe.h"
#include "ring/receive.h"
#include "ring/rq.h"
#include "ring/wqe.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/ahead.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/control.h"
#include "xport/exec.h"
#include "xport/fault.h"
#include "xport/fault_resume.h"
#include "xport/fault_rnr.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/life.h"
#include "xport/message.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/replay.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/revoke.h"
#include "xport/rx.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <string.h>

int resp_reserve(struct qp *qp, uint32_t rd_atomic)
{
	int err = replay_reserve(qp, rd_atomic);

	return err ? err : win_reserve(&qp->resp.win, rd_atomic);
}

void resp_release(struct qp *qp)
{
	replay_release(qp);
	win_release(&qp->resp.win);
}

void resp_reset(struct qp *qp)
{
	struct resp *r = &qp->resp;

	r->msg = (struct message){.source = qp->cfg.receives};
	r->plan = qp->attr.rq_psn;
	r->next = NEXT_UNSAID;
	r->revoked = false;
	r->dead = r->established = false;
	r->failure = (struct resp_failure){.recv = NULL};
	r->ack = (struct resp_ack){.to = psn_add(r->plan, PSN_MASK),
				   .said = psn_add(r->plan, PSN_MASK)};
	r->hold = (struct resp_hold){.asked = false};
	r->life++;
	deadlines_none(r->at, RESP_DEADLINES);
	r->replay.next = r->replay.at = 0;
	r->replay.answering = false;
	r->gso = (struct gso_watch){.doubts = 0};
	win_reset(qp->x, &r->win, qp->attr.rq_psn);
}

void resp_settle(struct qp *qp)
{
	const struct resp *r = &qp->resp;

	if (r->dead && !qp->rx_moving && !r->replay.answering &&
	    !replay_busy(qp))
		qp_blame(qp, r->failure.cause, r->failure.event);
}

/* Newest first. Datagrams that wait have theirs, and a message has one. That of the
 * request that failed is not another's to fail by: it becomes the message's. */
static void untake_waiting(struct resp *r)
{
	for (struct list *l = r->win.waiting.prev; l != &r->win.waiting;
	     l = l->prev) {
		struct receive *recv =
			&list_entry(l, struct accepted, link)->recv;

		if (recv->wqe && recv->wqe == r->failure.recv) {
			r->msg.recv = *recv;
			recv->wqe = NULL;
		}
		receive_untake(recv);
	}
}

void resp_untake(struct qp *qp)
{
	untake_waiting(&qp->resp);
	receive_untake(&qp->resp.msg.recv);
}

/* That of the request that failed says why. Its place may be posted again then. */
static void flush_receive(struct qp *qp, struct receive *recv)
{
	struct resp *r = &qp->resp;
	const bool failed = recv->wqe == r->failure.recv;
	const struct cqe e = {.wr_id = recv->wqe->wr_id,
			      .status = failed ? r->failure.status
					       : WC_WR_FLUSH_ERR,
			      .op = WR_RECV,
			      .vendor_err = qp->cause,
			      .qpn = qp->cfg.qpn};

	if (failed)
		r->failure.recv = NULL;
	receive_done(recv);
	qp_push_cqe(qp, qp->cfg.recv_cq, &e);
}

/* A message that has a receive uses it up, unless nobody would hear of that; others are
 * flushed if they are the QP's own. */
void resp_flush(struct qp *qp)
{
	struct resp *r = &qp->resp;
	struct receive recv;

	untake_waiting(r);
	win_reset(qp->x, &r->win, r->win.next);
	waiter_cancel(qp->x->mem, &r->wait);
	waiter_cancel(qp->x->mem, &r->replay.wait);
	if (qp->abandoned && !qp->cfg.rq)
		receive_untake(&r->msg.recv);
	if (r->msg.recv.wqe)
		flush_receive(qp, &r->msg.recv);
	while (qp->cfg.rq && receive_take(&qp->cfg.rq->source, &recv))
		flush_receive(qp, &recv);
}

/* No receive is posted: say RNR for @psn and forget it and what follows. */
static void not_ready(struct qp *qp, psn_t psn)
{
	struct resp *r = &qp->resp;

	win_truncate(qp->x, &r->win, psn);
	resp_next(r, NEXT_NO_RECEIVE);
	count(qp->x->cnt, CNT_rnr_tx);
	ack_nak(qp, AETH_RNR | qp->attr.min_rnr_timer, psn);
}

static void keep(struct qp *qp, const struct pkt *p, struct payload payload)
{
	struct resp *r = &qp->resp;
	bool crowds = p->psn == r->win.next && p->op & (OPF_SEND | OPF_WRITE) &&
		      fault_crowds(qp, p);

	if (!crowds && !win_keep(qp->x, &r->win, p, payload)) {
		if (r->wait.ticket.v)
			ahead_request(qp, p);
		if (p->psn == r->win.next)
			win_advance(&r->win, qp->mtu);
		return;
	}
	if (!crowds)
		count(qp->x->cnt, CNT_drop_no_slot);
	if (p->psn == r->win.next && !next_forgot(r->next))
		fault_forget(qp, p);
}

static enum rx_result take_next(struct qp *qp, const struct pkt *p,
				struct payload payload, struct rx_run *run)
{
	struct resp *r = &qp->resp;

	resume_heard(qp);
	/* It came, whether that was said or not. */
	r->ack.nak = (struct nak){0};
	resp_next(r, NEXT_CAME);
	if (r->ack.page_rnr.syndrome && r->ack.page_rnr.psn == p->psn) {
		r->ack.page_rnr = (struct nak){0};
		rnr_silence_heeded(qp);
	}
	if (r->wait.ticket.v && p->psn == r->plan) {
		fault_request(qp, p, payload);
		return RX_NEXT;
	}
	if (p->psn != r->plan || (qp->rx_moving && !run->qp)) {
		keep(qp, p, payload);
		return RX_NEXT;
	}
	switch (resp_execute(qp, p, payload, run)) {
	case EXEC_OK:
		r->win.next = r->plan;
		fault_forgiven(qp);
		win_advance(&r->win, qp->mtu);
		return RX_NEXT;
	case EXEC_FULL:
		return RX_FULL;
	case EXEC_WAIT:
		fault_request(qp, p, payload);
		return RX_NEXT;
	case EXEC_RNR:
		not_ready(qp, p->psn);
		return RX_NEXT;
	case EXEC_NAK:
		resp_settle(qp);
		return RX_NEXT;
	}
	return RX_NEXT;
}

/* How many packets a nopin may have on their way that are not placed: what it was
 * lent, one, and the READs and atomics that it may ask for. */
static uint32_t most_ahead(const struct qp *qp)
{
	return qp->peer->lend.lent + 1 + qp->attr.max_dest_rd_atomic;
}

/* Can its sender be so far, when [next, ...) is missing? A READ stands for as many
 * PSNs as its answer has packets. */
static bool may_be_ahead(const struct qp *qp, int32_t ahead)
{
	const uint64_t reads = (uint64_t)MAX(1, qp->peer->read_chunk) *
			       qp->attr.max_dest_rd_atomic;

	return qp->resp.win.num < most_ahead(qp) &&
	       (uint64_t)ahead <
		       MIN(reads + most_ahead(qp), (uint64_t)REQ_PSNS_AHEAD);
}

static void resp_take_ahead(struct qp *qp, const struct pkt *p,
			    struct payload payload, int32_t ahead)
{
	struct resp *r = &qp->resp;

	count(qp->x->cnt, CNT_gaps_rx);
	r->ack.lossy = true;
	if (next_rnr(r->next) || next_forgot(r->next))
		return;
	if (p->ext) {
		if (win_has(&r->win, p->psn))
			r->ack.xack |= XACK_TWICE;
		else if (may_be_ahead(qp, ahead))
			keep(qp, p, payload);
		else
			count(qp->x->cnt, CNT_drop_psn);
		ack_repeat(qp);
	} else if (r->next != NEXT_GAP) {
		resp_next(r, NEXT_OVERTAKEN);
		ack_nak(qp, AETH_NAK | NAK_PSN_SEQUENCE, r->win.next);
	}
}

/* Do the PSNs that @p stands for end where all that is not placed can still be told from
 * what is? A requester has no more of them outstanding (IBTA 9.7.1). A READ that is too
 * long even alone is refused when nothing is before it (resp_execute()), and is dropped
 * until then: what is kept has not been looked at. */
static bool within_reach(const struct qp *qp, const struct pkt *p,
			 const struct rx_run *run)
{
	const struct resp *r = &qp->resp;
	const int32_t ahead = psn_diff(p->psn, r->win.head);
	const bool kept = r->wait.ticket.v || (qp->rx_moving && !run->qp);

	if (ahead == 0 && !kept)
		return true;
	return ahead >= 0 &&
	       request_psns(p, qp->mtu) <= (uint32_t)(PSN_AHEAD_MAX - ahead);
}

enum rx_result resp_rx(struct qp *qp, const struct pkt *p,
		       struct payload payload, struct rx_run *run)
{
	struct resp *r = &qp->resp;
	int32_t ahead = psn_diff(p->psn, r->win.next);

	if (r->dead) {
		count(qp->x->cnt, CNT_drop_state);
		return RX_NEXT;
	}
	if (p->placed && p->psn != r->plan) {
		/* a wrong guess put its payload somewhere else */
		count(qp->x->cnt, CNT_drop_psn);
		ack_owe(qp);
		return RX_NEXT;
	}
	if (!r->established && qp->state == QPS_RTR)
		qp_event(qp, QP_EVENT_COMM_EST);
	r->established = true;
	if (ahead >= 0 && !within_reach(qp, p, run)) {
		count(qp->x->cnt, CNT_drop_psn);
		return RX_NEXT;
	}
	if (ahead == 0)
		return take_next(qp, p, payload, run);
	if (ahead > 0) {
		resp_take_ahead(qp, p, payload, ahead);
		return RX_NEXT;
	}
	/* Of what came in place, and once more meanwhile, the copy is placed. */
	if (run->qp && !p->placed)
		return RX_FULL;
	count(qp->x->cnt, CNT_dups_rx);
	r->ack.lossy = true;
	flight_note(&qp->log, qp->x->now, FLIGHT_DUP, p->psn, p->opcode,
		    r->win.next);
	/* A READ is asked for again because of its answer. */
	if (p->ext && !(p->op & (OPF_READ | OPF_ATOMIC)))
		r->ack.xack |= XACK_TWICE;
	if (psn_diff(p->psn, r->win.head) < 0)
		replay_duplicate(qp, p);
	else if (p->ext)
		ack_repeat(qp);
	return RX_NEXT;
}

bool resp_more(struct qp *qp, psn_t psn, uint32_t n)
{
	uint64_t bytes = (uint64_t)n * qp->mtu;
	struct resp *r = &qp->resp;
	struct message *m = &r->msg;

	if (r->plan != psn || r->win.next != psn || r->win.num)
		return false;
	m->done += bytes;
	if (m->op & OPF_WRITE) {
		CHECK(m->left > bytes);
		m->va += bytes;
		m->left -= bytes;
	}
	r->plan = r->win.next = psn_add(psn, n);
	return true;
}

bool resp_drain(struct qp *qp, struct rx_run *run)
{
	struct resp *r = &qp->resp;

	while (!r->dead && !r->wait.ticket.v) {
		struct accepted *a = win_at(&r->win, r->plan);
		enum exec_result res;
		psn_t psn;

		if (!a)
			break;
		if (r->revoked &&
		    qp_invalidate(qp, a->pkt.imm, &r->revoked) == V_WAIT)
			break;
		psn = a->pkt.psn;
		res = resp_execute(qp, &a->pkt, win_payload(qp->x, a), run);
		if (res == EXEC_OK)
			continue;
		if (res == EXEC_RNR && !run->num)
			not_ready(qp, psn);
		if (res == EXEC_WAIT)
			fault_waiting(qp);
		break;
	}
	if (!run->num)
		resp_settle(qp);
	return run->num != 0;
}

/* --- commit ------------------------------------------------------------------ */

/* A READ is executed by answering it, in turn. */
static void answer_later(struct qp *qp, const struct pkt *p)
{
	replay_add(qp, p, 0);
	if (qp->resp.replay.wait.ticket.v)
		ahead_request(qp, p);
}

/* The counter may be gone since: then no thread waits for it. */
static void notify(struct qp *qp, uint32_t counter)
{
	struct eventcount *e = eventcount_find(qp->x->mem, qp->cfg.pd, counter);

	if (!e)
		return;
	eventcount_raise(e, &qp->x->work.raised);
	count(qp->x->cnt, CNT_notified);
}

/* Everything of run->pkt[i] is in application memory. */
static void resp_placed(struct qp *qp, struct rx_run *run, unsigned i)
{
	struct run_pkt *rp = &run->pkt[i];
	const struct pkt *p = rp->pkt;
	const bool completes = rp->recv.wqe != NULL;
	struct resp *r = &qp->resp;

	if (p->op & OPF_ATOMIC)
		replay_add(qp, p, run->moves.m[rp->move_end - 1].result);
	else if (p->op & OPF_READ)
		answer_later(qp, p);
	else
		r->ack.to = psn_add(p->psn, rp->more);
	r->win.head = psn_add(p->psn, request_psns(p, qp->mtu) + rp->more);
	if (completes) {
		receive_done(&rp->recv);
		qp_push_cqe(qp, qp->cfg.recv_cq, &rp->cqe);
	}
	if (rp->notifies)
		notify(qp, rp->counter);
	/* to a card a response is the answer */
	if (!p->ext && (!p->ack_req || p->op & (OPF_READ | OPF_ATOMIC)))
		return;
	if (completes)
		ack_received(qp);
	else
		ack_owe(qp);
}

/* Faults that completions of run->pkt[i] and later were about to tell. */
static struct met met_since(const struct rx_run *run, unsigned i)
{
	struct met met = {.ns = 0};

	for (; i < run->num; i++)
		if (run->pkt[i].recv.wqe)
			met_add(&met, run->pkt[i].cqe.met);
	return met;
}

/* Nothing of run->pkt[i] and later is placed: the message has the receive again that it
 * had there, and those that were taken after it are given back, newest first. */
static void untake_run(struct qp *qp, struct rx_run *run, unsigned i)
{
	const struct receive recv = run->pkt[i].before.recv;
	struct message *m = &qp->resp.msg;

	if (m->recv.wqe != recv.wqe)
		receive_untake(&m->recv);
	for (unsigned k = run->num; k-- > i;)
		if (run->pkt[k].recv.wqe != recv.wqe)
			receive_untake(&run->pkt[k].recv);
	m->recv = recv;
}

/* Keep run->pkt[i] and later, which are not placed, where they are not in a slot yet. */
static void resp_put_back(struct qp *qp, struct rx_run *run, unsigned i)
{
	struct resp *r = &qp->resp;
	struct met met = met_since(run, i);
	const struct pkt *lost;

	met_add(&met, r->msg.met);
	untake_run(qp, run, i);
	r->msg = run->pkt[i].before;
	r->msg.met = met;
	r->plan = run->pkt[i].pkt->psn;
	if (r->dead)
		r->ack.nak =
			(struct nak){0}; /* executing it again says so again */
	resp_not_failed(r);
	lost = win_keep_run(qp->x, &r->win, run, i);
	if (!lost)
		return;
	r->ack.nak = (struct nak){0};
	resp_next(r, lost->ext ? NEXT_LOST : NEXT_LOST_NAK);
	if (!lost->ext)
		ack_nak(qp, AETH_NAK | NAK_PSN_SEQUENCE, lost->psn);
	else
		ack_owe(qp);
}

/* The moves of run->pkt[i] met EFAULT: executing it again asks a pager for the
 * verdict. */
static void not_placed(struct qp *qp, struct rx_run *run, unsigned i)
{
	const struct move *m = &run->moves.m[run->moves.done];

	dma_fault(qp->x->mem, m->addr, m->len);
	resp_put_back(qp, run, i);
}

/* Everything of run->pkt[i] is in application memory, and what its R_Key named is
 * not reachable any more. false: there are still moves to it, so this is
 * executed again, without its payload; or the key was none. */
static bool invalidated(struct qp *qp, struct rx_run *run, unsigned i)
{
	const struct pkt *p = run->pkt[i].pkt;
	struct resp *r = &qp->resp;
	struct accepted *a;
	enum verdict v;

	v = qp_invalidate(qp, p->imm, &r->revoked);
	if (v == V_WAIT) {
		resp_put_back(qp, run, i);
		a = win_at(&r->win, p->psn);
		if (a)
			a->pkt.placed = true;
		return false;
	}
	r->revoked = false;
	if (v == V_OK)
		return true;
	r->msg.recv = run->pkt[i].recv; /* and is flushed with it */
	resp_failed(r, &r->msg.recv, WC_WR_FLUSH_ERR, QP_EVENT_ACCESS_ERR,
		    CAUSE_NAKED | AETH_NAK | NAK_REMOTE_ACCESS);
	ack_nak(qp, AETH_NAK | NAK_REMOTE_ACCESS, p->psn);
	return false;
}

void resp_commit(struct rx_run *run)
{
	struct qp *qp = run->qp;
	unsigned i;

	if (!qp_receives(qp)) {
		untake_run(qp, run, 0);
		return;
	}
	for (i = 0; i < run->num; i++) {
		struct run_pkt *rp = &run->pkt[i];
		struct accepted *kept = rp->payload.kept;

		if (rp->move_end > run->moves.done) {
			not_placed(qp, run, i);
			break;
		}
		win_copied(run, i);
		if ((rp->pkt->op & OPF_INV) && !invalidated(qp, run, i))
			break;
		resp_placed(qp, run, i);
		if (qp->state == QPS_ERR) {
			if (i + 1 < run->num)
				untake_run(qp, run, i + 1);
			break;
		}
		if (kept) {
			flight_note(&qp->log, run->qp->x->now, FLIGHT_PLACED,
				    rp->pkt->psn, (uint16_t)kept->slot,
				    run->qp->x->now - kept->at_ns);
			win_placed(qp->x, &qp->resp.win, kept);
		}
	}
	if (!qp->resp.win.num) {
		if (!qp->resp.wait.ticket.v)
			fault_resolved(qp);
		rnr_silence_end(qp);
	}
	if (qp->state != QPS_ERR)
		resp_settle(qp);
}

void resp_timeout(struct qp *qp)
{
	if (qp->x->now >= qp->resp.at[RESP_PAUSE]) {
		qp->resp.at[RESP_PAUSE] = TIME_NEVER;
		qp_kick(qp);
	}
	if (qp->x->now >= qp->resp.at[RESP_SILENCE])
		fault_silence_over(qp);
	resume_timeout(qp);
	ack_repeat_timeout(qp);
}

void resp_check(const struct qp *qp)
{
	const struct resp *r = &qp->resp;

	CHECK(psn_diff(r->win.head, r->win.next) <= 0);
	CHECK(!qp_receives(qp) || (psn_diff(r->win.head, r->plan) <= 0 &&
				   psn_diff(r->plan, r->win.next) <= 0));
	CHECK(!r->dead || r->failure.cause);
	CHECK(r->dead || !r->failure.recv);
	CHECK(!deadline_waits(r->at[RESP_RESUME]) || r->hold.resume_ns);
}
