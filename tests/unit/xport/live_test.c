/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live_test.c: when a retry is spent, on clocks of its own: a requester with packets
 * [10, 14) on their way, of which the first are lost, and a peer that says what it is
 * told to say.
 */
#include "base/check.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/timecode.h"
#include "xport/attr.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/hold.h"
#include "xport/life.h"
#include "xport/live.h"
#include "xport/open.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/transport.h"
#include "xport/waits.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
/* timeout 14 is less than what is asked of the first silence, and of others */
#define FIRST_NS (2000 * MS)
#define NEXT_NS	 (250 * MS)

enum { UNA = 10, MAX_PSN = 14, RETRIES = 3, MINE = 5, THEIRS = 6 };

static struct {
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp;
	struct wq *sq;
} s;

static void open_qp(enum peer_kind kind)
{
	const struct endpoint ep = {.port = 1};
	const struct ipaddr ip = {.b = {0}};
	struct req *r = &s.qp.req;

	memset(&s, 0, sizeof(s));
	s.x.now = 1000 * MS;
	s.x.cnt = &s.cnt;
	list_init(&s.x.work.runnable);
	list_init(&s.x.work.read_waiters);
	list_init(&s.x.work.ack_peers);
	timerq_init(&s.x.timers);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	peer_init(&s.peer, &ep, &ip);
	s.peer.kind = kind;
	assert_int_equal(
		qp_init(&s.qp, &s.x,
			&(struct qp_config){.transport = &transport_rc}),
		0);
	s.sq = aligned_alloc(_Alignof(struct wq), sizeof(*s.sq));
	assert_non_null(s.sq);
	memset(s.sq, 0, sizeof(*s.sq));
	s.sq->prod = 1; /* one is posted and not begun */
	s.qp.cfg.sq = s.sq;
	s.qp.peer = &s.peer;
	s.qp.open.theirs = kind == PEER_NOPIN;
	s.qp.mtu = 1024;
	s.qp.state = QPS_RTS;
	s.qp.attr = (struct qp_attr){.timeout = 14, .retry_cnt = RETRIES};
	deadlines_none(r->at, REQ_DEADLINES);
	deadlines_none(s.qp.resp.at, RESP_DEADLINES);
	r->una = r->acc = r->placed = UNA;
	r->snd = r->max = MAX_PSN;
	live_reset(r);
	comp_reload(&s.qp);
	live_start(&s.qp);
}

static void close_qp(void)
{
	ack_cancel(&s.qp);
	s.qp.state = QPS_ERR;
	qp_rearm(&s.qp);
	list_del(&s.qp.on.runnable);
	timerq_fini(&s.x.timers);
	free(s.sq);
}

/* What engine and socket do: what is to be sent again is, and questions leave. */
static void serve(void)
{
	struct req *r = &s.qp.req;

	if (live_repeats(r))
		live_repeated(&s.qp);
	if (!(s.qp.resp.ack.xack & XACK_PROBE))
		return;
	if (!r->probe.asked)
		r->probe.question++;
	r->probe.asked = true;
	s.qp.resp.ack.xack = 0;
	live_asked(&s.qp);
}

/* Timers run and questions leave, @ns long. */
static void pass(uint64_t ns)
{
	const uint64_t end = s.x.now + ns;

	while (timerq_next(&s.x.timers) <= end) {
		s.x.now = MAX(s.x.now, timerq_next(&s.x.timers));
		if (live_timeout(&s.qp))
			retry_rewind(&s.qp, FLIGHT_TIMEOUT);
		qp_rearm(&s.qp);
		serve();
	}
	s.x.now = end;
}

static void waits(enum live_wait wait, uint64_t in_ns)
{
	uint64_t at;

	assert_int_equal(live_waits(&s.qp, &at), wait);
	assert_int_equal(at, in_ns == TIME_NEVER ? in_ns : s.x.now + in_ns);
}

/* The newest question is answered: @accepted is the last PSN of those. */
static void answer(psn_t placed, psn_t accepted, uint32_t flags)
{
	struct req *r = &s.qp.req;
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_ACK,
			      .psn = placed,
			      .accepted = accepted,
			      .answer = r->probe.question,
			      .xack_flags = XACK_PROBED | flags};

	assert_true(r->probe.asked);
	s.peer.heard_ns = s.x.now;
	r->acc = psn_add(accepted, 1);
	r->probe.asked = false;
	if (live_moved(&s.qp))
		live_progress(&s.qp);
	else
		live_heard(&s.qp, &p, true);
	/* none is answered twice */
	live_ask(&s.qp);
	serve();
}

static void answer_all(uint64_t ns, uint32_t flags)
{
	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		pass(MIN(20 * MS, end - s.x.now));
		answer(UNA - 1, UNA - 1, flags);
	}
}

static void live__silence(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	waits(LIVE_ANSWER, FIRST_NS);
	pass(FIRST_NS - 1);
	assert_int_equal(s.qp.req.retries, RETRIES);
	waits(LIVE_ANSWER, 1);
	pass(1);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	pass(NEXT_NS - 1);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	pass(1);
	assert_int_equal(s.qp.req.retries, RETRIES - 2);
	close_qp();
}

/* An ACK that answers nothing and moves nothing is no sign of life. */
static void live__ack_of_nothing(void **state)
{
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_ACK,
			      .psn = UNA - 1,
			      .accepted = UNA - 1};

	(void)state;
	open_qp(PEER_NOPIN);
	for (int i = 0; i < 21; i++) {
		pass(100 * MS);
		live_heard(&s.qp, &p, false);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* Nor is one for which everything is sent again, of a nopin or of what may be one. */
static void sent_again_and_again(enum peer_kind kind)
{
	open_qp(kind);
	for (int i = 0; i < 23; i++) {
		pass(89 * MS);
		s.qp.req.snd = UNA;
		live_restart(&s.qp);
		pass(1 * MS);
		s.qp.req.snd = MAX_PSN;
		live_sent(&s.qp, true);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

static void live__sent_again_and_again(void **state)
{
	(void)state;
	sent_again_and_again(PEER_NOPIN);
	sent_again_and_again(PEER_PROBING);
}

/* Answers that move nothing: once for each ACK timeout, of questions behind a
 * repetition. */
static void live__moves_nothing(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	answer_all(FIRST_NS - 20 * MS, 0);
	assert_int_equal(s.qp.req.live.trial, TRIAL_NONE);
	pass(20 * MS);
	assert_int_equal(s.qp.req.live.trial, TRIAL_MADE);
	assert_int_equal(s.qp.req.retries, RETRIES);
	waits(LIVE_STALLED, FIRST_NS - 20 * MS);
	answer(UNA - 1, UNA - 1, 0);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	answer_all(NEXT_NS + 20 * MS, 0);
	assert_int_equal(s.qp.req.retries, RETRIES - 2);
	close_qp();
}

/* What was asked before the repetition says nothing of it. */
static void live__earlier_question(void **state)
{
	uint16_t before;

	(void)state;
	open_qp(PEER_NOPIN);
	answer_all(FIRST_NS - 20 * MS, 0);
	before = s.qp.req.probe.question;
	pass(20 * MS);
	assert_int_equal(s.qp.req.live.trial, TRIAL_MADE);
	assert_int_not_equal(s.qp.req.probe.question, before);
	close_qp();
}

/* A NAK for a lost packet: everything is sent again, and at once. @answered: it says
 * where the peer is, too. */
static void nak(bool answered)
{
	struct req *r = &s.qp.req;
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_NAK | NAK_PSN_SEQUENCE,
			      .psn = UNA,
			      .accepted = UNA - 1,
			      .answer = answered ? r->probe.question : 0,
			      .xack_flags = answered ? XACK_PROBED : 0};

	s.peer.heard_ns = s.x.now;
	r->snd = r->acc = UNA;
	live_restart(&s.qp);
	r->probe.asked = r->probe.asked && !answered;
	live_heard(&s.qp, &p, answered);
	if (s.qp.state == QPS_ERR)
		return;
	r->snd = MAX_PSN;
	live_repeated(&s.qp);
	live_sent(&s.qp, true);
	serve();
}

/* A peer that lacks the oldest packet each time that it gets it: answers or none, of
 * however long a way. */
static void live__naks_for_ever(void **state)
{
	static const uint64_t ways[] = {MS / 2, 20 * MS};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		for (int answers = 0; answers < 2; answers++) {
			uint64_t end;

			open_qp(PEER_NOPIN);
			end = s.x.now + FIRST_NS + 4 * ways[i];
			while (s.x.now < end && s.qp.req.retries == RETRIES) {
				pass(ways[i]);
				nak(answers && s.qp.req.probe.asked);
			}
			assert_int_equal(s.qp.req.retries, RETRIES - 1);
			assert_true(s.x.now >= 1000 * MS + FIRST_NS);
			end = s.x.now + NEXT_NS + 4 * ways[i];
			while (s.x.now < end &&
			       s.qp.req.retries == RETRIES - 1) {
				pass(ways[i]);
				nak(answers && s.qp.req.probe.asked);
			}
			assert_int_equal(s.qp.req.retries, RETRIES - 2);
			close_qp();
		}
	}
}

static void live__explained(void **state)
{
	static const uint32_t flags[] = {XACK_HOLD, XACK_SUSPEND, XACK_FAULT};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		open_qp(PEER_NOPIN);
		answer_all(60 * FIRST_NS, flags[i]);
		waits(LIVE_EXPLAINED, FIRST_NS);
		assert_int_equal(s.qp.req.retries, RETRIES);
		pass(FIRST_NS);
		assert_int_equal(s.qp.req.retries, RETRIES - 1);
		close_qp();
	}
}

/* Accepted and not placed: as long as it takes, and then it is silent. */
static void live__accepted(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	for (int i = 0; i < 10000; i++) {
		pass(20 * MS);
		answer(UNA - 1, UNA, 0);
	}
	assert_int_equal(s.qp.req.retries, RETRIES);
	pass(FIRST_NS);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* Accepted and forgotten in turn is no progress, and explains half of the time. */
static void live__accepted_in_turn(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	pass(MS);
	answer(UNA - 1, UNA, 0);
	for (uint64_t end = s.x.now + 2 * FIRST_NS + 100 * MS; s.x.now < end;) {
		pass(20 * MS);
		answer(UNA - 1, UNA - 1, 0);
		pass(20 * MS);
		answer(UNA - 1, UNA, 0);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* A READ whose ACK comes without its response explains nothing. */
static void live__answered_and_not_come(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	for (uint64_t end = s.x.now + FIRST_NS + 40 * MS; s.x.now < end;) {
		pass(20 * MS);
		answer(UNA, UNA, 0);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* It cannot say where it is: its QP is moving. */
static void live__busy(void **state)
{
	struct pkt p = {.opcode = OP_X_ACK,
			.ext = true,
			.syndrome = AETH_ACK,
			.psn = UNA - 1,
			.accepted = UNA - 1};

	(void)state;
	open_qp(PEER_NOPIN);
	pass(MS);
	for (int i = 0; i < 1000; i++) {
		pass(20 * MS);
		p.answer = s.qp.req.probe.question;
		live_heard(&s.qp, &p, false);
	}
	assert_int_equal(s.qp.req.retries, RETRIES);
	/* of an earlier question that says nothing */
	p.answer = (uint16_t)(s.qp.req.probe.question - 1);
	for (uint64_t end = s.x.now + FIRST_NS; s.x.now < end;) {
		pass(20 * MS);
		live_heard(&s.qp, &p, false);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

static void live__progress(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	pass(FIRST_NS + NEXT_NS);
	assert_int_equal(s.qp.req.retries, RETRIES - 2);
	answer(UNA - 1, UNA, 0);
	assert_int_equal(s.qp.req.retries, RETRIES);
	pass(FIRST_NS - 1);
	assert_int_equal(s.qp.req.retries, RETRIES);
	close_qp();
}

/* The peer says that it has answered the READ, @ns long. */
static void has_answered(uint64_t ns)
{
	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		pass(20 * MS);
		answer(UNA, UNA, 0);
	}
}

/* While the response waits for a page of ours that costs nothing, and when the page
 * came the peer has an ACK timeout to answer again. */
static void live__page_of_ours(void **state)
{
	(void)state;
	for (int made = 0; made < 2; made++) {
		open_qp(PEER_NOPIN);
		pass(MS);
		answer(UNA, UNA, 0);
		has_answered(made ? FIRST_NS - 20 * MS : FIRST_NS / 2);
		pass(20 * MS);
		assert_int_equal(s.qp.req.live.trial,
				 made ? TRIAL_MADE : TRIAL_NONE);
		s.qp.req.rsp_wait.ticket.v = 1;
		has_answered(10 * FIRST_NS);
		s.qp.req.rsp_wait.ticket.v = 0;
		live_page_came(&s.qp);
		has_answered(FIRST_NS - 20 * MS);
		assert_int_equal(s.qp.req.retries, RETRIES);
		has_answered(60 * MS);
		assert_int_equal(s.qp.req.retries, RETRIES - 1);
		close_qp();
	}
}

/* We did not run, so nobody was asked: that costs nothing, once. */
static void live__did_not_run(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	pass(10 * MS);
	s.x.now += 100 * FIRST_NS;
	assert_false(live_timeout(&s.qp));
	serve();
	assert_int_equal(s.qp.req.retries, RETRIES);
	s.x.now += 100 * FIRST_NS;
	assert_false(live_timeout(&s.qp));
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* A page of ours, a move, a full socket, timeout 0. */
static void live__ours(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	s.qp.req.rsp_wait.ticket.v = 1;
	pass(10 * FIRST_NS);
	waits(LIVE_OWN, TIME_NEVER);
	s.qp.req.rsp_wait.ticket.v = 0;
	s.qp.tx_moving = true;
	pass(10 * FIRST_NS);
	s.qp.tx_moving = false;
	s.qp.req.at[REQ_PAUSE] = TIME_NEVER - 1;
	pass(10 * FIRST_NS);
	waits(LIVE_PAUSE, TIME_NEVER);
	s.qp.req.at[REQ_PAUSE] = TIME_NEVER;
	assert_int_equal(s.qp.req.retries, RETRIES);
	close_qp();
	/* the socket takes nothing, and a question is all that is to leave */
	open_qp(PEER_NOPIN);
	for (uint64_t end = s.x.now + 10 * FIRST_NS; s.x.now < end;) {
		pass(20 * MS);
		live_asked(&s.qp);
		s.qp.resp.ack.xack |= XACK_PROBE;
	}
	assert_int_equal(s.qp.req.retries, RETRIES);
	s.qp.resp.ack.xack = 0;
	pass(2 * FIRST_NS);
	assert_true(s.qp.req.retries < RETRIES);
	close_qp();
	open_qp(PEER_NOPIN);
	s.qp.attr.timeout = 0;
	live_stop(&s.qp);
	s.qp.req.live.left_ns = UINT64_MAX;
	live_start(&s.qp);
	pass(1000 * FIRST_NS);
	assert_int_equal(s.qp.req.retries, RETRIES);
	close_qp();
}

/* All is done but what others, who have the window, do not let go. */
static void wait_for_window(void)
{
	struct req *r = &s.qp.req;

	open_qp(PEER_NOPIN);
	r->una = r->snd = r->max = r->acc = MAX_PSN;
	live_moved(&s.qp);
	live_stop(&s.qp);
	list_add_tail(&s.peer.stalled, &s.qp.on.waiting);
	s.peer.heard_ns = s.peer.probed_ns = s.x.now;
	live_none_sent(&s.qp);
}

/* Nothing could be sent, as others have the window: the peer's silence counts, of
 * whatever QP, and only one of those that wait asks. */
static void live__window(void **state)
{
	struct req *r = &s.qp.req;
	uint64_t at;

	(void)state;
	wait_for_window();
	for (int i = 0; i < 1000; i++) {
		pass(20 * MS);
		s.peer.heard_ns = s.peer.probed_ns = s.x.now;
	}
	assert_int_equal(r->retries, RETRIES);
	assert_int_equal(r->probe.question, 0);
	assert_int_equal(live_waits(&s.qp, &at), LIVE_WINDOW);
	/* who had the window is gone, and kicked us */
	list_del(&s.qp.on.waiting);
	pass(FIRST_NS);
	assert_int_equal(r->retries, RETRIES - 1);
	assert_int_not_equal(r->probe.question, 0);
	/* some of it came when others were silent, too */
	live_sent(&s.qp, true);
	r->snd = r->max = psn_add(MAX_PSN, 1);
	pass(NEXT_NS);
	assert_int_equal(r->retries, RETRIES - 2);
	close_qp();
}

/* In SQD nothing is begun: what is posted waits for the program. */
static void live__drained(void **state)
{
	(void)state;
	wait_for_window();
	s.qp.state = QPS_SQD;
	pass(10 * FIRST_NS);
	assert_int_equal(s.qp.req.retries, RETRIES);
	s.qp.state = QPS_RTS;
	live_none_sent(&s.qp);
	pass(FIRST_NS);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* Nor does the question who the peer is cost anything then. */
static void live__drained_before_it_opened(void **state)
{
	(void)state;
	for (int drained = 0; drained < 2; drained++) {
		wait_for_window();
		s.qp.open.theirs = 0;
		s.qp.open.known = true;
		s.qp.state = drained ? QPS_SQD : QPS_RTS;
		live_wait_open(&s.qp);
		pass(FIRST_NS);
		assert_int_equal(s.qp.req.retries, RETRIES - !drained);
		close_qp();
	}
}

/* One that has the window asks, too, and its own QP over there is gone: its questions
 * are not answered, and say nothing of the peer. Ours are. */
static void live__window_of_dead(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	wait_for_window();
	for (int i = 0; i < 1000; i++) {
		pass(20 * MS);
		s.peer.probed_ns = s.x.now;
		if (r->probe.asked)
			answer(MAX_PSN - 1, MAX_PSN - 1, 0);
	}
	assert_int_equal(r->retries, RETRIES);
	assert_int_not_equal(r->probe.question, 0);
	close_qp();
}

/* Who has packets on their way, and more that find the window full, is silent itself,
 * however often what is on its way is sent again. */
static void live__window_of_own(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	list_add_tail(&s.peer.stalled, &s.qp.on.waiting);
	for (uint64_t end = s.x.now + FIRST_NS; s.x.now < end;) {
		live_none_sent(&s.qp);
		pass(20 * MS);
		s.peer.heard_ns = s.x.now;
		live_sent(&s.qp, false);
	}
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* Our process did not run, and the first to run asked for its own QP. */
static void live__window_did_not_run(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	wait_for_window();
	s.x.now += FIRST_NS;
	s.peer.probed_ns = s.x.now;
	pass(NEXT_NS);
	assert_int_equal(r->retries, RETRIES);
	assert_int_not_equal(r->probe.question, 0);
	close_qp();
}

/* A suspension ends by silence while a WRITE is outstanding. */
static void live__suspension_ends_by_silence(void **state)
{
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_ACK,
			      .psn = UNA - 1,
			      .accepted = UNA - 1,
			      .xack_flags = XACK_SUSPEND,
			      .hold_us = 1000};

	(void)state;
	open_qp(PEER_NOPIN);
	hold_heard(&s.qp, &p);
	live_heard(&s.qp, &p, false);
	assert_int_equal(s.qp.req.at[REQ_SILENT], TIME_NEVER);
	waits(LIVE_REGION, TIME_NEVER);
	s.x.now += 3 * MS;
	hold_timeout(&s.qp);
	assert_int_equal(s.qp.req.at[REQ_SILENT], s.x.now + FIRST_NS);
	close_qp();
}

/* What moves nothing is no news, of whatever kind; everything is sent again for each
 * retry. */
static void live__standard(void **state)
{
	const uint64_t timeout_ns = ack_timeout_to_ns(14);
	const struct pkt p = {.opcode = OP_ACK, .syndrome = AETH_ACK};

	(void)state;
	open_qp(PEER_STANDARD);
	pass(timeout_ns - 1);
	live_heard(&s.qp, &p, false);
	assert_int_equal(s.qp.req.retries, RETRIES);
	pass(1);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	assert_int_equal(s.qp.req.snd, UNA);
	assert_true(s.peer.quiet);
	close_qp();
}

/* A response was dropped for a page of ours: that it is sent again takes its time. */
static void live__standard_and_a_page_of_ours(void **state)
{
	const uint64_t timeout_ns = ack_timeout_to_ns(14);

	(void)state;
	open_qp(PEER_STANDARD);
	s.qp.req.rsp_wait.ticket.v = 1;
	pass(timeout_ns - 1 * MS);
	s.qp.req.rsp_wait.ticket.v = 0;
	live_page_came(&s.qp);
	live_sent(&s.qp, false);
	pass(timeout_ns - 1);
	assert_int_equal(s.qp.req.retries, RETRIES);
	pass(1);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* A nopin can be asked: a page of ours is no news of it. */
static void live__silent_nopin_and_a_page(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	s.qp.req.rsp_wait.ticket.v = 1;
	pass(FIRST_NS - 1 * MS);
	s.qp.req.rsp_wait.ticket.v = 0;
	live_page_came(&s.qp);
	pass(1 * MS);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* What it cost while the peer was taken for a standard NIC says nothing of a nopin. */
static void live__opens_late(void **state)
{
	const uint64_t timeout_ns = ack_timeout_to_ns(14);
	const struct pkt p = {.opcode = OP_X_OPEN,
			      .ext = true,
			      .epoch = MINE,
			      .my_epoch = THEIRS};

	(void)state;
	open_qp(PEER_STANDARD);
	s.qp.open.mine = MINE;
	list_init(&s.x.work.opens);
	for (int i = 0; i < RETRIES; i++) {
		pass(timeout_ns);
		s.qp.req.snd = MAX_PSN;
		live_sent(&s.qp, true);
	}
	assert_int_equal(s.qp.req.retries, 0);
	assert_true(open_take(&s.qp, &p));
	assert_int_equal(s.qp.req.retries, RETRIES);
	waits(LIVE_ANSWER, FIRST_NS);
	open_end(&s.qp);
	close_qp();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live__silence),
		cmocka_unit_test(live__ack_of_nothing),
		cmocka_unit_test(live__sent_again_and_again),
		cmocka_unit_test(live__moves_nothing),
		cmocka_unit_test(live__earlier_question),
		cmocka_unit_test(live__naks_for_ever),
		cmocka_unit_test(live__explained),
		cmocka_unit_test(live__accepted),
		cmocka_unit_test(live__accepted_in_turn),
		cmocka_unit_test(live__answered_and_not_come),
		cmocka_unit_test(live__busy),
		cmocka_unit_test(live__progress),
		cmocka_unit_test(live__page_of_ours),
		cmocka_unit_test(live__did_not_run),
		cmocka_unit_test(live__ours),
		cmocka_unit_test(live__window),
		cmocka_unit_test(live__drained),
		cmocka_unit_test(live__drained_before_it_opened),
		cmocka_unit_test(live__window_of_dead),
		cmocka_unit_test(live__window_of_own),
		cmocka_unit_test(live__window_did_not_run),
		cmocka_unit_test(live__suspension_ends_by_silence),
		cmocka_unit_test(live__standard),
		cmocka_unit_test(live__standard_and_a_page_of_ours),
		cmocka_unit_test(live__silent_nopin_and_a_page),
		cmocka_unit_test(live__opens_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
