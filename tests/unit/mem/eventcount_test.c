/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eventcount_test.c: who may name a counter, and what raising it does. */
#include "fixture.h"
#include "mem/eventcount.h"
#include "mem/mem.h"
#include "mem/mr.h"

#include <stdlib.h>

static struct fix f;

static int setup(void **state)
{
	(void)state;
	fix_open_any(&f, (struct mem_config){.entries = 64});
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	fix_close(&f);
	return 0;
}

static void eventcount__named_by_its_pd_only(void **state)
{
	struct eventcount e, other;
	uint64_t word, other_word;
	int pd = pd_alloc(f.m);

	(void)state;
	assert_true(pd > 0);
	assert_int_equal(eventcount_init(f.m, &e, f.pd, &word), 0);
	assert_int_equal(
		eventcount_init(f.m, &other, (uint32_t)pd, &other_word), 0);
	assert_int_not_equal(e.id, other.id);
	assert_ptr_equal(eventcount_find(f.m, f.pd, e.id), &e);
	assert_null(eventcount_find(f.m, (uint32_t)pd, e.id));
	assert_null(eventcount_find(f.m, f.pd, other.id));
	for (unsigned bit = 0; bit < 32; bit++)
		assert_null(eventcount_find(f.m, f.pd, e.id ^ 1u << bit));
	assert_null(eventcount_find(f.m, f.pd, 0));
	assert_null(eventcount_find(f.m, f.pd, f.all));
	assert_int_equal(pd_dealloc(f.m, (uint32_t)pd), -EBUSY);
	eventcount_fini(f.m, &other);
	assert_int_equal(pd_dealloc(f.m, (uint32_t)pd), 0);
	eventcount_fini(f.m, &e);
	assert_null(eventcount_find(f.m, f.pd, e.id));
}

/* Twice before it is taken off the list: it is there once. */
static void eventcount__raised(void **state)
{
	struct eventcount e;
	struct list raised;
	uint64_t word = 0;

	(void)state;
	list_init(&raised);
	assert_int_equal(eventcount_init(f.m, &e, f.pd, &word), 0);
	for (uint64_t i = 1; i <= 3; i++) {
		eventcount_raise(&e, &raised);
		assert_int_equal(word, i);
		word = 1000; /* a program that writes to it */
	}
	assert_ptr_equal(raised.next, &e.link);
	assert_ptr_equal(raised.prev, &e.link);
	eventcount_fini(f.m, &e);
	assert_true(list_empty(&raised));
}

/* A name does not come back soon, however often counters come and go. */
static void eventcount__stale(void **state)
{
	enum { TIMES = 2000 };
	static uint32_t was[TIMES];
	struct eventcount e;
	uint64_t word;

	(void)state;
	for (unsigned i = 0; i < TIMES; i++) {
		assert_int_equal(eventcount_init(f.m, &e, f.pd, &word), 0);
		was[i] = e.id;
		for (unsigned k = 0; k < i; k++)
			assert_null(eventcount_find(f.m, f.pd, was[k]));
		eventcount_fini(f.m, &e);
	}
}

static void eventcount__many(void **state)
{
	enum { MOST = 1 << 16 };
	struct eventcount *e = calloc(MOST + 1, sizeof(*e));
	uint64_t word;

	(void)state;
	assert_non_null(e);
	for (unsigned i = 0; i < MOST; i++)
		assert_int_equal(eventcount_init(f.m, &e[i], f.pd, &word), 0);
	assert_int_equal(eventcount_init(f.m, &e[MOST], f.pd, &word), -ENOMEM);
	for (unsigned i = 0; i < MOST; i++)
		assert_ptr_equal(eventcount_find(f.m, f.pd, e[i].id), &e[i]);
	eventcount_fini(f.m, &e[7]);
	assert_int_equal(eventcount_init(f.m, &e[7], f.pd, &word), 0);
	for (unsigned i = 0; i < MOST; i++)
		eventcount_fini(f.m, &e[i]);
	free(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(eventcount__named_by_its_pd_only),
		T(eventcount__raised),
		T(eventcount__stale),
		T(eventcount__many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
