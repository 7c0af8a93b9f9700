/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h: the requester: its half of a QP. */
#ifndef NOPIN_XPORT_REQUESTER_H
#define NOPIN_XPORT_REQUESTER_H

#include "base/flight.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "wire/psn.h"
#include "xport/burst.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/kept.h"
#include "xport/live.h"
#include "xport/psns.h"
#include "xport/spare.h"

/**
 * struct req_loss - What of [acc, snd) did not come (retry.c).
 * @lost:	bit i: PSN base + i is to be sent again (nopin peers); so the maps that
 *		follow
 * @left:	how many of them, until the peer is heard of again
 * @resent:	it was, and nothing behind @recover has come yet
 * @gap:	it was overtaken, first seen at @gap_since, and is lost at REQ_GAP
 * @recover:	@max when the last loss was found
 * @doubted:	when the gap began that was filled by what was sent again last, for
 *		nothing if the peer says that it came twice; 0: none
 */
struct req_loss {
	uint64_t lost, resent, gap;
	uint64_t gap_since, doubted;
	uint32_t left;
	psn_t base, recover;
	bool recovering;
};

/**
 * struct req_reads - READs and atomics, and what did not come of their answers (reply.c).
 * @out:	READ chunks and atomics asked for and not answered
 * @chunk:	packets of one READ request at most
 * @ask_again:	those in [@again_at, @again_end) are to be sent again
 * @gap:	what is missing before @again_to was asked for again
 * @last_again_to: behind the last READ that was asked for again and is not here
 * @gap_psn:	the response that others overtook, first seen at @gap_since, and lost
 *		at REQ_READ_GAP
 * @doubted_psn: the one that was asked for again last; @doubted: as of req_loss
 * @missed:	a response was dropped because its page was not there
 */
struct req_reads {
	uint32_t out, chunk;
	psn_t again_at, again_end, again_to, last_again_to;
	psn_t gap_psn, doubted_psn;
	uint64_t gap_since, doubted;
	bool gap, missed, ask_again;
};

/**
 * struct req_charge - What the QP has of the peer's window (flow.c).
 * @flight:	ring of bursts that are charged to peer.flow.in_flight
 * @charged:	bytes of requests, and @reads: of responses asked for
 * @copies:	of @charged: copies of what is before @copies_to (enum copies); those of
 *		COPIES_SENT until @copies_end[COPIES_SENT] is accepted, those of
 *		COPIES_LATE until REQ_LATE
 * @read_twice:	of @reads: what is before @read_twice_to and was asked for again,
 *		until req.una is there
 * @out:	packets of SENDs and WRITEs in [una, max)
 * @forgotten:	held: what was charged when we were asked to
 * @doubt:	of @charged: the peer forgot it, and has it in its socket, perhaps,
 *		until it accepts what is sent again from @doubt_at on
 */
struct req_charge {
	struct flight_run flight[FLIGHT_RUNS];
	uint32_t head, tail;
	uint32_t charged, reads, read_twice, out;
	uint32_t forgotten, doubt, copies[COPIES_NUM];
	psn_t doubt_at, copies_end[COPIES_ACCEPTED], copies_to, read_twice_to;
};

/**
 * struct req_failure
 * @known:	WQE @wqe ends in @status once it is the oldest
 * @too_large:	packets are, for an MTU, since the last progress
 */
struct req_failure {
	uint32_t wqe;
	uint8_t status;
	bool known, too_large;
};

/**
 * struct req_probe - Asking a nopin for its state (live.c).
 * @ns:		how long after REQ_PROBE it is asked again
 * @asked, @question: XACK_PROBE is not answered yet; what we asked last
 * @max:	req.snd when we asked that for the first time
 * @spare:	what is asked again by the clock
 */
struct req_probe {
	uint64_t ns;
	psn_t max;
	uint16_t question;
	bool asked;
	struct spare spare;
};

/**
 * struct req_wqes - Which work requests are on their way; indexes into the send queue.
 * @cur:	the WQE that req.snd belongs to, or the next to start
 * @started:	after the last WQE that has PSNs
 * @rsp:	the WQE that the next READ response belongs to
 * @asked_to:	of WQEs before this the source was asked for (ahead.c)
 */
struct req_wqes {
	uint32_t cur, started, rsp, asked_to;
};

/**
 * struct req - Requester: its groups, and what is in none.
 * @cwnd:	standard peers: packets that may be out
 * @win:	READ and atomic responses; win.head == psn.una while one is due
 * @wait:	source page of a request, and @park_psn: which; @rsp_wait: destination
 *		page of a response
 * @at:		deadlines
 * @suspend_ns:	how long the peer's region is suspended, as it said
 * @revoked:	the LOCAL_INV that is next waits for the moves in its region
 */
struct req {
	struct req_psns psn;
	psn_t park_psn;
	uint32_t cwnd;
	struct req_wqes wqe;
	struct window win;
	struct req_loss loss;
	struct req_reads reads;
	struct req_charge charge;
	struct req_failure failure;
	struct req_probe probe;
	struct live live;
	struct gso_watch gso;
	struct waiter wait, rsp_wait;
	uint64_t at[REQ_DEADLINES];
	uint64_t suspend_ns;
	uint8_t retries, rnr_retries;
	bool revoked;
};

/** req_held() - Return true if the peer asked us to hold. */
static inline bool req_held(const struct req *r)
{
	return deadline_waits(r->at[REQ_HOLD]);
}

/* PAUSE_FULL_NS: after the socket's send buffer was full */
enum { PAUSE_FULL_NS = 100 * 1000 };
/* REQ_PSNS_AHEAD: no request is started so far behind the oldest */
enum { SGE_MAX = 32, REQ_PSNS_AHEAD = 1 << 21 };

#endif
