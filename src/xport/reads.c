/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reads.c: flow control of READ responses (design D14). They come into our own socket,
 * so the requester limits what it asks for. What is asked for again waits for nothing,
 * but is charged besides: what it stands for may only be late.
 */
#include "xport/reads.h"
#include "base/check.h"
#include "base/list.h"
#include "ring/wqe.h"
#include "wire/psn.h"
#include "xport/flow.h"
#include "xport/kick.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/window.h"
#include "xport/xport.h"

/* Where responses overtake each other any of them may need a slot. */
static uint32_t read_most(const struct qp *qp)
{
	const struct xport *x = qp->x;
	uint64_t most;

	if (!qp->peer->late.wait_ns)
		return x->budget.read;
	most = (uint64_t)win_spare(x, &qp->req.win) *
	       flow_charge(false, 1, qp->mtu);
	return (uint32_t)MIN(x->budget.read, most);
}

bool reads_may_ask(struct qp *qp, uint32_t charge)
{
	struct xport *x = qp->x;

	if (!x->budget.read_out || qp->peer->quiet ||
	    (uint64_t)x->budget.read_out + charge <= read_most(qp))
		return true;
	if (list_empty(&qp->on.waiting))
		list_add_tail(&x->work.read_waiters, &qp->on.waiting);
	return false;
}

void reads_quiet(struct qp *qp, bool quiet)
{
	struct peer *p = qp->peer;

	if (quiet && !p->quiet)
		qp_kick_all(&qp->x->work.read_waiters);
	p->quiet = quiet;
}

void reads_asked(struct qp *qp, uint32_t charge)
{
	qp->req.charge.reads += charge;
	qp->x->budget.read_out += charge;
}

void reads_asked_again(struct qp *qp, psn_t to, uint32_t charge)
{
	struct req *r = &qp->req;

	if (r->charge.read_twice && psn_diff(to, r->charge.read_twice_to) <= 0)
		return;
	r->charge.read_twice_to = to;
	r->charge.read_twice += charge;
	reads_asked(qp, charge);
}

void reads_forget(struct qp *qp)
{
	reads_done(qp, qp->req.charge.reads);
	qp->req.charge.read_twice = 0;
}

void reads_done(struct qp *qp, uint32_t charge)
{
	struct xport *x = qp->x;

	charge = MIN(charge, qp->req.charge.reads);
	qp->req.charge.reads -= charge;
	x->budget.read_out -= charge;
	qp_kick_all(&x->work.read_waiters);
}

void reads_answered(struct qp *qp, psn_t before)
{
	struct req *r = &qp->req;

	if (!r->charge.read_twice ||
	    psn_diff(before, r->charge.read_twice_to) < 0)
		return;
	reads_done(qp, r->charge.read_twice);
	r->charge.read_twice = 0;
}

uint32_t reads_chunk_end(const struct qp *qp, const struct wqe *w, uint32_t k)
{
	uint32_t c = qp->req.reads.chunk;

	return MIN(w->num_psn, (k / c + 1) * c);
}

uint32_t reads_chunk_charge(const struct qp *qp, const struct wqe *w,
			    uint32_t k)
{
	uint32_t c = qp->req.reads.chunk;
	uint32_t n = reads_chunk_end(qp, w, k) - k / c * c;

	return flow_charge(false, n, n * qp->mtu);
}

void reads_check(const struct qp *qp)
{
	const struct req *r = &qp->req;

	CHECK(r->charge.reads <= qp->x->budget.read_out);
	CHECK(r->charge.read_twice <= r->charge.reads);
}
