/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* access.c: what a QP asks mem/ for: pages of its own lists, and what its peer names by R_Key.
 */
#include "xport/access.h"
#include "base/check.h"
#include "base/moves.h"
#include "base/strategy.h"
#include "base/verdict.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/waiter.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "xport/qp.h"
#include "xport/xport.h"

strategies_t qp_strategies(const struct qp *qp)
{
	return qp->fault ? strategy_set(qp->fault) : qp->x->strategies;
}

/* op_valid: what the QP allows at all (C9-72 ff.) */
bool request_allowed(const struct qp *qp, const struct pkt *p)
{
	uint32_t need = 0;

	if (p->op & OPF_WRITE)
		need = ACCESS_REMOTE_WRITE;
	else if (p->op & OPF_READ)
		need = ACCESS_REMOTE_READ;
	else if (p->op & OPF_ATOMIC)
		need = ACCESS_REMOTE_ATOMIC;
	return (qp->attr.access & need) == need;
}

struct dma remote_dma(const struct qp *qp, uint32_t key, uint64_t va,
		      uint64_t len, uint32_t need)
{
	return (struct dma){.pd = qp->cfg.pd,
			    .qpn = qp->cfg.qpn,
			    .share = qp->share,
			    .key = key,
			    .iova = va,
			    .len = len,
			    .need = need,
			    .set = qp_strategies(qp),
			    .write = need != ACCESS_REMOTE_READ,
			    .remote = true};
}

struct dma sge_dma(const struct qp *qp, const struct wqe *w, unsigned i,
		   uint64_t off, uint32_t len, bool write)
{
	const struct sge *s = wqe_sge(w) + i;
	const bool receive = w->op == WR_RECV;

	return (struct dma){.pd = receive ? qp->cfg.receives->pd : qp->cfg.pd,
			    .share = qp->share,
			    .key = s->lkey,
			    .iova = s->addr + off,
			    .len = len,
			    .need = write ? ACCESS_LOCAL_WRITE : 0,
			    .write = write,
			    .set = qp_strategies(qp),
			    .ahead = s->len - off - len};
}

/* Does any byte lie in the SGEs from @s to @end? */
static bool sge_more(const struct sge *s, const struct sge *end)
{
	for (; s < end; s++)
		if (s->len)
			return true;
	return false;
}

/* A piece of a packet misses its page again and again: those of all others may go while
 * it comes, so ask for them with it. */
static void ask_others(const struct qp *qp, const struct wqe *w, uint64_t off,
		       uint32_t len, bool write, unsigned but)
{
	const struct sge *s = wqe_sge(w);

	for (unsigned i = 0; i < w->num_sge && len; i++) {
		const uint64_t skip = MIN(off, s[i].len);
		const uint32_t n = (uint32_t)MIN(len, s[i].len - skip);
		const struct dma d = sge_dma(qp, w, i, skip, n, write);

		if (i != but)
			dma_too(qp->x->mem, &d, qp->x->now, qp->x->fresh_ns);
		off -= skip;
		len -= n;
	}
}

enum verdict sge_walk(struct qp *qp, const struct wqe *w, uint64_t off,
		      uint32_t len, uint64_t rest, bool write, uint8_t *nic,
		      uint16_t token, struct waiter *wait, struct moves *mv,
		      struct holds *h)
{
	const struct sge *s = wqe_sge(w);
	const uint32_t asks = wait ? wait->access.asks : 0, all = len;
	const uint64_t from = off;

	for (unsigned i = 0; i < w->num_sge && len; i++) {
		struct dma d;
		uint32_t n;
		enum verdict v;

		if (off >= s[i].len) {
			off -= s[i].len;
			continue;
		}
		n = (uint32_t)MIN(len, s[i].len - off);
		d = sge_dma(qp, w, i, off, n, write);
		if (!qp->connected) /* a receive may be larger than any datagram */
			d.ahead = MIN(d.ahead, rest);
		d.follow = MIN(d.ahead, rest);
		d.more = len > n && sge_more(s + i + 1, s + w->num_sge);
		v = dma_resolve(qp->x->mem, &d, nic, token, qp->x->now,
				qp->x->fresh_ns, wait, mv, h);
		if (v == V_WAIT && wait && wait->access.asks != asks &&
		    wait->access.asks > 4 * w->num_sge)
			ask_others(qp, w, from, all, write, i);
		if (v != V_OK)
			return v;
		nic = nic ? nic + n : NULL;
		len -= n;
		off = 0;
	}
	return len ? V_LENGTH : V_OK;
}
