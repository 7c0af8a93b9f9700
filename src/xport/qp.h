/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.h: the queue pair. One struct, a block a half: the requester (req.c,
 * comp.c, reply.c, retry.c), the responder (resp.c, replay.c, ack.c) and what both share
 * (qp.c). All of it belongs to the holder of the engine lock, but the poster's
 * side of the rings.
 */
#ifndef NOPIN_XPORT_QP_H
#define NOPIN_XPORT_QP_H

#include "mem/waiter.h"
#include "ring/ring.h"
#include "wire/wire.h"
#include "xport/attr.h"
#include "xport/open.h"
#include "xport/peer.h"

struct xport;

/**
 * struct accepted - A packet that is safe and not yet placed.
 * @link:	on its window, by PSN
 * @slot:	or NO_SLOT: there is no payload
 * @bytes:	of payload in the slot, until they are copied
 * @source:	datagrams: how many of its sender are kept, or NULL
 */
struct accepted {
	struct list link;
	struct pkt pkt;
	int slot;
	uint32_t bytes;
	uint32_t *source;
	uint64_t at_ns;
};

enum {
	NO_SLOT = -1,
	RD_ATOMIC_MAX = 16, /* what a program may ask for */
};

/**
 * struct window - Accepted and placed (design §3). A responder's window counts
 * requests, a requester's counts READ and atomic responses.
 * @head:	first PSN not placed
 * @next:	first PSN not accepted; head <= next
 * @waiting:	struct accepted in PSN order: [head, next) whole, and beyond
 *		@next what came ahead of a gap
 * @num:	how many are waiting
 * @held:	slots of all windows towards the same peer; set with the peer
 * @data:	how many are requests with payload: all but one are @peer's to fill
 * @first:	and that one's is of those that are for such (credit_first())
 * @bare:	places for RD_ATOMIC_MAX requests without payload, or NULL; bit i
 *		of @bare_used: something is in the ith
 * @forgotten:	for how many fetches in turn of its page one was dropped, which it
 *		was, and when the last of them began
 * @peer:	NULL: datagrams
 * @account:	the QP's
 */
struct window {
	psn_t head, next;
	struct list waiting;
	uint32_t num, data;
	bool first;
	struct accepted *bare;
	uint32_t bare_used;
	uint32_t forgotten;
	psn_t forgotten_psn;
	uint64_t forgotten_ns;
	uint32_t *held;
	struct peer *peer;
	struct account *account;
};

/**
 * struct message - Where the responder is within a message, at window.head (or
 * at the end of what is being moved).
 * @op:		OPF_SEND or OPF_WRITE while inside a message, 0 between two
 * @rq_next:	index of the receive that is in use or is next
 * @msn:	messages completed (24 bits)
 * @done:	bytes so far
 * @met:	faults so far
 * @va,@rkey,@left: WRITE: next address, key, bytes still to come
 */
struct message {
	uint32_t op;
	uint32_t rkey;
	uint32_t rq_next;
	uint32_t msn;
	uint64_t done;
	struct met met;
	uint64_t va, left;
};

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

/**
 * struct gso_watch - Of a burst to a standard peer whose fate is not known yet.
 * @second:	PSN of its second packet
 * @doubts:	bursts in a row of which only the first packet arrived
 */
struct gso_watch {
	psn_t second;
	bool armed;
	uint8_t doubts;
};

enum {
	RESOURCES_MAX = 2 * RD_ATOMIC_MAX, /* and as many answered again */
	FLIGHT_RUNS = 64,
};

/** struct flight_run - A burst on its way: charged until accepted. */
struct flight_run {
	psn_t end;
	uint32_t charge;
};

/*
 * What was sent again is charged until it can be no more on its way; it goes from
 * one to the next, so whatever is sent again later keeps nothing waiting.
 * COPIES_NEW: they become COPIES_SENT when there are no others.
 * COPIES_SENT: until all that was sent before the last of them left is accepted.
 * COPIES_ACCEPTED: they become COPIES_LATE when there are no others, at once where
 *	packets are not late.
 * COPIES_LATE: for as long as packets are late.
 */
enum copies {
	COPIES_NEW,
	COPIES_SENT,
	COPIES_ACCEPTED,
	COPIES_LATE,
	COPIES_NUM
};

/*
 * TRIAL_NONE: until nothing has moved for an ACK timeout; again after progress and
 *	when a retry is spent
 * TRIAL_DUE: the oldest packet is to be sent once more
 * TRIAL_MADE: it was, and questions of after that count
 */
enum trial { TRIAL_NONE, TRIAL_DUE, TRIAL_MADE };

/**
 * struct live - Does the requester get anywhere? (live.c)
 * @silent_at:	then the peer was silent for an ACK timeout (TIME_NEVER: it is not
 *		its turn)
 * @stalled_at:	then nothing moved for one, of what was not explained (TIME_NEVER:
 *		this clock stands, and has @left_ns to go)
 * @una, @best:	of the last progress; the highest req.acc since
 * @explained:	the last answer gave a reason to wait
 * @excused:	it was silent because we did not ask, at @asked_ns last
 * @window:	nothing could be sent, as others have the window
 */
struct live {
	uint64_t silent_at, stalled_at, left_ns, asked_ns;
	psn_t una, best;
	bool explained, excused, window;
	enum trial trial;
};

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
 * @dead:	a request failed; nothing more is taken
 * @answering:	a burst of responses is on its way to the socket: an ACK must not
 *		overtake it
 * @ack_owed:	something is to be said to the requester
 * @received:	a receive completed, and no request has left since; @answers: so many
 *		had one behind them, without one between that had not
 * @said_ns:	when that was done last
 * @repeat_at:	then what moved nothing on may be acknowledged (0: nothing did)
 * @lossy:	requests came twice, or ahead of one that did not come
 * @ack_to:	the last request placed that no response answers
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
	struct nak nak, page_rnr;
	psn_t plan, ack_to;
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
 * struct ud - What a QP of datagrams has besides (ud_rx.c, ud_tx.c).
 * @to:		where qp.peer is, if that is set: nic/ sees to it
 * @held:	slots that it has
 */
struct ud {
	struct wqe_to to;
	uint32_t held;
};

/**
 * struct qp_config - @push_event etc.: none; events travel through qp.events.
 * @ud:		it sends and receives datagrams, of up to @mtu bytes
 */
struct qp_config {
	uint32_t qpn, pd;
	struct wq *sq, *rq;
	struct cq *send_cq, *recv_cq;
	bool sq_sig_all, ud;
	uint32_t mtu;
	int port; /* index of the local UDP port */
	void *owner;
};

/** struct qp */
struct qp {
	struct xport *x;
	struct qp_config cfg;
	struct qp_attr attr;
	enum qp_state state;
	uint16_t cause; /* enum wc_cause: why it failed */
	enum strategy fault; /* NONE: as the NIC */
	struct peer *peer;
	struct list run_link; /* xport.runnable */
	struct list peer_link; /* peer.stalled or xport.read_waiters */
	struct list idle_link; /* xport.idle_waiters */
	struct list ack_link; /* peer.owed */
	struct list err_link; /* xport.errors */
	struct list drain_link; /* xport.drainable */
	struct timer timer;
	uint32_t events; /* bit per enum nic_event_type to deliver */
	bool tx_moving, rx_moving;
	bool abandoned; /* pushes no completion */
	bool counts; /* immediate data of WRITEs is a counter to raise */
	uint32_t mtu;
	struct open open;
	struct req req;
	struct resp resp;
	struct ud ud;
	struct flight log;
	struct account account;
	struct share *share; /* of its peer in its PD, while it has one */
	struct list shares; /* datagrams come from anybody: its own */
};

#endif
