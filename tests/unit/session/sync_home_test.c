/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_home_test.c: the home and messages that no member sends, words that no member
 * leaves behind. What honest ones do is in model_test.c.
 */
#include "base/check.h"
#include "session/sync.h"
#include "session/sync_home.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N = 4 };

static struct sync_seat seat[N];
static struct sync_object object[2];
static int64_t word[2];
static unsigned answers[N];
static enum sync_result last[N];

static int64_t add(void *arg, uint32_t o, int64_t delta)
{
	const int64_t old = word[o];

	(void)arg;
	word[o] = (int64_t)((uint64_t)old + (uint64_t)delta);
	return old;
}

static void answer(void *arg, uint32_t member, enum sync_result result)
{
	(void)arg;
	answers[member]++;
	last[member] = result;
}

static struct sync_home home = {.seat = seat,
				.object = object,
				.members = N,
				.objects = 2,
				.port = {NULL, add, answer}};

static const uint32_t sem = SYNC_SEM << 24, waitq = SYNC_WAITQ << 24 | 1;

static int setup(void **state)
{
	(void)state;
	memset(answers, 0, sizeof(answers));
	memset(last, 0, sizeof(last));
	word[0] = 1;
	word[1] = 0;
	home_object(&home, 0, SYNC_SEM);
	home_object(&home, 1, SYNC_WAITQ);
	for (uint32_t i = 0; i < N; i++)
		home_join(&home, i);
	return 0;
}

static bool take(uint32_t member, uint32_t op, uint32_t id, uint64_t arg)
{
	const struct sync_msg msg = {op, id, arg};

	return home_take(&home, member, &msg);
}

static void home__no_such_message(void **state)
{
	(void)state;
	assert_false(take(0, SYNC_OP_NONE, sem, 0));
	assert_false(take(0, SYNC_OP_NUM, sem, 0));
	assert_false(take(0, UINT32_MAX, sem, 0));
	assert_int_equal(answers[0], 0);
	assert_int_equal(word[0], 1);
}

static void home__no_such_object(void **state)
{
	static const uint32_t ids[] = {0,
				       1,
				       SYNC_WAITQ << 24,
				       SYNC_SEM << 24 | 1,
				       SYNC_SEM << 24 | 2,
				       SYNC_SEM << 24 | 0xffffff,
				       UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ids); i++) {
		last[0] = SYNC_PENDING;
		assert_true(take(0, SYNC_WAIT + i % 2, ids[i], 1));
		assert_int_equal(last[0], SYNC_INVALID);
	}
	assert_int_equal(word[0], 1);
	assert_int_equal(word[1], 0);
}

/* Of the semaphore that it was granted of, wherever it waited before. */
static void home__gives_back_to_whom_it_took_from(void **state)
{
	const uint32_t other = SYNC_SEM << 24 | 1;

	(void)state;
	home_object(&home, 1, SYNC_SEM);
	word[0] = 0;
	word[1] = 1;
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_true(take(0, SYNC_CANCEL, 0, 0));
	assert_int_equal(last[0], SYNC_LATE);
	assert_true(take(0, SYNC_WAIT, other, 0));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(word[1], 0);
	home_gone(&home, 0, 0);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[1], 1);
}

/* A second request while the first is in the queue; the next one is served. */
static void home__asks_while_it_waits(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		assert_true(take(i, SYNC_WAIT, sem, 0));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(answers[1], 0);
	assert_false(take(1, SYNC_WAIT, sem, 0));
	assert_false(take(1, SYNC_WAKE, sem, 0));
	assert_int_equal(home_gone(&home, 1, 0), 0);
	assert_true(take(0, SYNC_WAKE, sem, 0));
	assert_int_equal(answers[1], 0);
	assert_int_equal(last[2], SYNC_OK);
	assert_int_equal(word[0], 0);
}

static void home__cancels_nothing(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_true(take(0, SYNC_CANCEL, UINT32_MAX, UINT64_MAX));
	assert_int_equal(answers[0], 0);
	assert_int_equal(word[0], 1);
}

/* The unit is the next one's; who knew of it and gives it up gives it back. */
static void home__given_up(void **state)
{
	(void)state;
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_true(take(1, SYNC_WAIT, sem, 0));
	assert_true(take(0, SYNC_CANCEL, 0, 0));
	assert_int_equal(answers[1], 0);
	assert_true(take(0, SYNC_GIVE_UP, 0, 0));
	assert_int_equal(answers[0], 2);
	assert_int_equal(last[1], SYNC_OK);
	assert_int_equal(word[0], 0);
	/* once */
	assert_true(take(0, SYNC_GIVE_UP, 0, 0));
	assert_int_equal(home_gone(&home, 0, 0), UINT32_MAX);
	assert_int_equal(word[0], 0);
	assert_int_equal(home_gone(&home, 1, 0), UINT32_MAX);
	assert_int_equal(word[0], 1);
}

/* It was late; and who is in the queue cancels first. */
static void home__nothing_to_give_up(void **state)
{
	(void)state;
	word[0] = 0;
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_true(take(0, SYNC_CANCEL, 0, 0));
	assert_int_equal(last[0], SYNC_LATE);
	assert_true(take(0, SYNC_GIVE_UP, 0, 0));
	assert_int_equal(answers[0], 2);
	assert_int_equal(word[0], 0);
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_false(take(0, SYNC_GIVE_UP, 0, 0));
	assert_int_equal(word[0], -1);
}

static void home__asks_after_it_left(void **state)
{
	(void)state;
	assert_true(take(0, SYNC_LEAVE, 0, 0));
	assert_int_equal(answers[0], 0);
	assert_false(take(0, SYNC_WAIT, sem, 0));
	assert_int_equal(home_gone(&home, 0, 0), UINT32_MAX);
}

/* It wakes as many as there are, and itself not. */
static void home__wakes_very_many(void **state)
{
	(void)state;
	assert_true(take(1, SYNC_WAIT, waitq, 0));
	assert_true(take(2, SYNC_WAIT, waitq, 0));
	assert_int_equal(word[1], SYNC_WAITED);
	assert_true(take(0, SYNC_WAKE, waitq, UINT64_MAX));
	assert_int_equal(last[1], SYNC_OK);
	assert_int_equal(last[2], SYNC_OK);
	assert_int_equal(answers[0], 1);
	assert_int_equal(word[1], 1);
}

/* A number of wake-ups that were not yet: it is not put into the queue. */
static void home__ticket_of_the_future(void **state)
{
	(void)state;
	assert_true(take(0, SYNC_WAIT, waitq, 77));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(word[1], 0);
	assert_true(take(1, SYNC_WAIT, waitq, 0));
	assert_true(take(0, SYNC_WAIT, waitq, UINT64_MAX));
	assert_int_equal(answers[0], 2);
	assert_int_equal(answers[1], 0);
}

/* Somebody wrote nonsense to the words: who waits is served nevertheless, and the
 * word is what it is to be when nobody does. */
static void home__nonsense_in_words(void **state)
{
	static const int64_t nonsense[] = {INT64_MIN, INT64_MIN + 1, -2, 5,
					   INT64_MAX};

	for (unsigned i = 0; i < ARRAY_SIZE(nonsense); i++) {
		setup(state);
		word[0] = 0;
		assert_true(take(0, SYNC_WAIT, sem, 0));
		assert_true(take(1, SYNC_WAIT, waitq, 0));
		word[0] = word[1] = nonsense[i];
		assert_true(take(2, SYNC_WAKE, sem, 0));
		assert_true(take(2, SYNC_WAKE, waitq, 1));
		assert_int_equal(last[0], SYNC_OK);
		assert_int_equal(last[1], SYNC_OK);
		assert_int_equal(word[0], 0);
		assert_int_equal(word[1], 1);
	}
}

/* The same when nobody waits yet. */
static void home__nonsense_before(void **state)
{
	(void)state;
	word[0] = -7;
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_int_equal(word[0], -1);
	word[1] = SYNC_WAITED | 3;
	assert_true(take(1, SYNC_WAIT, waitq, 3));
	assert_int_equal(word[1], SYNC_WAITED | 3);
	assert_true(take(2, SYNC_WAKE, sem, 0));
	assert_true(take(2, SYNC_WAKE, waitq, 1));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(last[1], SYNC_OK);
	assert_int_equal(word[0], 0);
	assert_int_equal(word[1], 4);
}

/* Nobody waits, and there are as many as may be. */
static void home__full(void **state)
{
	(void)state;
	word[0] = SYNC_UNITS_MAX - 1;
	assert_true(take(0, SYNC_WAKE, sem, 0));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(word[0], SYNC_UNITS_MAX);
	assert_true(take(0, SYNC_WAKE, sem, 0));
	assert_int_equal(last[0], SYNC_FULL);
	assert_int_equal(word[0], SYNC_UNITS_MAX);
	/* of a wait queue no number of wake-ups is too many */
	word[1] = SYNC_UNITS_MAX;
	assert_true(take(0, SYNC_WAKE, waitq, 1));
	assert_int_equal(last[0], SYNC_OK);
	assert_int_equal(word[1], (int64_t)SYNC_UNITS_MAX + 1);
}

static void home__what_was_confirmed_is_kept(void **state)
{
	(void)state;
	assert_true(take(0, SYNC_WAIT, sem, 0));
	assert_true(take(1, SYNC_WAIT, sem, 0));
	assert_int_equal(home_gone(&home, 0, 1), UINT32_MAX);
	assert_int_equal(answers[1], 0);
	home_join(&home, 0);
	assert_true(take(0, SYNC_WAKE, sem, 0));
	assert_int_equal(last[1], SYNC_OK);
	assert_true(take(2, SYNC_WAIT, sem, 0));
	assert_int_equal(home_gone(&home, 1, 7), UINT32_MAX);
	assert_int_equal(last[2], SYNC_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(home__no_such_message),
		T(home__gives_back_to_whom_it_took_from),
		T(home__no_such_object),
		T(home__asks_while_it_waits),
		T(home__cancels_nothing),
		T(home__given_up),
		T(home__nothing_to_give_up),
		T(home__asks_after_it_left),
		T(home__wakes_very_many),
		T(home__ticket_of_the_future),
		T(home__nonsense_in_words),
		T(home__nonsense_before),
		T(home__full),
		T(home__what_was_confirmed_is_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
