/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.c: runs of packets that were planned. */
#include "xport/run.h"
#include "base/moves.h"
#include "mem/dma.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/xport.h"

void rx_run_init(struct rx_run *run)
{
	run->qp = NULL;
	run->num = 0;
	run->responses = false;
	moves_reset(&run->moves);
	run->holds.num = 0;
}

void run_begin(struct rx_run *run, struct qp *qp, bool responses)
{
	run->qp = qp;
	run->responses = responses;
	qp->rx_moving = true;
}

void run_undo(struct rx_run *run, const struct qp *qp, unsigned moves,
	      unsigned holds)
{
	run->moves.num = moves;
	dma_release(qp->x->mem, &run->holds, holds, false, qp->x->now);
	run->holds.num = holds;
}
