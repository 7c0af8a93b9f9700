/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_backup.c: backup (NPF's backup ring, for Ethernet): a datagram whose receive
 * buffer is not there yet is kept in a slot of the redirect pool, with the receive
 * that it is for, and placed when the page comes; those behind it wait behind it.
 * Its sender cannot be asked for it again, so past the bounds it is dropped.
 *
 * A QP may have as much of the pool as a peer of connections may. Anybody can send
 * to it, so of that one source may hold SOURCE_SHARE times what is left to others.
 */
#include "xport/fault_backup.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/rand.h"
#include "base/strategy.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/kept.h"
#include "xport/qp.h"
#include "xport/responder.h"
#include "xport/strategy.h"
#include "xport/window.h"
#include "xport/xport.h"

enum { SOURCE_SHARE = 4 };

static uint32_t *source_of(struct xport *x, const struct ipaddr *ip)
{
	uint64_t hi, lo;

	memcpy(&hi, ip->b, 8);
	memcpy(&lo, ip->b + 8, 8);
	lo = siphash_u64(x->rnd.k0, x->rnd.k1, hi ^ lo);
	return &x->pool.sources[lo % ARRAY_SIZE(x->pool.sources)];
}

bool backup_keep(struct qp *qp, const struct pkt *p, struct payload payload,
		 psn_t number)
{
	uint32_t *source = source_of(qp->x, &p->fwd_src.ip);
	struct window *w = &qp->resp.win;
	struct pkt kept = *p;

	kept.psn = number;
	if (*source >= SOURCE_SHARE * win_slots(qp->x, qp->ud.held) ||
	    win_keep(qp->x, w, &kept, payload))
		return false;
	++*source;
	win_at(w, number)->source = source;
	return true;
}

static enum fault_answer fault_backup_answer(const struct fault *f)
{
	if (f->site != SITE_DATAGRAM ||
	    !backup_keep(f->qp, f->pkt, f->payload, f->psn))
		return FAULT_NEXT;
	count(f->qp->x->cnt, CNT_fault_backup);
	fault_note(f, STRATEGY_BACKUP);
	return FAULT_KEPT;
}

const struct strategy_ops fault_backup = {fault_backup_answer};
