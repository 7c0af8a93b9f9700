/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* news_model_test.c: an owner and a user in any order of what they do, with everything
 * that is under way late: when all that was said has been read, the user believes no
 * block to be ready that the owner lost.
 *
 * The owner's memory is a row of bits. What is under way is copied when it arrives, so
 * that a slot which the owner wrote to too early is seen.
 */
#include "base/check.h"
#include "base/rand.h"
#include "session/blocks.h"
#include "session/news.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum {
	PAGES = 24,
	CACHED = 10,
	CAP = 7,
	FLIGHT = 64,
	SEEDS = 400,
	STEPS = 3000
};

/** struct batch - Slots that are under way. */
struct batch {
	uint32_t at, num;
};

static struct rnd rnd;

/* the owner */
static bool ready[PAGES];
static struct news from[CAP];
static struct news_row row;
static bool working;
static uint64_t work_at, work_last, heard;

/* under way */
static struct batch flight[FLIGHT];
static unsigned flying;
static uint64_t told; /* what the user says it consumed, when it arrives */

/* the user */
static struct news to[CAP];
static struct news_reader reader;
static struct blocks blocks;
static uint64_t arrived, asked, ask_first, ask_last;
static bool asking;

static uint64_t any(uint64_t below)
{
	return rnd_next(&rnd) % below;
}

/* @first and up to @more. Return: the last one. */
static uint64_t some(uint64_t first, uint64_t more)
{
	const uint64_t last = first + any(more + 1);

	return MIN(last, (uint64_t)PAGES - 1);
}

static void lose(void)
{
	const uint64_t first = any(PAGES), last = some(first, 2);

	for (uint64_t i = first; i <= last; i++)
		ready[i] = false;
	row_lost(&row, first, last);
}

static void send_one(void)
{
	uint32_t at, num;

	if (flying < FLIGHT && row_send(&row, &at, &num))
		flight[flying++] = (struct batch){at, num};
}

static void arrive(void)
{
	if (!flying)
		return;
	for (uint32_t i = 0; i < flight[0].num; i++)
		to[flight[0].at + i] = from[flight[0].at + i];
	memmove(flight, flight + 1, --flying * sizeof(flight[0]));
	arrived++;
}

static void ask(void)
{
	if (asking)
		return;
	asking = true;
	ask_first = any(PAGES);
	ask_last = some(ask_first, 3);
	told = reader.consumed;
	asked++;
}

/* What the user says is one thing at a time at its owner; it is there in time. */
static void begin(void)
{
	if (heard == asked || working)
		return;
	heard = asked;
	row_consumed(&row, told);
	working = true;
	work_at = ask_first;
	work_last = ask_last;
	row_ask(&row, work_at, work_last);
}

/* Page by page; what was made ready may be lost before the last one is. */
static void make_ready(void)
{
	if (working && work_at <= work_last)
		ready[work_at++] = true;
}

static void finish(void)
{
	if (!working || work_at <= work_last)
		return;
	assert_true(row_answer(&row, RESULT_READY));
	working = false;
}

static void read_one(void)
{
	struct news n;
	int got = reader_next(&reader, arrived, &n);

	assert_true(got >= 0);
	if (!got)
		return;
	switch (n.kind) {
	case NEWS_LOST:
		blocks_drop(&blocks, n.addr, n.last);
		break;
	case NEWS_ALL_LOST:
		blocks_drop(&blocks, 0, UINT64_MAX);
		break;
	default:
		assert_true(asking);
		asking = false;
		for (uint64_t i = ask_first; i <= ask_last; i++)
			blocks_add(&blocks, i);
		break;
	}
}

static void report(void)
{
	if (!asking)
		told = reader.consumed;
}

static void (*const steps[])(void) = {
	lose, lose,  send_one,	 send_one, arrive,   arrive,   ask,
	ask,  begin, make_ready, finish,   read_one, read_one, report,
};

/* Nothing is under way and all is read: then the user is right. */
static void settle(void)
{
	while (working && any(2)) {
		make_ready();
		finish();
	}
	do {
		send_one();
		arrive();
		read_one();
	} while (row.sent < row.written || flying ||
		 reader.consumed < row.written);
	for (uint64_t i = 0; i < PAGES; i++)
		if (blocks_use(&blocks, i))
			assert_true(ready[i]);
}

static void run(uint64_t seed)
{
	rnd = (struct rnd){seed, 5, 0};
	memset(ready, 0, sizeof(ready));
	row_init(&row, from, CAP);
	reader = (struct news_reader){.slot = to, .cap = CAP};
	working = asking = false;
	flying = 0;
	arrived = asked = heard = told = 0;
	assert_int_equal(blocks_init(&blocks, CACHED), 0);
	for (int i = 0; i < STEPS; i++) {
		steps[any(ARRAY_SIZE(steps))]();
		if (any(8) == 0)
			row_consumed(&row, told);
		if (any(50) == 0)
			settle();
	}
	assert_true(row.written > CAP);
	blocks_fini(&blocks);
}

static void cache__never_believes_what_is_lost(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		run(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cache__never_believes_what_is_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
