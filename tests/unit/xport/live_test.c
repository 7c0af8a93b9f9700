/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live_test.c: when a retry is spent, of a requester whose first packets are lost, and a peer
 * that says what it is told to say. What waits for the window is in live_window_test.c.
 */
#include "clocks.h"
#include "wire/timecode.h"
#include "xport/hold.h"
#include "xport/open.h"

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

/* An RNR explains why what is not placed has to wait, and nothing else. */
static void live__rnr_for_a_request_that_is_done(void **state)
{
	struct pkt p = {.opcode = OP_X_ACK,
			.ext = true,
			.syndrome = AETH_RNR | 1,
			.accepted = UNA - 1};

	(void)state;
	for (psn_t psn = UNA - 1; psn <= UNA; psn++) {
		open_qp(PEER_NOPIN);
		p.psn = psn;
		for (int i = 0; i < 21; i++) {
			pass(100 * MS);
			live_heard(&s.qp, &p, false);
		}
		assert_int_equal(s.qp.req.retries,
				 psn == UNA ? RETRIES : RETRIES - 1);
		close_qp();
	}
}

/* Nor is one for which everything is sent again, of a nopin or of what may be one. */
static void sent_again_and_again(enum peer_kind kind)
{
	open_qp(kind);
	for (int i = 0; i < 23; i++) {
		pass(89 * MS);
		s.qp.req.psn.snd = UNA;
		live_restart(&s.qp);
		pass(1 * MS);
		s.qp.req.psn.snd = MAX_PSN;
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

	s.peer.probes.heard_ns = s.x.now;
	r->psn.snd = r->psn.acc = UNA;
	live_restart(&s.qp);
	r->probe.asked = r->probe.asked && !answered;
	live_heard(&s.qp, &p, answered);
	if (s.qp.state == QPS_ERR)
		return;
	r->psn.snd = MAX_PSN;
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

/* What was accepted beyond what is placed now was forgotten: it is progress once more. */
static void live_moved__accepted_anew_behind_what_was_placed(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	open_qp(PEER_NOPIN);
	r->psn.acc = MAX_PSN;
	assert_true(live_moved(&s.qp));
	r->psn.una = r->psn.acc = UNA + 1;
	assert_true(live_moved(&s.qp));
	assert_false(live_moved(&s.qp));
	r->psn.acc++;
	assert_true(live_moved(&s.qp));
	r->psn.acc--;
	assert_false(live_moved(&s.qp));
	close_qp();
}

/* Our socket did not take the repetition: an answer says nothing of it. */
static void live_unsent__the_oldest_is_due_still(void **state)
{
	(void)state;
	for (int oldest = 0; oldest < 2; oldest++) {
		open_qp(PEER_NOPIN);
		answer_all(FIRST_NS - 20 * MS, 0);
		pass(20 * MS);
		assert_int_equal(s.qp.req.live.trial, TRIAL_MADE);
		live_unsent(&s.qp, oldest ? UNA : UNA + 1);
		assert_int_equal(live_repeats(&s.qp.req), oldest);
		answer(UNA - 1, UNA - 1, 0);
		assert_int_equal(s.qp.req.retries, RETRIES - !oldest);
		close_qp();
	}
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
	assert_int_equal(s.qp.req.psn.snd, UNA);
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

/* It was silent, not ready, and silent again: the silences are not one. A nopin, which is
 * asked, was explained by that, and no more. */
static void live__silence_between_two_rnr(void **state)
{
	(void)state;
	for (enum peer_kind kind = PEER_NOPIN; kind <= PEER_STANDARD; kind++) {
		if (kind != PEER_NOPIN && kind != PEER_STANDARD)
			continue;
		open_qp(kind);
		s.qp.attr.rnr_retry = s.qp.req.rnr_retries = 7;
		assert_true(live_spend(&s.qp, CAUSE_SILENCE));
		/* one behind the oldest, which is a READ */
		retry_rnr(&s.qp, UNA + 1, 1, false);
		assert_int_equal(s.qp.req.retries, RETRIES - 1);
		s.qp.req.at[REQ_PAUSE] = TIME_NEVER;
		retry_rnr(&s.qp, UNA, 1, false);
		assert_int_equal(s.qp.req.retries,
				 kind == PEER_STANDARD ? RETRIES : RETRIES - 1);
		assert_int_equal(s.qp.req.rnr_retries, 7);
		close_qp();
	}
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
		s.qp.req.psn.snd = MAX_PSN;
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
		cmocka_unit_test(live__rnr_for_a_request_that_is_done),
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
		cmocka_unit_test(
			live_moved__accepted_anew_behind_what_was_placed),
		cmocka_unit_test(live_unsent__the_oldest_is_due_still),
		cmocka_unit_test(live__page_of_ours),
		cmocka_unit_test(live__did_not_run),
		cmocka_unit_test(live__ours),
		cmocka_unit_test(live__suspension_ends_by_silence),
		cmocka_unit_test(live__standard),
		cmocka_unit_test(live__standard_and_a_page_of_ours),
		cmocka_unit_test(live__silent_nopin_and_a_page),
		cmocka_unit_test(live__silence_between_two_rnr),
		cmocka_unit_test(live__opens_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
