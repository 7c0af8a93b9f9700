/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timerq_test.c: against a list that is searched from end to end. */
#include "base/check.h"
#include "base/rand.h"
#include "base/timerq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { TIMERS = 40 };

static void timerq_set__one(void **state)
{
	struct timer t = {0};
	struct timerq q;

	(void)state;
	timerq_init(&q);
	timerq_set(&q, &t, TIME_NEVER);
	assert_int_equal(t.at_ns, TIME_NEVER);
	assert_int_equal(timerq_next(&q), TIME_NEVER);
	assert_null(timerq_pop(&q, UINT64_MAX - 1));
	assert_int_equal(timerq_reserve(&q, 1), 0);
	timerq_set(&q, &t, 100);
	assert_int_equal(timerq_next(&q), 100);
	assert_null(timerq_pop(&q, 99));
	timerq_set(&q, &t, 50);
	assert_int_equal(timerq_next(&q), 50);
	timerq_set(&q, &t, 70);
	assert_int_equal(timerq_next(&q), 70);
	assert_ptr_equal(timerq_pop(&q, 70), &t);
	assert_int_equal(t.pos, 0);
	assert_int_equal(t.at_ns, TIME_NEVER);
	assert_null(timerq_pop(&q, 1000));
	timerq_set(&q, &t, TIME_NEVER);
	assert_int_equal(timerq_next(&q), TIME_NEVER);
	timerq_set(&q, &t, 5);
	timerq_set(&q, &t, TIME_NEVER);
	assert_int_equal(timerq_next(&q), TIME_NEVER);
	assert_int_equal(t.pos, 0);
	timerq_fini(&q);
}

static void timerq_reserve__grows(void **state)
{
	struct timer t[100] = {{0}};
	struct timerq q;

	(void)state;
	timerq_init(&q);
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(timerq_reserve(&q, i + 1), 0);
		assert_true(q.cap > i);
		timerq_set(&q, &t[i], 1000 - i);
	}
	assert_int_equal(timerq_reserve(&q, 0), 0);
	assert_true(q.cap >= 100);
	for (uint32_t i = 100; i-- > 0;)
		assert_ptr_equal(timerq_pop(&q, 1000), &t[i]);
	timerq_fini(&q);
}

static uint64_t earliest(const uint64_t at[TIMERS])
{
	uint64_t min = TIME_NEVER;

	for (int i = 0; i < TIMERS; i++)
		min = MIN(min, at[i]);
	return min;
}

/* Every position is right and no parent is later than its child. */
static void check_heap(const struct timerq *q)
{
	for (uint32_t i = 0; i < q->num; i++) {
		assert_int_equal(q->heap[i]->pos, i + 1);
		if (i)
			assert_true(q->heap[(i - 1) / 2]->at_ns <=
				    q->heap[i]->at_ns);
	}
}

static void timerq__random_against_reference(void **state)
{
	static struct timer t[TIMERS];
	uint64_t at[TIMERS], now = 0;
	struct rnd rnd = {1, 2, 0};
	unsigned popped = 0;
	struct timerq q;

	(void)state;
	timerq_init(&q);
	assert_int_equal(timerq_reserve(&q, TIMERS), 0);
	memset(at, 0xff, sizeof(at));
	for (int step = 0; step < 50000; step++) {
		const uint64_t r = rnd_next(&rnd);
		const unsigned i = (r >> 8) % TIMERS;

		if (r % 4 == 0) {
			struct timer *due;

			now += (r >> 16) % 30;
			due = timerq_pop(&q, now);
			if (!due) {
				assert_true(earliest(at) > now);
			} else {
				assert_int_equal(at[due - t], earliest(at));
				assert_true(at[due - t] <= now);
				at[due - t] = TIME_NEVER;
				popped++;
			}
		} else {
			at[i] = r % 16 == 1 ? TIME_NEVER
					    : now + (r >> 16) % 100;
			timerq_set(&q, &t[i], at[i]);
		}
		assert_int_equal(timerq_next(&q), earliest(at));
		check_heap(&q);
	}
	assert_true(popped > 1000);
	timerq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timerq_set__one),
		cmocka_unit_test(timerq_reserve__grows),
		cmocka_unit_test(timerq__random_against_reference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
