/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder.h: the responder: its half of a QP. */
#ifndef NOPIN_XPORT_RESPONDER_H
#define NOPIN_XPORT_RESPONDER_H

#include "mem/waiter.h"
#include "ring/receive.h"
#include "wire/psn.h"
#include "xport/burst.h"
#include "xport/kept.h"
#include "xport/message.h"
#include "xport/rx.h"

/**
 * struct resource - A READ or atomic that was executed or is being answered;
 * kept for replay until overwritten (IBTA 9.7.5.1.2).
 * @psn,@num:	PSNs of its responses
 * @again:	a repeated answer; does not count as outstanding
 * @from:	first response of this answer: a repeated READ may ask for a tail
 * @at:		next response to send, 0..num; num: answered whole
 * @burst:	the last burst that took of it, as resp.bursts counts, and @was: @at
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

enum { RESOURCES_MAX = 2 * RD_ATOMIC_MAX }; /* and as many answered again */

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
 * struct resp - Responder.
 * @msg:	the message at win.head, or at the end of the run that moves
 * @plan:	PSN that @msg stands at: win.head <= plan <= win.next
 * @gap_told:	a sequence NAK went out for win.next
 * @rnr_told:	an RNR NAK went out for win.next; drop until it comes again
 * @revoked:	the request at @plan revoked its R_Key and waits for the moves in
 *		that region
 * @forgot:	pages of win.next are being fetched and the packet was not
 *		kept; ask for it when @wait is woken
 * @held:	and the peer was asked to hold until then
 * @pause_until: the socket was full: no response before (0: go on)
 * @silence_until: standard peers: then say RNR instead (0: nothing to say)
 * @asked_hold:	the peer was told that we wait for a region of ours
 * @resume_at:	then RESUME is said again, as win.next has not come (0: it is not)
 * @resume_ns:	and so long after it was said last
 * @dead:	a request failed; nothing more is taken. @fail_recv: the receive that it
 *		had, or NULL: that says @fail_status
 * @answering:	a burst of responses is on its way to the socket: an ACK must not
 *		overtake it
 * @ack_owed:	something is to be said to the requester
 * @received:	a receive completed, and no request has left since; @answers: so many
 *		had one behind them, without one between that had not
 * @said_ns:	when that was done last
 * @repeat_at:	then what moved nothing on may be acknowledged (0: nothing did)
 * @lossy:	requests came twice, or ahead of one that did not come
 * @ack_to:	the last request placed that no response answers
 * @ack_said:	PSN of the last ACK that left; older: it may not have
 * @ack_rest:	an ACK went out that had to stop at a READ before @ack_to
 * @nak:	of a request that failed, or for win.next
 * @page_rnr:	because of a page: costs a nopin peer no RNR retry
 * @xack:	XACK_HOLD, XACK_RESUME, ... to be said once
 * @acks_out:	bursts that say something of this and are not committed
 * @life:	counts connections: what is out may be of the one before
 * @answer:	the question that XACK_PROBED answers; @busy: it came while something
 *		moved, which is to be said at once
 * @bare:	of @win
 * @res:	ring; of [res_at, res_next) some are not answered whole
 * @bursts:	counts bursts of responses
 */
struct resp {
	struct window win;
	struct message msg;
	bool gap_told, rnr_told, forgot, held, asked_hold, dead, revoked;
	bool ack_owed, ack_rest, established, answering, lossy;
	bool received, busy;
	uint8_t fail_event, fail_status, answers;
	uint16_t fail_cause; /* enum wc_cause, if @dead */
	const struct wqe *fail_recv;
	struct nak nak, page_rnr;
	psn_t plan, ack_to, ack_said;
	uint32_t xack, acks_out, life;
	uint16_t answer;
	uint64_t silence_until, pause_until, resume_at, resume_ns;
	uint64_t said_ns, repeat_at;
	struct waiter wait; /* destination page of a request */
	struct waiter src_wait; /* source page of a READ response */
	struct accepted bare[RD_ATOMIC_MAX];
	struct resource res[RESOURCES_MAX];
	uint32_t res_next, res_at, bursts;
	struct gso_watch gso;
};

/**
 * resp_failed() - A check of a request failed: the QP is to end.
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
	r->fail_recv = recv->wqe;
	r->fail_status = status;
	r->fail_event = event;
	r->fail_cause = cause;
}

/** resp_not_failed() - A request before the one that failed is executed again, and that
 * one is then, too. */
static inline void resp_not_failed(struct resp *r)
{
	r->dead = false;
	r->fail_recv = NULL;
}

#endif
