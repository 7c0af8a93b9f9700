/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* arbiter_test.c: two NICs of a simulated machine share a table of pages. Who gets how
 * much is base/fair_test.c's, and what it is like when they work, sim/budget.c's.
 */
#include "../simhost/pair.h"
#include "base/page.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/table.h"
#include "nic/arbiter.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/progress.h"
#include "os/run.h"
#include "wire/roce.h"

enum { BUDGET = 4096, ONE_MS = 1000 * 1000, FIRST = 0x5000, OTHERS = 0x900000 };

static struct sim *sim;
static struct nic *nic, *greedy;
static uint32_t pd, key;

static struct nic *open_nic(void)
{
	const struct nic_config cfg = {.os = {.pagers = PAGERS},
				       .log = LOG_WARN,
				       .entries = BUDGET,
				       .pool_bytes = 64 * MTU_MAX,
				       .tickets = 64,
				       .arbiter = ARBITER_FAIR,
				       .budget = BUDGET,
				       .weight = 100};
	struct nic *n;

	sim_host_use(
		sim_host_add(sim, &(struct sim_host_config){.machine = 1}));
	assert_int_equal(nic_open(&n, &cfg), 0);
	return n;
}

static int setup(void **state)
{
	(void)state;
	sim = sim_open(1);
	nic = open_nic();
	greedy = open_nic();
	key = 0;
	return nic_pd_alloc(nic, &pd);
}

static int teardown(void **state)
{
	(void)state;
	if (key)
		assert_int_equal(nic_mr_dereg(nic, key), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), 0);
	nic_close(nic);
	nic_close(greedy);
	sim_close(sim);
	return 0;
}

static void map(struct nic *n, uint64_t vpn, uint64_t pages)
{
	nic_lock(n);
	spt_map(n->mem, vpn, pages, true, os_now(n->os));
	nic_unlock(n);
}

/* The other one wants all that it can get, and each looks often. */
static void pass(unsigned ms)
{
	static uint64_t vpn = OTHERS;

	for (; ms > 0; ms -= 10, vpn += BUDGET) {
		map(greedy, vpn, BUDGET);
		sim_run(sim, sim_now(sim) + 10 * ONE_MS);
		(void)arbiter_turn(greedy, TIME_NEVER);
		(void)arbiter_turn(nic, TIME_NEVER);
	}
}

/* A set keeps two entries for minimums, so half of the table must be theirs: however
 * little else there is, that much is asked for, or what is promised goes. */
static void arbiter_turn__promises_are_asked_for(void **state)
{
	/* a power of two: then each set has as many of them as any other */
	enum { NEEDED = BUDGET / 8, FEW = NEEDED / 4 };
	struct mr_attr a = {.addr = FIRST * PAGE_BYTES,
			    .length = NEEDED * PAGE_BYTES,
			    .access = ACCESS_LOCAL_WRITE,
			    .minimum = NEEDED};

	(void)state;
	a.pd = pd;
	assert_int_equal(nic_mr_reg(nic, &a, &key), 0);
	map(nic, FIRST, NEEDED);
	sim_run(sim, sim_now(sim) + 3 * ONE_MS);
	map(nic, OTHERS, FEW);
	pass(500);
	assert_int_equal(spt_known(nic->mem, FIRST, NEEDED), NEEDED);
	assert_int_equal(nic->cnt.v[CNT_spt_below], 0);
	assert_in_range(nic->arbiter.share[ARB_ENTRIES], 2 * NEEDED,
			2 * NEEDED + NEEDED / 4);
}

/* What is neither is lent. */
static void arbiter_turn__what_is_not_used_is_lent(void **state)
{
	enum { FEW = 200 };

	(void)state;
	map(nic, OTHERS, FEW);
	pass(500);
	assert_in_range(nic->arbiter.share[ARB_ENTRIES], FEW, 2 * FEW);
	assert_int_equal(spt_known(nic->mem, OTHERS, FEW), FEW);
}

#define sim_test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		sim_test(arbiter_turn__promises_are_asked_for),
		sim_test(arbiter_turn__what_is_not_used_is_lent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
