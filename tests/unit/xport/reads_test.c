/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reads_test.c: QPs, of two peers, share a budget of bytes for responses to READs. */
#include "mem/mem.h"
#include "memory.h"
#include "ring/wqe.h"
#include "xport/flow.h"
#include "xport/reads.h"
#include "xport/requester.h"
#include "xport/window.h"

enum { MTU = 1024, SLOTS = 32, QPS = 3, PEERS = 2, BUDGET = 10000 };
enum { LAST_PSN = 0xffffff };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer[PEERS];
	struct qp qp[QPS];
	uint32_t held;
} s;

static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};

	memset(&s, 0, sizeof(s));
	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	s.x.budget.read = BUDGET;
	for (int i = 0; i < PEERS; i++)
		peer_init(&s.peer[i], &ep, &ep.ip);
	for (int i = 0; i < QPS; i++) {
		s.qp[i] = (struct qp){.x = &s.x,
				      .peer = &s.peer[i == QPS - 1],
				      .mtu = MTU,
				      .req.win.held = &s.held};
		list_init(&s.qp[i].on.waiting);
		list_init(&s.qp[i].on.runnable);
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < QPS; i++) {
		reads_check(&s.qp[i]);
		reads_forget(&s.qp[i]);
		list_del(&s.qp[i].on.waiting);
		list_del(&s.qp[i].on.runnable);
	}
	assert_int_equal(s.x.budget.read_out, 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static bool runs(int i)
{
	return !list_empty(&s.qp[i].on.runnable);
}

static void reads_may_ask__up_to_the_budget(void **state)
{
	(void)state;
	reads_asked(&s.qp[0], 1);
	assert_false(reads_may_ask(&s.qp[1], BUDGET));
	assert_true(reads_may_ask(&s.qp[1], BUDGET - 1));
	reads_asked(&s.qp[1], BUDGET - 1);
	assert_false(reads_may_ask(&s.qp[0], 1));
	assert_true(reads_may_ask(&s.qp[0], 0));
}

/* Or one of more than the budget would never begin. */
static void reads_may_ask__the_only_one(void **state)
{
	(void)state;
	assert_true(reads_may_ask(&s.qp[0], BUDGET + 1));
	reads_asked(&s.qp[0], BUDGET + 1);
	assert_false(reads_may_ask(&s.qp[0], 1));
}

static void reads_may_ask__sums_beyond_32_bits(void **state)
{
	(void)state;
	s.x.budget.read = UINT32_MAX;
	reads_asked(&s.qp[0], UINT32_MAX);
	assert_false(reads_may_ask(&s.qp[1], 1));
}

/* Where responses overtake each other each may need a slot. */
static void reads_may_ask__as_many_as_slots(void **state)
{
	const uint32_t each = flow_charge(false, 1, MTU);
	const uint32_t spare = win_spare(&s.x, &s.qp[0].req.win);

	(void)state;
	assert_in_range(spare, 2, SLOTS);
	s.x.budget.read = 2 * spare * each;
	reads_asked(&s.qp[0], spare * each);
	assert_true(reads_may_ask(&s.qp[0], each));
	s.peer[0].late.wait_ns = 1;
	assert_false(reads_may_ask(&s.qp[0], each));
	reads_done(&s.qp[0], each);
	assert_true(reads_may_ask(&s.qp[0], each));
	assert_false(reads_may_ask(&s.qp[0], each + 1));
	/* and no more than the budget all the same */
	s.x.budget.read = (spare - 1) * each;
	assert_false(reads_may_ask(&s.qp[0], each));
}

/* A QP that waits is on the list once, and goes on when there is room. */
static void reads_may_ask__waits_for_room(void **state)
{
	(void)state;
	reads_asked(&s.qp[0], BUDGET);
	for (int i = 0; i < 2; i++) {
		assert_false(reads_may_ask(&s.qp[1], 1));
		assert_false(reads_may_ask(&s.qp[2], 1));
	}
	assert_ptr_equal(s.x.work.read_waiters.next, &s.qp[1].on.waiting);
	assert_ptr_equal(s.x.work.read_waiters.prev, &s.qp[2].on.waiting);
	assert_ptr_equal(s.qp[1].on.waiting.next, &s.qp[2].on.waiting);
	assert_false(runs(1) || runs(2));
	reads_done(&s.qp[0], 2);
	assert_true(list_empty(&s.x.work.read_waiters));
	assert_true(runs(1) && runs(2));
	assert_true(reads_may_ask(&s.qp[1], 2));
}

/* A QP that waits for its peer's budget goes on waiting for that. */
static void reads_may_ask__waits_already(void **state)
{
	(void)state;
	reads_asked(&s.qp[0], BUDGET);
	flow_wait(&s.qp[1]);
	assert_false(reads_may_ask(&s.qp[1], 1));
	assert_true(list_empty(&s.x.work.read_waiters));
	assert_ptr_equal(s.peer[0].stalled.next, &s.qp[1].on.waiting);
}

/* Of a quiet peer nothing is waited for, and others still are. */
static void reads_quiet__its_qps_alone(void **state)
{
	(void)state;
	reads_asked(&s.qp[0], BUDGET);
	assert_false(reads_may_ask(&s.qp[1], 1));
	reads_quiet(&s.qp[0], true);
	assert_true(runs(1));
	assert_true(reads_may_ask(&s.qp[1], 1));
	assert_false(reads_may_ask(&s.qp[2], 1));
	/* it is quiet since before */
	reads_quiet(&s.qp[1], true);
	assert_false(runs(2));
	reads_quiet(&s.qp[1], false);
	assert_false(reads_may_ask(&s.qp[1], 1));
	assert_false(runs(2));
}

/* Until it is answered, however often it is asked for. */
static void reads_asked_again__charged_once_more(void **state)
{
	const struct req *r = &s.qp[0].req;

	(void)state;
	reads_asked(&s.qp[0], 500);
	for (int i = 0; i < 3; i++)
		reads_asked_again(&s.qp[0], LAST_PSN, 200);
	assert_int_equal(s.x.budget.read_out, 700);
	assert_int_equal(r->charge.reads, 700);
	reads_asked_again(&s.qp[0], 1, 300);
	reads_asked_again(&s.qp[0], LAST_PSN, 200);
	assert_int_equal(s.x.budget.read_out, 1000);
	reads_answered(&s.qp[0], 0);
	assert_int_equal(s.x.budget.read_out, 1000);
	reads_answered(&s.qp[0], 1);
	assert_int_equal(s.x.budget.read_out, 500);
	reads_answered(&s.qp[0], 2);
	assert_int_equal(s.x.budget.read_out, 500);
	/* again, and of an earlier end */
	reads_asked_again(&s.qp[0], 0, 200);
	assert_int_equal(s.x.budget.read_out, 700);
}

static void reads_answered__room_for_others(void **state)
{
	(void)state;
	reads_asked_again(&s.qp[0], 0, BUDGET);
	assert_false(reads_may_ask(&s.qp[2], 1));
	reads_answered(&s.qp[0], 0);
	assert_true(runs(2));
	assert_int_equal(s.x.budget.read_out, 0);
}

static void reads_forget__copies_too(void **state)
{
	(void)state;
	reads_asked(&s.qp[1], 7);
	reads_asked(&s.qp[0], 500);
	reads_asked_again(&s.qp[0], LAST_PSN, 200);
	reads_forget(&s.qp[0]);
	assert_int_equal(s.x.budget.read_out, 7);
	assert_int_equal(s.qp[0].req.charge.reads, 0);
	reads_asked_again(&s.qp[0], LAST_PSN, 200);
	assert_int_equal(s.x.budget.read_out, 207);
}

/* A QP gives back its own, and no more. */
static void reads_done__more_than_was_asked(void **state)
{
	(void)state;
	reads_asked(&s.qp[0], 300);
	reads_asked(&s.qp[1], 500);
	reads_done(&s.qp[0], 100);
	assert_int_equal(s.x.budget.read_out, 700);
	reads_done(&s.qp[0], 201);
	assert_int_equal(s.x.budget.read_out, 500);
	assert_int_equal(s.qp[0].req.charge.reads, 0);
	assert_int_equal(s.qp[1].req.charge.reads, 500);
}

static void check_chunk(const struct wqe *w, uint32_t k, uint32_t end,
			uint32_t packets)
{
	assert_int_equal(reads_chunk_end(&s.qp[0], w, k), end);
	assert_int_equal(reads_chunk_charge(&s.qp[0], w, k),
			 flow_charge(false, packets, packets * MTU));
}

/* Chunks begin at multiples of their length, wherever one goes on. */
static void reads_chunk__of_a_long_read(void **state)
{
	const struct wqe w = {.num_psn = 10};

	(void)state;
	s.qp[0].req.reads.chunk = 4;
	check_chunk(&w, 0, 4, 4);
	check_chunk(&w, 3, 4, 4);
	check_chunk(&w, 4, 8, 4);
	check_chunk(&w, 7, 8, 4);
	check_chunk(&w, 8, 10, 2);
	check_chunk(&w, 9, 10, 2);
}

static void reads_chunk__at_the_bounds(void **state)
{
	const struct wqe longest = {.num_psn = 1 << 23};
	const struct wqe w = {.num_psn = 1};

	(void)state;
	s.qp[0].req.reads.chunk = 1 << 16;
	check_chunk(&w, 0, 1, 1);
	check_chunk(&longest, (1 << 23) - 1, 1 << 23, 1 << 16);
	s.qp[0].req.reads.chunk = 1;
	check_chunk(&w, 0, 1, 1);
	check_chunk(&longest, (1 << 23) - 1, 1 << 23, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(reads_may_ask__up_to_the_budget),
		T(reads_may_ask__the_only_one),
		T(reads_may_ask__sums_beyond_32_bits),
		T(reads_may_ask__as_many_as_slots),
		T(reads_may_ask__waits_for_room),
		T(reads_may_ask__waits_already),
		T(reads_quiet__its_qps_alone),
		T(reads_asked_again__charged_once_more),
		T(reads_answered__room_for_others),
		T(reads_forget__copies_too),
		T(reads_done__more_than_was_asked),
		T(reads_chunk__of_a_long_read),
		T(reads_chunk__at_the_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
