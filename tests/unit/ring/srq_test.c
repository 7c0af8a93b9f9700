/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq_test.c: a shared receive queue as a source of receives that end in any order, also
 * where indices wrap.
 */
#include "base/check.h"
#include "ring/receive.h"
#include "ring/srq.h"
#include "takes.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

enum { SLOTS = 5, PD = 7, ROUNDS = 20000 };

static struct srq *q;

static int setup(void **state)
{
	(void)state;
	q = aligned_alloc(_Alignof(struct srq), sizeof(*q));
	return q ? srq_init(q, SLOTS, 1, PD) : -1;
}

static int teardown(void **state)
{
	(void)state;
	srq_fini(q);
	free(q);
	return 0;
}

static void post(uint64_t id)
{
	struct wqe *w = srq_reserve(q);

	assert_non_null(w);
	w->wr_id = id;
	srq_publish(q);
}

/* All indices stand at @at. */
static void start_at(uint32_t at)
{
	struct wqe *free[SLOTS];

	for (uint32_t i = 0; i < SLOTS; i++)
		free[i] = q->free[(q->free_at + i) & q->slots.mask];
	q->posted_at = q->posted_end = q->free_at = at;
	for (uint32_t i = 0; i < SLOTS; i++)
		q->free[(at + i) & q->slots.mask] = free[i];
	q->free_end = at + SLOTS;
}

static void srq__taken_in_order_and_done_in_any(void **state)
{
	static const uint32_t first[] = {0, 5, UINT32_MAX - 2, UINT32_MAX};
	struct receive r[SLOTS], none;

	(void)state;
	assert_int_equal(q->source.pd, PD);
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		start_at(first[i]);
		assert_null(receive_peek(&q->source, 0));
		assert_false(receive_take(&q->source, &none));
		for (uint64_t id = 0; id < SLOTS; id++)
			post(id);
		assert_null(srq_reserve(q));
		for (uint32_t k = 0; k < SLOTS; k++)
			is(receive_peek(&q->source, k), k);
		assert_null(receive_peek(&q->source, SLOTS));
		assert_int_equal(srq_left(q), SLOTS);
		for (uint64_t id = 0; id < SLOTS; id++)
			takes(&q->source, &r[id], id);
		assert_null(receive_peek(&q->source, 0));
		assert_int_equal(srq_left(q), 0);
		assert_null(srq_reserve(q));
		receive_done(&r[3]);
		post(10);
		assert_null(srq_reserve(q));
		receive_done(&r[0]);
		/* given back by two QPs, in any order */
		receive_untake(&r[1]);
		receive_untake(&r[4]);
		takes(&q->source, &r[4], 4);
		takes(&q->source, &r[1], 1);
		takes(&q->source, &r[3], 10);
		post(11);
		takes(&q->source, &r[0], 11);
		for (int k = 0; k < SLOTS; k++)
			receive_done(&r[k]);
	}
}

/* Posts, takes, gives back and ends at random: each receive is one QP's, once. */
static void srq__loses_and_doubles_none(void **state)
{
	struct receive out[SLOTS + 1];
	uint8_t where[SLOTS] = {0}; /* 0 free, 1 posted, 2 taken */
	uint32_t seed = 1, taken = 0, posted = 0;
	const struct wqe *base = wq_at(&q->slots, 0);

	(void)state;
	start_at(UINT32_MAX - ROUNDS / 4);
	for (int i = 0; i < ROUNDS; i++) {
		struct wqe *w;
		uint32_t at;

		seed = seed * 1103515245 + 12345;
		at = taken ? (seed >> 8) % taken : 0;
		switch ((seed >> 16) % 4) {
		case 0:
			w = srq_reserve(q);
			assert_int_equal(w != NULL, posted + taken < SLOTS);
			if (!w)
				break;
			w->wr_id = ((uintptr_t)w - (uintptr_t)base) /
				   q->slots.stride;
			assert_int_equal(where[w->wr_id], 0);
			where[w->wr_id] = 1;
			srq_publish(q);
			posted++;
			break;
		case 1:
			assert_int_equal(receive_take(&q->source, &out[taken]),
					 posted > 0);
			if (!posted)
				break;
			assert_int_equal(where[out[taken].wqe->wr_id], 1);
			where[out[taken++].wqe->wr_id] = 2;
			posted--;
			break;
		default:
			if (!taken)
				break;
			where[out[at].wqe->wr_id] = (seed >> 18) & 1;
			if ((seed >> 18) & 1) {
				receive_untake(&out[at]);
				posted++;
			} else {
				receive_done(&out[at]);
			}
			out[at] = out[--taken];
		}
	}
}

static void srq_init__too_large(void **state)
{
	struct srq *big = aligned_alloc(_Alignof(struct srq), sizeof(*big));

	(void)state;
	assert_non_null(big);
	assert_int_equal(srq_init(big, UINT32_MAX, 1, PD), -ENOMEM);
	free(big);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(srq__taken_in_order_and_done_in_any),
		T(srq__loses_and_doubles_none),
		T(srq_init__too_large),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
