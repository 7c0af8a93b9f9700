/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requester.h: the requester: its half of a QP. */
#ifndef NOPIN_XPORT_REQUESTER_H
#define NOPIN_XPORT_REQUESTER_H

#include "base/flight.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "wire/psn.h"
#include "xport/burst.h"
#include "xport/flow.h"
#include "xport/kept.h"
#include "xport/live.h"

/**
 * struct req - Requester. PSNs: una <= snd <= max, una <= acc <= max.
 * @una:	first PSN not completed (not placed at the peer, or response not
 *		placed here)
 * @acc:	first PSN that the peer has not accepted
 * @snd:	next PSN to send; behind @max only after going back
 * @max:	first PSN never sent
 * @placed:	the peer said that all requests before this are; @una waits for the
 *		responses among them
 * @cur:	index of the WQE that @snd belongs to, or the next to start
 * @started:	index after the last WQE that has PSNs
 * @rsp:	index of the WQE that the next READ response belongs to
 * @asked_to:	of WQEs before this the source was asked for (ahead.c)
 * @win:	READ and atomic responses; win.head == una while one is due
 * @rd_out:	READ chunks and atomics asked for and not answered
 * @rd_chunk:	packets of one READ request at most
 * @lost:	bit i: PSN map_base + i is to be sent again (nopin peers); so the
 *		maps that follow
 * @lost_left:	how many of them, until the peer is heard of again
 * @resent:	it was, and nothing behind @recover has come yet
 * @gap:	it was overtaken, first seen at @gap_since, and counts as lost at
 *		@gap_at (TIME_NEVER: there is none)
 * @recover:	@max when the last loss was found
 * @doubted:	when the gap began that was filled by what was sent again last, for
 *		nothing if the peer says that it came twice; 0: none
 * @asked, @question: XACK_PROBE is not answered yet; what we asked last
 * @revoked:	the LOCAL_INV that is next waits for the moves in its region
 * @probe_max:	@snd when we asked that for the first time
 * @park_psn:	PSN whose source page @wait waits for
 * @cwnd:	standard peers: packets that may be out
 * @flight:	ring of bursts that are charged to peer.in_flight
 * @copies:	of @charged: copies of what is before @copies_to (enum copies); those of
 *		COPIES_SENT until @copies_end[COPIES_SENT] is accepted, those of
 *		COPIES_LATE until @late_until (0: there are none)
 * @read_twice:	of @read_charged: what is before @read_twice_to and was asked for again,
 *		until @una is there
 * @out:	packets of SENDs and WRITEs in [una, max)
 * @forgotten:	held: what was charged when we were asked to
 * @doubt:	of @charged: the peer forgot it, and has it in its socket, perhaps,
 *		until it accepts what is sent again from @doubt_at on
 * @pause_until: nothing is sent before this (RNR, socket full)
 * @held:	the peer asked us to hold from @una; until XACK_RESUME or
 *		@hold_until
 * @suspend_until: the peer waits for a region of its own: our timers stand still
 *		until it says otherwise, or until then (0: they run)
 * @suspend_ns:	what it said how long that takes
 * @failed:	WQE @failed_wqe ends in @failed_status once it is the oldest
 * @rsp_gap:	what is missing before @again_to was asked for again
 * @read_again_to: behind the last READ that was asked for again and is not here
 * @rsp_gap_psn: the response that others overtook, first seen at @rsp_gap_since,
 *		and lost at @rsp_gap_at (TIME_NEVER: there is none)
 * @rsp_doubted_psn: the one that was asked for again last; @rsp_doubted: as above
 * @rsp_missed:	a response was dropped because its page was not there
 * @ask_again:	the READs and atomics in [@again_at, @again_end) are to be sent
 *		again
 * @epoch:	counts how often we went back
 */
struct req {
	psn_t una, acc, snd, max, placed;
	uint32_t cur, started, rsp, asked_to;
	struct window win;
	uint32_t rd_out, rd_chunk;
	uint64_t lost, resent, gap;
	uint32_t lost_left;
	uint64_t gap_since, gap_at, doubted;
	psn_t map_base, recover;
	bool recovering;
	psn_t probe_max;
	psn_t again_at, again_end, again_to, read_again_to;
	psn_t rsp_gap_psn, rsp_doubted_psn;
	uint64_t rsp_gap_since, rsp_gap_at, rsp_doubted;
	psn_t park_psn;
	uint32_t cwnd;
	struct flight_run flight[FLIGHT_RUNS];
	uint32_t flight_head, flight_tail;
	uint32_t charged, read_charged, read_twice, out;
	uint32_t forgotten, doubt, copies[COPIES_NUM];
	psn_t doubt_at, copies_end[COPIES_ACCEPTED], copies_to, read_twice_to;
	uint8_t retries, rnr_retries;
	struct live live;
	uint64_t probe_at, probe_ns, pause_until, hold_until;
	uint64_t late_until, suspend_until, suspend_ns;
	bool held, failed, rsp_gap, rsp_missed, ask_again;
	bool asked, revoked;
	uint16_t question;
	uint8_t failed_status;
	bool too_large; /* packets for an MTU, since the last progress */
	uint32_t failed_wqe;
	struct waiter wait; /* source page of a request */
	struct waiter rsp_wait; /* destination page of a response */
	struct gso_watch gso;
	uint32_t epoch;
};

/* PAUSE_FULL_NS: after the socket's send buffer was full */
enum { PAUSE_FULL_NS = 100 * 1000 };
/* REQ_PSNS_AHEAD: no request is started so far behind the oldest */
enum { SGE_MAX = 32, REQ_PSNS_AHEAD = 1 << 21 };

#endif
