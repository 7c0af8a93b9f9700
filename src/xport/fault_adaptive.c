/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_adaptive.c: adaptive: which strategy is the best for this fault? It answers
 * none itself. Misses that are known to be cheap, and pages that are overwritten
 * whole, never come here: the move takes those (mem/dma.c).
 */
#include "base/check.h"
#include "base/strategy.h"
#include "mem/account.h"
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/kept.h"
#include "xport/message.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/strategy.h"
#include "xport/window.h"
#include "xport/wqe.h"
#include "xport/xport.h"

/* Between 0.1 ms, where asking again costs as much as it saves, and 1 ms, where
 * others win tenfold (tests/sim/adaptive.c). */
static const uint64_t long_ns = 500000;

enum { CROWD = 4 }; /* no fault is to take more than this part of the room */

/**
 * adaptive_rule() - Choose by the rule, in the order of its reasons.
 * @k:		what is known
 *
 * Return: the strategy to be tried first. Where it cannot, the others of the set
 * follow in their usual order.
 */
enum strategy adaptive_rule(const struct known *k)
{
	/* Payload that is to be sent can wait where it is: that costs nothing. */
	if (k->site == SITE_SOURCE || k->site == SITE_READ_SOURCE)
		return STRATEGY_PARK;
	/* A slot costs one copy and lets the peer go on, anything else a round
	 * trip and everything once more on the wire. So a slot is it, unless
	 * others would want it meanwhile: as long as there are no others ... */
	if (!k->shared)
		return STRATEGY_REDIRECT;
	/* ... or the page comes soon (an unknown one may) ... */
	if (k->fault_ns < long_ns)
		return STRATEGY_REDIRECT;
	/* ... or little will wait for it, the pool is as good as free. */
	if (k->coming <= k->room / CROWD)
		return STRATEGY_REDIRECT;
	/* Much is coming and none of it can be placed for long: it would fill the
	 * pool, and then others of this peer find neither slots nor credit. It is
	 * as well off where it is, and the round trip is short against the wait. */
	if (k->site == SITE_RESPONSE)
		return STRATEGY_REPLAY;
	/* A standard peer finds out by a timer that something is to come again:
	 * that is worse than a full pool, which it cannot overrun for others. */
	return k->asks ? STRATEGY_RESUME : STRATEGY_REDIRECT;
}

static uint64_t bytes_coming(const struct fault *f)
{
	const struct message *m = &f->qp->resp.msg;
	const struct pkt *p = f->pkt;

	if (p->op & OPF_FIRST)
		return p->op & OPF_WRITE || p->ext ? p->dma_len
						   : p->payload_len;
	if (f->psn != f->qp->resp.plan)
		return p->payload_len; /* of a message behind @m, or its middle */
	if (p->op & OPF_WRITE)
		return m->left;
	return p->ext && p->dma_len > m->done ? p->dma_len - m->done
					      : p->payload_len;
}

static uint32_t packets_coming(const struct fault *f)
{
	const struct qp *qp = f->qp;
	const struct wqe *w;
	uint32_t index;

	if (f->site == SITE_REQUEST)
		return (uint32_t)DIV_ROUND_UP(bytes_coming(f), qp->mtu);
	if (!req_wqe_at(qp, f->psn, &index))
		return 1;
	w = wq_at(qp->cfg.sq, index);
	return (uint32_t)psn_diff(wqe_end(w), f->psn);
}

/**
 * fault_adaptive() - Find out what is known, and choose.
 * @f:		a page is missing
 *
 * Return: as adaptive_rule().
 */
enum strategy fault_adaptive(const struct fault *f)
{
	const struct qp *qp = f->qp;
	const struct window *w = f->site == SITE_REQUEST ? &qp->resp.win
							 : &qp->req.win;
	struct known k = {.site = f->site};

	if (f->pkt) {
		k.asks = f->pkt->ext;
		k.shared = qp->x->peers > 1 || qp->peer->refs > 1;
		k.fault_ns = waiter_fault_ns(qp->x->mem, f->wait,
					     f->qp->x->now);
		k.coming = w->num + packets_coming(f);
		k.room = w->num + win_room(qp->x, w);
	}
	return adaptive_rule(&k);
}
