/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync_member_test.c: how many atomics calls take, and what becomes of them when the word
 * is never what it was. What members do together is in model_test.c.
 */
#include "base/check.h"
#include "session/sync.h"
#include "session/sync_member.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static int64_t word, guess;
static struct sync_call c;

static int setup(void **state)
{
	(void)state;
	word = guess = 0;
	return 0;
}

/* Atomics until it is something else. Return: how many. */
static unsigned swaps(struct sync_step *s)
{
	unsigned n = 0;

	for (; s->kind == TODO_SWAP; n++) {
		const int64_t old = word;

		if (word == s->compare)
			word = s->swap;
		*s = call_swapped(&c, old);
	}
	return n;
}

static void call(enum call_kind kind, unsigned atomics, enum sync_todo then)
{
	struct sync_step s = call_begin(&c, kind, sync_id(SYNC_SEM, 0), 1,
					&guess);

	assert_int_equal(swaps(&s), atomics);
	assert_int_equal(s.kind, then);
}

static void member__alone(void **state)
{
	(void)state;
	word = 1;
	for (int i = 0; i < 5; i++) {
		call(CALL_SEM_WAIT, 1, TODO_DONE);
		assert_int_equal(word, 0);
		call(CALL_SEM_POST, 1, TODO_DONE);
		assert_int_equal(word, 1);
	}
}

static void member__many_units(void **state)
{
	(void)state;
	word = 10;
	call(CALL_SEM_WAIT, 2, TODO_DONE);
	for (int i = 8; i >= 0; i--) {
		call(CALL_SEM_WAIT, 1, TODO_DONE);
		assert_int_equal(word, i);
	}
	call(CALL_SEM_WAIT, 1, TODO_ASK);
}

static void member__wakes_alone(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++) {
		call(CALL_PREPARE, 1, TODO_DONE);
		assert_int_equal(c.value, i);
		assert_int_equal(word, i);
		call(CALL_WAKE, 1, TODO_DONE);
		assert_int_equal(word, i + 1);
	}
}

/* Somebody else is always quicker: the home does it. */
static void member__never_lucky(void **state)
{
	static const enum call_kind kinds[] = {CALL_SEM_WAIT, CALL_SEM_TRY,
					       CALL_SEM_POST, CALL_WAKE};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		struct sync_step s = call_begin(
			&c, kinds[i], sync_id(SYNC_SEM, 0), 1, &guess);
		unsigned n = 0;

		for (; s.kind == TODO_SWAP; n++)
			s = call_swapped(&c, s.compare + 1);
		assert_in_range(n, 1, 8);
		assert_int_equal(s.kind, TODO_ASK);
	}
}

/* Words that no member leaves: whatever comes, it ends. */
static void member__nonsense(void **state)
{
	static const int64_t words[] = {
		INT64_MIN,	INT64_MIN + 1, -2,
		SYNC_UNITS_MAX, INT64_MAX - 1, INT64_MAX};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(words); i++)
		for (enum call_kind k = CALL_SEM_WAIT; k < CALL_NUM; k++) {
			struct sync_step s = call_begin(
				&c, k, sync_id(SYNC_SEM, 0), 1, &guess);

			word = words[i];
			assert_in_range(swaps(&s), 0, 8);
			assert_true(s.kind == TODO_ASK || s.kind == TODO_DONE);
		}
	word = SYNC_UNITS_MAX;
	for (int i = 0; i < 2; i++) {
		call(CALL_SEM_POST, 1, TODO_DONE);
		assert_int_equal(word, SYNC_UNITS_MAX);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup(name, setup)
		T(member__alone),	T(member__many_units),
		T(member__wakes_alone), T(member__never_lucky),
		T(member__nonsense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
