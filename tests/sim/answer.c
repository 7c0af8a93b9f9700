/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answer.c: a request completes before its answer does. Work that is posted after
 * the program has seen what came the other way may be an answer to that: whoever
 * sees the answer, by a completion or in memory that it polls, finds the request
 * completed. Behind a READ or atomic that is not answered nothing completes, and
 * what the responder says next may be there first, as with cards. A nopin says it again
 * in what it sends later; any other has said it once, behind its answer to the READ.
 */
#include "nic/device.h"
#include "nic/qp.h"
#include "oracle.h"

#include <inttypes.h>

/* Can the program that receives @in see that @op came? */
static bool op_seen(const struct flow *in, const struct op *op)
{
	if (op_writes(op) && op->len)
		return op->high == op->len;
	return op_consumes(op) && in->recv_done &&
	       in->expect[(in->recv_done - 1) % EXPECTS].seq >= op->seq;
}

uint64_t answer_to(const struct flow *f)
{
	struct flow *in = f->from->in;
	uint64_t to = 0;

	for (uint64_t s = in->completed; s < in->posted; s++) {
		const struct op *op = op_at(in, s);

		if (f->w->strangers && op &&
		    (op->wr == WR_READ || op_atomic(op)))
			break;
		if (op && op_seen(in, op))
			to = s + 1;
	}
	return to;
}

/* To peers that are no nopins an ACK leaves first; nobody promises that it comes. */
static bool ordered(const struct world *w)
{
	const struct sim_link_config *l = &w->cfg.link;

	return !w->strangers ||
	       !(l->loss || l->burst_loss || l->dup || l->reorder ||
		 l->corrupt || l->renumber || l->path_ns || w->cfg.cut_ns ||
		 sim_stats(w->sim)->kernel_drops);
}

void answer_check(struct flow *f, uint64_t seq, uint64_t to)
{
	const struct end *asked = f->to;
	const struct wq *sq;
	const struct wqe *oldest;

	if (!asked->qp || asked->out->failed || !ordered(f->w))
		return;
	sq = &asked->qp->sq;
	if (sq->cons == wq_end(sq))
		return;
	oldest = wq_at(sq, sq->cons);
	EXPECT(f->w,
	       oldest->wr_id >= to || oldest->op == WR_READ ||
		       oldest->op == WR_CMP_SWP || oldest->op == WR_FETCH_ADD,
	       "flow %u: number %" PRIu64 ", posted when what is before number "
	       "%" PRIu64 " of flow %u had come, is there while number %" PRIu64
	       " of that is not completed",
	       f->index, seq, to, asked->out->index, oldest->wr_id);
}
