/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pins_test.c: a page is locked exactly while somebody uses it, is kept by us, or
 * was locked by the program. On simulated memory, which knows all that is locked.
 */
#include "../simhost/pair.h"
#include "base/page.h"
#include "nic/device.h"
#include "nic/pins.h"
#include "os/pages.h"

enum { PAGES = 64, RANGES = 24 };

static struct pair pair;
static struct counters cnt;
static struct pins pins;
static uint64_t m;

static int setup(void **state)
{
	(void)state;
	pair = open_pair(1);
	m = sim_mmap(pair.a, PAGES * PAGE_BYTES, SIM_SWAP,
		     SIM_READ | SIM_WRITE);
	cnt = (struct counters){{0}};
	pins_open(&pins, pair.a, &cnt);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	pins_close(&pins);
	assert_int_equal(sim_locked_bytes(pair.a), 0);
	sim_close(pair.sim);
	return 0;
}

static int get(unsigned first, unsigned num)
{
	return pins_get(&pins, m + first * PAGE_BYTES, num * PAGE_BYTES, true);
}

static void put(unsigned first, unsigned num)
{
	pins_put(&pins, m + first * PAGE_BYTES, num * PAGE_BYTES);
}

static uint64_t locked(void)
{
	return sim_locked_bytes(pair.a) / PAGE_BYTES;
}

static bool is_locked(unsigned page)
{
	return sim_locked(pair.a, m + page * PAGE_BYTES);
}

/* Two that share a page, and one within another. */
static void pins_get__counts(void **state)
{
	(void)state;
	assert_int_equal(pins_get(&pins, m + 100, 1, true), 0);
	assert_int_equal(pins_get(&pins, m + 200, PAGE_BYTES, true), 0);
	assert_int_equal(locked(), 2);
	pins_put(&pins, m + 200, PAGE_BYTES);
	assert_true(is_locked(0));
	assert_int_equal(locked(), 1);
	pins_put(&pins, m + 100, 1);
	assert_int_equal(locked(), 0);
	assert_int_equal(get(0, 10), 0);
	assert_int_equal(get(4, 2), 0);
	put(0, 10);
	assert_int_equal(locked(), 2);
	put(4, 2);
	assert_int_equal(pins_get(&pins, m, 0, true), 0);
	pins_put(&pins, m, 0);
	assert_int_equal(locked(), 0);
}

static void pins_get__refused(void **state)
{
	(void)state;
	assert_int_equal(get(0, 4), 0);
	sim_lock_limit(pair.a, 8 * PAGE_BYTES);
	assert_int_equal(get(2, 10), -ENOMEM);
	assert_int_equal(locked(), 4);
	assert_int_equal(get(PAGES - 1, 2), -EFAULT);
	assert_int_equal(locked(), 4);
	assert_int_equal(cnt.v[CNT_pin_refused], 2);
	assert_int_equal(get(2, 6), 0);
	put(0, 4);
	assert_int_equal(locked(), 6);
	put(2, 6);
	assert_int_equal(cnt.v[CNT_pin_bytes_max], 8 * PAGE_BYTES);
}

static void pins_get__theirs(void **state)
{
	(void)state;
	assert_int_equal(os_pin(pair.a, m + 2 * PAGE_BYTES, PAGE_BYTES, true),
			 0);
	assert_int_equal(get(0, 8), 0);
	assert_int_equal(get(2, 1), 0);
	put(2, 1);
	put(0, 8);
	assert_int_equal(locked(), 1);
	assert_true(is_locked(2));
	/* it unlocks it: the next time it is ours */
	os_unpin(pair.a, m + 2 * PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(get(0, 8), 0);
	put(0, 8);
	assert_int_equal(locked(), 0);
}

static void pins_look__sticky(void **state)
{
	(void)state;
	pins.sticky = true;
	assert_int_equal(os_pin(pair.a, m + 2 * PAGE_BYTES, PAGE_BYTES, true),
			 0);
	assert_int_equal(pins_look(&pins, m, 8 * PAGE_BYTES), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(get(0, 8), 0);
		assert_int_equal(locked(), 8);
		put(0, 8);
		assert_int_equal(locked(), 1);
	}
	os_unpin(pair.a, m + 2 * PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(get(0, 4), 0);
	assert_false(is_locked(2));
	put(0, 4);
	assert_int_equal(pins_look(&pins, m, 8 * PAGE_BYTES), 0);
	assert_int_equal(get(0, 4), 0);
	assert_true(is_locked(2));
	put(0, 4);
	assert_int_equal(locked(), 0);
}

/* What is of no use stays locked until others need the room: the oldest goes. */
static void pins_put__keeps(void **state)
{
	(void)state;
	pins.limit = 8 * PAGE_BYTES;
	assert_int_equal(get(0, 4), 0);
	put(0, 4);
	assert_int_equal(get(10, 4), 0);
	put(10, 4);
	assert_int_equal(locked(), 8);
	assert_int_equal(get(1, 2), 0); /* a hit, which makes it young */
	put(1, 2);
	assert_int_equal(cnt.v[CNT_pin_hits], 1);
	assert_int_equal(cnt.v[CNT_pin_misses], 2);
	assert_int_equal(get(20, 1), 0);
	assert_int_equal(cnt.v[CNT_pin_evictions], 1);
	assert_false(is_locked(0)); /* older than the middle of it */
	assert_true(is_locked(1) && is_locked(10) && is_locked(20));
	/* more than the limit is in use: nothing is kept */
	assert_int_equal(get(30, 8), 0);
	assert_int_equal(locked(), 9);
	put(30, 8);
	put(20, 1);
	assert_true(locked() <= 8);
}

/* The kernel's limit is one, too; what is in use never goes. */
static void pins_get__kernel_limit(void **state)
{
	(void)state;
	pins.limit = UINT64_MAX;
	sim_lock_limit(pair.a, 8 * PAGE_BYTES);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(get(8 * i, 4), 0);
		put(8 * i, 4);
		assert_int_equal(locked(), i ? 8 : 4);
	}
	assert_int_equal(cnt.v[CNT_pin_evictions], 2);
	assert_int_equal(get(0, 6), 0);
	assert_int_equal(get(40, 4), -ENOMEM);
	for (unsigned i = 0; i < 6; i++)
		assert_true(is_locked(i));
	assert_int_equal(get(40, 2), 0);
	put(40, 2);
	put(0, 6);
	/* no room is made for what does not exist */
	assert_int_equal(get(PAGES - 1, 2), -EFAULT);
	assert_int_equal(locked(), 8);
}

/* The program unmapped what we keep: that unlocked it. */
static void pins_put__stale(void **state)
{
	(void)state;
	pins.limit = 8 * PAGE_BYTES;
	assert_int_equal(get(0, 8), 0);
	put(0, 8);
	assert_int_equal(sim_munmap(pair.a, m), 0);
	assert_int_equal(locked(), 0);
	assert_int_equal(
		sim_mmap_at(pair.a, m, 16 * PAGE_BYTES, SIM_SWAP, SIM_READ), 0);
	assert_int_equal(get(8, 8), 0); /* evicts it */
	assert_int_equal(locked(), 8);
	assert_int_equal(sim_munmap(pair.a, m), 0);
	put(8, 8);
	pins_close(&pins);
	assert_int_equal(cnt.v[CNT_pin_stale], 1);
	pins_open(&pins, pair.a, &cnt);
}

/* Any ranges in any order, against a count for each page. */
static void pins__model(void **state)
{
	struct {
		unsigned first, num;
	} r[RANGES] = {{0}};
	unsigned count[PAGES] = {0};
	struct sim *sim = pair.sim;

	(void)state;
	os_pin(pair.a, m + 7 * PAGE_BYTES, 3 * PAGE_BYTES, false);
	for (int step = 0; step < 20000; step++) {
		unsigned i = (unsigned)sim_between(sim, 0, RANGES - 1);
		int by = r[i].num ? -1 : 1;

		if (by > 0) {
			r[i].first = (unsigned)sim_between(sim, 0, PAGES - 1);
			r[i].num = (unsigned)sim_between(sim, 1,
							 PAGES - r[i].first);
			assert_int_equal(get(r[i].first, r[i].num), 0);
		} else {
			put(r[i].first, r[i].num);
		}
		for (unsigned k = 0; k < r[i].num; k++)
			count[r[i].first + k] += (unsigned)by;
		if (by < 0)
			r[i].num = 0;
		for (unsigned k = 0; k < PAGES; k++)
			assert_int_equal(is_locked(k),
					 count[k] || (k >= 7 && k < 10));
	}
	for (int i = 0; i < RANGES; i++)
		if (r[i].num)
			put(r[i].first, r[i].num);
	assert_int_equal(locked(), 3);
	assert_int_equal(pins.num, 0);
	os_unpin(pair.a, m, PAGES * PAGE_BYTES);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(pins_get__counts), TEST(pins_get__refused),
		TEST(pins_get__theirs), TEST(pins_look__sticky),
		TEST(pins_put__keeps),	TEST(pins_get__kernel_limit),
		TEST(pins_put__stale),	TEST(pins__model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
