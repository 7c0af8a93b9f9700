/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wqe.c: what a work request is, and which PSNs it has. */
#include "xport/wqe.h"
#include "base/check.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "ring/wr_op.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/qp.h"
#include "xport/requester.h"

bool wqe_is_atomic(const struct wqe *w)
{
	return wr_op_is(w->op, WRO_ATOMIC);
}

bool wqe_is_read(const struct wqe *w)
{
	return wr_op_is(w->op, WRO_READ);
}

static bool wqe_is_local(const struct wqe *w)
{
	return wr_op_is(w->op, WRO_LOCAL);
}

uint32_t wqe_packets(const struct qp *qp, const struct wqe *w)
{
	if (wqe_is_local(w))
		return 0;
	if (wqe_is_atomic(w) || !w->length)
		return 1;
	return (uint32_t)DIV_ROUND_UP(w->length, qp->mtu);
}

int32_t wqe_offset(const struct wqe *w, psn_t at)
{
	uint32_t d = (at - w->first_psn) & PSN_MASK;

	return (int32_t)(d < 3u << 22 ? d : d - (PSN_MASK + 1));
}

psn_t wqe_end(const struct wqe *w)
{
	return psn_add(w->first_psn, w->num_psn);
}

bool wqe_passed(const struct wqe *w, psn_t at)
{
	return wqe_offset(w, at) >= (int32_t)w->num_psn;
}

bool req_wqe_at(const struct qp *qp, psn_t psn, uint32_t *index)
{
	const struct wq *sq = qp->cfg.sq;

	for (uint32_t i = sq->cons; i != qp->req.wqe.started; i++) {
		const struct wqe *w = wq_at(sq, i);
		int32_t d = psn_diff(psn, w->first_psn);

		if (d >= 0 && (uint32_t)d < w->num_psn) {
			*index = i;
			return true;
		}
	}
	return false;
}

/* A READ asks for as many bytes as the peer says. */
uint32_t request_psns(const struct pkt *p, uint32_t mtu)
{
	if (p->opcode != OP_READ_REQ || p->dma_len <= mtu)
		return 1;
	return (uint32_t)DIV_ROUND_UP((uint64_t)p->dma_len, mtu);
}
