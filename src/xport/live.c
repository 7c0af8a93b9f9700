/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live.c: requester: does it get anywhere, and when is a retry spent (I8, IBTA
 * 9.7.6.1.3)? Every request ends: pages have no limit, silence has one, and an answer
 * that moves nothing is silence.
 *
 * Theory of operation. A requester that waits for its peer asks where that is
 * (XACK_PROBE), ever more rarely, and of many that nobody answers even more (spare.h).
 * It has two clocks of an ACK timeout:
 *  - REQ_SILENT runs from the last time that the peer said something of use: it
 *    answered our newest question, gave a reason to wait, or moved us. Nothing else
 *    is sent again when it is over: the peer may be alive and only not have run.
 *  - REQ_STALLED runs while nothing moves. Progress is a new req.una, or a req.acc
 *    higher than ever since: what is accepted, forgotten and accepted again is none.
 *    Once it is over the oldest packet is sent again and a new question asked behind
 *    it; an answer that neither moves nor explains anything then spends a retry.
 * An answer *explains* if it shows the oldest request in the peer's hands (accepted
 * and not placed, a READ not answered), or says HOLD, SUSPEND, a RNR or that its QP is
 * moving. REQ_STALLED stands still until an answer explains nothing: so a wait that is
 * explained has no limit, and one that is explained in turn has.
 *
 * What waits for our own host spends nothing: a page or a move of ours, a full socket,
 * a process that did not run and so did not ask.
 *
 * A request that does not leave, because the window is full (flow.c, credit.c), ends
 * with the silence of the peer, whichever QPs have the window: of one that no QP has heard
 * of for so long there is no reason to think that it will give any of it back.
 *
 * A standard peer answers no question: what moves us is news, and nothing else. It is
 * sent everything again for each retry. An RNR, of which there is a count of its own, ends
 * a silence: what it was not heard of before counts no more.
 */
#include "xport/live.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/range.h"
#include "base/timerq.h"
#include "ring/cqe.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/timecode.h"
#include "xport/attr.h"
#include "xport/burst.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/kept.h"
#include "xport/kick.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/spare.h"
#include "xport/waits.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <stdio.h>

enum {
	PROBE_FIRST_NS = 1000 * 1000,
	PROBE_MAX_NS = 50 * 1000 * 1000,
	/* A QP that asked last so long ago did not run, or could not send. */
	UNASKED_NS = 4 * PROBE_MAX_NS,
	/* Of a region that is suspended: after half of what that may take. */
	SUSPENDED_ASK_NS = 1000 * 1000 * 1000,
	SUSPENDED_ASK_MIN_NS = 1000 * 1000,
	SPARED_FIRST_NS = 8 * 1000 * 1000,
	/* Five questions before a peer that was spared is taken for silent. */
	SPARED_UNTIL_NS = 5 * PROBE_MAX_NS,
	/* The peer of a QP that lets others ask was heard of since. */
	HEARD_NS = 2 * PROBE_MAX_NS,
	/* Timeouts below these only measure the hosts' schedulers: a NIC in a
	 * process among many that spin may not run for half a second. What is
	 * lost between nopins is found by asking; the timeout is for the dead. */
	TIMEOUT_MIN_NS = 1000 * 1000,
	TIMEOUT_MIN_NOPIN_NS = 2000 * 1000 * 1000, /* the first */
	TIMEOUT_NEXT_NOPIN_NS = 250 * 1000 * 1000,
};

#define WHOLE_NS UINT64_MAX /* of live.left_ns: an ACK timeout */

static uint64_t ack_timeout_ns(const struct qp *qp)
{
	uint64_t t = ack_timeout_to_ns(qp->attr.timeout);
	uint64_t least = TIMEOUT_MIN_NS;

	if (qp_open(qp) || qp->peer->kind != PEER_STANDARD)
		least = qp->req.retries == qp->attr.retry_cnt
				? TIMEOUT_MIN_NOPIN_NS
				: TIMEOUT_NEXT_NOPIN_NS;
	return t == UINT64_MAX ? t : MAX(t, least);
}

/* In SQD requests end that were begun before. */
static bool has_begun(const struct qp *qp)
{
	return qp->state == QPS_RTS || qp->req.psn.una != qp->req.psn.max;
}

/* Is something to be sent that waits until it is known what the peer is? */
static bool waits_to_open(const struct qp *qp)
{
	return open_waits(qp) && qp->cfg.sq->cons != wq_end(qp->cfg.sq) &&
	       has_begun(qp);
}

/* Is it the peer's turn, and should it be soon? Of one that asked us to hold we
 * want to hear now and then. */
static bool outstanding(const struct qp *qp)
{
	const struct req *r = &qp->req;

	return deadline_waits(r->at[REQ_SUSPEND]) || waits_to_open(qp) ||
	       (!req_held(r) && r->psn.una != r->psn.max &&
		r->psn.snd != r->psn.una);
}

static bool waits_for_window(const struct qp *qp)
{
	return qp->req.live.window && qp_dialect(qp)->budgets &&
	       !req_held(&qp->req) && !outstanding(qp) && has_begun(qp);
}

/* Is all that was sent to be sent again, to a nopin? That it is our turn for so long
 * is no news of the peer: the clocks go on, or each NAK would set them anew. */
static bool goes_back(const struct qp *qp)
{
	const struct req *r = &qp->req;

	return qp_dialect(qp)->forgets && !req_held(r) &&
	       r->psn.una != r->psn.max && r->psn.snd == r->psn.una;
}

static bool peers_turn(const struct qp *qp)
{
	return outstanding(qp) || waits_for_window(qp);
}

/* How often we ask whether a region is still suspended. */
static uint64_t suspended_ask_ns(const struct req *r)
{
	return MAX(MIN(r->suspend_ns / 2, (uint64_t)SUSPENDED_ASK_NS),
		   (uint64_t)SUSPENDED_ASK_MIN_NS);
}

/* --- the clocks -------------------------------------------------------------- */

static void ask_soon(struct req *r)
{
	r->probe.ns = PROBE_FIRST_NS;
	r->probe.spare.gap_ns = 0;
}

void live_reset(struct req *r)
{
	r->live = (struct live){
		.left_ns = WHOLE_NS, .una = r->psn.una, .best = r->psn.acc};
	ask_soon(r);
}

/* What was said, and what it cost, counts no more. */
static void begin_anew(struct req *r)
{
	struct live *l = &r->live;

	r->at[REQ_SILENT] = r->at[REQ_STALLED] = TIME_NEVER;
	l->left_ns = WHOLE_NS;
	l->explained = l->excused = false;
	l->trial = TRIAL_NONE;
}

static void stand(struct req *r, uint64_t now_ns)
{
	if (r->at[REQ_STALLED] == TIME_NEVER)
		return;
	r->live.left_ns = r->at[REQ_STALLED] > now_ns
				  ? r->at[REQ_STALLED] - now_ns
				  : 0;
	r->at[REQ_STALLED] = TIME_NEVER;
}

void live_stop(struct qp *qp)
{
	struct req *r = &qp->req;

	stand(r, qp->x->now);
	r->at[REQ_SILENT] = r->at[REQ_PROBE] = TIME_NEVER;
	ask_soon(r);
}

void live_start(struct qp *qp)
{
	const uint64_t now_ns = qp->x->now;
	struct req *r = &qp->req;
	struct live *l = &r->live;

	if (deadline_waits(r->at[REQ_SUSPEND])) {
		if (r->at[REQ_PROBE] == TIME_NEVER)
			r->at[REQ_PROBE] = now_ns + suspended_ask_ns(r);
		qp_rearm(qp);
		return;
	}
	if (r->at[REQ_SILENT] == TIME_NEVER)
		r->at[REQ_SILENT] = sat_add(now_ns, ack_timeout_ns(qp));
	if (r->at[REQ_STALLED] == TIME_NEVER && qp_dialect(qp)->answers &&
	    !l->explained && l->trial == TRIAL_NONE && outstanding(qp))
		r->at[REQ_STALLED] = sat_add(
			now_ns, l->left_ns == WHOLE_NS ? ack_timeout_ns(qp)
						       : l->left_ns);
	if (r->at[REQ_PROBE] == TIME_NEVER && qp_dialect(qp)->answers) {
		ask_soon(r);
		r->at[REQ_PROBE] = now_ns + r->probe.ns;
	}
	qp_rearm(qp);
}

static void start_if(struct qp *qp)
{
	if (peers_turn(qp))
		live_start(qp);
	else if (!goes_back(qp))
		live_stop(qp);
	qp_rearm(qp);
}

/* A nopin, or what may be one, that lets everything be sent again and again is as silent
 * as before, and is asked as soon. A standard peer has cost a retry. */
void live_restart(struct qp *qp)
{
	struct req *r = &qp->req;
	const uint64_t silent_at = r->at[REQ_SILENT],
		       probe_at = r->at[REQ_PROBE];

	live_stop(qp);
	if (qp_dialect(qp)->forgets || open_waits(qp))
		r->at[REQ_SILENT] = silent_at;
	if (qp_dialect(qp)->answers && probe_at < qp->x->now + PROBE_FIRST_NS)
		r->at[REQ_PROBE] = probe_at;
	if (peers_turn(qp))
		live_start(qp);
	qp_rearm(qp);
}

/* An ACK timeout after any QP heard of its peer. */
static uint64_t peer_silent_at(const struct qp *qp)
{
	return sat_add(qp->peer->probes.heard_ns, ack_timeout_ns(qp));
}

void live_wait_open(struct qp *qp)
{
	if (waits_to_open(qp) && (qp->state == QPS_RTS || qp->state == QPS_SQD))
		live_start(qp);
}

void live_none_sent(struct qp *qp)
{
	qp->req.live.window = !list_empty(&qp->on.waiting);
	if (waits_for_window(qp))
		live_start(qp);
}

void live_sent(struct qp *qp, bool first)
{
	struct req *r = &qp->req;
	struct live *l = &r->live;

	/* its own time begins, if others heard of the peer until now */
	if (first && l->window && r->at[REQ_SILENT] != TIME_NEVER)
		r->at[REQ_SILENT] = MAX(r->at[REQ_SILENT], peer_silent_at(qp));
	l->window = false;
	live_start(qp);
}

/* --- retries ----------------------------------------------------------------- */

bool live_spend(struct qp *qp, enum wc_cause cause)
{
	struct req *r = &qp->req;
	uint32_t index;

	if (r->retries) {
		r->retries--;
		return true;
	}
	if (!req_wqe_at(qp, r->psn.una, &index))
		index = qp->cfg.sq->cons;
	comp_fail_wqe(qp, index, WC_RETRY_EXC_ERR,
		      r->failure.too_large ? CAUSE_TOO_LARGE : cause);
	return false;
}

void live_not_ready(struct qp *qp)
{
	if (!qp_dialect(qp)->answers)
		qp->req.retries = qp->attr.retry_cnt;
}

/* @why: of the ACK timeout. Return: false: it was the last. */
static bool spend(struct qp *qp, enum wc_cause cause)
{
	struct req *r = &qp->req;

	count(qp->x->cnt, CNT_timeouts);
	gso_missing(qp, &r->gso, r->psn.una);
	flight_note(&qp->log, qp->x->now, FLIGHT_TIMEOUT, r->psn.snd,
		    r->retries, r->psn.una);
	if (!live_spend(qp, cause))
		return false;
	begin_anew(r);
	if (peers_turn(qp))
		live_start(qp);
	return true;
}

/* The peer has done its part, or cannot know that it is its turn. */
static bool is_ours(const struct qp *qp)
{
	const struct req *r = &qp->req;

	return win_behind(&r->win) || r->rsp_wait.ticket.v || !qp_idle(qp) ||
	       (r->wait.ticket.v && r->psn.snd == r->psn.una) ||
	       deadline_waits(r->at[REQ_PAUSE]) ||
	       !(peers_turn(qp) || goes_back(qp));
}

void live_page_came(struct qp *qp)
{
	struct req *r = &qp->req;
	struct live *l = &r->live;

	l->trial = TRIAL_NONE;
	l->left_ns = WHOLE_NS;
	if (r->at[REQ_STALLED] != TIME_NEVER)
		r->at[REQ_STALLED] = sat_add(qp->x->now, ack_timeout_ns(qp));
	/* one that cannot be asked was not silent: it is to send it again only now */
	if (r->at[REQ_SILENT] != TIME_NEVER && !qp_dialect(qp)->answers)
		r->at[REQ_SILENT] = sat_add(qp->x->now, ack_timeout_ns(qp));
	qp_rearm(qp);
}

/* --- what is heard -------------------------------------------------------------- */

bool live_moved(struct qp *qp)
{
	struct live *l = &qp->req.live;
	const struct req *r = &qp->req;
	const bool una = r->psn.una != l->una;

	if (!una && psn_diff(r->psn.acc, l->best) <= 0)
		return false;
	l->una = r->psn.una;
	l->best = una ? r->psn.acc : l->best;
	if (psn_diff(r->psn.acc, l->best) > 0)
		l->best = r->psn.acc;
	return true;
}

void live_progress(struct qp *qp)
{
	struct req *r = &qp->req;

	live_moved(qp);
	comp_reload(qp);
	begin_anew(r);
	r->at[REQ_PROBE] = TIME_NEVER;
	start_if(qp);
}

/* Does @p give a reason to wait? */
static bool explains(const struct qp *qp, const struct pkt *p)
{
	const struct req *r = &qp->req;

	if (p->xack_flags & (XACK_HOLD | XACK_SUSPEND | XACK_FAULT))
		return true;
	if ((p->syndrome & AETH_KIND_MASK) == AETH_RNR)
		return psn_diff(p->psn, r->psn.una) >= 0;
	if (p->answer && !(p->xack_flags & XACK_PROBED)) /* it is moving */
		return r->probe.asked && p->answer == r->probe.question;
	return (p->xack_flags & XACK_PROBED) && r->psn.una != r->psn.max &&
	       psn_diff(p->accepted, r->psn.una) >= 0 &&
	       psn_diff(p->psn, r->psn.una) < 0;
}

static void explained(struct qp *qp, bool on)
{
	struct req *r = &qp->req;
	struct live *l = &r->live;

	r->at[REQ_SILENT] = TIME_NEVER;
	l->excused = false;
	l->explained = on;
	if (on)
		stand(r, qp->x->now);
}

/**
 * live_heard() - See live.h.
 * @answer:	to our newest question
 */
void live_heard(struct qp *qp, const struct pkt *p, bool answer)
{
	struct req *r = &qp->req;
	bool why;

	if (!qp_dialect(qp)->answers) {
		start_if(qp);
		return;
	}
	why = explains(qp, p);
	if (answer || why)
		explained(qp, why);
	if (answer && !why && r->live.trial == TRIAL_MADE &&
	    (outstanding(qp) || goes_back(qp)) && !is_ours(qp) &&
	    !spend(qp, CAUSE_STALLED))
		return;
	start_if(qp);
}

/* --- questions ------------------------------------------------------------------ */

static void live_ask_now(struct qp *qp)
{
	struct req *r = &qp->req;

	r->at[REQ_PROBE] = qp->x->now + (deadline_waits(r->at[REQ_SUSPEND])
						 ? suspended_ask_ns(r)
						 : r->probe.ns);
	spare_asked(&r->probe.spare, &qp->peer->probes, SPARED_FIRST_NS,
		    qp->x->now);
	ack_say(qp, XACK_PROBE);
}

/* Did another QP ask, and is the peer heard of? One that is gone over there is not
 * answered, and its questions say nothing. */
static bool others_ask(const struct peer *p, uint64_t now_ns)
{
	return p->probed_ns + PROBE_MAX_NS > now_ns &&
	       p->probes.heard_ns + HEARD_NS > now_ns;
}

/* Is the peer spared, as it does not run? Not shortly before it is taken for silent, or
 * its suspension for over: then it has had every chance. */
static bool spares(const struct qp *qp)
{
	const struct req *r = &qp->req;
	const uint64_t until = MIN(r->at[REQ_SILENT], r->at[REQ_SUSPEND]);

	return !spare_asks(&r->probe.spare, &qp->peer->probes, qp->x->now) &&
	       until > qp->x->now + SPARED_UNTIL_NS;
}

/* Of those that wait for the window one asks, if no other QP has. */
static void probe(struct qp *qp)
{
	struct req *r = &qp->req;

	r->probe.ns = MIN(r->probe.ns * 2, (uint64_t)PROBE_MAX_NS);
	if (waits_for_window(qp) && others_ask(qp->peer, qp->x->now))
		r->at[REQ_PROBE] = qp->x->now + PROBE_MAX_NS;
	else if (spares(qp))
		r->at[REQ_PROBE] = qp->x->now + r->probe.ns;
	else
		live_ask_now(qp);
}

void live_ask(struct qp *qp)
{
	ask_soon(&qp->req);
	live_ask_now(qp);
	qp_rearm(qp);
}

void live_asked(struct qp *qp)
{
	qp->req.live.asked_ns = qp->peer->probed_ns = qp->x->now;
	spared_asked(&qp->peer->probes, qp->x->now);
}

void live_heard_of(struct peer *p, uint64_t now_ns)
{
	spared_heard(&p->probes, now_ns);
}

bool live_repeats(const struct req *r)
{
	return r->live.trial == TRIAL_DUE && r->psn.snd != r->psn.una &&
	       r->psn.una != r->psn.max;
}

void live_repeated(struct qp *qp)
{
	struct req *r = &qp->req;

	if (r->live.trial != TRIAL_DUE)
		return;
	r->live.trial = TRIAL_MADE;
	r->probe.asked = false; /* what was asked before says nothing of it */
	live_ask(qp);
}

void live_unsent(struct qp *qp, psn_t from)
{
	struct req *r = &qp->req;

	if (r->live.trial == TRIAL_MADE && from == r->psn.una)
		r->live.trial = TRIAL_DUE;
}

/* --- time ------------------------------------------------------------------------ */

/* We did not ask for so long: our process did not run, it may be. But one that runs that
 * rarely all the time has to come to an end, too. */
static bool excuse(struct qp *qp)
{
	struct live *l = &qp->req.live;

	if (!qp_dialect(qp)->answers || l->excused ||
	    l->asked_ns + UNASKED_NS > qp->x->now)
		return false;
	l->excused = true;
	return true;
}

/* Return: is everything to be sent again? */
static bool silence(struct qp *qp)
{
	struct req *r = &qp->req;

	r->at[REQ_SILENT] = TIME_NEVER;
	if (is_ours(qp)) {
		start_if(qp);
		return false;
	}
	/* a question that has not left, as our socket is full, is not answered: look again
	 * soon */
	if (qp->resp.ack.xack & XACK_PROBE) {
		r->at[REQ_SILENT] = qp->x->now + PROBE_MAX_NS;
		qp_rearm(qp);
		return false;
	}
	if (waits_for_window(qp) && peer_silent_at(qp) > qp->x->now) {
		r->at[REQ_SILENT] = peer_silent_at(qp);
		qp_rearm(qp);
		return false;
	}
	if (excuse(qp)) {
		live_start(qp);
		probe(qp);
		return false;
	}
	if (!spend(qp, CAUSE_SILENCE))
		return false;
	if (!qp_dialect(qp)->answers) {
		reads_quiet(qp, true);
		return true;
	}
	/* it heard our questions no better than all the rest */
	probe(qp);
	return false;
}

/* Once more, and a question behind it. */
static void stalled(struct qp *qp)
{
	struct req *r = &qp->req;
	struct live *l = &r->live;

	r->at[REQ_STALLED] = TIME_NEVER;
	if (is_ours(qp) || !(outstanding(qp) || goes_back(qp))) {
		l->left_ns = WHOLE_NS;
		start_if(qp);
		return;
	}
	l->left_ns = 0;
	l->trial = TRIAL_DUE;
	qp_kick(qp);
}

bool live_timeout(struct qp *qp)
{
	const uint64_t now_ns = qp->x->now;
	struct req *r = &qp->req;
	bool again = false;

	if (now_ns >= r->at[REQ_SILENT])
		again = silence(qp);
	else if (now_ns >= r->at[REQ_PROBE] && peers_turn(qp))
		probe(qp);
	else if (now_ns >= r->at[REQ_PROBE])
		r->at[REQ_PROBE] = TIME_NEVER;
	if (now_ns >= r->at[REQ_STALLED] && qp->state != QPS_ERR)
		stalled(qp);
	return again;
}

/* --- what is told ------------------------------------------------------------------ */

static bool has_work(const struct qp *qp)
{
	if (!qp->connected || (qp->state != QPS_RTS && qp->state != QPS_SQD))
		return false;
	return qp->req.psn.una != qp->req.psn.max ||
	       (qp->state == QPS_RTS && qp->cfg.sq->cons != wq_end(qp->cfg.sq));
}

enum live_wait live_waits(const struct qp *qp, uint64_t *spent_at)
{
	const struct req *r = &qp->req;
	const struct live *l = &r->live;

	*spent_at = TIME_NEVER;
	if (!has_work(qp))
		return LIVE_NOTHING;
	if (waits_to_open(qp)) {
		*spent_at = r->at[REQ_SILENT];
		return LIVE_HELLO;
	}
	if (deadline_waits(r->at[REQ_PAUSE]))
		return LIVE_PAUSE;
	if (req_held(r))
		return LIVE_HOLD;
	if (deadline_waits(r->at[REQ_SUSPEND]))
		return LIVE_REGION;
	if (is_ours(qp) || goes_back(qp))
		return LIVE_OWN;
	*spent_at = r->at[REQ_SILENT];
	if (!outstanding(qp))
		return LIVE_WINDOW;
	if (l->explained)
		return LIVE_EXPLAINED;
	return l->trial == TRIAL_MADE ? LIVE_STALLED : LIVE_ANSWER;
}

void live_check(const struct qp *qp)
{
	const struct req *r = &qp->req;
	const struct live *l = &r->live;

	CHECK(l->trial == TRIAL_NONE || r->at[REQ_STALLED] == TIME_NEVER);
	CHECK(!l->explained || r->at[REQ_STALLED] == TIME_NEVER);
	CHECK(r->at[REQ_STALLED] == TIME_NEVER || qp_dialect(qp)->answers);
	CHECK(!r->probe.asked || r->probe.question);
	CHECK(r->probe.ns <= PROBE_MAX_NS);
}
