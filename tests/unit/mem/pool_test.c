/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pool_test.c: slots of the redirect pool. */
#include "fixture.h"
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/use.h"

static void slot_get__each_once(void **state)
{
	bool seen[FIX_SLOTS] = {0};
	struct fix f;

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	for (unsigned i = 0; i < FIX_SLOTS; i++) {
		int slot = slot_get(f.m);

		assert_in_range(slot, 0, FIX_SLOTS - 1);
		assert_false(seen[slot]);
		seen[slot] = true;
		assert_int_equal(slots_free(f.m), FIX_SLOTS - 1 - i);
	}
	assert_int_equal(slot_get(f.m), -EAGAIN);
	slot_put(f.m, 3);
	assert_int_equal(slot_get(f.m), 3);
	for (int i = 0; i < FIX_SLOTS; i++)
		slot_put(f.m, i);
	assert_int_equal(slots_free(f.m), FIX_SLOTS);
	assert_int_equal(f.cnt.v[CNT_slots_used_max], FIX_SLOTS);
	fix_close(&f);
}

/* What is used again at once stays warm. */
static void slot_get__last_in_first_out(void **state)
{
	struct fix f;
	int a, b;

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	a = slot_get(f.m);
	b = slot_get(f.m);
	slot_put(f.m, a);
	assert_int_equal(slot_get(f.m), a);
	slot_put(f.m, b);
	slot_put(f.m, a);
	assert_int_equal(f.cnt.v[CNT_slots_used_max], 2);
	fix_close(&f);
}

static void slot_data__disjoint(void **state)
{
	struct fix f;

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	for (int i = 0; i < FIX_SLOTS; i++)
		assert_ptr_equal(slot_data(f.m, i), f.slot + i * SLOT_BYTES);
	fix_close(&f);
}

/* What is taken stays; nothing more is given. */
static void slots_bound__no_more(void **state)
{
	struct fix f;
	int slot[5];

	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	for (int i = 0; i < 4; i++)
		slot[i] = slot_get(f.m);
	slots_bound(f.m, 5);
	assert_int_equal(slots_free(f.m), 1);
	slots_bound(f.m, 2);
	assert_int_equal(slots_free(f.m), 0);
	assert_int_equal(slots_used(f.m), 4);
	assert_int_equal(slot_get(f.m), -EAGAIN);
	for (int i = 0; i < 3; i++)
		slot_put(f.m, slot[i]);
	assert_int_equal(slots_free(f.m), 1);
	slot[0] = slot_get(f.m);
	assert_true(slot[0] >= 0);
	assert_int_equal(slot_get(f.m), -EAGAIN);
	slots_bound(f.m, UINT32_MAX);
	assert_int_equal(slots_free(f.m), FIX_SLOTS - 2);
	slot_put(f.m, slot[0]);
	slot_put(f.m, slot[3]);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slot_get__each_once),
		cmocka_unit_test(slot_get__last_in_first_out),
		cmocka_unit_test(slot_data__disjoint),
		cmocka_unit_test(slots_bound__no_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
