/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hold.c: a region is suspended (mem/suspend.c), and how its peers get over it.
 *
 * Theory of operation. What is to be sent from the region waits; what comes for it
 * is redirected as far as slots go and then refused, as with a missing page. But a
 * page comes soon, and a suspension may take a minute.
 *
 * So a nopin peer is asked to hold: as long as our responder waits for a region,
 * every ACK that it sends says XACK_SUSPEND and how long it is expected to take.
 * The requester that hears it stops its timers, and asks (XACK_PROBE) only after
 * half that time, at most SUSPENDED_ASK_NS (live.c), for the case that packets are
 * lost: each answer says again how things are. It ends with an ACK without
 * XACK_SUSPEND, which is said at once when the region is resumed, or with silence for
 * three times the announced time: then its timers run as ever. So whatever is lost,
 * late, doubled or forged delays it by one question, if there is a peer, and by a
 * bounded time if there is none.
 *
 * A standard peer cannot be asked. It hears nothing, as if packets were lost, as
 * long as it probably has one retry left for what was forgotten; then RNR, as with
 * a page. Nobody tells us its timeout and its retries: ours stand for them.
 */
#include "xport/hold.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/range.h"
#include "mem/suspend.h"
#include "wire/ext.h"
#include "wire/pkt.h"
#include "wire/timecode.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/fault_resume.h"
#include "xport/live.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/waits.h"
#include "xport/xport.h"

enum {
	MS = 1000 * 1000,
	SILENCES = 3, /* so many times the announced time */
};

/* A suspension lasts so long if its length is not known. */
#define EXPECTED_NS ((uint64_t)1000 * MS)
/* More is not believed. */
#define EXPECTED_MAX_NS ((uint64_t)600 * 1000 * MS)

/* --- responder ------------------------------------------------------------- */

bool hold_expected(const struct qp *qp, uint64_t *ns)
{
	const struct resp *r = &qp->resp;
	struct mem *m = qp->x->mem;
	uint64_t a = 0, b = 0;

	const uint32_t wait = waiter_suspended(m, &r->wait, &a);
	const uint32_t src_wait = waiter_suspended(m, &r->replay.wait, &b);

	if (!wait && !src_wait)
		return false;
	*ns = MIN(MAX(a, b), EXPECTED_MAX_NS);
	if (!*ns)
		*ns = EXPECTED_NS;
	return true;
}

void hold_ask(struct qp *qp)
{
	uint64_t ns;

	/* a sender of datagrams waits for no answer */
	if (qp->connected && !qp->resp.hold.asked && hold_expected(qp, &ns))
		ack_say(qp, 0);
}

void hold_extend(struct qp *qp, struct pkt *p)
{
	struct resp *r = &qp->resp;
	uint64_t ns;

	if (!(qp->peer->features & HELLO_SUSPEND) || !hold_expected(qp, &ns))
		return;
	p->xack_flags |= XACK_SUSPEND;
	if (r->next == NEXT_HELD)
		p->xack_flags |= XACK_HOLD;
	p->hold_us = (uint32_t)DIV_ROUND_UP(ns, 1000);
}

void hold_said(struct qp *qp)
{
	qp->resp.hold.asked = true;
	count(qp->x->cnt, CNT_suspend_asked);
}

void hold_over(struct qp *qp)
{
	uint64_t ns;

	if (!qp->resp.hold.asked || hold_expected(qp, &ns))
		return;
	qp->resp.hold.asked = false;
	resume_say(qp);
}

/* --- standard requesters ---------------------------------------------------- */

uint64_t qp_patience_ns(const struct qp *qp)
{
	const bool known = qp->state >= QPS_RTS;
	const uint64_t t = ack_timeout_to_ns(known ? qp->attr.timeout : 14);
	const uint64_t tries = known ? qp->attr.retry_cnt : 0;

	if (qp_dialect(qp)->explains || t == UINT64_MAX)
		return UINT64_MAX;
	return tries ? t * tries - t / 2 : 0;
}

uint64_t hold_silent_until(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	uint64_t since = UINT64_MAX, ns;

	if (waiter_suspended(qp->x->mem, &r->wait, &ns))
		since = r->wait.since_ns;
	if (waiter_suspended(qp->x->mem, &r->replay.wait, &ns))
		since = MIN(since, r->replay.wait.since_ns);
	return since == UINT64_MAX ? 0 : sat_add(since, qp_patience_ns(qp));
}

/* --- requester -------------------------------------------------------------- */

static void hold_begin(struct qp *qp, uint64_t ns)
{
	struct req *r = &qp->req;
	const bool first = !deadline_waits(r->at[REQ_SUSPEND]);

	r->suspend_ns = MIN(ns, EXPECTED_MAX_NS);
	r->at[REQ_SUSPEND] = qp->x->now + SILENCES * r->suspend_ns;
	if (req_held(r))
		r->at[REQ_HOLD] = r->at[REQ_SUSPEND];
	if (!first)
		return;
	count(qp->x->cnt, CNT_suspend_heard);
	flight_note(&qp->log, qp->x->now, FLIGHT_SUSPEND, r->psn.una, 1,
		    r->suspend_ns);
	live_stop(qp);
}

static void end(struct qp *qp)
{
	struct req *r = &qp->req;

	flight_note(&qp->log, qp->x->now, FLIGHT_SUSPEND, r->psn.una, 0, 0);
	r->at[REQ_SUSPEND] = TIME_NEVER;
	live_stop(qp);
}

void hold_heard(struct qp *qp, const struct pkt *p)
{
	if (p->xack_flags & XACK_SUSPEND) {
		hold_begin(qp, (uint64_t)p->hold_us * 1000);
		return;
	}
	if (!deadline_waits(qp->req.at[REQ_SUSPEND]))
		return;
	end(qp);
	/* the order to go on may have been lost */
	if (!(p->xack_flags & XACK_HOLD))
		retry_resume(qp);
}

void hold_timeout(struct qp *qp)
{
	struct req *r = &qp->req;

	if (qp->x->now < r->at[REQ_SUSPEND])
		return;
	count(qp->x->cnt, CNT_suspend_silence);
	end(qp);
	retry_resume(qp);
	if (r->psn.snd != r->psn.una)
		live_start(qp);
}
