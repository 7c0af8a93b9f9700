/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: which strategy answers a missing page (design §4)? What each one does is
 * in fault_<name>.c. Those that let the move itself meet the page, inline and
 * overwrite, are decided in mem/dma.c before any is asked here, and block is
 * a table that calls every page ready (mem_config.always_ready).
 */
#include "xport/fault.h"
#include "base/counters.h"
#include "base/strategy.h"
#include "mem/account.h"
#include "wire/aeth.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/access.h"
#include "xport/fault_resume.h"
#include "xport/fault_rnr.h"
#include "xport/hold.h"
#include "xport/kept.h"
#include "xport/owe.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/strategy.h"
#include "xport/window.h"
#include "xport/xport.h"

static const struct strategy_ops *const strategies[STRATEGY_NUM] = {
	[STRATEGY_PARK] = &fault_park,
	[STRATEGY_BACKUP] = &fault_backup,
	[STRATEGY_REDIRECT] = &fault_redirect,
	[STRATEGY_REPLAY] = &fault_replay,
	[STRATEGY_RESUME] = &fault_resume,
	[STRATEGY_RNR] = &fault_rnr,
	[STRATEGY_DROP] = &fault_drop,
};

enum { FORGOTTEN_MAX = 8 };

static enum fault_answer chosen(const struct fault *f, strategies_t set)
{
	if (set & STRATEGY_BIT(STRATEGY_ADAPTIVE)) {
		enum strategy best = fault_adaptive(f);
		enum fault_answer a = FAULT_NEXT;

		if (strategies[best] && set & STRATEGY_BIT(best))
			a = strategies[best]->answer(f);
		if (a != FAULT_NEXT)
			return a;
	}
	for (int s = STRATEGY_NONE + 1; s < STRATEGY_NUM; s++) {
		enum fault_answer a;

		if (!strategies[s] || !(set & STRATEGY_BIT(s)))
			continue;
		a = strategies[s]->answer(f);
		if (a != FAULT_NEXT)
			return a;
	}
	return fault_rnr.answer(f); /* the last resort is always there */
}

/* The page may go each time before the packet comes again. One that was forgotten often
 * enough is kept, with any strategy, where there is a slot (I1). No datagram
 * comes again. */
static enum fault_answer fault_answer_by(const struct fault *f,
					 strategies_t set)
{
	struct window *w = fault_window(f);
	enum fault_answer a = FAULT_NEXT;

	if (!f->payload.at || f->site == SITE_DATAGRAM)
		return chosen(f, set);
	if (w->forgotten_psn != f->psn)
		w->forgotten = 0;
	if (w->forgotten >= FORGOTTEN_MAX) {
		a = fault_redirect.answer(f);
		count_add(f->qp->x->cnt, CNT_fault_rescued, a == FAULT_KEPT);
	}
	if (a == FAULT_NEXT)
		a = chosen(f, set);
	if (a == FAULT_FORGOTTEN && w->forgotten_ns != f->wait->since_ns) {
		w->forgotten++;
		w->forgotten_psn = f->psn;
		w->forgotten_ns = f->wait->since_ns;
	}
	return a;
}

static strategies_t set_of(const struct fault *f)
{
	return f->wait->set ? f->wait->set : qp_strategies(f->qp);
}

void fault_request(struct qp *qp, const struct pkt *p, struct payload payload)
{
	struct resp *r = &qp->resp;
	const struct fault f = {.qp = qp,
				.site = SITE_REQUEST,
				.wait = &r->wait,
				.pkt = p,
				.payload = payload,
				.psn = p->psn};

	if (fault_answer_by(&f, set_of(&f)) == FAULT_KEPT) {
		win_advance(&r->win, qp->mtu);
		fault_forgiven(qp);
		if (p->ext)
			ack_owe(qp);
		rnr_silence(qp);
	} else if (!r->wait.ticket.v) {
		fault_resolved(qp);
	}
	hold_ask(qp);
}

void fault_forget(struct qp *qp, const struct pkt *p)
{
	const struct fault f = {.qp = qp,
				.site = SITE_REQUEST,
				.wait = &qp->resp.wait,
				.pkt = p,
				.psn = p->psn};

	fault_answer_by(&f, set_of(&f) & ~STRATEGY_BIT(STRATEGY_REDIRECT));
}

bool fault_crowds(struct qp *qp, const struct pkt *p)
{
	const struct fault f = {.qp = qp,
				.site = SITE_REQUEST,
				.wait = &qp->resp.wait,
				.pkt = p,
				.psn = p->psn};

	return f.wait->ticket.v && !next_forgot(qp->resp.next) &&
	       set_of(&f) & STRATEGY_BIT(STRATEGY_ADAPTIVE) &&
	       fault_adaptive(&f) != STRATEGY_REDIRECT;
}

void fault_waiting(struct qp *qp)
{
	rnr_silence(qp);
	hold_ask(qp);
}

void fault_source(struct qp *qp, psn_t psn, bool response)
{
	const struct fault f = {
		.qp = qp,
		.site = response ? SITE_READ_SOURCE : SITE_SOURCE,
		.wait = response ? &qp->resp.replay.wait : &qp->req.wait,
		.psn = psn};

	fault_answer_by(&f, STRATEGY_BIT(STRATEGY_PARK));
	hold_ask(qp);
}

bool fault_response(struct qp *qp, const struct pkt *p, struct payload payload)
{
	const struct fault f = {.qp = qp,
				.site = SITE_RESPONSE,
				.wait = &qp->req.rsp_wait,
				.pkt = p,
				.payload = payload,
				.psn = p->psn};

	/* A requester can always ask again. */
	return fault_answer_by(&f,
			       set_of(&f) | STRATEGY_BIT(STRATEGY_REPLAY)) ==
	       FAULT_KEPT;
}

bool fault_datagram(struct qp *qp, const struct pkt *p, struct payload payload)
{
	const struct fault f = {.qp = qp,
				.site = SITE_DATAGRAM,
				.wait = &qp->resp.wait,
				.pkt = p,
				.payload = payload,
				.psn = qp->resp.win.next};
	/* The sender of a datagram would not repeat it for being told to. */
	const strategies_t set = set_of(&f) & (STRATEGY_BIT(STRATEGY_BACKUP) |
					       STRATEGY_BIT(STRATEGY_DROP));
	const enum fault_answer a = fault_answer_by(&f, set);

	if (a == FAULT_NEXT)
		count(qp->x->cnt, CNT_drop_no_backup);
	return a == FAULT_KEPT;
}

void fault_forgiven(struct qp *qp)
{
	struct resp *r = &qp->resp;

	if (r->next == NEXT_HELD)
		resume_say(qp);
	resp_next(r, NEXT_FORGIVEN);
}

void fault_resolved(struct qp *qp)
{
	struct resp *r = &qp->resp;
	const bool told = r->next != NEXT_FORGOT;

	if (!next_forgot(r->next) || r->dead)
		return;
	fault_forgiven(qp);
	rnr_silence_end(qp);
	if (told)
		return;
	resp_next(r, NEXT_ASKED);
	ack_nak(qp, AETH_NAK | NAK_PSN_SEQUENCE, r->win.next);
}
