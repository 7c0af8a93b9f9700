/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_drop.c: drop (naive Ethernet): the packet is lost, and its sender is not told
 * and finds out in its own time. Kept to be measured against: this is what a
 * cold receive ring suffers from.
 */
#include "base/counters.h"
#include "base/strategy.h"
#include "xport/strategy.h"
#include "xport/xport.h"

static enum fault_answer fault_drop_answer(const struct fault *f)
{
	count(f->qp->x->cnt, CNT_fault_drop);
	fault_note(f, STRATEGY_DROP);
	return FAULT_FORGOTTEN;
}

const struct strategy_ops fault_drop = {fault_drop_answer};
