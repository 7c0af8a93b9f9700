/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* news_test.c: what an owner says, record by record, and what a reader believes. */
#include "session/news.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CAP = 8 };

static struct news slot[CAP];
static struct news_row row;
static struct news_reader reader;
static uint64_t batches;

static int setup(void **state)
{
	(void)state;
	memset(slot, 0xff, sizeof(slot));
	row_init(&row, slot, CAP);
	reader = (struct news_reader){.slot = slot, .cap = CAP};
	batches = 0;
	return 0;
}

/* Sent and arrived, as the reader reads where the owner writes. */
static void send_all(void)
{
	uint32_t at, num;

	while (row_send(&row, &at, &num))
		batches++;
}

static void expect(enum news_kind kind, uint64_t addr, uint64_t last)
{
	struct news n;

	assert_int_equal(reader_next(&reader, batches, &n), 1);
	assert_int_equal(n.kind, kind);
	if (kind != NEWS_LOST)
		return;
	assert_int_equal(n.addr, addr);
	assert_int_equal(n.last, last);
}

static void expect_nothing(void)
{
	struct news n;

	assert_int_equal(reader_next(&reader, batches, &n), 0);
}

static void answer(void)
{
	row_ask(&row, 0, 99);
	assert_true(row_answer(&row, RESULT_READY));
	send_all();
	expect(NEWS_ANSWER, 0, 0);
	row_consumed(&row, reader.consumed);
}

static void row_lost__who_knows_nothing_is_not_told(void **state)
{
	(void)state;
	row_lost(&row, 0, 99);
	send_all();
	expect_nothing();
	answer();
	row_lost(&row, 0, 99);
	send_all();
	expect(NEWS_LOST, 0, 99);
	expect_nothing();
}

static void row_lost__neighbours_are_one(void **state)
{
	(void)state;
	answer();
	row_lost(&row, 100, 199);
	row_lost(&row, 200, 299);
	row_lost(&row, 50, 99);
	row_lost(&row, 60, 70);
	row_lost(&row, 301, 400); /* 300 is not lost */
	send_all();
	row_lost(&row, 401, 500); /* to that it was sent already */
	row_lost(&row, 0, UINT64_MAX);
	send_all();
	expect(NEWS_LOST, 50, 299);
	expect(NEWS_LOST, 301, 400);
	expect(NEWS_LOST, 0, UINT64_MAX);
	expect_nothing();
}

/* Nobody reads: everything is lost, once, and there is room for an answer and for
 * what is lost after that. */
static void row_lost__nobody_reads(void **state)
{
	unsigned lost = 0;
	struct news n;

	(void)state;
	answer();
	for (uint64_t i = 0; i < 3 * CAP; i++) {
		row_lost(&row, 1000 * i, 1000 * i);
		send_all();
	}
	row_ask(&row, 0, 99);
	assert_true(row_answer(&row, RESULT_READY));
	for (uint64_t i = 0; i < 3 * CAP; i++)
		row_lost(&row, 1000 * i, 1000 * i);
	send_all();
	row_ask(&row, 0, 99);
	assert_false(row_answer(&row, RESULT_READY));
	while (reader_next(&reader, batches, &n) > 0 && n.kind == NEWS_LOST)
		assert_int_equal(n.addr, 1000 * lost++);
	assert_int_equal(lost, CAP - NEWS_ROOM_MIN + 1);
	assert_int_equal(n.kind, NEWS_ALL_LOST);
	expect(NEWS_ANSWER, 0, 0);
	expect(NEWS_ALL_LOST, 0, 0);
	expect_nothing();
	/* it goes on */
	row_consumed(&row, reader.consumed);
	answer();
	row_lost(&row, 7, 8);
	send_all();
	expect(NEWS_LOST, 7, 8);
}

static void row_answer__what_was_lost_meanwhile_is_behind_it(void **state)
{
	(void)state;
	answer();
	row_ask(&row, 100, 199);
	row_lost(&row, 200, 299);
	row_lost(&row, 0, 99);
	assert_true(row_answer(&row, RESULT_READY));
	send_all();
	expect(NEWS_LOST, 200, 299);
	expect(NEWS_LOST, 0, 99);
	expect(NEWS_ANSWER, 0, 0);
	expect_nothing();
	row_consumed(&row, reader.consumed);
	row_ask(&row, 100, 199);
	row_lost(&row, 199, 300);
	assert_true(row_answer(&row, RESULT_READY));
	send_all();
	expect(NEWS_LOST, 199, 300);
	expect(NEWS_ANSWER, 0, 0);
	expect(NEWS_LOST, 100, 199);
	expect_nothing();
}

/* Also to who was told that all is lost. */
static void row_answer__lost_meanwhile_and_silent(void **state)
{
	(void)state;
	row_ask(&row, 100, 199);
	row_lost(&row, 100, 100);
	assert_true(row_answer(&row, RESULT_READY));
	send_all();
	expect(NEWS_ANSWER, 0, 0);
	expect(NEWS_LOST, 100, 199);
	/* what an earlier request was told does not matter to a later one */
	row_consumed(&row, reader.consumed);
	answer();
	expect_nothing();
}

/* With room for one record, which is for what is lost after the last answer. */
static void row_answer__who_has_not_read(void **state)
{
	(void)state;
	for (int i = 0; i < CAP - 1; i++) {
		row_ask(&row, 0, 99);
		assert_true(row_answer(&row, RESULT_READY));
	}
	row_ask(&row, 0, 99);
	assert_false(row_answer(&row, RESULT_READY));
	row_lost(&row, 0, 99);
	assert_int_equal(row.written, CAP);
}

static void row_consumed__nonsense(void **state)
{
	(void)state;
	answer();
	row_lost(&row, 0, 1);
	row_consumed(&row, 2); /* was not sent */
	row_consumed(&row, UINT64_MAX);
	row_consumed(&row, 0);
	assert_int_equal(row.consumed, 1);
	send_all();
	row_consumed(&row, 2);
	assert_int_equal(row.consumed, 2);
}

/* No batch goes round the end. */
static void row_send__pieces(void **state)
{
	uint32_t at, num;

	(void)state;
	for (int i = 0; i < CAP - 2; i++)
		answer();
	row_ask(&row, 0, 9);
	assert_true(row_answer(&row, RESULT_READY));
	row_lost(&row, 0, 0);
	row_lost(&row, 10, 10);
	row_lost(&row, 20, 20);
	assert_true(row_send(&row, &at, &num));
	assert_int_equal(at, CAP - 2);
	assert_int_equal(num, 2);
	batches++;
	expect(NEWS_ANSWER, 0, 0);
	expect(NEWS_LOST, 0, 0);
	expect_nothing();
	assert_true(row_send(&row, &at, &num));
	assert_int_equal(at, 0);
	assert_int_equal(num, 2);
	assert_false(row_send(&row, &at, &num));
	batches++;
	expect(NEWS_LOST, 10, 10);
	expect(NEWS_LOST, 20, 20);
	expect_nothing();
}

static void reader_next__nonsense(void **state)
{
	const struct news good = {.kind = NEWS_LOST, .batch = 1};
	struct news n;

	(void)state;
	for (int i = 0; i < 4; i++) {
		slot[0] = good;
		slot[0].batch = i == 0 ? 0 : i == 1 ? CAP + 1 : 1;
		slot[0].kind = i == 2 ? NEWS_NONE : i == 3 ? NEWS_NUM : 1;
		reader = (struct news_reader){.slot = slot, .cap = CAP};
		assert_int_equal(reader_next(&reader, 1, &n), -EPROTO);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(row_lost__who_knows_nothing_is_not_told),
		T(row_lost__neighbours_are_one),
		T(row_lost__nobody_reads),
		T(row_answer__what_was_lost_meanwhile_is_behind_it),
		T(row_answer__lost_meanwhile_and_silent),
		T(row_answer__who_has_not_read),
		T(row_consumed__nonsense),
		T(row_send__pieces),
		T(reader_next__nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
