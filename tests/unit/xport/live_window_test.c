/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live_window_test.c: when a retry is spent by a QP that lets others ask: what it has to
 * send cannot leave, as they have the window, or its peer answers nobody.
 */
#include "clocks.h"
#include "xport/hold.h"
#include "xport/spare.h"

/* All is done but what others, who have the window, do not let go. */
static void wait_for_window(void)
{
	struct req *r = &s.qp.req;

	open_qp(PEER_NOPIN);
	r->psn.una = r->psn.snd = r->psn.max = r->psn.acc = MAX_PSN;
	live_moved(&s.qp);
	live_stop(&s.qp);
	list_add_tail(&s.peer.stalled, &s.qp.on.waiting);
	s.peer.probes.heard_ns = s.peer.probed_ns = s.x.now;
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
		s.peer.probes.heard_ns = s.peer.probed_ns = s.x.now;
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
	r->psn.snd = r->psn.max = psn_add(MAX_PSN, 1);
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
		s.peer.probes.heard_ns = s.x.now;
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

/* Return: how often it asks in @ns; @others: many other QPs do, and are not answered. */
static unsigned asks_in(uint64_t ns, bool others)
{
	unsigned n = 0;

	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		const uint64_t before = s.qp.req.live.asked_ns;

		s.peer.probes.num = MAX(s.peer.probes.num,
					others ? SPARE_FROM : 0u);
		pass(MS / 2);
		n += s.qp.req.live.asked_ns != before;
	}
	return n;
}

/* Alone it asks at 1, 3, 7 ... 63 ms and then every 50. */
static void live__asks_alone(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	s.qp.attr.timeout = 0;
	live_stop(&s.qp);
	live_reset(&s.qp.req);
	live_start(&s.qp);
	assert_int_equal(asks_in(500 * MS, false), 14);
	assert_int_equal(asks_in(1000 * MS, false), 20);
	assert_in_range(s.peer.probes.num, 1, 21);
	/* and never so often that it is spared */
	for (int i = 0; i < 100; i++)
		assert_in_range(asks_in(1000 * MS, false), 19, 21);
	close_qp();
}

/* Many spare a peer that answers none; and no retry is spent before it was asked as often
 * as ever, for five times. */
static void live__asks_with_many(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	open_qp(PEER_NOPIN);
	/* at 1, 15, 113 and 663 ms */
	assert_int_equal(asks_in(1000 * MS, true), 4);
	assert_in_range(asks_in(740 * MS, true), 1, 2);
	assert_in_range(asks_in(259 * MS, true), 5, 6);
	assert_int_equal(r->retries, RETRIES);
	asks_in(1 * MS, true);
	assert_int_equal(r->retries, RETRIES - 1);
	for (int i = RETRIES - 2; i >= 0; i--) {
		assert_in_range(asks_in(NEXT_NS, true), 5, 6);
		assert_int_equal(r->retries, i);
	}
	close_qp();
}

/* One is heard of, so it is no such peer: asked again as ever. */
static void live__asks_with_many_and_one_is_heard(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	asks_in(1000 * MS, true);
	s.peer.probes.since_ns = s.x.now;
	live_heard_of(&s.peer, s.x.now);
	assert_int_equal(s.peer.probes.heard_ns, s.x.now);
	assert_int_equal(asks_in(200 * MS, false), 4);
	close_qp();
}

/* So is one that is heard of after each question: what is not answered is lost. */
static void live__asks_again_what_is_lost(void **state)
{
	unsigned n = 0;

	(void)state;
	open_qp(PEER_NOPIN);
	for (int i = 0; i < 1000; i++) {
		const unsigned asked = asks_in(MS, true);

		if (asked)
			live_heard_of(&s.peer, s.x.now);
		n += asked;
	}
	assert_in_range(n, 23, 24);
	close_qp();
}

/* Each question was answered, however many there were: when answers end the first gaps are
 * short ones. */
static void live__asks_soon_when_answers_end(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	for (int i = 0; i < 1000; i++)
		if (asks_in(MS, true))
			live_heard_of(&s.peer, s.x.now);
	/* every 50 ms, three of them within gaps of 8 and 64 ms */
	assert_in_range(asks_in(225 * MS, true), 3, 4);
	close_qp();
}

/* Nor is a region's peer spared for longer than its suspension lasts: what was said of it
 * counts for three times the expected time. */
static void live__asks_of_a_suspension(void **state)
{
	const struct pkt p = {.xack_flags = XACK_SUSPEND, .hold_us = 20 * 1000};

	(void)state;
	open_qp(PEER_NOPIN);
	hold_heard(&s.qp, &p);
	live_ask(&s.qp);
	serve();
	assert_in_range(asks_in(59 * MS, true), 5, 6);
	hold_heard(&s.qp, &(struct pkt){.xack_flags = 0});
	close_qp();
}

/* What begins to wait asks soon, however many are not answered. */
static void live__begins_beside_many(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	asks_in(1000 * MS, true);
	for (int i = 0; i < 3; i++) {
		live_progress(&s.qp);
		assert_int_equal(asks_in(2 * MS, true), 1);
	}
	live_ask(&s.qp);
	assert_true(s.qp.resp.ack.xack & XACK_PROBE);
	close_qp();
}

/* Nor does it cost anything that our own process does not run. */
static void live__many_and_we_do_not_run(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	asks_in(1000 * MS, true);
	s.x.now += FIRST_NS;
	asks_in(1900 * MS, true);
	assert_int_equal(s.qp.req.retries, RETRIES);
	asks_in(150 * MS, true);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* A peer that is heard now and then runs, however much others ask it. */
static void live__window_of_a_peer_that_others_hear(void **state)
{
	(void)state;
	wait_for_window();
	for (int i = 0; i < 1000; i++) {
		pass(20 * MS);
		if (i % 70 == 0)
			live_heard_of(&s.peer, s.x.now);
		spared_asked(&s.peer.probes, s.x.now);
		s.peer.probed_ns = s.x.now;
	}
	assert_int_equal(s.qp.req.retries, RETRIES);
	close_qp();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live__window),
		cmocka_unit_test(live__window_of_a_peer_that_others_hear),
		cmocka_unit_test(live__drained),
		cmocka_unit_test(live__drained_before_it_opened),
		cmocka_unit_test(live__window_of_dead),
		cmocka_unit_test(live__window_of_own),
		cmocka_unit_test(live__window_did_not_run),
		cmocka_unit_test(live__asks_alone),
		cmocka_unit_test(live__asks_with_many),
		cmocka_unit_test(live__asks_with_many_and_one_is_heard),
		cmocka_unit_test(live__asks_again_what_is_lost),
		cmocka_unit_test(live__asks_soon_when_answers_end),
		cmocka_unit_test(live__asks_of_a_suspension),
		cmocka_unit_test(live__begins_beside_many),
		cmocka_unit_test(live__many_and_we_do_not_run),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
