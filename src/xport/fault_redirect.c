/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_redirect.c: redirect (NetVM): the payload goes into a slot of the bounded
 * redirect pool and is accepted; when the page is there it is placed with exactly
 * one copy, in order (window.c). The sender goes on as long as its credit lasts,
 * and what it is credited fits into the pool (credit.c). A standard peer has no
 * credit: where its share ends the next strategy takes over.
 */
#include "base/counters.h"
#include "base/strategy.h"
#include "xport/kept.h"
#include "xport/qp.h"
#include "xport/strategy.h"
#include "xport/window.h"
#include "xport/xport.h"

static enum fault_answer fault_redirect_answer(const struct fault *f)
{
	struct qp *qp = f->qp;
	struct window *w = fault_window(f);

	if (!f->pkt || !f->payload.at || win_keep(qp->x, w, f->pkt, f->payload))
		return FAULT_NEXT;
	count(qp->x->cnt, CNT_fault_redirect);
	fault_note(f, STRATEGY_REDIRECT);
	return FAULT_KEPT;
}

const struct strategy_ops fault_redirect = {fault_redirect_answer};
