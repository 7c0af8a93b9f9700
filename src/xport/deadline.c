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

static uint64_t first_of(const uint64_t *at, unsigned n)
{
	uint64_t first = TIME_NEVER;

	while (n--)
		first = MIN(first, at[n]);
	return first;
}

static uint64_t next_of(const struct qp *qp)
{
	uint64_t at = qp->open.ask_at;

	if (qp->state == QPS_RTS || qp->state == QPS_SQD)
		at = MIN(at, first_of(qp->req.at, REQ_DEADLINES));
	if (qp->state != QPS_ERR)
		at = MIN(at, first_of(qp->resp.at, RESP_DEADLINES));
	return at;
}

void qp_rearm(struct qp *qp)
{
	timerq_set(&qp->x->timers, &qp->timer, next_of(qp));
}

void deadline_check(const struct qp *qp)
{
	CHECK(qp->timer.at_ns <= next_of(qp));
}
