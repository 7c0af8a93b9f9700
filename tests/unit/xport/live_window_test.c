/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live_window_test.c: when a retry is spent by a QP that lets others ask: what it has to
 * send cannot leave, as they have the window, or its peer answers nobody.
 */
#include "clocks.h"
#include "xport/turns.h"

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

/* Requests are out, and the turns of other QPs to ask. */
static void wait_with_others(void)
{
	open_qp(PEER_NOPIN);
	s.peer.probes.taken = TURNS_MAX;
	s.peer.probes.since_ns = s.x.now;
}

/* Others ask so long: it is always the turn of one. */
static void others_ask_for(uint64_t ns)
{
	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		s.peer.probes.taken = TURNS_MAX;
		s.peer.probes.since_ns = s.x.now;
		pass(MIN(10 * MS, end - s.x.now));
	}
}

/* Where none is answered one QP asks for all, and each before it takes the peer for
 * silent: only those that asked may be gone over there. */
static void live__others_ask(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	wait_with_others();
	others_ask_for(2 * MS);
	/* who has just begun does not wait */
	assert_int_equal(r->probe.question, 1);
	r->probe.asked = false;
	others_ask_for(FIRST_NS - 3 * MS);
	assert_false(r->probe.asked);
	others_ask_for(1 * MS);
	assert_int_equal(r->retries, RETRIES);
	assert_true(r->probe.asked);
	others_ask_for(49 * MS);
	assert_int_equal(r->retries, RETRIES);
	others_ask_for(1 * MS);
	assert_int_equal(r->retries, RETRIES - 1);
	for (int i = RETRIES - 2; i >= 0; i--) {
		others_ask_for(NEXT_NS + 50 * MS);
		assert_int_equal(r->retries, i);
	}
	close_qp();
}

static void live__others_ask_and_it_is_answered(void **state)
{
	(void)state;
	wait_with_others();
	others_ask_for(FIRST_NS + 20 * MS);
	answer(UNA - 1, UNA, 0);
	others_ask_for(FIRST_NS - 20 * MS);
	assert_int_equal(s.qp.req.retries, RETRIES);
	close_qp();
}

/* The peer is heard of, or those that asked do not any more. */
static void live__others_asked(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	for (int heard = 0; heard < 2; heard++) {
		wait_with_others();
		others_ask_for(1000 * MS);
		r->probe.asked = false;
		if (heard)
			live_heard_of(&s.peer, s.x.now);
		r->at[REQ_PROBE] = s.x.now + 2 * MS;
		qp_rearm(&s.qp);
		pass(3 * MS);
		assert_int_equal(r->probe.asked, heard);
		pass(60 * MS);
		assert_true(r->probe.asked);
		assert_true(list_empty(&s.qp.on.asking));
		close_qp();
	}
}

/* Return: how often it asks in @ns. */
static unsigned asks_in(uint64_t ns)
{
	unsigned n = 0;

	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		const uint64_t before = s.qp.req.live.asked_ns;

		pass(MS / 2);
		n += s.qp.req.live.asked_ns != before;
	}
	return n;
}

/* Alone it asks as often as ever. */
static void live__asks_alone(void **state)
{
	(void)state;
	open_qp(PEER_NOPIN);
	assert_int_equal(asks_in(500 * MS), 14);
	assert_int_equal(asks_in(1000 * MS), 20);
	close_qp();
}

/* Our process did not run: that others ask before us makes up for nothing. */
static void live__others_ask_first(void **state)
{
	(void)state;
	wait_with_others();
	others_ask_for(1000 * MS);
	s.x.now += FIRST_NS;
	others_ask_for(1900 * MS);
	assert_int_equal(s.qp.req.retries, RETRIES);
	others_ask_for(200 * MS);
	assert_int_equal(s.qp.req.retries, RETRIES - 1);
	close_qp();
}

/* And gives a turn to all that wait for one. */
static void another_asks(void)
{
	struct qp qp = s.qp;

	list_init(&qp.on.asking);
	list_init(&qp.on.owed);
	list_init(&qp.on.runnable);
	qp.req.una = UNA;
	qp.req.at[REQ_SILENT] = TIME_NEVER;
	qp.req.at[REQ_PROBE] = s.x.now;
	qp.timer = (struct timer){.at_ns = TIME_NEVER};
	turns_heard(&s.peer.probes);
	live_timeout(&qp);
	assert_true(qp.resp.ack.xack & XACK_PROBE);
	ack_cancel(&qp);
	timerq_set(&s.x.timers, &qp.timer, TIME_NEVER);
}

/* What came to an end has no turn. */
static void live__turn_over(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		wait_with_others();
		others_ask_for(100 * MS);
		assert_false(list_empty(&s.qp.on.asking));
		if (how == 0)
			live_stop(&s.qp);
		if (how == 1)
			live_progress(&s.qp);
		if (how == 2) {
			s.qp.req.una = s.qp.req.snd = s.qp.req.max;
			another_asks();
			assert_false(s.qp.resp.ack.xack & XACK_PROBE);
		}
		assert_true(list_empty(&s.qp.on.asking));
		close_qp();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(live__window),
		cmocka_unit_test(live__drained),
		cmocka_unit_test(live__drained_before_it_opened),
		cmocka_unit_test(live__window_of_dead),
		cmocka_unit_test(live__window_of_own),
		cmocka_unit_test(live__window_did_not_run),
		cmocka_unit_test(live__others_ask),
		cmocka_unit_test(live__others_ask_and_it_is_answered),
		cmocka_unit_test(live__others_asked),
		cmocka_unit_test(live__asks_alone),
		cmocka_unit_test(live__others_ask_first),
		cmocka_unit_test(live__turn_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
