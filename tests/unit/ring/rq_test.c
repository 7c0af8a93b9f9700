/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq_test.c: a receive queue as a source of receives, also where indices wrap. */
#include "base/check.h"
#include "ring/receive.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "takes.h"

#include <stdint.h>
#include <stdlib.h>

enum { SLOTS = 3 };

static struct rq *q;

static int setup(void **state)
{
	(void)state;
	q = aligned_alloc(_Alignof(struct rq), sizeof(*q));
	return q ? rq_init(q, SLOTS, 1, 0) : -1;
}

static int teardown(void **state)
{
	(void)state;
	rq_fini(q);
	free(q);
	return 0;
}

static void post(uint64_t id)
{
	struct wqe *w = wq_reserve(&q->wq);

	assert_non_null(w);
	w->wr_id = id;
	wq_publish(&q->wq);
}

static void rq__in_the_order_of_posting(void **state)
{
	static const uint32_t first[] = {0, 5, UINT32_MAX - 1, UINT32_MAX};
	struct receive r[SLOTS], none;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(first); i++) {
		q->wq.prod = q->wq.cons = q->next = first[i];
		assert_null(receive_peek(&q->source, 0));
		assert_false(receive_take(&q->source, &none));
		for (uint64_t id = 0; id < SLOTS; id++)
			post(id);
		for (uint32_t k = 0; k < SLOTS; k++)
			is(receive_peek(&q->source, k), k);
		assert_null(receive_peek(&q->source, SLOTS));
		for (uint64_t id = 0; id < SLOTS; id++)
			takes(&q->source, &r[id], id);
		assert_null(receive_peek(&q->source, 0));
		assert_null(wq_reserve(&q->wq));
		receive_untake(&r[2]);
		receive_untake(&r[1]);
		is(receive_peek(&q->source, 1), 2);
		takes(&q->source, &r[1], 1);
		for (uint64_t id = 0; id < 2; id++) {
			receive_done(&r[id]);
			post(SLOTS + id);
		}
		assert_null(wq_reserve(&q->wq));
		takes(&q->source, &r[2], 2);
		takes(&q->source, &r[0], 3);
		takes(&q->source, &r[1], 4);
		receive_done(&r[2]);
		receive_done(&r[0]);
		receive_done(&r[1]);
	}
}

static void rq_reset__forgets_what_is_out(void **state)
{
	struct receive r;

	(void)state;
	post(7);
	takes(&q->source, &r, 7);
	rq_reset(q);
	assert_null(receive_peek(&q->source, 0));
	post(8);
	takes(&q->source, &r, 8);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(rq__in_the_order_of_posting),
		T(rq_reset__forgets_what_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
