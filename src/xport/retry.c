/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* retry.c: requester: what to do when no news, bad news or news of a gap
 * comes (IBTA 9.7.5, 9.9.2).
 *
 * Theory of operation. Towards a standard peer the spec's machinery: the ACK
 * timer, sequence NAKs and RNR NAKs, each taking us back to una (go-back-N).
 * A nopin peer tells more: what it accepted, and a map of what came after a
 * gap. So only what is missing is sent again, and instead of repeating a
 * packet to provoke an answer we ask (XACK_PROBE) after 1 ms and then ever more
 * rarely; the answer (XACK_PROBED) also tells that what was sent before the
 * question and is not in the map was lost. It is sent again a few packets at a
 * time, as news comes (RFC 6937): what was only late comes meanwhile. Answers may
 * be late (a thread of the peer lost its CPU between making one and sending it,
 * say), so questions have numbers, and one is repeated until it is answered.
 * When a retry is spent is in live.c.
 */
#include "xport/retry.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/log.h"
#include "base/timerq.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/timecode.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/live.h"
#include "xport/peer.h"
#include "xport/psns.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/reorder.h"
#include "xport/requester.h"
#include "xport/tx.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

enum {
	LOST_AT_ONCE = 16, /* are sent again before the peer is heard of */
	HOLD_MAX_NS = 100 * 1000 * 1000,
	CWND_MAX = 128,
};

void retry_news(struct qp *qp, bool progress)
{
	struct req *r = &qp->req;

	if (progress) {
		gso_passed(&r->gso, r->psn.una);
		if (r->cwnd < MAX(1, MIN(CWND_MAX, 65536 / qp->mtu)))
			r->cwnd++;
	}
	if (r->loss.recovering && psn_diff(r->psn.acc, r->loss.recover) >= 0)
		r->loss.recovering = false;
}

/* READ chunks and atomics before @to that are still to be answered stay asked
 * for; all others count no more. */
static void recount_reads(struct qp *qp, psn_t to)
{
	struct req *r = &qp->req;
	uint32_t out = 0, charge = 0;

	for (uint32_t i = qp->cfg.sq->cons; i != r->wqe.started; i++) {
		const struct wqe *w = wq_at(qp->cfg.sq, i);
		uint32_t step = w->op == WR_READ ? r->reads.chunk : 1;

		if (!wqe_is_read(w))
			continue;
		for (uint32_t k = 0; k < w->num_psn; k += step) {
			psn_t end = psn_add(w->first_psn,
					    MIN(k + step, w->num_psn));

			if (psn_diff(end, to) > 0)
				break;
			if (psn_diff(end, r->psn.una) <= 0)
				continue;
			out++;
			if (w->op == WR_READ)
				charge += reads_chunk_charge(qp, w, k);
		}
	}
	r->reads.out = out;
	reads_asked(qp, charge);
}

void retry_forget(struct req *r)
{
	r->loss.lost = r->loss.resent = r->loss.gap = 0;
	r->at[REQ_GAP] = TIME_NEVER;
	r->loss.recovering = false;
}

/* Go on sending at @to, una or acc. */
static void back_to(struct qp *qp, psn_t to, enum flight_kind why)
{
	struct req *r = &qp->req;
	uint32_t index;

	if (qp->state != QPS_RTS && qp->state != QPS_SQD)
		return;
	flight_note(&qp->log, qp->x->now, FLIGHT_RETX, to, (uint16_t)why,
		    (uint64_t)psn_diff(r->psn.snd, to));
	log_debug("qp 0x%x: back %d packets, reason %s", qp->cfg.qpn,
		  psn_diff(r->psn.snd, to), flight_info[why].name);
	psns_gone_back(&r->psn, to);
	r->wqe.cur = req_wqe_at(qp, to, &index) ? index : r->wqe.started;
	retry_forget(r);
	r->reads.ask_again = false;
	flow_forget(qp);
	reads_forget(qp);
	recount_reads(qp, to);
	live_restart(qp);
	qp_kick(qp);
}

void retry_rewind(struct qp *qp, enum flight_kind why)
{
	struct req *r = &qp->req;

	r->cwnd = MAX(2, r->cwnd / 2);
	back_to(qp, r->psn.una, why);
}

void retry_unsent(struct qp *qp, const struct burst *b)
{
	struct req *r = &qp->req;
	uint32_t index;

	/* Cut into packets it may have left but for its end, and the peer has it, or
	 * has answered, and the answer moves: what did not leave is like lost. */
	if (psn_diff(r->psn.acc, b->sent.from) > 0 ||
	    psn_diff(r->psn.placed, b->sent.from) > 0 ||
	    psn_diff(r->win.next, b->sent.max) > 0 ||
	    !req_wqe_at(qp, b->sent.from, &index))
		return;
	flight_note(&qp->log, qp->x->now, FLIGHT_RETX, b->sent.from, FLIGHT_TX,
		    (uint64_t)psn_diff(r->psn.snd, b->sent.from));
	psns_unsent(&r->psn, b->sent.from, b->sent.max);
	r->wqe.cur = index;
	flow_unsent(qp, b->sent.from, b->sent.charge);
	credit_placed(qp, b->sent.out);
	reads_forget(qp);
	recount_reads(qp, b->sent.from);
	qp_kick(qp);
}

void retry_ask_again(struct qp *qp, psn_t due, psn_t end)
{
	struct req *r = &qp->req;

	r->reads.ask_again = true;
	r->reads.again_at = r->reads.again_to = due;
	r->reads.again_end = end;
	qp_kick(qp);
}

void retry_rnr(struct qp *qp, psn_t psn, uint8_t code, bool fault)
{
	struct req *r = &qp->req;
	uint32_t index;

	count(qp->x->cnt, CNT_rnr_rx);
	flight_note(&qp->log, qp->x->now, FLIGHT_NAK_RX, r->psn.una,
		    AETH_RNR | code, r->rnr_retries);
	if (r->psn.snd == r->psn.una && deadline_waits(r->at[REQ_PAUSE]))
		return;
	if (r->rnr_retries == 0 && !fault) {
		if (req_wqe_at(qp, r->psn.una, &index))
			comp_fail_wqe(qp, index, WC_RNR_RETRY_EXC_ERR,
				      CAUSE_NAK | AETH_RNR | code);
		return;
	}
	if (r->rnr_retries != 7 && !fault)
		r->rnr_retries--;
	if (psn == r->psn.una)
		live_not_ready(qp);
	retry_rewind(qp, FLIGHT_NAK_RX);
	r->at[REQ_PAUSE] = qp->x->now + rnr_code_to_ns(code);
	qp_rearm(qp);
}

void retry_hold(struct qp *qp)
{
	struct req *r = &qp->req;
	const bool held = req_held(r);

	r->at[REQ_HOLD] = qp->x->now + HOLD_MAX_NS;
	if (!held || r->psn.snd != r->psn.acc) {
		flow_held(qp);
		back_to(qp, r->psn.acc, FLIGHT_FAULT);
	}
	qp_rearm(qp);
}

void retry_resume(struct qp *qp)
{
	struct req *r = &qp->req;

	if (!req_held(r))
		return;
	r->at[REQ_HOLD] = TIME_NEVER;
	back_to(qp, r->psn.acc, FLIGHT_RESOLVED);
	flow_resumed(qp);
}

/* --- what is lost, towards a nopin peer ----------------------------------- */

bool retry_may(const struct req *r)
{
	return r->loss.lost && r->loss.left;
}

bool retry_wants(const struct req *r)
{
	return retry_may(r) || r->reads.ask_again || live_repeats(r);
}

bool retry_is_lost(const struct qp *qp, psn_t psn)
{
	int32_t i = psn_diff(psn, qp->req.loss.base);

	return i >= 0 && i < 64 && (qp->req.loss.lost >> i & 1);
}

void retry_resent(struct qp *qp, psn_t psn)
{
	struct req *r = &qp->req;

	if (!retry_is_lost(qp, psn))
		return;
	r->loss.left -= r->loss.left != 0;
	r->loss.lost &= ~(UINT64_C(1) << psn_diff(psn, r->loss.base));
	r->loss.resent |= UINT64_C(1) << psn_diff(psn, r->loss.base);
	r->loss.doubted = r->loss.gap_since;
}

/* The next READ chunk or atomic that is to be asked for again. What was taken
 * back since (retry_unsent()) is sent in its turn. */
static bool next_again(struct qp *qp, psn_t *psn)
{
	struct req *r = &qp->req;
	uint32_t index;

	if (psn_diff(r->psn.una, r->reads.again_at) > 0)
		r->reads.again_at = r->psn.una;
	while (psn_diff(r->reads.again_at, r->reads.again_end) < 0 &&
	       psn_diff(r->reads.again_at, r->psn.snd) < 0 &&
	       req_wqe_at(qp, r->reads.again_at, &index)) {
		const struct wqe *w = wq_at(qp->cfg.sq, index);
		uint32_t k = (uint32_t)psn_diff(r->reads.again_at,
						w->first_psn);

		*psn = r->reads.again_at;
		if (wqe_is_read(w)) {
			r->reads.again_at = psn_add(w->first_psn,
						    reads_chunk_end(qp, w, k));
			if (win_has_all(&r->win, *psn, r->reads.again_at))
				continue;
			if (psn_diff(r->reads.again_at, r->reads.again_to) > 0)
				r->reads.again_to = r->reads.again_at;
			return true;
		}
		r->reads.again_at = wqe_end(w);
	}
	return false;
}

bool retry_next_lost(struct qp *qp, psn_t *psn)
{
	struct req *r = &qp->req;

	if (live_repeats(r)) {
		*psn = r->psn.una;
		return true;
	}
	if (r->reads.ask_again && next_again(qp, psn))
		return true;
	r->reads.ask_again = false;
	while (retry_may(r)) {
		int i = __builtin_ctzll(r->loss.lost);

		*psn = psn_add(r->loss.base, (uint32_t)i);
		if (psn_diff(*psn, r->psn.acc) >= 0 &&
		    psn_diff(*psn, r->psn.snd) < 0)
			return true;
		r->loss.lost &= ~(UINT64_C(1) << i);
	}
	return false;
}

/* READ requests stand for many PSNs, of which only the first is a packet's. */
static bool is_packet(const struct qp *qp, psn_t psn)
{
	const struct wqe *w;
	uint32_t index;

	if (!req_wqe_at(qp, psn, &index))
		return false;
	w = wq_at(qp->cfg.sq, index);
	return w->op != WR_READ ||
	       (uint32_t)psn_diff(psn, w->first_psn) % qp->req.reads.chunk == 0;
}

/* Let all maps begin at acc. */
static void move_maps(struct qp *qp)
{
	struct req *r = &qp->req;
	const int32_t by = psn_diff(r->psn.acc, r->loss.base);
	const bool apart = by < 0 || by >= 64;
	const uint64_t gone = apart ? ~UINT64_C(0) : (UINT64_C(1) << by) - 1;

	if (by >= 0 && r->loss.gap & gone)
		late_came(&qp->peer->late, qp->x->now - r->loss.gap_since);
	r->loss.gap = apart ? 0 : r->loss.gap >> by;
	r->loss.lost = apart ? 0 : r->loss.lost >> by;
	r->loss.resent = apart ? 0 : r->loss.resent >> by;
	r->loss.base = r->psn.acc;
}

/* Of what is before @high, what is not in @sack and is not being sent again. */
static uint64_t holes(const struct qp *qp, psn_t high, uint64_t sack)
{
	const struct req *r = &qp->req;
	const int32_t n = MIN(psn_diff(high, r->psn.acc), 64);
	uint64_t map;

	if (n <= 0)
		return 0;
	map = ~UINT64_C(0) >> (64 - n) &
	      ~(sack | r->loss.resent | r->loss.lost);
	for (uint64_t left = map; left; left &= left - 1) {
		const int i = __builtin_ctzll(left);

		if (!is_packet(qp, psn_add(r->psn.acc, (uint32_t)i)))
			map &= ~(UINT64_C(1) << i);
	}
	return map;
}

static void gap_over(struct qp *qp)
{
	qp->req.at[REQ_GAP] = TIME_NEVER;
	late_gap(&qp->peer->late);
}

/* Packets that were overtaken and have not come in time are lost. */
static void gap_lost(struct qp *qp)
{
	struct req *r = &qp->req;

	move_maps(qp);
	gap_over(qp);
	if (!r->loss.gap)
		return;
	log_debug("qp 0x%x: lost 0x%llx from 0x%x", qp->cfg.qpn,
		  (unsigned long long)r->loss.gap, r->loss.base);
	r->loss.lost |= r->loss.gap;
	r->loss.left = LOST_AT_ONCE;
	r->loss.gap = 0;
	if (!r->loss.recovering) {
		r->loss.recovering = true;
		r->loss.recover = r->psn.max;
	}
	qp_kick(qp);
}

static void gap_seen(struct qp *qp, psn_t high, uint64_t sack)
{
	const uint64_t now_ns = qp->x->now;
	struct req *r = &qp->req;

	if (!r->loss.gap && deadline_waits(r->at[REQ_GAP]))
		gap_over(qp);
	if (!r->loss.gap) {
		r->loss.gap = holes(qp, high, sack);
		r->loss.gap_since = now_ns;
		if (r->loss.gap)
			r->at[REQ_GAP] = now_ns + qp->peer->late.wait_ns;
	}
	if (now_ns >= r->at[REQ_GAP])
		gap_lost(qp);
}

void retry_sack(struct qp *qp, const struct pkt *p, bool probed)
{
	const uint64_t sack = p->xack_flags & XACK_SACK ? p->sack << 1 : 0;
	struct req *r = &qp->req;
	psn_t high = r->psn.acc;

	if (req_held(r) || (p->xack_flags & XACK_HOLD))
		return;
	move_maps(qp);
	if (r->loss.lost && !r->loss.left) /* the next of them go behind this */
		r->loss.recover = r->psn.max;
	r->loss.left = LOST_AT_ONCE;
	if (r->loss.gap & sack)
		late_came(&qp->peer->late, qp->x->now - r->loss.gap_since);
	r->loss.gap &= ~sack;
	r->loss.lost &= ~sack;
	if (sack)
		high = psn_add(high, 63 - (uint32_t)__builtin_clzll(sack));
	if (probed && psn_diff(r->probe.max, high) > 0)
		high = r->probe.max;
	if (psn_diff(high, r->psn.snd) > 0)
		high = r->psn.snd;
	/* News of what was sent later; the answer, also of what was sent again. */
	if (probed || !r->loss.recovering ||
	    psn_diff(high, r->loss.recover) > 0) {
		r->loss.recovering = r->loss.lost != 0;
		r->loss.resent = 0;
	}
	gap_seen(qp, high, sack);
}

void retry_twice(struct qp *qp)
{
	struct req *r = &qp->req;

	if (!r->loss.doubted)
		return;
	count(qp->x->cnt, CNT_losses_doubted);
	late_doubted(&qp->peer->late, qp->x->now - r->loss.doubted);
	r->loss.doubted = 0;
}

void retry_gap_timeout(struct qp *qp)
{
	if (qp->x->now >= qp->req.at[REQ_GAP])
		gap_lost(qp);
}

void retry_kick(struct qp *qp)
{
	const struct req *r = &qp->req;

	if (r->wqe.cur != wq_end(qp->cfg.sq) || r->psn.snd != r->psn.max ||
	    retry_wants(r) || replay_busy(qp))
		qp_kick(qp);
}

void retry_check(const struct qp *qp)
{
	const struct req *r = &qp->req;
	const struct req_loss *l = &r->loss;

	psns_check(&r->psn);
	CHECK(!(l->lost & l->resent) && !(l->lost & l->gap) &&
	      !(l->gap & l->resent));
	CHECK(!l->gap || deadline_waits(r->at[REQ_GAP]));
}
