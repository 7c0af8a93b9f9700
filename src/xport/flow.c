/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.c: flow control by the receiver (design D14). What a nopin peer's
 * socket may hold on our behalf is its grant, peer.flow.budget; everything sent is
 * charged as its kernel will charge it, until it says "accepted". READ responses come
 * into our own socket: reads.c. What is sent or asked for again waits for nothing, but is
 * charged besides: what it stands for may only be late.
 * What we granted stays charged to our own budget until we said another number,
 * so all grants together never exceed it. A peer that got nothing may still send
 * a packet at a time, and its ACK says how much there is by then.
 * Standard peers say nothing: there the requester keeps a window of packets
 * that grows by one a round trip and is halved by a loss (retry.c).
 */
#include "xport/flow.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "wire/ext.h"
#include "wire/psn.h"
#include "xport/control.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/kick.h"
#include "xport/lend.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/window.h"
#include "xport/xport.h"

enum { EVEN_MIN = 64, READ_CHUNK_MAX = 1 << 16 };

/* What the kernel charges a socket: a burst that stays whole costs little more
 * than its bytes, a lone packet its bytes twice (power-of-two allocation) and
 * its bookkeeping. Measured with default socket buffers, see doc/perf.md. */
uint32_t flow_charge(bool gso, uint32_t packets, uint32_t bytes)
{
	if (gso && packets > 1)
		return bytes + bytes / 8 + 2048;
	return 2 * bytes + 832 * packets;
}

/* Not before it was seen that none overtake others: that cuts bursts. */
bool flow_whole(const struct peer *p)
{
	return p->path.gso && (p->features & HELLO_GRO) &&
	       p->flow.even >= EVEN_MIN && !p->late.wait_ns;
}

void flow_even(struct peer *p, uint32_t packets, bool gaps)
{
	p->flow.even = gaps ? 0
			    : MIN(p->flow.even + packets, (uint32_t)EVEN_MIN);
}

uint32_t flow_read_chunk(const struct xport *x, uint32_t mtu)
{
	const uint32_t n = x->budget.read / 2 /
			   MAX(1, flow_charge(false, 1, mtu));

	return MIN(MAX(1, n), (uint32_t)READ_CHUNK_MAX);
}

uint32_t flow_share(const struct xport *x)
{
	return x->budget.push / credit_shares(x);
}

uint32_t flow_grant(struct xport *x, struct peer *p)
{
	uint32_t others = x->budget.granted - p->flow.granted;

	p->flow.granted = MIN(flow_share(x), x->budget.push - others);
	x->budget.granted = others + p->flow.granted;
	return p->flow.granted;
}

bool flow_may_send(struct qp *qp, uint32_t charge)
{
	struct peer *p = qp->peer;

	if (!qp_dialect(qp)->budgets)
		return psn_diff(qp->req.psn.snd, qp->req.psn.una) <
		       (int32_t)qp->req.cwnd;
	if (!p->flow.in_flight ||
	    (uint64_t)p->flow.in_flight + charge <= p->flow.budget)
		return true;
	if (qp->req.charge.doubt &&
	    qp->req.charge.doubt == qp->req.charge.charged)
		return true; /* or it would wait for itself */
	return flow_wait(qp);
}

bool flow_wait(struct qp *qp)
{
	if (list_empty(&qp->on.waiting))
		list_add_tail(&qp->peer->stalled, &qp->on.waiting);
	count(qp->x->cnt, CNT_credit_stalls);
	return false;
}

static void charge_to(struct qp *qp, uint32_t charge)
{
	qp->req.charge.charged += charge;
	qp->peer->flow.in_flight += charge;
}

static void uncharge(struct qp *qp, uint32_t charge)
{
	CHECK(qp->req.charge.charged >= charge &&
	      qp->peer->flow.in_flight >= charge);
	qp->req.charge.charged -= charge;
	qp->peer->flow.in_flight -= charge;
}

void flow_sent(struct qp *qp, psn_t end, uint32_t charge)
{
	struct req *r = &qp->req;
	struct flight_run *run;

	if (!qp_dialect(qp)->budgets)
		return;
	if (r->charge.tail - r->charge.head == FLIGHT_RUNS) {
		run = &r->charge.flight[(r->charge.tail - 1) % FLIGHT_RUNS];
		run->end = end;
		run->charge += charge;
	} else {
		r->charge.flight[r->charge.tail++ % FLIGHT_RUNS] =
			(struct flight_run){end, charge};
	}
	charge_to(qp, charge);
}

static bool copies_out(const struct req *r)
{
	return r->charge.copies[COPIES_NEW] || r->charge.copies[COPIES_SENT];
}

void flow_again(struct qp *qp, psn_t from, psn_t to, uint32_t charge)
{
	struct req *r = &qp->req;
	uint32_t n;

	if (copies_out(r) && psn_diff(r->charge.copies_to, from) > 0)
		from = r->charge.copies_to;
	if (!qp_dialect(qp)->budgets || psn_diff(to, from) <= 0)
		return;
	n = (uint32_t)psn_diff(to, from);
	charge = MIN(charge, flow_charge(false, n, n * qp->mtu));
	/* nothing before it waits for this */
	r->charge.copies_end[COPIES_NEW] = r->psn.snd;
	r->charge.copies_to = to;
	r->charge.copies[COPIES_NEW] += charge;
	charge_to(qp, charge);
}

void flow_unsent(struct qp *qp, psn_t from, uint32_t charge)
{
	struct req *r = &qp->req;
	struct flight_run *run;

	if (r->charge.head == r->charge.tail)
		return; /* a standard peer */
	run = &r->charge.flight[(r->charge.tail - 1) % FLIGHT_RUNS];
	run->end = from;
	run->charge -= charge;
	if (!run->charge)
		r->charge.tail--;
	uncharge(qp, charge);
	qp_kick_all(&qp->peer->stalled);
}

/* Those of @stage are what is after it. */
static void copies_on(struct req *r, enum copies stage)
{
	r->charge.copies[stage + 1] += r->charge.copies[stage];
	r->charge.copies[stage] = 0;
}

static void copies_gone(struct qp *qp)
{
	struct req *r = &qp->req;

	uncharge(qp, r->charge.copies[COPIES_LATE]);
	r->charge.copies[COPIES_LATE] = 0;
	r->at[REQ_LATE] = TIME_NEVER;
}

/* Where packets overtake others the copies may come after the originals, as late
 * as any. A wait that has begun is not begun again: copies that are accepted meanwhile
 * have the next one. */
static void copies_late(struct qp *qp)
{
	const uint64_t wait_ns = qp->peer->late.wait_ns;
	struct req *r = &qp->req;

	if (deadline_waits(r->at[REQ_LATE]) ||
	    !r->charge.copies[COPIES_ACCEPTED])
		return;
	copies_on(r, COPIES_ACCEPTED);
	if (wait_ns) {
		r->at[REQ_LATE] = qp->x->now + wait_ns;
		qp_rearm(qp);
		return;
	}
	copies_gone(qp);
	qp_kick_all(&qp->peer->stalled);
}

void flow_copies_came(struct qp *qp)
{
	copies_gone(qp);
	copies_late(qp);
	qp_kick_all(&qp->peer->stalled);
}

static void copies_accepted(struct qp *qp, psn_t accepted)
{
	struct req *r = &qp->req;

	for (int i = 0; i < 2; i++) {
		if (!r->charge.copies[COPIES_SENT]) {
			copies_on(r, COPIES_NEW);
			r->charge.copies_end[COPIES_SENT] =
				r->charge.copies_end[COPIES_NEW];
		}
		if (psn_diff(accepted, r->charge.copies_end[COPIES_SENT]) >= 0)
			copies_on(r, COPIES_SENT);
	}
	copies_late(qp);
}

void flow_accepted(struct qp *qp, psn_t accepted)
{
	struct req *r = &qp->req;

	if (r->charge.doubt && psn_diff(accepted, r->charge.doubt_at) > 0) {
		uncharge(qp, r->charge.doubt);
		r->charge.doubt = 0;
	}
	if (unlikely(copies_out(r)))
		copies_accepted(qp, accepted);
	while (r->charge.head != r->charge.tail) {
		struct flight_run *run =
			&r->charge.flight[r->charge.head % FLIGHT_RUNS];

		if (psn_diff(run->end, accepted) > 0)
			break;
		uncharge(qp, run->charge);
		r->charge.head++;
	}
	if (accepted == r->psn.max)
		r->charge.forgotten = 0;
	qp_kick_all(&qp->peer->stalled);
}

void flow_forget(struct qp *qp)
{
	struct req *r = &qp->req;

	if (r->charge.charged) {
		uncharge(qp, r->charge.charged);
		qp_kick_all(&qp->peer->stalled);
	}
	r->charge.head = r->charge.tail;
	r->charge.doubt = 0;
	memset(r->charge.copies, 0, sizeof(r->charge.copies));
	r->at[REQ_LATE] = TIME_NEVER;
}

void flow_held(struct qp *qp)
{
	qp->req.charge.forgotten = MAX(qp->req.charge.forgotten,
				       qp->req.charge.charged);
}

void flow_resumed(struct qp *qp)
{
	struct req *r = &qp->req;

	r->charge.doubt = r->charge.forgotten;
	r->charge.doubt_at = r->psn.acc;
	r->charge.forgotten = 0;
	charge_to(qp, r->charge.doubt);
}

void flow_check(const struct qp *qp)
{
	const struct req_charge *c = &qp->req.charge;
	uint32_t sum = c->doubt;

	CHECK(c->tail - c->head <= FLIGHT_RUNS);
	for (uint32_t i = c->head; i != c->tail; i++) {
		const struct flight_run *run = &c->flight[i % FLIGHT_RUNS];

		sum += run->charge;
		CHECK(psn_diff(run->end, qp->req.psn.max) <= 0);
	}
	for (int i = 0; i < COPIES_NUM; i++)
		sum += c->copies[i];
	CHECK(c->charged == sum);
	CHECK(!c->charged || c->charged <= qp->peer->flow.in_flight);
	CHECK(deadline_waits(qp->req.at[REQ_LATE]) ==
	      (c->copies[COPIES_LATE] != 0));
}
