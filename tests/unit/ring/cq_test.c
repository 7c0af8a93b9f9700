/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_test.c: completion queues: bounds, overflow, arming, and a poller that
 * sleeps against an engine that pushes (run it under TSan too).
 */
#include "base/check.h"
#include "ring/cq.h"
#include "ring/cqe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

static struct cqe cqe(uint64_t wr_id)
{
	return (struct cqe){.wr_id = wr_id, .qpn = (uint32_t)wr_id % 3};
}

static int push(struct cq *cq, uint64_t wr_id)
{
	struct cqe e = cqe(wr_id);

	return cq_push(cq, &e);
}

static void cq_init__slots(void **state)
{
	static const struct {
		uint32_t entries, slots;
	} t[] = {{1, 2}, {2, 4}, {3, 4}, {4, 8}, {4095, 4096}, {4096, 8192}};
	struct cq cq;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(cq_init(&cq, t[i].entries), 0);
		assert_int_equal(cq.slots, t[i].slots);
		assert_int_equal(cq.limit, t[i].entries);
		assert_int_equal(cq.bytes, t[i].slots * sizeof(struct cqe));
		assert_true(list_empty(&cq.link));
		cq_fini(&cq);
		assert_null(cq.ring);
	}
}

static void cq_init__too_large(void **state)
{
	struct cq cq;

	(void)state;
	memset(&cq, 0x5a, sizeof(cq));
	assert_int_equal(cq_init(&cq, UINT32_MAX), -ENOMEM);
	assert_int_equal(cq_init(&cq, (1u << 28) + 1), -ENOMEM);
	for (size_t i = 0; i < sizeof(cq); i++)
		assert_int_equal(((uint8_t *)&cq)[i], 0x5a);
}

static void cq_take__in_order_across_index_wrap(void **state)
{
	struct cqe out[8];
	uint64_t in = 0, taken = 0;
	struct cq cq;

	(void)state;
	assert_int_equal(cq_init(&cq, 5), 0);
	cq.prod = cq.cons = UINT32_MAX - 9;
	assert_true(cq_empty(&cq));
	assert_int_equal(cq_take(&cq, 8, out), 0);
	for (unsigned round = 0; round < 50; round++) {
		unsigned n = 1 + round % 5;

		for (unsigned i = 0; i < n; i++)
			assert_int_equal(push(&cq, in++), 0);
		assert_false(cq_empty(&cq));
		assert_int_equal(cq_take(&cq, 0, out), 0);
		while (taken < in) {
			n = cq_take(&cq, 2, out);
			assert_int_equal(n, MIN(2, in - taken));
			for (unsigned i = 0; i < n; i++)
				taken++;
			assert_int_equal(out[n - 1].wr_id, taken - 1);
			assert_int_equal(out[0].wr_id, taken - n);
		}
		assert_true(cq_empty(&cq));
	}
	cq_fini(&cq);
}

static void cq_push__overflow(void **state)
{
	static const uint32_t limits[] = {1, 2, 3, 4, 100};
	struct cqe out[101];
	struct cq cq;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
		const uint32_t n = limits[i];

		assert_int_equal(cq_init(&cq, n), 0);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(push(&cq, k), 0);
		assert_false(cq.overflow);
		assert_int_equal(push(&cq, 1000), -ENOSPC);
		assert_true(cq.overflow);
		/* what was there is still there */
		assert_int_equal(cq_take(&cq, 101, out), n);
		for (uint32_t k = 0; k < n; k++)
			assert_int_equal(out[k].wr_id, k);
		/* and it stays an error */
		assert_int_equal(push(&cq, 1001), -ENOSPC);
		assert_true(cq_empty(&cq));
		cq_fini(&cq);
	}
}

/* An overflowing push wakes nobody: nothing was added. */
static void cq_push__overflow_keeps_arm(void **state)
{
	struct cq cq;

	(void)state;
	assert_int_equal(cq_init(&cq, 1), 0);
	assert_int_equal(push(&cq, 0), 0);
	cq_arm(&cq, false);
	assert_int_equal(push(&cq, 1), -ENOSPC);
	assert_false(cq.fired);
	assert_int_equal(cq.armed, CQ_ARMED_ANY);
	cq_fini(&cq);
}

static void cq_arm__which_push_fires(void **state)
{
	enum { NONE, SOL, ANY, SOL_ANY, ANY_SOL };
	static const struct {
		int arm;
		bool solicited;
		uint8_t status;
		bool fires;
	} t[] = {
		{NONE, false, WC_SUCCESS, false},
		{NONE, true, WC_SUCCESS, false},
		{NONE, true, WC_WR_FLUSH_ERR, false},
		{SOL, false, WC_SUCCESS, false},
		{SOL, true, WC_SUCCESS, true},
		{SOL, false, WC_WR_FLUSH_ERR, true},
		{SOL, false, WC_LOC_LEN_ERR, true},
		{SOL, true, WC_GENERAL_ERR, true},
		{ANY, false, WC_SUCCESS, true},
		{ANY, true, WC_SUCCESS, true},
		{ANY, false, WC_REM_ACCESS_ERR, true},
		{SOL_ANY, false, WC_SUCCESS, true},
		{ANY_SOL, false, WC_SUCCESS, true},
	};
	struct cq cq;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(t); i++) {
		struct cqe e = {.status = t[i].status,
				.solicited = t[i].solicited};

		assert_int_equal(cq_init(&cq, 8), 0);
		if (t[i].arm == SOL || t[i].arm == SOL_ANY)
			cq_arm(&cq, true);
		if (t[i].arm >= ANY)
			cq_arm(&cq, false);
		if (t[i].arm == ANY_SOL)
			cq_arm(&cq, true);
		assert_int_equal(cq_push(&cq, &e), 0);
		assert_int_equal(cq.fired, t[i].fires);
		if (t[i].fires)
			assert_int_equal(cq.armed, CQ_UNARMED);
		/* once an arm */
		cq.fired = false;
		e = (struct cqe){.solicited = true};
		assert_int_equal(cq_push(&cq, &e), 0);
		assert_int_equal(cq.fired, !t[i].fires && t[i].arm != NONE);
		cq_fini(&cq);
	}
}

/* What was there before the arm does not fire. */
static void cq_arm__only_later_pushes(void **state)
{
	struct cq cq;

	(void)state;
	assert_int_equal(cq_init(&cq, 8), 0);
	assert_int_equal(push(&cq, 0), 0);
	cq_arm(&cq, false);
	assert_false(cq.fired);
	assert_int_equal(push(&cq, 1), 0);
	assert_true(cq.fired);
	cq_fini(&cq);
}

static void cq_forget__compacts(void **state)
{
	struct cqe out[16];
	struct cq cq;

	(void)state;
	assert_int_equal(cq_init(&cq, 12), 0);
	cq.prod = cq.cons = UINT32_MAX - 3;
	for (uint64_t i = 0; i < 12; i++)
		assert_int_equal(push(&cq, i), 0);
	assert_int_equal(cq_take(&cq, 2, out), 2);
	cq_forget(&cq, 1); /* 1 was taken; drops 4, 7, 10 */
	cq_forget(&cq, 99);
	assert_int_equal(cq_take(&cq, 16, out), 7);
	for (int i = 0; i < 7; i++) {
		static const uint64_t left[] = {2, 3, 5, 6, 8, 9, 11};

		assert_int_equal(out[i].wr_id, left[i]);
	}
	/* the room is there again */
	for (uint64_t i = 0; i < 12; i++)
		assert_int_equal(push(&cq, 1 + 3 * i), 0);
	assert_false(cq.overflow);
	cq_forget(&cq, 1);
	assert_true(cq_empty(&cq));
	cq_forget(&cq, 1);
	assert_int_equal(push(&cq, 5), 0);
	assert_int_equal(cq_take(&cq, 16, out), 1);
	cq_fini(&cq);
}

enum { STRESS = 50000 };

/* The poller sleeps on @events; @taken paces the engine. */
struct stress {
	struct cq cq;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned events;
	uint64_t taken;
	bool solicited;
};

static void *engine(void *arg)
{
	struct stress *s = arg;

	for (uint64_t n = 0; n < STRESS; n++) {
		/* at times ahead of the poller, mostly just behind it */
		const uint64_t ahead = n % 64 == 0 ? 3 : 0;
		struct cqe e = cqe(n);

		while (n > __atomic_load_n(&s->taken, __ATOMIC_ACQUIRE) + ahead)
			sched_yield();
		e.solicited = s->solicited;
		if (cq_push(&s->cq, &e))
			return "a push failed";
		if (!s->cq.fired)
			continue;
		s->cq.fired = false;
		pthread_mutex_lock(&s->lock);
		s->events++;
		pthread_cond_signal(&s->cond);
		pthread_mutex_unlock(&s->lock);
	}
	return NULL;
}

static void event_wait(struct stress *s)
{
	pthread_mutex_lock(&s->lock);
	while (!s->events)
		pthread_cond_wait(&s->cond, &s->lock);
	s->events--;
	pthread_mutex_unlock(&s->lock);
}

/* Poll; if empty, arm and poll once more; if still empty, sleep. */
static void poll_and_sleep(struct stress *s)
{
	uint64_t n = 0, sleeps = 0;

	while (n < STRESS) {
		struct cqe out[4];
		unsigned got = cq_take(&s->cq, 4, out);

		if (!got) {
			cq_arm(&s->cq, s->solicited);
			got = cq_take(&s->cq, 4, out);
		}
		if (!got) {
			event_wait(s);
			sleeps++;
		}
		for (unsigned i = 0; i < got; i++)
			if (out[i].wr_id != n++)
				fail_msg("completion lost or out of order");
		__atomic_store_n(&s->taken, n, __ATOMIC_RELEASE);
	}
	assert_true(sleeps > 0);
}

static void cq__sleeping_poller_against_engine(void **state)
{
	(void)state;
	for (int solicited = 0; solicited < 2; solicited++) {
		static struct stress s;
		pthread_t thread;
		void *failure;

		s = (struct stress){.solicited = solicited};
		pthread_mutex_init(&s.lock, NULL);
		pthread_cond_init(&s.cond, NULL);
		assert_int_equal(cq_init(&s.cq, 16), 0);
		s.cq.prod = s.cq.cons = UINT32_MAX - 1000;
		assert_int_equal(pthread_create(&thread, NULL, engine, &s), 0);
		poll_and_sleep(&s);
		pthread_join(thread, &failure);
		assert_null(failure);
		assert_true(cq_empty(&s.cq));
		cq_fini(&s.cq);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq_init__slots),
		cmocka_unit_test(cq_init__too_large),
		cmocka_unit_test(cq_take__in_order_across_index_wrap),
		cmocka_unit_test(cq_push__overflow),
		cmocka_unit_test(cq_push__overflow_keeps_arm),
		cmocka_unit_test(cq_arm__which_push_fires),
		cmocka_unit_test(cq_arm__only_later_pushes),
		cmocka_unit_test(cq_forget__compacts),
		cmocka_unit_test(cq__sleeping_poller_against_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
