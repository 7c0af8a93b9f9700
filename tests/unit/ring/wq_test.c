/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wq_test.c: work queues: bounds, wrap, and a poster against an engine (run it
 * under TSan too).
 */
#include "base/check.h"
#include "ring/wq.h"
#include "ring/wqe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

static void wq_init__sizes(void **state)
{
	static const struct {
		uint32_t slots, max_sge, max_inline, stride, ring;
	} t[] = {
		{1, 0, 0, 88, 1},	 {1, 1, 0, 104, 1},
		{2, 1, 1, 104, 2},	 {3, 1, 16, 104, 4},
		{5, 1, 17, 112, 8},	 {128, 32, 220, 600, 128},
		{129, 1, 220, 312, 256},
	};
	struct wq q;

	(void)state;
	assert_int_equal(sizeof(struct wqe), 88);
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(
			wq_init(&q, t[i].slots, t[i].max_sge, t[i].max_inline),
			0);
		assert_int_equal(q.slots, t[i].slots);
		assert_int_equal(q.stride, t[i].stride);
		assert_int_equal(q.bytes, (size_t)t[i].stride * t[i].ring);
		wq_fini(&q);
		assert_null(q.mem);
	}
}

static void wq_init__no_slots(void **state)
{
	struct wq q;

	(void)state;
	assert_int_equal(wq_init(&q, 0, 1, 0), 0);
	assert_null(wq_reserve(&q));
	assert_int_equal(q.bytes, 0);
	wq_fini(&q);
}

static void wq_init__too_large(void **state)
{
	struct wq q;

	(void)state;
	memset(&q, 0x5a, sizeof(q));
	assert_int_equal(wq_init(&q, UINT32_MAX, 1, 0), -ENOMEM);
	assert_int_equal(wq_init(&q, 1, UINT32_MAX, 0), -ENOMEM);
	assert_int_equal(wq_init(&q, 1, 0, UINT32_MAX), -ENOMEM);
	for (size_t i = 0; i < sizeof(q); i++)
		assert_int_equal(((uint8_t *)&q)[i], 0x5a);
}

static long minor_faults(void)
{
	struct rusage ru;

	assert_int_equal(getrusage(RUSAGE_SELF, &ru), 0);
	return ru.ru_minflt;
}

/* 32768 WQEs of 32 SGEs are 18 MiB that nobody asked to have in memory. What
 * calloc() alone touches is the measure: those of sanitizers touch all.
 */
static void wq_init__large_is_not_touched(void **state)
{
	const size_t bytes = (size_t)32768 * 600;
	long before, alone;
	struct wq q;
	void *p;

	(void)state;
	before = minor_faults();
	p = calloc(1, bytes);
	assert_non_null(p);
	alone = minor_faults() - before;
	free(p);
	before = minor_faults();
	assert_int_equal(wq_init(&q, 32768, 32, 220), 0);
	assert_int_equal(q.bytes, bytes);
	assert_true(minor_faults() - before < alone + 100);
	wq_fini(&q);
}

static void wq_reserve__exactly_as_many_as_asked(void **state)
{
	static const uint32_t slots[] = {1, 2, 3, 5, 64, 100};
	struct wq q;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		assert_int_equal(wq_init(&q, slots[i], 2, 0), 0);
		for (uint32_t k = 0; k < slots[i]; k++) {
			struct wqe *w = wq_reserve(&q);

			assert_non_null(w);
			/* not published: the same one again */
			assert_ptr_equal(wq_reserve(&q), w);
			assert_int_equal(wq_end(&q), k);
			w->wr_id = k;
			memset(wqe_sge(w), 0xff, 2 * sizeof(struct sge));
			wq_publish(&q);
			assert_int_equal(wq_end(&q), k + 1);
		}
		assert_null(wq_reserve(&q));
		for (uint32_t k = 0; k < slots[i]; k++)
			assert_int_equal(wq_at(&q, k)->wr_id, k);
		wq_release(&q, 1);
		assert_non_null(wq_reserve(&q));
		wq_publish(&q);
		assert_null(wq_reserve(&q));
		wq_fini(&q);
	}
}

/* A chain of WQEs becomes visible at once or not at all. */
static void wq_publish_many__all_at_once(void **state)
{
	struct wq q;

	(void)state;
	assert_int_equal(wq_init(&q, 5, 1, 0), 0);
	q.prod = q.cons = UINT32_MAX - 1;
	for (uint32_t done = 0; done < 12; done += 4) {
		const uint32_t first = UINT32_MAX - 1 + done;

		for (uint32_t k = 0; k < 4; k++)
			wq_reserve_ahead(&q, k)->wr_id = done + k;
		assert_int_equal(wq_end(&q), first);
		assert_non_null(wq_reserve_ahead(&q, 4));
		assert_null(wq_reserve_ahead(&q, 5));
		assert_null(wq_reserve_ahead(&q, UINT32_MAX));
		wq_publish_many(&q, 4);
		assert_int_equal(wq_end(&q), first + 4);
		assert_non_null(wq_reserve_ahead(&q, 0));
		assert_null(wq_reserve_ahead(&q, 1));
		for (uint32_t k = 0; k < 4; k++)
			assert_int_equal(wq_at(&q, first + k)->wr_id, done + k);
		wq_release(&q, first + 4);
	}
	wq_fini(&q);
}

/* Queues that are no power of two must not stumble when indices wrap. */
static void wq_publish__across_index_wrap(void **state)
{
	uint32_t index = UINT32_MAX - 10;
	struct wq q;

	(void)state;
	assert_int_equal(wq_init(&q, 5, 1, 0), 0);
	q.prod = q.cons = index;
	for (uint64_t n = 0; n < 40; n++) {
		struct wqe *w;

		while ((w = wq_reserve(&q))) {
			w->wr_id = q.prod;
			wq_publish(&q);
		}
		assert_int_equal(wq_end(&q), (uint32_t)(index + 5));
		for (uint32_t k = 0; k < 5; k++)
			assert_int_equal(wq_at(&q, index + k)->wr_id,
					 (uint32_t)(index + k));
		wq_release(&q, ++index);
	}
	wq_fini(&q);
}

static void wq_reset__forgets(void **state)
{
	struct wq q;

	(void)state;
	assert_int_equal(wq_init(&q, 3, 1, 0), 0);
	for (int i = 0; i < 3; i++) {
		assert_non_null(wq_reserve(&q));
		wq_publish(&q);
	}
	wq_release(&q, 2);
	wq_reset(&q);
	assert_int_equal(wq_end(&q), 0);
	assert_int_equal(q.cons, 0);
	for (int i = 0; i < 3; i++) {
		assert_non_null(wq_reserve(&q));
		wq_publish(&q);
	}
	assert_null(wq_reserve(&q));
	wq_fini(&q);
}

enum { STRESS = 200000 };

static void *poster(void *arg)
{
	struct wq *q = arg;

	for (uint64_t n = 0; n < STRESS;) {
		struct wqe *w = wq_reserve(q);

		if (!w) {
			sched_yield();
			continue;
		}
		w->wr_id = n;
		w->length = ~n;
		wqe_sge(w)[0] = (struct sge){n, (uint32_t)n, 1};
		wq_publish(q);
		n++;
	}
	return NULL;
}

static void wq__poster_against_engine(void **state)
{
	uint32_t at = UINT32_MAX - 1000;
	pthread_t thread;
	uint64_t n = 0;
	struct wq q;

	(void)state;
	assert_int_equal(wq_init(&q, 7, 1, 0), 0);
	q.prod = q.cons = at;
	assert_int_equal(pthread_create(&thread, NULL, poster, &q), 0);
	while (n < STRESS) {
		const uint32_t end = wq_end(&q);

		if (at == end)
			sched_yield();
		assert_true(end - at <= 7);
		while (at != end) {
			struct wqe *w = wq_at(&q, at++);

			assert_int_equal(w->wr_id, n);
			assert_int_equal(w->length, ~n);
			assert_int_equal(wqe_sge(w)->addr, n);
			w->met.faults = n & 0xffff;
			n++;
			if (n % 3 == 0)
				wq_release(&q, at);
		}
		wq_release(&q, at);
	}
	pthread_join(thread, NULL);
	assert_int_equal(wq_end(&q), at);
	wq_fini(&q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wq_init__sizes),
		cmocka_unit_test(wq_init__no_slots),
		cmocka_unit_test(wq_init__too_large),
		cmocka_unit_test(wq_init__large_is_not_touched),
		cmocka_unit_test(wq_reserve__exactly_as_many_as_asked),
		cmocka_unit_test(wq_publish_many__all_at_once),
		cmocka_unit_test(wq_publish__across_index_wrap),
		cmocka_unit_test(wq_reset__forgets),
		cmocka_unit_test(wq__poster_against_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
