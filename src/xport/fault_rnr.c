/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr.c: rnr (InfiniBand's on-demand paging): the packet is forgotten, and
 * the requester told to come again after a time. A nopin knows from the packet
 * that this is about a page, which costs none of its program's retries. To a
 * standard peer it is the last resort (I2): silence first, up to half its ACK
 * timeout.
 */
#include "xport/fault_rnr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/range.h"
#include "base/strategy.h"
#include "wire/psn.h"
#include "wire/timecode.h"
#include "xport/access.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/hold.h"
#include "xport/owe.h"
#include "xport/qp.h"
#include "xport/responder.h"
#include "xport/strategy.h"
#include "xport/xport.h"

/* A suspension ends without a word here. */
enum { LOOK_AGAIN_NS = 100 * 1000 * 1000 };

static uint64_t half_timeout_ns(const struct qp *qp)
{
	/* The requester's timer is not known; ours usually equals it. Before
	 * RTS ours is not known either: then what programs commonly use. */
	uint8_t code = qp->state == QPS_RTR ? 14 : qp->attr.timeout;
	uint64_t t = ack_timeout_to_ns(code);

	return t == UINT64_MAX ? t : t / 2;
}

void rnr_silence(struct qp *qp)
{
	struct resp *r = &qp->resp;

	if (qp_dialect(qp)->explains || deadline_waits(r->at[RESP_SILENCE]) ||
	    !(qp_strategies(qp) & STRATEGY_BIT(STRATEGY_RNR)))
		return;
	r->at[RESP_SILENCE] = sat_add(qp->x->now, half_timeout_ns(qp));
	qp_rearm(qp);
}

void rnr_silence_heeded(struct qp *qp)
{
	struct resp *r = &qp->resp;

	if (!r->replay.wait.ticket.v)
		r->at[RESP_SILENCE] = TIME_NEVER;
}

void rnr_silence_end(struct qp *qp)
{
	if (!next_forgot(qp->resp.next))
		rnr_silence_heeded(qp);
}

void rnr_silence_again(struct qp *qp)
{
	struct resp *r = &qp->resp;
	const uint64_t at = r->at[RESP_SILENCE];

	if (!deadline_waits(at) || next_forgot(r->next) || r->win.num)
		return;
	/* further off, it was told to pause */
	if (at > sat_add(qp->x->now, half_timeout_ns(qp)))
		return;
	r->at[RESP_SILENCE] = TIME_NEVER;
	if (r->replay.wait.ticket.v)
		rnr_silence(qp);
}

/* As long again as it has taken: so a budget of 6 lasts for a page that takes
 * 2.5 s (655 ms is the longest that can be said), where 6 times the program's
 * own timer often is less than one ACK timeout. */
static uint8_t rnr_code(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	uint64_t wait = rnr_code_to_ns(qp->attr.min_rnr_timer);

	if (r->wait.ticket.v)
		wait = MAX(wait, waiter_ns(&r->wait, qp->x->now));
	if (r->replay.wait.ticket.v)
		wait = MAX(wait, waiter_ns(&r->replay.wait, qp->x->now));
	return rnr_ns_to_code(wait);
}

static void rnr(struct qp *qp, uint8_t code, psn_t psn)
{
	count(qp->x->cnt, CNT_rnr_tx);
	count(qp->x->cnt, CNT_fault_rnr);
	ack_page_rnr(qp, code, psn);
}

static enum fault_answer fault_rnr_answer(const struct fault *f)
{
	struct qp *qp = f->qp;
	struct resp *r = &qp->resp;

	if (f->site != SITE_REQUEST)
		return FAULT_NEXT;
	fault_note(f, STRATEGY_RNR);
	/* Before we know that it is a nopin we could not say that it is a page. */
	if (f->pkt->ext && qp_dialect(qp)->explains) {
		rnr(qp, rnr_code(qp), f->psn);
		resp_next(r, NEXT_DROPPED_RNR);
	} else {
		resp_next(r, NEXT_DROPPED);
		count(qp->x->cnt, CNT_fault_silence);
		rnr_silence(qp);
	}
	return FAULT_FORGOTTEN;
}

const struct strategy_ops fault_rnr = {fault_rnr_answer};

/* The last resort. What is in slots stays there: the requester's repetition
 * finds it accepted. */
void fault_silence_over(struct qp *qp)
{
	const uint64_t now_ns = qp->x->now;
	struct resp *r = &qp->resp;
	uint8_t code = rnr_code(qp);
	uint64_t until = hold_silent_until(qp);
	psn_t psn = r->win.head;

	if (until > now_ns) {
		r->at[RESP_SILENCE] = MIN(until, now_ns + LOOK_AGAIN_NS);
		return;
	}
	r->at[RESP_SILENCE] = TIME_NEVER;
	if (qp_dialect(qp)->explains ||
	    !(next_forgot(r->next) || r->wait.ticket.v ||
	      r->replay.wait.ticket.v))
		return;
	if (r->replay.wait.ticket.v && replay_busy(qp)) {
		const struct resource *s = resource_at(&r->replay,
						       r->replay.at);

		psn = psn_add(s->psn, s->at);
	}
	rnr(qp, code, psn);
	resp_next(r, NEXT_RNR_SAID);
	r->at[RESP_SILENCE] = sat_add(
		now_ns, sat_add(rnr_code_to_ns(code), half_timeout_ns(qp)));
}
