/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scatter.c: peek, then place (design D8). When a large transfer from a nopin
 * is in progress, the first header of a burst is looked at before the burst is
 * taken, and the burst is received straight to where its payload belongs.
 *
 * Only the first header was seen; that the rest are the next packets of the
 * same message is a guess, checked afterwards. What a wrong guess may overwrite
 * is memory that no program reads before a completion (a receive buffer, a READ
 * destination), or a part of the WRITE in progress that is not its last packet:
 * programs spin on a message's last byte, so that goes through staging.
 */
#include "base/account.h"
#include "base/check.h"
#include "base/moves.h"
#include "base/range.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "ring/receive.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/access.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/flush.h"
#include "xport/message.h"
#include "xport/qp.h"
#include "xport/reply.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/revoke.h"
#include "xport/rx.h"
#include "xport/xport.h"

static bool responder_ready(const struct qp *qp, const struct pkt *p)
{
	const struct resp *r = &qp->resp;

	return qp_receives(qp) && !r->dead && !qp->rx_moving && !r->win.num &&
	       !r->wait.ticket.v && p->psn == r->plan &&
	       p->psn == r->win.next && op_follows(r->msg.op, p->op);
}

/* How many of @max packets of @mtu bytes lie whole in front of @left. */
static unsigned packets_of(uint64_t left, uint32_t mtu, unsigned max,
			   bool with_last)
{
	uint64_t n = with_last ? DIV_ROUND_UP(left, mtu) : (left - 1) / mtu;

	return left ? (unsigned)MIN(n, max) : 0;
}

static enum verdict scatter_plan_write(struct qp *qp, const struct pkt *p,
				       unsigned max, struct scatter *sc)
{
	const struct message *m = &qp->resp.msg;
	bool first = p->op & OPF_FIRST;
	uint64_t left = first ? p->dma_len : m->left;
	struct dma d = remote_dma(qp, first ? p->rkey : m->rkey,
				  first ? p->va : m->va, 0,
				  ACCESS_REMOTE_WRITE);

	if (!(qp->attr.access & ACCESS_REMOTE_WRITE))
		return V_PROT;
	sc->num = packets_of(left, qp->mtu, max, false);
	sc->bytes = sc->num * qp->mtu;
	d.len = sc->bytes;
	d.ahead = d.follow = left - sc->bytes;
	return dma_resolve(qp->x->mem, &d, NULL, 0, qp->x->now, qp->x->fresh_ns,
			   &qp->resp.wait, sc->pieces, &sc->holds);
}

static enum verdict scatter_plan_send(struct qp *qp, const struct pkt *p,
				      unsigned max, struct scatter *sc)
{
	struct message *m = &qp->resp.msg;
	uint64_t done = p->op & OPF_FIRST ? 0 : m->done;

	if (p->dma_len < done ||
	    (!m->recv.wqe && !receive_take(m->source, &m->recv)))
		return V_NO_RESOURCE;
	sc->num = packets_of(p->dma_len - done, qp->mtu, max, true);
	sc->bytes = (uint32_t)MIN((uint64_t)sc->num * qp->mtu,
				  p->dma_len - done);
	if (!range_ok(done, sc->bytes, m->recv.wqe->length))
		return V_LENGTH;
	return sge_walk(qp, m->recv.wqe, done, sc->bytes,
			p->dma_len - done - sc->bytes, true, NULL, 0,
			&qp->resp.wait, sc->pieces, &sc->holds);
}

static enum verdict scatter_plan_response(struct qp *qp, const struct pkt *p,
					  unsigned max, struct scatter *sc)
{
	uint32_t k, chunk = qp->req.reads.chunk;
	struct wqe *w;
	enum verdict v;
	uint64_t off, left;

	w = reply_wqe(qp, p->psn);
	if (!w)
		return V_INVALID;
	k = (uint32_t)psn_diff(p->psn, w->first_psn);
	off = (uint64_t)k * qp->mtu;
	/* a response ends where the READ request that it answers did */
	left = MIN(w->length - off, (uint64_t)(chunk - k % chunk) * qp->mtu);
	sc->num = packets_of(left, qp->mtu, max, true);
	sc->bytes = (uint32_t)MIN((uint64_t)sc->num * qp->mtu, left);
	v = sge_walk(qp, w, off, sc->bytes, w->length - off - sc->bytes, true,
		     NULL, 0, &qp->req.rsp_wait, sc->pieces, &sc->holds);
	met_add(&w->met, waiter_met(&qp->req.rsp_wait));
	return v;
}

/* Payload that the kernel refuses to write is lost. */
static bool refused(const struct qp *qp, const struct moves *pieces)
{
	for (unsigned i = 0; i < pieces->num; i++)
		if (user_only(qp->x->mem, pieces->m[i].addr, pieces->m[i].len))
			return true;
	return false;
}

bool qp_scatter_plan(struct qp *qp, const struct pkt *p, unsigned max,
		     struct scatter *sc)
{
	enum verdict v = V_INVALID;

	sc->qp = NULL;
	sc->holds.num = 0;
	moves_reset(sc->pieces);
	if (!p->ext || !qp->connected || p->payload_len != qp->mtu)
		return false;
	if (p->op & OPF_RESPONSE) {
		if (qp->state == QPS_RTS && !qp->rx_moving &&
		    (p->op & OPF_READ))
			v = scatter_plan_response(qp, p, max, sc);
	} else if (responder_ready(qp, p)) {
		if (p->op & OPF_WRITE)
			v = scatter_plan_write(qp, p, max, sc);
		else if (p->op & OPF_SEND)
			v = scatter_plan_send(qp, p, max, sc);
	}
	if (v != V_OK || !sc->num || !sc->pieces->num ||
	    refused(qp, sc->pieces)) {
		dma_release(qp->x->mem, &sc->holds, 0, false, qp->x->now);
		moves_reset(sc->pieces);
		return false;
	}
	sc->qp = qp;
	sc->first = *p;
	qp->rx_moving = true;
	return true;
}

bool scatter_expects(const struct scatter *sc, unsigned i, const struct pkt *p)
{
	const struct pkt *f = &sc->first;
	const uint32_t kind = OPF_REQUEST | OPF_RESPONSE | OPF_SEND |
			      OPF_WRITE | OPF_READ | OPF_ATOMIC;
	uint32_t left = sc->bytes - i * sc->qp->mtu;

	if (i == 0 && p->opcode != f->opcode)
		return false;
	if (left > sc->qp->mtu && (p->op & OPF_LAST))
		return false;
	return p->ext && p->qpn == f->qpn && p->epoch == f->epoch &&
	       p->psn == psn_add(f->psn, i) &&
	       (p->op & kind) == (f->op & kind) &&
	       (i == 0 || !(p->op & OPF_FIRST)) && p->va == f->va &&
	       p->rkey == f->rkey && p->dma_len == f->dma_len &&
	       p->payload_len == MIN(left, sc->qp->mtu);
}

void qp_scatter_done(struct scatter *sc, bool ok)
{
	struct qp *qp = sc->qp;

	qp->rx_moving = false;
	dma_release(qp->x->mem, &sc->holds, 0, ok, sc->qp->x->now);
	qp_moves_ended(qp->x);
	if (!ok)
		for (unsigned i = 0; i < sc->pieces->num; i++)
			dma_fault(qp->x->mem, sc->pieces->m[i].addr,
				  sc->pieces->m[i].len);
	qp_rx_moved(qp);
}
