/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem_test.c: virtual memory and what the MMU hook is told of it. */
#include "base/page.h"
#include "pair.h"

static void sim_read__protection(void **state)
{
	struct pair p = open_pair(1);
	const uint64_t m = sim_mmap(p.a, 2 * PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	uint8_t b[2] = {1, 2};

	(void)state;
	assert_int_equal(sim_write(p.a, m + PAGE_BYTES - 1, b, 2), 0);
	assert_int_equal(sim_read(p.a, m + 2 * PAGE_BYTES - 1, b, 2), -EFAULT);
	assert_int_equal(sim_mprotect(p.a, m, SIM_READ), 0);
	assert_int_equal(sim_write(p.a, m, b, 1), -EFAULT);
	assert_int_equal(sim_read(p.a, m + PAGE_BYTES - 1, b, 2), 0);
	assert_int_equal(b[1], 2);
	assert_int_equal(sim_mprotect(p.a, m, SIM_NONE), 0);
	assert_int_equal(sim_read(p.a, m, b, 1), -EFAULT);
	assert_int_equal(sim_munmap(p.a, m), 0);
	assert_int_equal(sim_read(p.a, m, b, 1), -EFAULT);
	assert_int_equal(sim_mmap_at(p.a, m, PAGE_BYTES, SIM_SWAP, SIM_READ),
			 0);
	assert_int_equal(sim_mmap_at(p.a, m, PAGE_BYTES, SIM_SWAP, SIM_READ),
			 -EEXIST);
	assert_int_equal(sim_read(p.a, m + PAGE_BYTES - 1, b, 1), 0);
	assert_int_equal(b[0], 0);
	sim_close(p.sim);
}

/** struct told - What the hook was told, and what it answers. */
struct told {
	unsigned maps, unmaps, protects, alls;
	bool writable, busy;
};

static void told_map(void *arg, uint64_t vpn, uint64_t pages, bool writable)
{
	struct told *t = arg;

	(void)vpn, (void)pages;
	t->maps++;
	t->writable = writable;
}

static int told_unmap(void *arg, uint64_t vpn, uint64_t pages)
{
	struct told *t = arg;

	(void)vpn, (void)pages;
	t->unmaps++;
	return t->busy ? -EBUSY : 0;
}

static int told_protect(void *arg, uint64_t vpn, uint64_t pages)
{
	struct told *t = arg;

	(void)vpn, (void)pages;
	t->protects++;
	return t->busy ? -EBUSY : 0;
}

static void told_all(void *arg)
{
	((struct told *)arg)->alls++;
}

static void sim_mmu_hook__is_asked_first(void **state)
{
	struct sim *sim = sim_open(1);
	struct os *os = open_host(
		sim, (struct sim_host_config){.machine = 1, .exact = true},
		(struct os_config){.pagers = 1});
	const uint64_t m = sim_mmap(os, 2 * PAGE_BYTES, SIM_SWAP,
				    SIM_READ | SIM_WRITE);
	struct told t = {0};
	const struct sim_mmu_hook hook = {told_map, told_unmap, told_protect,
					  told_all, &t};
	uint8_t b = 1;

	(void)state;
	sim_mmu_hook(os, &hook);
	sim_read(os, m, &b, 1);
	sim_read(os, m, &b, 1);
	assert_int_equal(t.maps, 1);
	assert_true(t.writable);
	sim_fork(os);
	assert_int_equal(t.alls, 1);
	assert_int_equal(os_forks(os), 1);
	t.writable = false;
	sim_write(os, m, &b, 1);
	assert_int_equal(t.maps, 2);
	assert_true(t.writable);
	t.busy = true;
	assert_int_equal(sim_evict(os, m, false), -EBUSY);
	assert_true(sim_present(os, m));
	assert_int_equal(sim_mprotect(os, m, SIM_READ), -EBUSY);
	assert_int_equal(sim_write(os, m, &b, 1), 0);
	assert_int_equal(sim_munmap(os, m), -EBUSY);
	assert_int_equal(sim_read(os, m, &b, 1), 0);
	t.busy = false;
	assert_int_equal(sim_evict(os, m, false), 0);
	assert_int_equal(sim_mprotect(os, m, SIM_READ), 0);
	assert_int_equal(t.protects, 2);
	assert_int_equal(sim_mprotect(os, m, SIM_NONE), 0);
	assert_int_equal(t.unmaps, 4);
	assert_int_equal(sim_munmap(os, m), 0);
	sim_close(sim);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sim_read__protection),
		cmocka_unit_test(sim_mmu_hook__is_asked_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
