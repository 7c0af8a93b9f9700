/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* places_test.c: places for answers, of which there are as many as were agreed. */
#include "answers.h"
#include "xport/resp.h"

static bool short_of_memory;

void *__real_heap_alloc(size_t bytes);
void *__wrap_heap_alloc(size_t bytes);

void *__wrap_heap_alloc(size_t bytes)
{
	return short_of_memory ? NULL : __real_heap_alloc(bytes);
}

static int dest_rd_atomic(uint8_t num)
{
	const struct qp_attr a = {.max_dest_rd_atomic = num};

	s.qp.state = QPS_SQD;
	return qp_modify(&s.qp, &a, QPA_MAX_DEST_RD_ATOMIC, NULL);
}

/* As many as were agreed, and as many that were answered. */
static void resp_reserve__sizes(void **state)
{
	static const struct {
		uint32_t num, size;
	} t[] = {{0, 2}, {1, 2}, {2, 4}, {3, 8}, {16, RESOURCES_MAX}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		resp_release(&s.qp);
		assert_null(s.qp.resp.replay.res);
		assert_null(s.qp.resp.win.bare);
		assert_int_equal(dest_rd_atomic((uint8_t)t[i].num), 0);
		assert_int_equal(room(), t[i].size);
		assert_int_equal(s.qp.resp.win.bares, t[i].num);
	}
	resp_release(&s.qp);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(resp_reserve(&s.qp, t[i].num), 0);
		assert_int_equal(s.qp.resp.win.bares, t[i].num);
	}
}

/* More are agreed while the send queue is drained. */
static void resp_reserve__keeps_what_was_answered(void **state)
{
	(void)state;
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 1), 0);
	s.qp.resp.replay.next = s.qp.resp.replay.at = UINT32_MAX - 1;
	for (unsigned i = 0; i < 3; i++) {
		add_atomic(psn_add(PSN, i), i);
		assert_int_equal(send(), 1);
	}
	assert_int_equal(dest_rd_atomic(RD_ATOMIC_MAX), 0);
	assert_int_equal(room(), RESOURCES_MAX);
	s.qp.state = QPS_RTS;
	for (unsigned i = 1; i < 3; i++) {
		repeat_atomic(psn_add(PSN, i));
		assert_int_equal(room(), RESOURCES_MAX - 3 + i);
		assert_int_equal(send(), 1);
		assert_true(got[0].swap_add == i);
	}
	assert_int_equal(s.cnt.v[CNT_drop_psn], 0);
	assert_int_equal(dest_rd_atomic(1), 0);
	assert_int_equal(room(), RESOURCES_MAX);
}

/* Two are agreed; both were asked for again, and two more. */
static void two_again_and_two_more(void)
{
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 2), 0);
	for (unsigned i = 0; i < 2; i++) {
		add_read(psn_add(PSN, i), 1);
		assert_int_equal(send(), 1);
	}
	repeat_read(PSN, 1, 0);
	repeat_read(psn_add(PSN, 1), 1, 0);
	add_read(psn_add(PSN, 2), 1);
	add_read(psn_add(PSN, 3), 1);
	assert_int_equal(make(), 4);
	add_read(psn_add(PSN, 4), 1); /* its place was that of the first */
}

static void replay_unsent__of_more_than_there_are_places(void **state)
{
	(void)state;
	two_again_and_two_more();
	commit(-EAGAIN);
	assert_true(deadline_waits(s.qp.resp.at[RESP_PAUSE]));
	s.qp.resp.at[RESP_PAUSE] = TIME_NEVER;
	assert_int_equal(send(), 4);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(got[i].psn, psn_add(PSN, i + 1));
}

static void replay_unsent__of_places_before_there_were_more(void **state)
{
	(void)state;
	two_again_and_two_more();
	assert_int_equal(dest_rd_atomic(4), 0);
	s.qp.state = QPS_RTS;
	commit(-EFAULT);
	replay_check(&s.qp);
	assert_int_equal(send(), 4);
	assert_int_equal(got[0].psn, psn_add(PSN, 1));
}

/* A READ of a byte of page @page comes. */
static void read_comes(uint32_t i, unsigned page)
{
	const struct payload none = {.at = NULL};
	const struct pkt p = read_of(psn_add(PSN, i),
				     BENCH_BASE + page * PAGE_BYTES, 1);

	(void)qp_rx(&s.qp, &p, none, &s.run);
	s.run.moves.done = s.run.moves.num;
	if (s.run.qp)
		qp_rx_commit(&s.run);
}

/* One READ is agreed, and two were answered, one after the other. */
static void two_answered(void)
{
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 1), 0);
	s.qp.attr.max_dest_rd_atomic = 1;
	for (unsigned i = 0; i < 2; i++) {
		read_comes(i, i);
		assert_true(send() > 0);
	}
}

/* One is agreed, and the peer keeps to that. A late copy of one that it has the answer to
 * stands in the way of the next, for as long as page 0 takes, and is given up. */
static void taken_in_the_way(bool there)
{
	two_answered();
	if (!there)
		spt_unmap(s.mem, page_of(bench_page(0)), 1);
	read_comes(0, 0);
	assert_int_equal(room(), 0);
	if (!there) {
		assert_int_equal(make(), 0);
		assert_int_not_equal(s.qp.resp.replay.wait.ticket.v, 0);
	}
	list_del(&s.qp.on.runnable);
	read_comes(2, 1);
	assert_int_equal(s.qp.resp.win.head, psn_add(PSN, 3));
	assert_false(list_empty(&s.qp.on.runnable));
	assert_true(send() > 0);
	assert_int_equal(got[0].psn, psn_add(PSN, 2));
}

static void qp_rx__while_a_copy_is_answered(void **state)
{
	(void)state;
	taken_in_the_way(true);
	teardown(NULL);
	setup_as(PEER_STANDARD);
	taken_in_the_way(true);
}

static void qp_rx__while_a_copy_waits_for_its_page(void **state)
{
	(void)state;
	taken_in_the_way(false);
	teardown(NULL);
	setup_as(PEER_STANDARD);
	taken_in_the_way(false);
}

/* And a copy of the first waits for its page. */
static void copy_waits(void)
{
	two_answered();
	spt_unmap(s.mem, page_of(bench_page(0)), 1);
	read_comes(0, 0);
	assert_int_equal(make(), 0);
	assert_int_not_equal(s.qp.resp.replay.wait.ticket.v, 0);
}

/* The request that it is given up for fails: nothing is left to be answered before that. */
static void replay_make_room__and_the_request_fails(void **state)
{
	const struct payload none = {.at = NULL};
	struct pkt p = read_of(psn_add(PSN, 2), bench_page(1), 1);

	(void)state;
	copy_waits();
	p.dma_len = UINT32_MAX;
	(void)qp_rx(&s.qp, &p, none, &s.run);
	assert_true(s.qp.resp.dead);
	assert_int_equal(s.qp.state, QPS_ERR);
}

/* A peer that was told to hold for it goes on; what stopped at it is acknowledged. */
static void replay_make_room__of_what_was_told(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	copy_waits();
	r->hold.asked = r->ack.rest = true;
	read_comes(2, 1);
	assert_false(r->hold.asked || r->ack.rest);
	assert_true(r->ack.xack & XACK_RESUME);
}

/* It was silence of its own: what waits next has as much. */
static void replay_make_room__of_what_was_not_told_yet(void **state)
{
	const uint64_t *at = &s.qp.resp.at[RESP_SILENCE];
	uint64_t silence;

	(void)state;
	copy_waits();
	silence = *at - s.x.now;
	s.x.now += BENCH_MS;
	spt_unmap(s.mem, page_of(bench_page(1)), 1);
	read_comes(2, 1);
	assert_int_equal(make(), 0);
	assert_int_equal(*at, s.x.now + silence);
}

/* A READ that waits stays where it is in line, when a copy before it is given up. */
static void replay_make_room__before_one_that_waits(void **state)
{
	struct resp *r = &s.qp.resp;
	struct ticket_id ticket;

	(void)state;
	teardown(NULL);
	setup_as(PEER_STANDARD);
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 2), 0);
	s.qp.attr.max_dest_rd_atomic = 2;
	spt_unmap(s.mem, page_of(bench_page(3)), 1);
	for (unsigned i = 0; i < 4; i++) {
		read_comes(i, i);
		(void)send();
	}
	ticket = r->replay.wait.ticket;
	assert_int_not_equal(ticket.v, 0);
	read_comes(0, 0);
	assert_int_equal(room(), 0);
	read_comes(4, 1);
	assert_int_equal(r->replay.wait.ticket.v, ticket.v);
	assert_int_equal(pending(), 2);
}

/* An atomic that waits for its own page gave one up: those behind that are answered. */
static void replay_make_room__and_the_request_waits(void **state)
{
	const struct payload none = {.at = NULL};
	struct pkt p = bench_pkt(&s, OP_FETCH_ADD, psn_add(PSN, 2));

	(void)state;
	copy_waits();
	spt_unmap(s.mem, page_of(bench_page(2)), 1);
	p.va = bench_page(2);
	list_del(&s.qp.on.runnable);
	(void)qp_rx(&s.qp, &p, none, &s.run);
	assert_int_not_equal(s.qp.resp.wait.ticket.v, 0);
	assert_int_equal(room(), 2);
	assert_false(list_empty(&s.qp.on.runnable));
	waiter_cancel(s.mem, &s.qp.resp.wait);
}

/* The answer of a copy is on its way and does not leave, when its place is another's. */
static void replay_unsent__of_what_was_given_up(void **state)
{
	(void)state;
	two_answered();
	read_comes(0, 0);
	assert_true(make() > 0);
	s.qp.resp.replay.at--; /* the burst had no room for all of it */
	s.qp.resp.replay.res[0].at = 0;
	read_comes(2, 1);
	commit(-EFAULT);
	assert_int_equal(room(), 0);
	assert_true(send() > 0);
	assert_int_equal(got[0].psn, psn_add(PSN, 2));
	assert_int_equal(room(), 2);
}

/* What is kept stands in its place, which stays where it is. */
static void resp_reserve__while_one_is_kept(void **state)
{
	struct window *w = &s.qp.resp.win;
	const struct accepted *kept;

	(void)state;
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 1), 0);
	read_comes(1, 0);
	kept = win_at(w, psn_add(PSN, 1));
	assert_true(kept == &w->bare[0]);
	assert_int_equal(dest_rd_atomic(RD_ATOMIC_MAX), 0);
	assert_true(win_at(w, psn_add(PSN, 1)) == kept && kept == &w->bare[0]);
	assert_int_equal(w->bares, 1);
	win_reset(&s.x, w, PSN);
	assert_int_equal(dest_rd_atomic(RD_ATOMIC_MAX), 0);
	assert_int_equal(w->bares, RD_ATOMIC_MAX);
}

static void resp_reserve__no_memory(void **state)
{
	(void)state;
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 1), 0);
	s.qp.attr.max_dest_rd_atomic = 1;
	add_atomic(PSN, 5);
	short_of_memory = true;
	assert_int_equal(dest_rd_atomic(RD_ATOMIC_MAX), -ENOMEM);
	short_of_memory = false;
	assert_int_equal(s.qp.attr.max_dest_rd_atomic, 1);
	s.qp.state = QPS_RTS;
	assert_int_equal(send(), 1);
	assert_true(got[0].swap_add == 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(resp_reserve__sizes, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			resp_reserve__keeps_what_was_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(resp_reserve__no_memory, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			replay_unsent__of_more_than_there_are_places, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			replay_unsent__of_places_before_there_were_more, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			replay_unsent__of_what_was_given_up, setup, teardown),
		cmocka_unit_test_setup_teardown(
			replay_make_room__and_the_request_waits, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			replay_make_room__and_the_request_fails, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			replay_make_room__of_what_was_told, setup, teardown),
		cmocka_unit_test_setup_teardown(
			replay_make_room__of_what_was_not_told_yet,
			setup_standard, teardown),
		cmocka_unit_test_setup_teardown(
			replay_make_room__before_one_that_waits, setup,
			teardown),
		cmocka_unit_test_setup_teardown(qp_rx__while_a_copy_is_answered,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			qp_rx__while_a_copy_waits_for_its_page, setup,
			teardown),
		cmocka_unit_test_setup_teardown(resp_reserve__while_one_is_kept,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
