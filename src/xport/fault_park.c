/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_park.c: park: what is to be sent waits for its page; nothing of it is on
 * the wire. A request of ours waits as long as it takes. A peer whose READ we answer
 * may run out of patience: nopins ask where we are, standard peers are told.
 */
#include "base/counters.h"
#include "base/strategy.h"
#include "xport/fault_rnr.h"
#include "xport/strategy.h"
#include "xport/xport.h"

static enum fault_answer fault_park_answer(const struct fault *f)
{
	if (f->site != SITE_SOURCE && f->site != SITE_READ_SOURCE)
		return FAULT_NEXT;
	count(f->qp->x->cnt, CNT_fault_park);
	fault_note(f, STRATEGY_PARK);
	if (f->site == SITE_READ_SOURCE)
		rnr_silence(f->qp);
	return FAULT_FORGOTTEN;
}

const struct strategy_ops fault_park = {fault_park_answer};
