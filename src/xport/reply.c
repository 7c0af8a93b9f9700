/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reply.c: what the peer says of our requests: ACKs, NAKs and READ responses become
 * progress and completions (IBTA 9.7.5, 9.9).
 */
#include "xport/reply.h"
#include "base/account.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/access.h"
#include "xport/ahead.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/fault.h"
#include "xport/flow.h"
#include "xport/hold.h"
#include "xport/kept.h"
#include "xport/live.h"
#include "xport/peer.h"
#include "xport/psns.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/reorder.h"
#include "xport/requester.h"
#include "xport/retry.h"
#include "xport/run.h"
#include "xport/rx.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

enum { OVERTAKEN_MAX = 1 << 22 }; /* PSNs by which an ACK may be late */

/* --- ACK and NAK ---------------------------------------------------------- */

static const enum wc_status nak_status[] = {
	[NAK_INVALID_REQUEST] = WC_REM_INV_REQ_ERR,
	[NAK_REMOTE_ACCESS] = WC_REM_ACCESS_ERR,
	[NAK_REMOTE_OPERATION] = WC_REM_OP_ERR,
};

static void take_nak(struct qp *qp, psn_t psn, uint8_t code)
{
	uint32_t index;

	count(qp->x->cnt, CNT_naks_rx);
	flight_note(&qp->log, qp->x->now, FLIGHT_NAK_RX, psn, code, 0);
	if (code == NAK_PSN_SEQUENCE) {
		gso_missing(qp, &qp->req.gso, qp->req.psn.una);
		/* a nopin, known or not yet, says so of what it forgot, too */
		if (qp->req.psn.snd != qp->req.psn.una &&
		    (qp_dialect(qp)->forgets || open_waits(qp) ||
		     live_spend(qp, CAUSE_SEQUENCE)))
			retry_rewind(qp, FLIGHT_NAK_RX);
		return;
	}
	if (code < ARRAY_SIZE(nak_status) && req_wqe_at(qp, psn, &index))
		comp_fail_wqe(qp, index, nak_status[code],
			      CAUSE_NAK | AETH_NAK | code);
}

/* The response that is due was dropped: its page says when to ask again, and
 * until then what comes behind it is no news. */
static bool dropped_for_page(const struct req *r)
{
	return r->reads.missed && r->rsp_wait.ticket.v && !win_behind(&r->win);
}

static void take_gap(struct qp *qp, psn_t due)
{
	struct req *r = &qp->req;

	r->reads.gap = true;
	r->at[REQ_READ_GAP] = TIME_NEVER;
	count(qp->x->cnt, CNT_read_restarts);
	flight_note(&qp->log, qp->x->now, FLIGHT_RETX, due, FLIGHT_GAP,
		    (uint64_t)psn_diff(r->psn.snd, due));
	retry_ask_again(qp, due, r->psn.snd);
}

/* The response that is due is missing, and what was sent later has come. */
static void response_overtaken(struct qp *qp, psn_t due)
{
	struct req *r = &qp->req;

	if (deadline_waits(r->at[REQ_READ_GAP]) && r->reads.gap_psn == due)
		return;
	r->reads.gap_psn = due;
	r->reads.gap_since = qp->x->now;
	r->at[REQ_READ_GAP] = qp->x->now + qp->peer->late.wait_ns;
	reply_timeout(qp);
	qp_rearm(qp);
}

/* The responses behind the one that was dropped may still be in our socket, or still
 * to be sent: if they were asked for here they would come twice. The answer to a
 * question comes behind them (response_lost()), or says that there are more: then
 * it is asked again soon. */
void reply_page_came(struct qp *qp)
{
	live_page_came(qp);
	if (!qp->req.reads.missed || win_behind(&qp->req.win))
		return;
	if (qp_dialect(qp)->answers)
		live_ask(qp);
	else
		take_gap(qp, qp->req.psn.una);
}

/* An ACK comes behind the responses before it. So if a READ before the ACK is
 * not answered its response was lost: ask again, once, or once for each time
 * that we asked where the peer is. */
static void response_lost(struct qp *qp, bool probed)
{
	struct req *r = &qp->req;

	if (qp->rx_moving || win_behind(&r->win) || r->rsp_wait.ticket.v ||
	    r->psn.snd == r->psn.una || (r->reads.gap && !probed))
		return;
	response_overtaken(qp, r->psn.una);
}

/* Does @p answer what we ask? Not an earlier question, which says nothing of
 * what was sent since. */
static bool probed(const struct qp *qp, const struct pkt *p)
{
	return (p->xack_flags & XACK_PROBED) && qp->req.probe.asked &&
	       p->answer == qp->req.probe.question;
}

static void take_syndrome(struct qp *qp, const struct pkt *p)
{
	uint8_t value = p->syndrome & AETH_VALUE_MASK;

	switch (p->syndrome & AETH_KIND_MASK) {
	case AETH_ACK:
		comp_placed(qp, psn_add(p->psn, 1));
		if (qp->state != QPS_ERR && !p->unanswered &&
		    psn_diff(p->psn, qp->req.psn.una) >= 0)
			response_lost(qp, probed(qp, p));
		break;
	case AETH_RNR:
		comp_placed(qp, p->psn);
		retry_rnr(qp, p->psn, value, p->xack_flags & XACK_FAULT);
		break;
	case AETH_NAK:
		comp_placed(qp, p->psn);
		take_nak(qp, p->psn, value);
		break;
	default:
		count(qp->x->cnt, CNT_drop_opcode);
	}
}

/* @before: req.acc when this ACK came. */
static void take_xack(struct qp *qp, const struct pkt *p, psn_t before)
{
	struct req *r = &qp->req;
	psn_t acc = psn_add(p->accepted, 1);
	bool answer = probed(qp, p);

	qp->peer->flow.budget = p->credit;
	/* less: the peer forgot what it had accepted (RNR), and the NAK was lost */
	psns_accepted(&r->psn, acc, answer);
	flow_even(qp->peer, (uint32_t)MAX(psn_diff(r->psn.acc, before), 0),
		  p->xack_flags & XACK_SACK);
	flow_accepted(qp, r->psn.acc);
	if (psn_diff(acc, r->psn.acc) == 0)
		retry_sack(qp, p, answer);
	if (p->xack_flags & XACK_TWICE)
		retry_twice(qp);
	if (answer)
		r->probe.asked = false;
	if (p->xack_flags & XACK_HOLD)
		retry_hold(qp);
	if (p->xack_flags & XACK_RESUME)
		retry_resume(qp);
	hold_heard(qp, p);
}

static void take_ack(struct qp *qp, const struct pkt *p)
{
	const bool x = p->opcode == OP_X_ACK;
	const bool answer = x && probed(qp, p);
	struct req *r = &qp->req;
	psn_t acc = r->psn.acc;
	bool moved;

	bool nak = (p->syndrome & AETH_KIND_MASK) != AETH_ACK;

	/* One that others overtook says nothing new. */
	if (psn_diff(p->psn, r->psn.max) >= 0 ||
	    psn_diff(p->psn, r->psn.una) < -OVERTAKEN_MAX) {
		count(qp->x->cnt, CNT_drop_psn);
		return;
	}
	if (psn_diff(p->psn, r->psn.una) >= (nak ? 0 : -1))
		take_syndrome(qp, p);
	if (qp->state == QPS_ERR)
		return;
	if (x)
		take_xack(qp, p, acc);
	moved = live_moved(qp);
	retry_news(qp, moved);
	if (moved)
		live_progress(qp);
	else
		live_heard(qp, p, answer);
	retry_kick(qp);
}

void reply_carried(struct qp *qp, const struct pkt *request)
{
	const struct pkt ack = {.opcode = OP_X_ACK,
				.ext = true,
				.psn = request->placed_to,
				.unanswered = request->unanswered,
				.syndrome = AETH_ACK | AETH_CREDIT_INVALID,
				.accepted = request->placed_to,
				.credit = qp->peer->flow.budget};

	/* Every request says it, and few have news. */
	if (psn_diff(ack.psn, qp->req.psn.una) >= 0 &&
	    (!ack.unanswered || psn_diff(ack.psn, qp->req.psn.placed) >= 0))
		take_ack(qp, &ack);
}

/* --- READ responses and atomic ACKs --------------------------------------- */

/* The PSN of the next response and its WQE. false: none is due. */
static bool response_due(struct qp *qp, psn_t *psn, uint32_t *index)
{
	const struct wq *sq = qp->cfg.sq;
	struct req *r = &qp->req;

	if ((int32_t)(r->wqe.rsp - sq->cons) < 0)
		r->wqe.rsp = sq->cons;
	for (; r->wqe.rsp != r->wqe.started; r->wqe.rsp++) {
		const struct wqe *w = wq_at(sq, r->wqe.rsp);

		if (!wqe_is_read(w) || wqe_passed(w, r->win.next))
			continue;
		*psn = psn_diff(r->win.next, w->first_psn) > 0 ? r->win.next
							       : w->first_psn;
		*index = r->wqe.rsp;
		return psn_diff(*psn, r->psn.max) < 0; /* it was asked for */
	}
	return false;
}

/* Requests that were posted before the one that failed still complete. */
static bool beyond_failure(const struct req *r, uint32_t index)
{
	return r->failure.known && (int32_t)(index - r->failure.wqe) >= 0;
}

struct wqe *reply_wqe(struct qp *qp, psn_t psn)
{
	struct req *r = &qp->req;
	struct wqe *w;
	uint32_t index;
	psn_t due;

	if (r->win.num || r->rsp_wait.ticket.v ||
	    !response_due(qp, &due, &index) || due != psn ||
	    beyond_failure(r, index))
		return NULL;
	w = wq_at(qp->cfg.sq, index);
	return w->op == WR_READ ? w : NULL;
}

static bool response_fits(const struct qp *qp, const struct pkt *p,
			  const struct wqe *w)
{
	uint64_t off = (uint64_t)psn_diff(p->psn, w->first_psn) * qp->mtu;

	if (w->op != WR_READ)
		return p->opcode == OP_ATOMIC_ACK;
	return (p->op & OPF_READ) &&
	       p->payload_len == MIN(qp->mtu, w->length - off);
}

static enum verdict reply_plan_response(struct qp *qp, const struct pkt *p,
					struct payload payload,
					const struct wqe *w, struct rx_run *run)
{
	uint64_t off = (uint64_t)psn_diff(p->psn, w->first_psn) * qp->mtu;
	uint64_t rest = w->length - off - p->payload_len;
	uint32_t len = p->payload_len;
	uint8_t *from = payload.at;

	if (p->placed)
		return V_OK;
	if (w->op != WR_READ) {
		off = 0;
		len = ATOMIC_BYTES;
		rest = 0;
		from = (uint8_t *)(uintptr_t)&p->swap_add;
	}
	return sge_walk(qp, w, off, len, rest, true, from, (uint16_t)run->num,
			&qp->req.rsp_wait, &run->moves, &run->holds);
}

static void reply_run_add(struct rx_run *run, struct qp *qp,
			  const struct pkt *p, struct payload payload)
{
	run_begin(run, qp, true);
	run->pkt[run->num++] = (struct run_pkt){
		.pkt = p, .payload = payload, .move_end = run->moves.num};
}

/**
 * place_response() - Plan the response that is due.
 * Return: V_OK: it is in the run. V_NO_RESOURCE: the run is full.
 */
static enum verdict place_response(struct qp *qp, const struct pkt *p,
				   struct payload payload, uint32_t index,
				   struct rx_run *run)
{
	struct wqe *w = wq_at(qp->cfg.sq, index);
	unsigned moves = run->moves.num, holds = run->holds.num;
	enum verdict v;

	if (run->num == RUN_PKTS || moves_room(&run->moves) < w->num_sge ||
	    holds + w->num_sge > HOLDS_MAX)
		return V_NO_RESOURCE;
	v = reply_plan_response(qp, p, payload, w, run);
	met_add(&w->met, waiter_met(&qp->req.rsp_wait));
	if (v == V_OK) {
		reply_run_add(run, qp, p, payload);
		return V_OK;
	}
	run_undo(run, qp, moves, holds);
	if (v == V_NO_RESOURCE) {
		qp->x->starved = true;
		v = V_WAIT;
	}
	if (v == V_WAIT)
		ahead_reads(qp, index + 1);
	else
		comp_fail_wqe(qp, index, WC_LOC_PROT_ERR, CAUSE_ACCESS);
	return v;
}

/* No slot is left to keep it behind others in: READ again from there. */
static void response_dropped(struct qp *qp)
{
	count(qp->x->cnt, CNT_fault_replay);
	mem_account_answer(qp->x->mem, &qp->req.rsp_wait, STRATEGY_REPLAY);
}

/* What had come before and is in order now. */
static void responses_advance(struct qp *qp)
{
	uint32_t index;
	psn_t due;

	while (response_due(qp, &due, &index) && win_has(&qp->req.win, due))
		qp->req.win.next = psn_add(due, 1);
}

static void response_taken(struct qp *qp, psn_t psn)
{
	qp->req.win.next = psn_add(psn, 1);
	if (qp->req.win.num)
		responses_advance(qp);
}

/* May @p have been read before something that comes before it will be? @w is due, and
 * it or one behind it was asked for again. */
static bool read_too_early(const struct qp *qp, const struct pkt *p,
			   const struct wqe *w)
{
	return psn_diff(qp->req.reads.last_again_to, qp->req.win.next) > 0 &&
	       psn_diff(p->psn, wqe_end(w)) >= 0;
}

/* Is @p, which is not due yet, one that was asked for? */
static bool asked_for(const struct qp *qp, const struct pkt *p)
{
	const struct wqe *w;
	uint32_t index;

	if (psn_diff(p->psn, qp->req.psn.max) >= 0 ||
	    !req_wqe_at(qp, p->psn, &index) || beyond_failure(&qp->req, index))
		return false;
	w = wq_at(qp->cfg.sq, index);
	return wqe_is_read(w) && response_fits(qp, p, w);
}

/* Others before @p, of which @due of @w is the first, have not come. */
static void reply_take_ahead(struct qp *qp, const struct pkt *p,
			     struct payload payload, const struct wqe *w,
			     psn_t due)
{
	struct req *r = &qp->req;

	count(qp->x->cnt, CNT_gaps_rx);
	if (p->ext && !p->placed && !dropped_for_page(r) && asked_for(qp, p) &&
	    !read_too_early(qp, p, w) && !win_has(&r->win, p->psn) &&
	    (!win_spare(qp->x, &r->win) ||
	     win_keep(qp->x, &r->win, p, payload)))
		response_dropped(qp);
	if (!r->reads.gap && !dropped_for_page(r))
		response_overtaken(qp, due);
}

/* It had come before; so had what was asked for again, perhaps. */
static void take_twice(struct qp *qp, psn_t psn)
{
	struct req *r = &qp->req;

	count(qp->x->cnt, CNT_dups_rx);
	if (!r->reads.doubted || psn != r->reads.doubted_psn)
		return;
	count(qp->x->cnt, CNT_losses_doubted);
	late_doubted(&qp->peer->late, qp->x->now - r->reads.doubted);
	r->reads.doubted = 0;
}

static enum rx_result take_response(struct qp *qp, const struct pkt *p,
				    struct payload payload, struct rx_run *run)
{
	struct req *r = &qp->req;
	uint32_t index;
	psn_t due;
	int32_t d;

	if (!response_due(qp, &due, &index) || beyond_failure(r, index) ||
	    (d = psn_diff(p->psn, due)) < 0) {
		take_twice(qp, p->psn);
		return RX_NEXT;
	}
	if (d > 0 || (p->placed && win_behind(&r->win))) {
		reply_take_ahead(qp, p, payload, wq_at(qp->cfg.sq, index), due);
		return RX_NEXT;
	}
	if (!response_fits(qp, p, wq_at(qp->cfg.sq, index))) {
		comp_fail_wqe(qp, index, WC_BAD_RESP_ERR, CAUSE_RESPONSE);
		return RX_NEXT;
	}
	/* the peer was ready for it, whatever becomes of it here */
	r->rnr_retries = qp->attr.rnr_retry;
	if (!run->qp && !qp->rx_moving)
		comp_placed(qp, p->psn);
	if (win_behind(&r->win) || (qp->rx_moving && !run->qp)) {
		if (!win_keep(qp->x, &r->win, p, payload))
			response_taken(qp, p->psn);
		else
			response_dropped(qp);
		return RX_NEXT;
	}
	switch (place_response(qp, p, payload, index, run)) {
	case V_OK:
		response_taken(qp, p->psn);
		return RX_NEXT;
	case V_NO_RESOURCE:
		return RX_FULL;
	case V_WAIT:
		if (fault_response(qp, p, payload))
			response_taken(qp, p->psn);
		return RX_NEXT;
	default:
		return RX_NEXT;
	}
}

enum rx_result reply_rx(struct qp *qp, const struct pkt *pkt,
			struct payload payload, struct rx_run *run)
{
	if (pkt->opcode != OP_ACK && pkt->opcode != OP_X_ACK)
		return take_response(qp, pkt, payload, run);
	if (run->qp)
		return RX_FULL;
	take_ack(qp, pkt);
	return RX_NEXT;
}

bool reply_more(struct qp *qp, psn_t psn, uint32_t n)
{
	struct window *w = &qp->req.win;

	if (w->next != psn || w->num)
		return false;
	w->next = psn_add(psn, n);
	return true;
}

bool reply_drain(struct qp *qp, struct rx_run *run)
{
	struct req *r = &qp->req;

	while (r->win.num && !r->rsp_wait.ticket.v) {
		struct accepted *a;
		uint32_t index;
		psn_t psn;

		a = list_entry(r->win.waiting.next, struct accepted, link);
		for (unsigned i = 0; i < run->num; i++)
			a = list_entry(a->link.next, struct accepted, link);
		if (&a->link == &r->win.waiting ||
		    psn_diff(a->pkt.psn, r->win.next) >= 0 ||
		    !req_wqe_at(qp, a->pkt.psn, &index) ||
		    beyond_failure(r, index))
			break;
		psn = a->pkt.psn;
		if (!run->num)
			comp_placed(qp, psn);
		if (place_response(qp, &a->pkt, win_payload(qp->x, a), index,
				   run) != V_OK)
			break;
	}
	return run->num != 0;
}

/* The response @psn of WQE @w is placed. */
static void response_done(struct qp *qp, const struct wqe *w, psn_t psn)
{
	uint32_t k = (uint32_t)psn_diff(psn, w->first_psn);
	struct req *r = &qp->req;
	bool chunk_end = w->op != WR_READ || k + 1 == w->num_psn ||
			 (k + 1) % r->reads.chunk == 0;

	if (chunk_end && r->reads.out)
		r->reads.out--;
	if (chunk_end && w->op == WR_READ)
		reads_done(qp, reads_chunk_charge(qp, w, k));
	r->reads.missed = false;
	if (!r->reads.ask_again &&
	    psn_diff(psn_add(psn, 1), r->reads.again_to) >= 0)
		r->reads.gap = false;
	if (deadline_waits(r->at[REQ_READ_GAP]) && r->reads.gap_psn == psn) {
		r->at[REQ_READ_GAP] = TIME_NEVER;
		late_came(&qp->peer->late, qp->x->now - r->reads.gap_since);
		late_gap(&qp->peer->late);
	}
	comp_placed(qp, psn);
	psns_completed(&r->psn, psn_add(psn, 1));
	comp_placed(qp, r->psn.una);
}

/* The moves of run->pkt[i] failed: keep what follows, ask for its page. */
static void responses_failed(struct rx_run *run, unsigned i)
{
	struct qp *qp = run->qp;
	struct req *r = &qp->req;
	const struct move *m = &run->moves.m[run->moves.done];

	dma_fault(qp->x->mem, m->addr, m->len);
	if (!win_keep_run(qp->x, &r->win, run, i))
		return;
	r->wqe.rsp = qp->cfg.sq->cons;
	retry_rewind(qp, FLIGHT_FAULT);
}

/* Behind the gap that was filled there may be another one. */
static void still_overtaken(struct qp *qp)
{
	struct req *r = &qp->req;
	uint32_t index;
	psn_t due;

	if (r->win.num && !win_behind(&r->win) && !r->reads.gap &&
	    response_due(qp, &due, &index))
		response_overtaken(qp, due);
}

void reply_timeout(struct qp *qp)
{
	struct req *r = &qp->req;
	uint32_t index;
	psn_t due;

	if (qp->x->now < r->at[REQ_READ_GAP])
		return;
	r->at[REQ_READ_GAP] = TIME_NEVER;
	if (qp->rx_moving || win_behind(&r->win) || r->rsp_wait.ticket.v ||
	    !response_due(qp, &due, &index) || due != r->reads.gap_psn)
		return;
	late_gap(&qp->peer->late);
	r->reads.doubted = r->reads.gap_since;
	r->reads.doubted_psn = due;
	take_gap(qp, due);
}

void reply_commit(struct rx_run *run)
{
	struct qp *qp = run->qp;

	if (qp->state < QPS_RTS || qp->state > QPS_SQE)
		return;
	for (unsigned i = 0; i < run->num; i++) {
		struct run_pkt *rp = &run->pkt[i];
		uint32_t index;

		if (rp->move_end > run->moves.done) {
			responses_failed(run, i);
			break;
		}
		win_copied(run, i);
		if (rp->payload.kept)
			win_placed(qp->x, &qp->req.win, rp->payload.kept);
		for (uint32_t k = 0; k <= rp->more; k++) {
			psn_t psn = psn_add(rp->pkt->psn, k);

			if (req_wqe_at(qp, psn, &index))
				response_done(qp, wq_at(qp->cfg.sq, index),
					      psn);
			if (qp->state == QPS_ERR)
				return;
		}
	}
	still_overtaken(qp);
	if (qp->state == QPS_ERR)
		return;
	retry_news(qp, true);
	live_progress(qp);
}
