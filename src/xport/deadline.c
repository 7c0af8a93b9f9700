/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deadline.c: the one timer of a QP. */
#include "xport/deadline.h"
#include "base/check.h"
#include "base/timerq.h"
#include "xport/attr.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/xport.h"

static uint64_t next_of_live(const struct req *r)
{
	return MIN(MIN(r->live.silent_at, r->live.stalled_at), r->probe.at);
}

static uint64_t next_of(const struct qp *qp)
{
	const struct req *r = &qp->req;
	uint64_t at = TIME_NEVER;

	if (qp->state == QPS_RTS || qp->state == QPS_SQD) {
		at = next_of_live(r);
		at = MIN(at, MIN(r->loss.gap_at, r->reads.gap_at));
		at = MIN(at, r->pause_until ? r->pause_until : TIME_NEVER);
		at = MIN(at, r->charge.late_until ? r->charge.late_until
						  : TIME_NEVER);
		at = MIN(at, r->hold.until ? r->hold.until : TIME_NEVER);
		at = MIN(at, r->hold.suspend_until ? r->hold.suspend_until
						   : TIME_NEVER);
	}
	if (qp->state != QPS_ERR && qp->resp.pause_until)
		at = MIN(at, qp->resp.pause_until);
	if (qp->state != QPS_ERR && qp->resp.hold.silence_until)
		at = MIN(at, qp->resp.hold.silence_until);
	if (qp->state != QPS_ERR && qp->resp.hold.resume_at)
		at = MIN(at, qp->resp.hold.resume_at);
	if (qp->state != QPS_ERR && qp->resp.ack.repeat_at)
		at = MIN(at, qp->resp.ack.repeat_at);
	return MIN(at, qp->open.ask_at);
}

void qp_rearm(struct qp *qp)
{
	timerq_set(&qp->x->timers, &qp->timer, next_of(qp));
}

void deadline_check(const struct qp *qp)
{
	CHECK(qp->timer.at_ns <= next_of(qp));
}
