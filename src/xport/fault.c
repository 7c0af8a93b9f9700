/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: what answers a page that is missing (design §4), in the order the
 * strategies are allowed: redirect, resume (nopin peers), silence and RNR
 * (standard peers). Parking a source page is in req.c; `inline` is decided in
 * mem/dma.c; `block` is a table that calls every page ready.
 */
#include "xport/impl.h"

static uint64_t half_timeout_ns(const struct qp *qp)
{
	/* The requester's timer is not known; ours usually equals it. Before
	 * RTS ours is not known either: then what programs commonly use. */
	uint8_t code = qp->state == QPS_RTR ? 14 : qp->attr.timeout;
	uint64_t t = ack_timeout_to_ns(code);

	return t == UINT64_MAX ? t : t / 2;
}

/* Start the time after which a standard requester is told RNR. */
static void start_silence(struct qp *qp, uint64_t now_ns)
{
	struct resp *r = &qp->resp;

	if (qp->peer->kind == PEER_NOPIN || r->silence_until ||
	    !strategy_on(qp->x, STRATEGY_RNR))
		return;
	r->silence_until = sat_add(now_ns, half_timeout_ns(qp));
	qp_rearm(qp);
}

static void note(struct qp *qp, enum strategy s, psn_t psn, uint64_t now_ns)
{
	flight_note(&qp->log, now_ns, FLIGHT_FAULT, psn, s, 0);
}

/* As long again as it has taken: so a budget of 6 lasts for a page that takes
 * 2.5 s (655 ms is the longest that can be said), where 6 times the program's
 * own timer often is less than one ACK timeout. */
static uint8_t rnr_code(const struct qp *qp, uint64_t now_ns)
{
	const struct resp *r = &qp->resp;
	uint64_t wait = rnr_code_to_ns(qp->attr.min_rnr_timer);

	if (r->wait.ticket.v)
		wait = MAX(wait, now_ns - r->wait.since_ns);
	if (r->src_wait.ticket.v)
		wait = MAX(wait, now_ns - r->src_wait.since_ns);
	return rnr_ns_to_code(wait);
}

static void rnr(struct qp *qp, uint8_t code, psn_t psn, uint64_t now_ns)
{
	count(qp->x->cnt, CNT_rnr_tx);
	count(qp->x->cnt, CNT_fault_rnr);
	ack_page_rnr(qp, code, psn, now_ns);
}

void fault_request(struct qp *qp, const struct pkt *p, const uint8_t *payload,
		   uint64_t now_ns)
{
	struct resp *r = &qp->resp;

	if (strategy_on(qp->x, STRATEGY_REDIRECT) &&
	    !win_keep(qp->x, &r->win, p, payload, now_ns)) {
		win_advance(&r->win, qp->mtu);
		fault_forgiven(qp, now_ns);
		count(qp->x->cnt, CNT_fault_redirect);
		note(qp, STRATEGY_REDIRECT, p->psn, now_ns);
		if (p->ext)
			ack_owe(qp, now_ns);
		start_silence(qp, now_ns);
		return;
	}
	fault_forget(qp, p, now_ns);
	if (!r->wait.ticket.v)
		fault_resolved(qp, now_ns);
}

void fault_forget(struct qp *qp, const struct pkt *p, uint64_t now_ns)
{
	struct resp *r = &qp->resp;

	r->forgot = true;
	if (p->ext && strategy_on(qp->x, STRATEGY_RESUME)) {
		count(qp->x->cnt, CNT_fault_resume);
		note(qp, STRATEGY_RESUME, p->psn, now_ns);
		ack_say(qp, XACK_HOLD, now_ns);
	} else if (p->ext) {
		note(qp, STRATEGY_RNR, p->psn, now_ns);
		rnr(qp, rnr_code(qp, now_ns), p->psn, now_ns);
		r->rnr_told = true;
	} else {
		count(qp->x->cnt, CNT_fault_silence);
		note(qp, STRATEGY_RNR, p->psn, now_ns);
		start_silence(qp, now_ns);
	}
}

void fault_waiting(struct qp *qp, uint64_t now_ns)
{
	start_silence(qp, now_ns);
}

void fault_source(struct qp *qp, psn_t psn, uint64_t now_ns)
{
	count(qp->x->cnt, CNT_fault_park);
	note(qp, STRATEGY_NONE, psn, now_ns);
	start_silence(qp, now_ns);
}

bool fault_response(struct qp *qp, const struct pkt *p, const uint8_t *payload,
		    uint64_t now_ns)
{
	if (strategy_on(qp->x, STRATEGY_REDIRECT) &&
	    !win_keep(qp->x, &qp->req.win, p, payload, now_ns)) {
		count(qp->x->cnt, CNT_fault_redirect);
		note(qp, STRATEGY_REDIRECT, p->psn, now_ns);
		return true;
	}
	count(qp->x->cnt, CNT_fault_replay);
	note(qp, STRATEGY_NONE, p->psn, now_ns);
	qp->req.rsp_missed = true;
	return false;
}

void fault_forgiven(struct qp *qp, uint64_t now_ns)
{
	struct resp *r = &qp->resp;

	if (r->forgot && r->ext && strategy_on(qp->x, STRATEGY_RESUME))
		ack_say(qp, XACK_RESUME, now_ns);
	r->forgot = false;
}

void fault_resolved(struct qp *qp, uint64_t now_ns)
{
	struct resp *r = &qp->resp;
	bool told = r->ext && strategy_on(qp->x, STRATEGY_RESUME);

	if (!r->forgot || r->dead)
		return;
	fault_forgiven(qp, now_ns);
	r->silence_until = 0;
	if (!told && !r->rnr_told) {
		r->gap_told = true;
		ack_nak(qp, AETH_NAK | NAK_PSN_SEQUENCE, r->win.next, now_ns);
	}
}

/* The last resort. What is in slots stays there: the requester's repetition
 * finds it accepted. */
void fault_silence_over(struct qp *qp, uint64_t now_ns)
{
	struct resp *r = &qp->resp;
	uint8_t code = rnr_code(qp, now_ns);
	psn_t psn = r->win.head;

	r->silence_until = 0;
	if (qp->peer->kind == PEER_NOPIN ||
	    !(r->forgot || r->wait.ticket.v || r->src_wait.ticket.v))
		return;
	if (r->src_wait.ticket.v && replay_busy(qp)) {
		const struct resource *s = &r->res[r->res_at % RESOURCES_MAX];

		psn = psn_add(s->psn, s->at);
	}
	rnr(qp, code, psn, now_ns);
	if (r->forgot)
		r->rnr_told = true;
	r->silence_until = sat_add(
		now_ns, sat_add(rnr_code_to_ns(code), half_timeout_ns(qp)));
}
