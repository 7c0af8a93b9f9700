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
		assert_int_equal(resp_reserve(&s.qp, t[i].num), 0);
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

/* A request that is kept, as there was no place for its answer, is looked at again. */
static void replay_tx__makes_room(void **state)
{
	(void)state;
	resp_release(&s.qp);
	assert_int_equal(resp_reserve(&s.qp, 1), 0);
	for (unsigned i = 0; i < 2; i++) {
		add_atomic(psn_add(PSN, i), i);
		assert_int_equal(send(), 1);
	}
	repeat_atomic(PSN);
	assert_int_equal(room(), 0);
	list_del(&s.qp.on.drainable);
	s.qp.resp.replay.full = true;
	assert_int_equal(send(), 1);
	assert_false(s.qp.resp.replay.full);
	assert_false(list_empty(&s.qp.on.drainable));
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
		cmocka_unit_test_setup_teardown(replay_tx__makes_room, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
