/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* blocks_test.c: a bounded set of blocks, by hand and against a list. */
#include "base/rand.h"
#include "session/blocks.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CAP = 4, STEPS = 200000, CAP_MAX = 40 };

static struct blocks b;

static int setup(void **state)
{
	(void)state;
	return blocks_init(&b, CAP);
}

static int teardown(void **state)
{
	(void)state;
	blocks_fini(&b);
	return 0;
}

static void blocks_init__bounds(void **state)
{
	struct blocks c;

	(void)state;
	assert_int_equal(blocks_init(&c, 0), -EINVAL);
	assert_int_equal(blocks_init(&c, BLOCKS_MAX + 1), -EINVAL);
	assert_int_equal(blocks_init(&c, 1), 0);
	assert_false(blocks_add(&c, 5));
	assert_true(blocks_add(&c, 6));
	assert_false(blocks_use(&c, 5));
	assert_true(blocks_use(&c, 6));
	blocks_fini(&c);
}

static void blocks_add__the_first_used_goes(void **state)
{
	(void)state;
	for (uint64_t n = 0; n < CAP; n++)
		assert_false(blocks_add(&b, n));
	assert_true(blocks_use(&b, 0));
	assert_false(blocks_add(&b, 1)); /* is there: is used */
	assert_true(blocks_add(&b, 100));
	assert_false(blocks_use(&b, 2));
	assert_true(blocks_add(&b, 101));
	assert_false(blocks_use(&b, 3));
	assert_true(blocks_add(&b, 102));
	assert_false(blocks_use(&b, 0));
	assert_true(blocks_use(&b, 1));
	assert_int_equal(b.num, CAP);
}

static void blocks_drop__ranges(void **state)
{
	(void)state;
	for (uint64_t n = 10; n < 14; n++)
		blocks_add(&b, n);
	assert_int_equal(blocks_drop(&b, 0, 9), 0);
	assert_int_equal(blocks_drop(&b, 14, UINT64_MAX), 0);
	assert_int_equal(blocks_drop(&b, 12, 11), 0);
	assert_int_equal(blocks_drop(&b, 11, 12), 2);
	assert_true(blocks_use(&b, 10) && blocks_use(&b, 13));
	assert_int_equal(blocks_drop(&b, 13, 13), 1);
	assert_int_equal(blocks_drop(&b, 0, UINT64_MAX), 1);
	assert_int_equal(b.num, 0);
	assert_int_equal(blocks_drop(&b, 0, UINT64_MAX), 0);
}

static void blocks_drop__the_ends_of_all_numbers(void **state)
{
	(void)state;
	blocks_add(&b, 0);
	blocks_add(&b, 1);
	blocks_add(&b, UINT64_MAX - 1);
	blocks_add(&b, UINT64_MAX);
	assert_int_equal(blocks_drop(&b, UINT64_MAX, UINT64_MAX), 1);
	assert_int_equal(blocks_drop(&b, UINT64_MAX - 1, UINT64_MAX), 1);
	assert_int_equal(blocks_drop(&b, 0, 0), 1);
	assert_true(blocks_use(&b, 1));
}

/* --- against a list ------------------------------------------------------------- */

/** struct list_model - The first one was used last. */
static struct {
	uint64_t n[CAP_MAX];
	unsigned num, cap;
} model;

static void model_take(unsigned i)
{
	memmove(&model.n[i], &model.n[i + 1],
		(--model.num - i) * sizeof(model.n[0]));
}

static bool model_use(uint64_t n)
{
	for (unsigned i = 0; i < model.num; i++) {
		if (model.n[i] != n)
			continue;
		memmove(&model.n[1], &model.n[0], i * sizeof(n));
		model.n[0] = n;
		return true;
	}
	return false;
}

static bool model_add(uint64_t n)
{
	const bool full = model.num == model.cap;

	if (model_use(n))
		return false;
	model.num -= full;
	memmove(&model.n[1], &model.n[0], model.num++ * sizeof(n));
	model.n[0] = n;
	return full;
}

static unsigned model_drop(uint64_t first, uint64_t last)
{
	unsigned was = model.num;

	for (unsigned i = 0; i < model.num;)
		if (first <= model.n[i] && model.n[i] <= last)
			model_take(i);
		else
			i++;
	return was - model.num;
}

/* The same blocks in the same order. */
static void compare(const struct blocks *c)
{
	uint32_t at = c->newest;

	assert_int_equal(c->num, model.num);
	for (unsigned i = 0; i < model.num; i++) {
		assert_int_equal(c->block[at].number, model.n[i]);
		at = c->block[at].older;
	}
	assert_int_equal(at, UINT32_MAX);
}

static void step(struct blocks *c, struct rnd *r)
{
	const uint64_t n = rnd_next(r) % (3 * CAP_MAX);
	const uint64_t num = rnd_next(r) % 5 ? rnd_next(r) % 4 : CAP_MAX;

	switch (rnd_next(r) % 8) {
	case 0:
		assert_int_equal(blocks_drop(c, n, n + num),
				 model_drop(n, n + num));
		break;
	case 1:
	case 2:
		assert_int_equal(blocks_use(c, n), model_use(n));
		break;
	default:
		assert_int_equal(blocks_add(c, n), model_add(n));
		break;
	}
}

static void blocks__as_a_list(void **state)
{
	struct rnd r = {1, 2, 3};
	struct blocks c;

	(void)state;
	for (unsigned cap = 1; cap <= CAP_MAX; cap += 3) {
		model.num = 0;
		model.cap = cap;
		assert_int_equal(blocks_init(&c, cap), 0);
		for (int i = 0; i < STEPS / CAP_MAX; i++) {
			step(&c, &r);
			compare(&c);
		}
		blocks_fini(&c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(blocks_init__bounds),
		T(blocks_add__the_first_used_goes),
		T(blocks_drop__ranges),
		T(blocks_drop__the_ends_of_all_numbers),
		cmocka_unit_test(blocks__as_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
