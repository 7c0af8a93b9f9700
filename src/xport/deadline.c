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

static uint64_t next_of(const struct qp *qp)
{
	uint64_t at = qp->open.ask_at;

	/* unrolled: for each packet, and a third of the instructions */
	if (qp->state == QPS_RTS || qp->state == QPS_SQD)
#pragma GCC unroll 16
		for (unsigned i = 0; i < REQ_DEADLINES; i++)
			at = MIN(at, qp->req.at[i]);
	if (qp->state != QPS_ERR)
#pragma GCC unroll 16
		for (unsigned i = 0; i < RESP_DEADLINES; i++)
			at = MIN(at, qp->resp.at[i]);
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
