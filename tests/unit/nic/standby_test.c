/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* standby_test.c: who stands in for a background thread that seems blocked.
 * What that is good for is seen in tests/host/isolation.c.
 */
#include "nic/busy.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/standby.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_US = 10 * 1000 * 1000, LOOK_US = 1000 };

static struct nic *nic;

static int setup(void **state)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				 .entries = 1 << 10,
				 .pool_bytes = 1 << 20};

	(void)state;
	return nic_open(&nic, &cfg);
}

static int teardown(void **state)
{
	(void)state;
	nic_close(nic);
	return 0;
}

static bool asleep(void)
{
	return __atomic_load_n(&nic->standby_asleep, __ATOMIC_SEQ_CST);
}

/* The thread that sleeps between two turns says until when. */
static uint64_t sleeps_until(void)
{
	return __atomic_load_n(&nic->bg_until, __ATOMIC_SEQ_CST);
}

static void until_asleep(void)
{
	for (int us = 0; us < PATIENCE_US && !asleep(); us += LOOK_US)
		usleep(LOOK_US);
	assert_true(asleep());
}

static void busy_mark__idle_nic_costs_nothing(void **state)
{
	uint64_t until;

	(void)state;
	until_asleep();
	until = sleeps_until();
	usleep(50 * LOOK_US);
	assert_true(asleep());
	assert_int_equal(sleeps_until(), until);
}

/* Somebody sleeps between turns until we say that the thread is back. */
static void stands_in(void (*begin)(struct nic *nic))
{
	uint64_t until;

	until_asleep();
	until = sleeps_until();
	begin(nic);
	for (int i = 0; i < 3; i++, until = sleeps_until()) {
		for (int us = 0; us < PATIENCE_US && sleeps_until() == until;
		     us += LOOK_US)
			usleep(LOOK_US);
		assert_int_not_equal(sleeps_until(), until);
		assert_false(asleep());
	}
	busy_mark(nic, false);
	until_asleep();
}

static void works(struct nic *n)
{
	busy_mark(n, true);
}

/* Nobody works, but we say so: as if the thread did not come back. */
static void busy_mark__stands_in_until_it_is_back(void **state)
{
	(void)state;
	stands_in(works);
}

static void busy_call__stands_in_at_once(void **state)
{
	(void)state;
	stands_in(busy_call);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(busy_mark__idle_nic_costs_nothing),
		cmocka_unit_test(busy_mark__stands_in_until_it_is_back),
		cmocka_unit_test(busy_call__stands_in_at_once),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
