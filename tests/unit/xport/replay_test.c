/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* replay_test.c: READs and atomics of a peer: how they are answered, and answered again
 * when a duplicate asks for them, or when the answer did not leave.
 */
#include "answers.h"

static void replay_pending__until_answered_whole(void **state)
{
	(void)state;
	/* indices wrap */
	s.qp.resp.replay.next = s.qp.resp.replay.at = UINT32_MAX;
	assert_int_equal(pending(), 0);
	assert_int_equal(room(), RESOURCES_MAX);
	add_atomic(PSN, 0);
	add_read(psn_add(PSN, 1), MTU);
	add_read(psn_add(PSN, 2), MTU);
	assert_int_equal(pending(), 3);
	assert_int_equal(room(), RESOURCES_MAX - 3);
	assert_int_equal(send_all(), 3);
	assert_int_equal(pending(), 0);
	assert_int_equal(room(), RESOURCES_MAX);
}

/* A READ that is longer than a burst is pending until its last packet. */
static void replay_pending__of_several_bursts(void **state)
{
	(void)state;
	add_read(PSN, BENCH_PAGES * PAGE_BYTES - 1);
	for (unsigned n = 0; n < BENCH_PAGES * PAGE_BYTES / MTU;) {
		assert_int_equal(pending(), 1);
		assert_int_equal(room(), RESOURCES_MAX - 1);
		assert_true(make() > 0);
		for (unsigned i = 0; i < b.nsegs; i++)
			assert_int_equal(got[i].psn, psn_add(PSN, n + i));
		n += b.nsegs;
		commit(0);
	}
	assert_int_equal(send(), 0);
	assert_int_equal(pending(), 0);
}

/* A repetition is not outstanding, but it takes room. */
static void replay_pending__not_of_a_repetition(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	send();
	repeat_read(PSN, LONG, 1);
	assert_int_equal(pending(), 0);
	assert_int_equal(room(), RESOURCES_MAX - 1);
}

/* Sizes around the MTU; 0 bytes are one packet, too. */
static void replay_tx__sizes(void **state)
{
	static const uint32_t len[] = {0, 1, MTU - 1, MTU, MTU + 1, 2 * MTU};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		add_read(PSN, len[i]);
		assert_int_equal(send(), len[i] > MTU ? 2 : 1);
		assert_int_equal(burst_payload(&b), len[i]);
		check(0, len[i] > MTU ? OP_READ_RESP_FIRST : OP_READ_RESP_ONLY,
		      PSN, MIN(len[i], (uint32_t)MTU));
		if (len[i] > MTU)
			check(1, OP_READ_RESP_LAST, psn_add(PSN, 1),
			      len[i] - MTU);
	}
}

static void answers_of_a_read(void)
{
	add_read(PSN, LONG);
	assert_int_equal(send_all(), 4);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
	check(1, OP_READ_RESP_MIDDLE, PSN_MASK, MTU);
	check(2, OP_READ_RESP_MIDDLE, 0, MTU);
	check(3, OP_READ_RESP_LAST, 1, MTU);
}

static void replay_tx__to_a_nopin(void **state)
{
	(void)state;
	answers_of_a_read();
	for (unsigned i = 0; i < 4; i++) {
		assert_true(got[i].ext);
		assert_int_equal(got[i].epoch, BENCH_THEIRS);
		assert_int_equal(got[i].dma_len, LONG);
	}
}

static void replay_tx__to_a_standard_peer(void **state)
{
	(void)state;
	answers_of_a_read();
	for (unsigned i = 0; i < 4; i++)
		assert_false(got[i].ext);
}

/* In the order of the requests; an atomic returns the value before it. */
static void replay_tx__in_order(void **state)
{
	(void)state;
	add_read(PSN, 2 * MTU);
	add_atomic(psn_add(PSN, 2), UINT64_C(0x0123456789abcdef));
	add_read(psn_add(PSN, 3), 1);
	assert_int_equal(send_all(), 4);
	check(1, OP_READ_RESP_LAST, psn_add(PSN, 1), MTU);
	check(2, OP_ATOMIC_ACK, psn_add(PSN, 2), 0);
	assert_true(got[2].swap_add == UINT64_C(0x0123456789abcdef));
	check(3, OP_READ_RESP_ONLY, psn_add(PSN, 3), 1);
	assert_int_equal(send(), 0);
}

/* Packets before the missing page leave; the rest waits for the page. */
static void replay_tx__up_to_a_missing_page(void **state)
{
	const struct resp_replay *r = &s.qp.resp.replay;

	(void)state;
	assert_int_equal(spt_unmap(s.mem, page_of(bench_page(1)), 1), 0);
	add_read(PSN, 2 * PAGE_BYTES);
	assert_int_equal(send(), PAGE_BYTES / MTU);
	check(3, OP_READ_RESP_MIDDLE, 1, MTU);
	assert_int_not_equal(r->wait.ticket.v, 0);
	assert_int_equal(s.cnt.v[CNT_fault_park], 1);
	assert_int_equal(send(), 0);
	waiter_cancel(s.mem, &s.qp.resp.replay.wait);
	bench_page_comes(&s, 1);
	pages_brought(s.mem);
	assert_int_equal(send(), PAGE_BYTES / MTU);
	check(0, OP_READ_RESP_MIDDLE, 2, MTU);
}

static void replay_tx__not_while_the_socket_is_full(void **state)
{
	(void)state;
	add_read(PSN, 1);
	s.qp.resp.at[RESP_PAUSE] = s.x.now;
	assert_int_equal(send(), 0);
	s.qp.resp.at[RESP_PAUSE] = TIME_NEVER;
	assert_int_equal(send(), 1);
}

/* It knows our secret, and so wants to hear its own. */
static void replay_tx__not_before_its_secret_is_known(void **state)
{
	(void)state;
	add_read(PSN, 1);
	s.qp.open.theirs = 0;
	s.qp.open.known = true;
	assert_int_equal(send(), 0);
	s.qp.open.theirs = BENCH_THEIRS;
	assert_int_equal(send(), 1);
}

/* The readable part leaves before the QP fails. */
static void replay_tx__beyond_the_region(void **state)
{
	const struct pkt p = read_of(PSN, bench_page(BENCH_PAGES) - MTU, LONG);

	(void)state;
	replay_add(&s.qp, &p, 0);
	assert_int_equal(send(), 1);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
	assert_int_equal(s.qp.state, QPS_RTS);
	assert_int_equal(send(), 0);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.cause,
			 CAUSE_NAKED | AETH_NAK | NAK_REMOTE_ACCESS);
	assert_int_equal(s.qp.resp.ack.nak.syndrome,
			 AETH_NAK | NAK_REMOTE_ACCESS);
	assert_int_equal(s.qp.resp.ack.nak.psn, psn_add(PSN, 1));
	assert_int_equal(pending(), 0);
}

/* --- duplicates ---------------------------------------------------------------- */

static void replay_duplicate__of_a_write(void **state)
{
	const struct pkt p = bench_pkt(&s, OP_WRITE_ONLY, PSN);

	(void)state;
	replay_duplicate(&s.qp, &p);
	assert_true(s.qp.resp.ack.owed);
	assert_int_equal(s.cnt.v[CNT_replays], 0);
	assert_int_equal(s.cnt.v[CNT_drop_psn], 0);
}

static void replay_duplicate__whole(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	add_read(psn_add(PSN, 4), 1);
	send();
	repeat_read(PSN, LONG, 0);
	assert_false(list_empty(&s.qp.on.runnable));
	assert_int_equal(send(), 4);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
	check(3, OP_READ_RESP_LAST, psn_add(PSN, 3), MTU);
	assert_int_equal(s.cnt.v[CNT_replays], 1);
	assert_int_equal(send(), 0);
}

/* A tail begins an answer of its own. */
static void replay_duplicate__of_a_tail(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	send();
	repeat_read(PSN, LONG, 2);
	assert_int_equal(send(), 2);
	check(0, OP_READ_RESP_FIRST, psn_add(PSN, 2), MTU);
	check(1, OP_READ_RESP_LAST, psn_add(PSN, 3), MTU);
	repeat_read(PSN, LONG, 3);
	assert_int_equal(send(), 1);
	check(0, OP_READ_RESP_ONLY, psn_add(PSN, 3), MTU);
}

/* An atomic is executed once; its answer stays the same. */
static void replay_duplicate__of_an_atomic(void **state)
{
	(void)state;
	add_atomic(PSN, 1);
	add_atomic(psn_add(PSN, 1), 2);
	send();
	repeat_atomic(psn_add(PSN, 1));
	assert_int_equal(send(), 1);
	check(0, OP_ATOMIC_ACK, psn_add(PSN, 1), 0);
	assert_true(got[0].swap_add == 2);
	repeat_atomic(PSN);
	assert_int_equal(send(), 1);
	assert_true(got[0].swap_add == 1);
}

/* A duplicate must match the original in PSN, address, key and length. */
static void replay_duplicate__of_what_was_not_asked(void **state)
{
	const psn_t atomic = psn_add(PSN, 4);
	struct pkt wrong[] = {
		read_of(PSN, BENCH_BASE + 1, LONG), /* address */
		read_of(PSN, BENCH_BASE, LONG + 1), /* longer */
		read_of(psn_add(PSN, 1), BENCH_BASE + MTU, LONG - MTU + 1),
		read_of(psn_add(PSN, PSN_MASK), BENCH_BASE - MTU, MTU),
		read_of(psn_add(PSN, 5), BENCH_BASE + 5 * MTU, 0),
		read_of(PSN, BENCH_BASE, LONG), /* key */
		read_of(atomic, BENCH_BASE, 8),
		bench_pkt(&s, OP_FETCH_ADD, PSN),
		bench_pkt(&s, OP_FETCH_ADD, atomic), /* address */
		bench_pkt(&s, OP_FETCH_ADD, atomic), /* key */
	};

	(void)state;
	wrong[5].rkey ^= 1;
	wrong[8].va += 8;
	wrong[9].rkey ^= 1;
	add_read(PSN, LONG);
	add_atomic(atomic, 1);
	send();
	for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++) {
		replay_duplicate(&s.qp, &wrong[i]);
		assert_int_equal(send(), 0);
		assert_int_equal(s.cnt.v[CNT_drop_psn], i + 1);
	}
	assert_int_equal(s.cnt.v[CNT_replays], 0);
}

/* Packets still to leave are not skipped, and the READ stays outstanding. */
static void replay_duplicate__of_what_is_not_answered_yet(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	repeat_read(PSN, LONG, 0);
	repeat_read(PSN, LONG, 2);
	assert_int_equal(s.cnt.v[CNT_replays], 0);
	assert_int_equal(pending(), 1);
	assert_int_equal(send(), 4);
}

/* Half of it has left: from the beginning, and it is outstanding as before. */
static void replay_duplicate__of_what_is_half_answered(void **state)
{
	const struct pkt p = read_of(PSN, BENCH_BASE, BENCH_PAGES * PAGE_BYTES);

	(void)state;
	replay_add(&s.qp, &p, 0);
	assert_in_range(send(), 1, BENCH_PAGES * PAGE_BYTES / MTU - 1);
	replay_duplicate(&s.qp, &p);
	assert_int_equal(s.cnt.v[CNT_replays], 1);
	assert_int_equal(pending(), 1);
	assert_true(send() > 0);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
}

/* A run is planned with the room that there is. */
static void replay_duplicate__while_a_run_moves(void **state)
{
	(void)state;
	add_read(PSN, 1);
	send();
	s.qp.rx_moving = true;
	repeat_read(PSN, 1, 0);
	assert_int_equal(room(), RESOURCES_MAX);
	s.qp.rx_moving = false;
	assert_int_equal(send(), 0);
}

/* The ring keeps the last RESOURCES_MAX. */
static void replay_duplicate__of_the_oldest(void **state)
{
	(void)state;
	for (unsigned i = 0; i <= RESOURCES_MAX; i++) {
		add_atomic(psn_add(PSN, i), i);
		assert_int_equal(send(), 1);
	}
	repeat_atomic(PSN);
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	repeat_atomic(psn_add(PSN, 1));
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	assert_int_equal(send(), 1);
	assert_true(got[0].swap_add == 1);
	assert_int_equal(room(), RESOURCES_MAX);
}

/* --- bursts that do not leave -------------------------------------------------- */

static void replay_unsent__comes_again(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	add_atomic(psn_add(PSN, 4), 3);
	assert_int_equal(make(), 5);
	commit(-EFAULT);
	assert_false(deadline_waits(s.qp.resp.at[RESP_PAUSE]));
	assert_int_equal(room(), RESOURCES_MAX - 2);
	assert_int_equal(send(), 5);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
	check(4, OP_ATOMIC_ACK, psn_add(PSN, 4), 0);
}

/* Of a long READ, the second burst. */
static void replay_unsent__from_where_it_was(void **state)
{
	unsigned first;

	(void)state;
	add_read(PSN, BENCH_PAGES * PAGE_BYTES);
	first = send();
	assert_true(make() > 0);
	commit(-EFAULT);
	assert_true(send() > 0);
	assert_int_equal(got[0].psn, psn_add(PSN, first));
}

/* An earlier burst has left. */
static void replay_unsent__nothing_of_another_burst(void **state)
{
	(void)state;
	add_read(PSN, 1);
	add_read(psn_add(PSN, 1), 1);
	assert_int_equal(send(), 2);
	repeat_read(PSN, 1, 0);
	assert_int_equal(make(), 1);
	commit(-EFAULT);
	assert_int_equal(send(), 1);
	check(0, OP_READ_RESP_ONLY, PSN, 1);
}

/* The whole READ is asked for while its tail is with the socket. */
static void replay_unsent__asked_for_meanwhile(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	send();
	repeat_read(PSN, LONG, 2);
	assert_int_equal(make(), 2);
	repeat_read(PSN, LONG, 0);
	commit(-EFAULT);
	assert_int_equal(send(), 4);
	check(0, OP_READ_RESP_FIRST, PSN, MTU);
}

/* The tail is asked for while all of it, again, is with the socket. */
static void replay_unsent__its_tail_asked_for_meanwhile(void **state)
{
	(void)state;
	add_read(PSN, LONG);
	send();
	repeat_read(PSN, LONG, 0);
	assert_int_equal(make(), 4);
	repeat_read(PSN, LONG, 2);
	commit(-EFAULT);
	assert_int_equal(send(), 2);
	check(0, OP_READ_RESP_FIRST, psn_add(PSN, 2), MTU);
	check(1, OP_READ_RESP_LAST, psn_add(PSN, 3), MTU);
}

/* It may have left but for its end: an answer that was whole is one that the peer may have,
 * and so does not count against what it may ask for. One that is cut does. */
static void replay_unsent__may_have_left_but_for_its_end(void **state)
{
	(void)state;
	add_read(PSN, MTU);
	add_read(psn_add(PSN, 1), BENCH_PAGES * PAGE_BYTES);
	assert_true(make() > 1);
	commit(-EAGAIN);
	assert_int_equal(pending(), 1);
	assert_int_equal(room(), RESOURCES_MAX - 2);
}

/* The oldest of as many READs as there is room for is with the socket again, with the
 * beginning of a long one, while a run moves that has @coming more. */
static void oldest_did_not_leave(unsigned coming)
{
	const psn_t next = psn_add(PSN, RESOURCES_MAX - 1);

	for (unsigned i = 0; i + 1 < RESOURCES_MAX; i++) {
		add_read(psn_add(PSN, i), MTU);
		assert_int_equal(send(), 1);
	}
	add_read(next, BENCH_PAGES * PAGE_BYTES);
	repeat_read(PSN, MTU, 0);
	assert_true(make() > 1);
	check(0, OP_READ_RESP_ONLY, PSN, MTU);
	assert_int_equal(room(), RESOURCES_MAX - 1);
	s.qp.rx_moving = true;
	while (coming--)
		replay_planned(&s.qp);
	commit(-EFAULT);
	s.qp.rx_moving = false;
}

/* From when it is planned until it is committed a run has room for what it brings. */
static void replay_planned__by_a_run(void **state)
{
	const struct pkt p = read_of(PSN, BENCH_BASE, 1);

	(void)state;
	qp_rx(&s.qp, &p, (struct payload){NULL}, &s.run);
	assert_int_equal(s.qp.resp.replay.coming, 1);
	s.run.moves.done = s.run.moves.num;
	qp_rx_commit(&s.run);
	assert_int_equal(s.qp.resp.replay.coming, 0);
	assert_int_equal(pending(), 1);
	send();
}

static void replay_unsent__while_a_run_moves(void **state)
{
	(void)state;
	oldest_did_not_leave(0);
	assert_int_equal(room(), 0);
	assert_true(send() > 1);
	check(0, OP_READ_RESP_ONLY, PSN, MTU);
}

/* What would take the room of that is lost, and can be asked for again. */
static void replay_unsent__while_a_run_needs_the_room(void **state)
{
	(void)state;
	oldest_did_not_leave(1);
	assert_int_equal(room(), 1);
	replay_run_over(&s.qp);
	repeat_read(PSN, MTU, 0);
	assert_int_equal(room(), 0);
	assert_true(send() > 1);
	check(0, OP_READ_RESP_ONLY, PSN, MTU);
}

/* The QP wakes when the socket is to be tried again. */
static void replay_unsent__as_the_socket_was_full(void **state)
{
	const uint64_t at = BENCH_BEGIN + PAUSE_FULL_NS;

	(void)state;
	add_read(PSN, 1);
	make();
	commit(-EAGAIN);
	assert_int_equal(s.qp.resp.at[RESP_PAUSE], at);
	assert_int_equal(s.qp.timer.at_ns, at);
	assert_int_equal(room(), RESOURCES_MAX - 1);
}

/* A failed QP answers nothing more. */
static void replay_unsent__of_a_qp_that_failed(void **state)
{
	(void)state;
	add_read(PSN, 1);
	make();
	s.qp.state = QPS_ERR;
	commit(-EAGAIN);
	assert_int_equal(pending(), 0);
	assert_false(deadline_waits(s.qp.resp.at[RESP_PAUSE]));
}

/* READs and atomics are counted in 32 bits. */
static void replay_duplicate__where_the_count_wraps(void **state)
{
	(void)state;
	s.qp.resp.replay.next = s.qp.resp.replay.at = UINT32_MAX;
	add_atomic(PSN, 1);
	add_atomic(psn_add(PSN, 1), 2);
	send();
	repeat_atomic(PSN);
	assert_int_equal(s.cnt.v[CNT_drop_psn], 0);
	assert_int_equal(send(), 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(replay_pending__until_answered_whole),
		T(replay_pending__of_several_bursts),
		T(replay_pending__not_of_a_repetition),
		T(replay_tx__sizes),
		T(replay_tx__to_a_nopin),
		cmocka_unit_test_setup_teardown(replay_tx__to_a_standard_peer,
						setup_standard, teardown),
		T(replay_tx__in_order),
		T(replay_tx__up_to_a_missing_page),
		T(replay_tx__not_while_the_socket_is_full),
		T(replay_tx__not_before_its_secret_is_known),
		T(replay_tx__beyond_the_region),
		T(replay_duplicate__of_a_write),
		T(replay_duplicate__whole),
		T(replay_duplicate__of_a_tail),
		T(replay_duplicate__of_an_atomic),
		T(replay_duplicate__of_what_was_not_asked),
		T(replay_duplicate__of_what_is_not_answered_yet),
		T(replay_duplicate__of_what_is_half_answered),
		T(replay_duplicate__while_a_run_moves),
		T(replay_duplicate__of_the_oldest),
		T(replay_duplicate__where_the_count_wraps),
		T(replay_unsent__comes_again),
		T(replay_unsent__from_where_it_was),
		T(replay_unsent__nothing_of_another_burst),
		T(replay_unsent__asked_for_meanwhile),
		T(replay_unsent__its_tail_asked_for_meanwhile),
		T(replay_unsent__may_have_left_but_for_its_end),
		T(replay_planned__by_a_run),
		T(replay_unsent__while_a_run_moves),
		T(replay_unsent__while_a_run_needs_the_room),
		T(replay_unsent__as_the_socket_was_full),
		T(replay_unsent__of_a_qp_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
