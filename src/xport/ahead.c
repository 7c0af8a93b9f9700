/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead.c: touch-ahead across messages: while one waits for a page, those of the
 * messages behind it are asked for, too. Else a QP with many messages to slow
 * pages would wait for one after the other. (Within a message dma_resolve() does
 * it, and what no message has named yet is mem/pattern.c's guess.)
 *
 * Nothing waits for a page that is asked for here: it is checked as any access, asked of
 * the pagers when nothing else is, and to be wrong about it costs a fetch.
 */
#include "xport/ahead.h"
#include "base/check.h"
#include "base/list.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "ring/receive.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "ring/wr_op.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/access.h"
#include "xport/kept.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/wqe.h"
#include "xport/xport.h"

enum {
	AHEAD_WQES = 8, /* requests of ours behind the one that waits */
	AHEAD_SCAN = 64, /* accepted packets that are looked through */
};

static void ahead_ask(const struct qp *qp, const struct dma *d)
{
	dma_ahead(qp->x->mem, d, qp->x->now, qp->x->fresh_ns);
}

void ahead_sges(const struct qp *qp, const struct wqe *w, uint64_t len,
		bool write)
{
	const struct sge *s = wqe_sge(w);

	for (unsigned i = 0; i < w->num_sge && len; i++) {
		const uint32_t n = (uint32_t)MIN(len, s[i].len);
		struct dma d = sge_dma(qp, w, i, 0, n, write);

		ahead_ask(qp, &d);
		len -= n;
	}
}

/* The receive that the SEND which begins with @p will have: those that the packets
 * waiting before it complete are used up by then. NULL: none, or not easily told. */
static const struct wqe *ahead_receive_of(const struct qp *qp,
					  const struct pkt *p)
{
	const struct resp *r = &qp->resp;
	const struct wqe *now = r->msg.recv.wqe;
	uint32_t before = 0;

	if (r->win.num > AHEAD_SCAN || p->psn != r->win.next)
		return NULL;
	list_for_each(l, &r->win.waiting) {
		const struct pkt *q =
			&list_entry(l, struct accepted, link)->pkt;

		if (psn_diff(q->psn, p->psn) >= 0)
			break;
		if (psn_diff(q->psn, r->plan) >= 0 && q->op & OPF_LAST &&
		    q->op & (OPF_SEND | OPF_IMM))
			before++;
	}
	if (!now)
		return receive_peek(r->msg.source, before);
	return before ? receive_peek(r->msg.source, before - 1) : now;
}

static void ask_receive(const struct qp *qp, const struct pkt *p)
{
	const struct wqe *w = ahead_receive_of(qp, p);

	if (w)
		ahead_sges(qp, w, p->ext ? p->dma_len : p->payload_len, true);
}

void ahead_request(const struct qp *qp, const struct pkt *p)
{
	const uint32_t need = p->op & OPF_WRITE	   ? ACCESS_REMOTE_WRITE
			      : p->op & OPF_ATOMIC ? ACCESS_REMOTE_ATOMIC
						   : ACCESS_REMOTE_READ;
	struct dma d;

	if (!request_allowed(qp, p))
		return;
	if (p->op & OPF_SEND) {
		if (p->op & OPF_FIRST)
			ask_receive(qp, p);
		return;
	}
	if (p->op & OPF_WRITE && !(p->op & OPF_FIRST))
		return;
	d = remote_dma(qp, p->rkey, p->va, p->op & OPF_ATOMIC ? 8 : p->dma_len,
		       need);
	ahead_ask(qp, &d);
}

void ahead_sources(struct qp *qp)
{
	const uint32_t from = qp->req.wqe.cur + 1, end = wq_end(qp->cfg.sq);
	uint32_t i = qp->req.wqe.asked_to;

	if ((int32_t)(i - from) < 0)
		i = from;
	for (; (int32_t)(end - i) > 0 && i - from < AHEAD_WQES; i++) {
		const struct wqe *w = wq_at(qp->cfg.sq, i);

		if (!(w->flags & WQE_INLINE) && !wr_op_is(w->op, WRO_LOCAL) &&
		    !wqe_is_read(w))
			ahead_sges(qp, w, w->length, false);
	}
	qp->req.wqe.asked_to = i;
}

void ahead_reads(const struct qp *qp, uint32_t from)
{
	const uint32_t end = wq_end(qp->cfg.sq);

	for (uint32_t i = from; (int32_t)(end - i) > 0 && i - from < AHEAD_WQES;
	     i++) {
		const struct wqe *w = wq_at(qp->cfg.sq, i);

		if (wqe_is_read(w))
			ahead_sges(qp, w, w->length, true);
	}
}

void ahead_responses(const struct qp *qp)
{
	const struct resp *r = &qp->resp;

	for (uint32_t i = r->replay.at + 1; (int32_t)(r->replay.next - i) > 0;
	     i++) {
		const struct resource *s = resource_at(&r->replay, i);
		struct dma d = remote_dma(qp, s->rkey, s->va, s->len,
					  ACCESS_REMOTE_READ);

		if (!s->atomic)
			ahead_ask(qp, &d);
	}
}
