/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_test.c: protection domains and regions. */
#include "base/check.h"
#include "fixture.h"
#include "mem/dma.h"
#include "mem/key.h"
#include "mem/key_table.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/regions.h"

#include <stdlib.h>

static void open_small(struct fix *f)
{
	fix_open(f, (struct mem_config){.entries = 64, .always_ready = true});
}

/* Access one byte of a region that starts at 0x1000. */
static enum verdict try_key(struct fix *f, uint32_t pd, uint32_t key)
{
	struct dma d = {.pd = pd, .key = key, .iova = 0x1000, .len = 1};

	return dma_check(f->m, &d);
}

static void pd_alloc__numbers(void **state)
{
	struct fix f;
	int a, b;

	(void)state;
	open_small(&f);
	a = pd_alloc(f.m);
	b = pd_alloc(f.m);
	assert_true(a > 0 && b > 0 && a != b);
	assert_int_equal(pd_dealloc(f.m, (uint32_t)a), 0);
	assert_int_equal(pd_alloc(f.m), a);
	for (int i = 0; i < 1000; i++)
		assert_true(pd_alloc(f.m) > b);
	fix_close(&f);
}

static void pd_alloc__bounded(void **state)
{
	struct fix f;
	int pd = 0;

	(void)state;
	open_small(&f);
	for (int i = 0; i <= 1 << 16 && pd >= 0; i++)
		pd = pd_alloc(f.m);
	assert_int_equal(pd, -ENOMEM);
	fix_close(&f);
}

static void pd_dealloc__busy_with_users(void **state)
{
	struct fix f;
	uint32_t key, pd;

	(void)state;
	open_small(&f);
	pd = (uint32_t)pd_alloc(f.m);
	pd_get(f.m, pd);
	pd_get(f.m, pd);
	pd_put(f.m, pd);
	assert_int_equal(pd_dealloc(f.m, pd), -EBUSY);
	pd_put(f.m, pd);
	assert_int_equal(pd_dealloc(f.m, pd), 0);
	assert_int_equal(pd_dealloc(f.m, f.pd), -EBUSY);
	key = fix_mr(&f, 0, 0, 1, 0);
	assert_int_equal(mr_free(f.m, f.all), 0);
	assert_int_equal(pd_dealloc(f.m, f.pd), -EBUSY);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(pd_dealloc(f.m, f.pd), 0);
	mem_close(f.m);
}

static void mr_register__valid(void **state)
{
	static const uint64_t max = UINT64_MAX;
	static const struct {
		uint64_t addr, iova, length;
		uint32_t access;
		int ret;
	} cases[] = {
		{0, 0, max, 0, 0},
		{0, 0, max, FIX_RIGHTS | ACCESS_ON_DEMAND, 0},
		{1, 0, max, 0, 0},
		{2, 0, max, 0, -EINVAL},
		{0, 2, max, 0, -EINVAL},
		{max, max, 1, 0, 0},
		{max, max, 2, 0, -EINVAL},
		{max, 0, 2, 0, -EINVAL},
		{0, max, 2, 0, -EINVAL},
		{max - 4095, 0, 4096, 0, 0},
		{max - 4095, 0, 4097, 0, -EINVAL},
		{0, max - 4095, 4096, 0, 0},
		{0, max - 4095, 4097, 0, -EINVAL},
		{max, max, 0, 0, 0},
		{0, 0, UINT64_C(1) << 40, 0, 0},
		{0, 0, 1, ACCESS_REMOTE_WRITE, -EINVAL},
		{0, 0, 1, ACCESS_REMOTE_ATOMIC, -EINVAL},
		{0, 0, 1, ACCESS_REMOTE_WRITE | ACCESS_LOCAL_WRITE, 0},
		{0, 0, 1, ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE, 0},
		{0, 0, 1, ACCESS_REMOTE_READ, 0},
		{0, 0, 1, ACCESS_MW_BIND | ACCESS_ZERO_BASED, 0},
		{0, 0, 1, ACCESS_RELAXED_ORDERING, 0},
		{0, 0, 1, 1 << 7, -EINVAL},
		{0, 0, 1, 1U << 31, -EINVAL},
	};
	struct fix f;

	(void)state;
	open_small(&f);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		struct mr_attr a = {.pd = f.pd,
				    .addr = cases[i].addr,
				    .iova = cases[i].iova,
				    .length = cases[i].length,
				    .access = cases[i].access};
		uint32_t key = 77;
		int ret = mr_register(f.m, &a, &key);

		if (ret != cases[i].ret)
			print_error("case %u\n", i);
		assert_int_equal(ret, cases[i].ret);
		if (ret == 0)
			assert_int_equal(mr_free(f.m, key), 0);
		else
			assert_int_equal(key, 77);
	}
	fix_close(&f);
}

static void mr_register__until_no_key_is_left(void **state)
{
	uint32_t *keys = calloc(KEYS_MAX, sizeof(*keys));
	uint32_t n, key = 0;
	struct mr_attr a;
	struct fix f;

	(void)state;
	assert_non_null(keys);
	open_small(&f);
	a = (struct mr_attr){.pd = f.pd, .addr = 0x1000, .length = 1};
	for (n = 0; mr_register(f.m, &a, &keys[n]) == 0; n++)
		;
	assert_int_equal(n, MR_MAX - 1);
	assert_int_equal(mr_register(f.m, &a, &key), -ENOMEM);
	for (uint32_t i = 0; i < n; i += 1000)
		assert_int_equal(mr_revoke(f.m, keys[i]), 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(mr_free(f.m, keys[i]), 0);
	assert_int_equal(mr_register(f.m, &a, &key), 0);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
	free(keys);
}

/* Rows of keys are made, but nothing larger. */
static bool short_of_memory;

void *__real_heap_alloc(size_t bytes);
void *__wrap_heap_alloc(size_t bytes);

void *__wrap_heap_alloc(size_t bytes)
{
	if (short_of_memory && bytes > KEY_CHUNK * sizeof(struct key_row))
		return NULL;
	return __real_heap_alloc(bytes);
}

/* What is refused for want of memory uses up no key. */
static void mr_register__while_memory_is_short(void **state)
{
	uint32_t key[KEY_CHUNK], n = 0, other = 0, made;
	struct mr_attr a;
	struct fix f;

	(void)state;
	open_small(&f);
	a = (struct mr_attr){.pd = f.pd, .length = 1};
	do
		assert_int_equal(mr_register(f.m, &a, &key[n++]), 0);
	while (f.m->keys.fresh < f.m->keys.made);
	made = f.m->keys.made;
	assert_int_equal(mr_free(f.m, key[0]), 0);
	short_of_memory = true;
	for (int i = 0; i < 3; i++)
		assert_int_equal(mr_register(f.m, &a, &other), -ENOMEM);
	short_of_memory = false;
	assert_int_equal(f.m->keys.made, made);
	assert_int_equal(f.m->keys.fresh, made);
	assert_int_equal(f.m->keys.num_free, 1);
	assert_int_equal(mr_register(f.m, &a, &key[0]), 0);
	assert_int_equal(f.m->keys.made, made + KEY_CHUNK);
	while (n-- > 0)
		assert_int_equal(mr_free(f.m, key[n]), 0);
	fix_close(&f);
}

/* Also where there are as many as there may be: too few are free then. */
static void mr_register__keys_come_back_late_where_most_are_used(void **state)
{
	uint32_t *keys = calloc(MR_MAX, sizeof(*keys));
	uint32_t n = 0, old, key = 0;
	struct mr_attr a;
	struct fix f;

	(void)state;
	assert_non_null(keys);
	open_small(&f);
	a = (struct mr_attr){.pd = f.pd, .length = 1};
	while (mr_register(f.m, &a, &keys[n]) == 0)
		n++;
	old = keys[--n];
	assert_int_equal(mr_free(f.m, old), 0);
	for (uint32_t i = 1; i < KEY_CHUNK << KEY_GEN_BITS; i++) {
		assert_int_equal(mr_register(f.m, &a, &key), 0);
		assert_int_not_equal(key >> KEY_LOW_BITS, old >> KEY_LOW_BITS);
		assert_int_equal(mr_free(f.m, key), 0);
	}
	while (n-- > 0)
		assert_int_equal(mr_free(f.m, keys[n]), 0);
	fix_close(&f);
	free(keys);
}

/* The same upper 24 bits come back only after 64 * 1024 others. */
static void mr_register__keys_come_back_late(void **state)
{
	uint32_t *last = calloc(1 << KEY_BITS, sizeof(*last));
	struct mr_attr a;
	uint32_t key = 0;
	struct fix f;

	(void)state;
	assert_non_null(last);
	open_small(&f);
	a = (struct mr_attr){.pd = f.pd, .length = 1};
	for (uint32_t i = 1; i < 200000; i++) {
		uint32_t *l;

		assert_int_equal(mr_register(f.m, &a, &key), 0);
		assert_int_equal(mr_free(f.m, key), 0);
		l = &last[key >> KEY_LOW_BITS];
		assert_true(*l == 0 || i - *l >= KEY_CHUNK << KEY_GEN_BITS);
		*l = i;
	}
	assert_true(f.m->keys.made <= 2 * KEY_CHUNK);
	fix_close(&f);
	free(last);
}

static void mr_query__what_was_registered(void **state)
{
	struct mr_attr a = {.addr = 0x1234,
			    .iova = 0x9999,
			    .length = 17,
			    .access = ACCESS_REMOTE_READ},
		       got;
	struct fix f;
	uint32_t key;

	(void)state;
	open_small(&f);
	a.pd = f.pd;
	assert_int_equal(mr_register(f.m, &a, &key), 0);
	assert_int_equal(mr_query(f.m, key, &got), 0);
	assert_int_equal(got.pd, a.pd);
	assert_int_equal(got.addr, a.addr);
	assert_int_equal(got.iova, a.iova);
	assert_int_equal(got.length, a.length);
	assert_int_equal(got.access, a.access);
	assert_int_equal(mr_revoke(f.m, key), 0);
	assert_int_equal(mr_query(f.m, key, &got), 0);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(mr_query(f.m, key, &got), -ENOENT);
	fix_close(&f);
}

/* Never while something moves that was let in before. */
static void mr_change__rights_and_pd(void **state)
{
	struct mr_attr got;
	struct dma d;
	struct fix f;
	uint32_t key, pd;

	(void)state;
	open_small(&f);
	pd = (uint32_t)pd_alloc(f.m);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, FIX_RIGHTS);
	d = fix_dma(&f, 0x1000, 8, true);
	d.key = key;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(mr_change(f.m, key, pd, 0), -EBUSY);
	assert_int_equal(mr_change(f.m, key, pd, ACCESS_REMOTE_WRITE), -EINVAL);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(mr_change(f.m, key, f.pd, ACCESS_LOCAL_WRITE), 0);
	assert_int_equal(fix_run(&f, &d, NULL), V_PROT);
	assert_int_equal(mr_change(f.m, key, pd, FIX_RIGHTS), 0);
	assert_int_equal(fix_run(&f, &d, NULL), V_PROT);
	d.pd = pd;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(mr_query(f.m, key, &got), 0);
	assert_int_equal(got.access, FIX_RIGHTS);
	assert_int_equal(got.addr, 0x1000);
	/* who uses which PD is known */
	assert_int_equal(pd_dealloc(f.m, pd), -EBUSY);
	assert_int_equal(mr_change(f.m, key, f.pd, FIX_RIGHTS), 0);
	assert_int_equal(pd_dealloc(f.m, pd), 0);
	assert_int_equal(mr_revoke(f.m, key), 0);
	assert_int_equal(mr_change(f.m, key, f.pd, FIX_RIGHTS), -ENOENT);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(mr_change(f.m, key, f.pd, 0), -ENOENT);
	fix_close(&f);
}

static void mr_revoke__unreachable_at_once(void **state)
{
	struct fix f;
	uint32_t key;

	(void)state;
	open_small(&f);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
	assert_int_equal(mr_revoke(f.m, key), 0);
	assert_int_equal(try_key(&f, f.pd, key), V_PROT);
	assert_int_equal(mr_revoke(f.m, key), 0);
	assert_int_equal(mr_revoke(f.m, key ^ 1), -ENOENT);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(mr_revoke(f.m, key), -ENOENT);
	fix_close(&f);
}

static void mr_free__waits_for_holds(void **state)
{
	struct dma d;
	struct fix f;
	uint32_t key;

	(void)state;
	open_small(&f);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, FIX_RIGHTS);
	d = fix_dma(&f, 0x1000, 8, true);
	d.key = key;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(mr_free(f.m, key), -EBUSY);
	assert_int_equal(fix_run(&f, &d, NULL), V_PROT);
	dma_release(f.m, &f.holds, 1, true, f.now);
	assert_int_equal(mr_free(f.m, key), -EBUSY);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(mr_free(f.m, key), -ENOENT);
	fix_close(&f);
}

static void mr_invalidate__own_pd_only(void **state)
{
	struct fix f;
	uint32_t key, pd;

	(void)state;
	open_small(&f);
	pd = (uint32_t)pd_alloc(f.m);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
	assert_int_equal(mr_invalidate(f.m, pd, key), V_PROT);
	assert_int_equal(mr_invalidate(f.m, f.pd, key ^ 1), V_PROT);
	assert_int_equal(try_key(&f, f.pd, key), V_OK);
	assert_int_equal(mr_invalidate(f.m, f.pd, key), V_OK);
	assert_int_equal(mr_invalidate(f.m, f.pd, key), V_PROT);
	assert_int_equal(try_key(&f, f.pd, key), V_PROT);
	/* The program does not know and deregisters as usual. */
	assert_int_equal(mr_revoke(f.m, key), 0);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* Who invalidates waits for the moves, as who deregisters does. */
static void mr_idle__once_the_last_move_ended(void **state)
{
	uint32_t key, other;
	struct dma d;
	struct fix f;

	(void)state;
	open_small(&f);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, FIX_RIGHTS);
	other = fix_mr(&f, 0x1000, 0x1000, 4096, FIX_RIGHTS);
	assert_true(mr_idle(f.m, key));
	d = fix_dma(&f, 0x1000, 8, true);
	d.key = key;
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_int_equal(fix_run(&f, &d, NULL), V_OK);
	assert_false(mr_idle(f.m, key));
	assert_int_equal(mr_invalidate(f.m, f.pd, key), V_OK);
	assert_false(mr_idle(f.m, key));
	assert_true(mr_idle(f.m, other));
	dma_release(f.m, &f.holds, 1, true, f.now);
	assert_false(mr_idle(f.m, key));
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_true(mr_idle(f.m, key));
	assert_int_equal(mr_free(f.m, key), 0);
	assert_true(mr_idle(f.m, key));
	assert_int_equal(mr_free(f.m, other), 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pd_alloc__numbers),
		cmocka_unit_test(pd_alloc__bounded),
		cmocka_unit_test(pd_dealloc__busy_with_users),
		cmocka_unit_test(mr_register__valid),
		cmocka_unit_test(mr_register__until_no_key_is_left),
		cmocka_unit_test(mr_register__while_memory_is_short),
		cmocka_unit_test(mr_register__keys_come_back_late),
		cmocka_unit_test(
			mr_register__keys_come_back_late_where_most_are_used),
		cmocka_unit_test(mr_query__what_was_registered),
		cmocka_unit_test(mr_change__rights_and_pd),
		cmocka_unit_test(mr_revoke__unreachable_at_once),
		cmocka_unit_test(mr_free__waits_for_holds),
		cmocka_unit_test(mr_invalidate__own_pd_only),
		cmocka_unit_test(mr_idle__once_the_last_move_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
