/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h: the responder: its half of a QP. */
#ifndef NOPIN_XPORT_RESPONDER_H
#define NOPIN_XPORT_RESPONDER_H

#include "mem/waiter.h"
#include "ring/receive.h"
#include "wire/psn.h"
#include "xport/burst.h"
#include "xport/deadline.h"
#include "xport/kept.h"
#include "xport/message.h"
#include "xport/next.h"
#include "xport/rx.h"

/**
 * struct resource - A READ or atomic that was executed or is being answered;
 * kept for replay until overwritten (IBTA 9.7.5.1.2).
 * @psn,@num:	PSNs of its responses
 * @again:	a repeated answer; does not count as outstanding
 * @from:	first response of this answer: a repeated READ may ask for a tail
 * @at:		next response to send, 0..num; num: answered whole
 * @burst:	the last burst that took of it, as resp.replay.bursts counts, and @was: @at
 *		before that
 */
struct resource {
	bool used, atomic, again;
	psn_t psn;
	uint32_t num, at, from;
	uint32_t burst, was;
	uint64_t va;
	uint32_t rkey, len;
	uint64_t original;
	uint32_t msn;
};

/* of RD_ATOMIC_MAX, and as many answered again; in a ring of a power of two */
enum { RESOURCES_MAX = 2 * RD_ATOMIC_MAX };

/**
 * struct nak - Is said in place of an ACK.
 * @syndrome:	0: none; what was said stays here until the packet @psn comes
 * @owed:	it was not said yet, or did not leave
 */
struct nak {
	psn_t psn;
	uint8_t syndrome;
	bool owed;
};

/**
 * struct resp_ack - What is to be said to the requester, and was (ack.c, owe.c).
 * @owed:	something is
 * @received:	a receive completed, and no request has left since; @answers: so many
 *		had one behind them, without one between that had not
 * @said_ns:	when that was done last
 * @lossy:	requests came twice, or ahead of one that did not come
 * @to:		the last request placed that no response answers
 * @said:	PSN of the last ACK that left; older: it may not have
 * @rest:	an ACK went out that had to stop at a READ before @to
 * @nak:	of a request that failed, or for win.next
 * @page_rnr:	because of a page: costs a nopin peer no RNR retry
 * @xack:	XACK_HOLD, XACK_RESUME, ... to be said once
 * @out:	bursts that say something of this and are not committed
 * @answer:	the question that XACK_PROBED answers; @busy: it came while something
 *		moved, which is to be said at once
 */
struct resp_ack {
	bool owed, rest, lossy, received, busy;
	uint8_t answers;
	uint16_t answer;
	uint32_t xack, out;
	struct nak nak, page_rnr;
	psn_t to, said;
	uint64_t said_ns;
};

/**
 * struct resp_hold - What a peer was told that is to wait.
 * @asked:	that we wait for a region of ours
 * @resume_ns:	how long after it was said last RESUME is said again
 */
struct resp_hold {
	bool asked;
	uint64_t resume_ns;
};

/**
 * struct resp_replay - Answers to READs and atomics (replay.c).
 * @res:	ring of @size, a power of two; of [at, next) some are not answered whole.
 *		There is none before RTR
 * @coming:	READs and atomics of the run that moves
 * @bursts:	counts bursts of responses
 * @answering:	one is on its way to the socket: an ACK must not overtake it
 * @wait:	for the source page of a response of @waits, which @at may be before
 */
struct resp_replay {
	struct resource *res;
	uint32_t size, next, at, coming, bursts, waits;
	bool answering;
	struct waiter wait;
};

/** resource_at() - Return the place of the READ or atomic that was counted as the @i th. */
static inline struct resource *resource_at(const struct resp_replay *r,
					   uint32_t i)
{
	return &r->res[i & (r->size - 1)];
}

/** struct resp_failure - Of the request that ends the QP; @recv: what it had, or NULL. */
struct resp_failure {
	const struct wqe *recv;
	uint8_t event, status;
	uint16_t cause; /* enum wc_cause */
};

/**
 * struct resp - Responder.
 * @msg:	the message at win.head, or at the end of the run that moves
 * @plan:	PSN that @msg stands at: win.head <= plan <= win.next
 * @next:	what was said of win.next
 * @revoked:	the request at @plan revoked its R_Key and waits for the moves in
 *		that region
 * @at:		deadlines
 * @dead:	a request failed: @failure; nothing more is taken
 * @life:	counts connections: what is out may be of the one before
 * @wait:	for the destination page of a request
 */
struct resp {
	struct window win;
	struct message msg;
	psn_t plan;
	uint32_t life;
	enum next_state next;
	bool dead, revoked, established;
	struct resp_failure failure;
	struct resp_ack ack;
	struct resp_hold hold;
	struct resp_replay replay;
	uint64_t at[RESP_DEADLINES];
	struct waiter wait;
	struct gso_watch gso;
};

/** resp_next() - Note what happened to win.next. */
static inline void resp_next(struct resp *r, enum next_event event)
{
	r->next = next_after(r->next, event);
}

/**
 * resp_failed() - Note that a check of a request failed: the QP is to end.
 * @r:		responder
 * @recv:	the receive of the request, which says @status; or one that has none
 * @status:	enum wc_status
 * @event:	enum qp_event
 * @cause:	enum wc_cause
 */
static inline void resp_failed(struct resp *r, const struct receive *recv,
			       uint8_t status, uint8_t event, uint16_t cause)
{
	r->dead = true;
	r->failure.recv = recv->wqe;
	r->failure.status = status;
	r->failure.event = event;
	r->failure.cause = cause;
}

/** resp_not_failed() - Forget the failure: a request before the one that failed is executed
 * again, and that one is then, too. */
static inline void resp_not_failed(struct resp *r)
{
	r->dead = false;
	r->failure.recv = NULL;
}

#endif
