/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_replay.c: replay: the response to a READ of ours is dropped, and when the
 * page is there the READ is issued again from its PSN (reply.c, qp_wake()).
 */
#include "base/counters.h"
#include "base/strategy.h"
#include "xport/requester.h"
#include "xport/strategy.h"
#include "xport/xport.h"

static enum fault_answer fault_replay_answer(const struct fault *f)
{
	if (f->site != SITE_RESPONSE)
		return FAULT_NEXT;
	count(f->qp->x->cnt, CNT_fault_replay);
	fault_note(f, STRATEGY_REPLAY);
	f->qp->req.reads.missed = true;
	return FAULT_FORGOTTEN;
}

const struct strategy_ops fault_replay = {fault_replay_answer};
