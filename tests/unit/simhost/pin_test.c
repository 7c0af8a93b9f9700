/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pin_test.c: simulated locks are as the kernel's. */
#include "base/page.h"
#include "pair.h"

enum { PAGES = 4 };

static struct pair pair;
static uint64_t m;

static int setup(void **state)
{
	(void)state;
	pair = open_pair(1);
	m = sim_mmap(pair.a, PAGES * PAGE_BYTES, SIM_SWAP, SIM_READ);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	sim_close(pair.sim);
	return 0;
}

static void os_pin__stays(void **state)
{
	struct os *os = pair.a;

	(void)state;
	assert_int_equal(os_pin(os, m, 2 * PAGE_BYTES, true), 0);
	assert_true(sim_present(os, m + PAGE_BYTES));
	assert_int_equal(sim_locked_bytes(os), 2 * PAGE_BYTES);
	assert_int_equal(sim_evict(os, m + PAGE_BYTES, true), -EAGAIN);
	assert_int_equal(os_unpin(os, m, PAGE_BYTES + 1), 0);
	assert_int_equal(sim_locked_bytes(os), 0);
	assert_int_equal(sim_evict(os, m + PAGE_BYTES, true), 0);
	assert_int_equal(os_pin(os, m + PAGE_BYTES, PAGE_BYTES, false), 0);
	assert_false(sim_present(os, m + PAGE_BYTES));
}

static void os_pin__refused(void **state)
{
	struct os *os = pair.a;

	(void)state;
	assert_int_equal(os_pin(os, m, PAGES * PAGE_BYTES + 1, true), -EFAULT);
	sim_lock_limit(os, 2 * PAGE_BYTES);
	assert_int_equal(os_pin(os, m, 3 * PAGE_BYTES, true), -ENOMEM);
	assert_int_equal(sim_locked_bytes(os), 0);
	assert_int_equal(os_pin(os, m, 2 * PAGE_BYTES, true), 0);
	assert_int_equal(os_pin(os, m, 2 * PAGE_BYTES, true), 0);
}

static void os_unpin__unmapped(void **state)
{
	uint64_t addr = m, len = PAGES * PAGE_BYTES;
	struct os *os = pair.a;

	(void)state;
	assert_false(os_pinned(os, &addr, &len));
	addr = m;
	len = PAGES * PAGE_BYTES;
	assert_int_equal(os_pin(os, m + PAGE_BYTES, PAGE_BYTES, true), 0);
	assert_true(os_pinned(os, &addr, &len));
	assert_int_equal(addr, m + PAGE_BYTES);
	assert_int_equal(len, PAGE_BYTES);
	assert_int_equal(sim_munmap(os, m), 0);
	assert_int_equal(sim_locked_bytes(os), 0);
	assert_int_equal(os_unpin(os, addr, len), -EFAULT);
}

static void os_page_now__rights(void **state)
{
	struct os *os = pair.a;

	(void)state;
	assert_int_equal(os_page_now(os, m + 1, 2 * PAGE_BYTES, false), 0);
	assert_true(sim_present(os, m + 2 * PAGE_BYTES));
	assert_false(sim_present(os, m + 3 * PAGE_BYTES));
	assert_int_equal(os_page_now(os, m, 1, true), -EFAULT);
	assert_int_equal(os_page_now(os, m, PAGES * PAGE_BYTES + 1, false),
			 -EFAULT);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(os_pin__stays),
		TEST(os_pin__refused),
		TEST(os_unpin__unmapped),
		TEST(os_page_now__rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
