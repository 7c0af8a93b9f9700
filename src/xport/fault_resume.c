/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_resume.c: resume (ExaNeSt's retransmission after a page fault), between
 * nopins: the packet is forgotten and its sender asked to hold. When the page is
 * there an extension packet asks for that block again at once
 * (fault_forgiven()); no timer decides.
 *
 * If that packet is lost neither side sends anything any more, for the requester holds
 * as long as a page may take. So it is said again, a few times, until the block comes.
 */
#include "xport/fault_resume.h"
#include "base/counters.h"
#include "base/strategy.h"
#include "wire/ext.h"
#include "xport/deadline.h"
#include "xport/owe.h"
#include "xport/qp.h"
#include "xport/responder.h"
#include "xport/strategy.h"
#include "xport/xport.h"

enum {
	AGAIN_NS = 1000 * 1000, /* as a requester begins to ask, and doubled */
	AGAIN_MAX_NS = 4 * AGAIN_NS, /* the third is the last */
};

static enum fault_answer fault_resume_answer(const struct fault *f)
{
	struct qp *qp = f->qp;

	if (f->site != SITE_REQUEST || !f->pkt->ext)
		return FAULT_NEXT;
	resp_next(&qp->resp, NEXT_DROPPED_HOLD);
	count(qp->x->cnt, CNT_fault_resume);
	fault_note(f, STRATEGY_RESUME);
	ack_say(qp, XACK_HOLD);
	return FAULT_FORGOTTEN;
}

void resume_say(struct qp *qp)
{
	struct resp *r = &qp->resp;

	ack_say(qp, XACK_RESUME);
	r->hold.resume_ns = AGAIN_NS;
	r->at[RESP_RESUME] = qp->x->now + r->hold.resume_ns;
	qp_rearm(qp);
}

void resume_heard(struct qp *qp)
{
	qp->resp.at[RESP_RESUME] = TIME_NEVER;
}

void resume_timeout(struct qp *qp)
{
	struct resp *r = &qp->resp;

	if (qp->x->now < r->at[RESP_RESUME])
		return;
	r->at[RESP_RESUME] = TIME_NEVER;
	if (r->next == NEXT_HELD || r->hold.asked) /* again: it is to wait */
		return;
	count(qp->x->cnt, CNT_resumes_again);
	ack_say(qp, XACK_RESUME);
	r->hold.resume_ns *= 2;
	if (r->hold.resume_ns <= AGAIN_MAX_NS)
		r->at[RESP_RESUME] = qp->x->now + r->hold.resume_ns;
}

const struct strategy_ops fault_resume = {fault_resume_answer};
