/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* standby_test.c: who stands in for a background thread that seems blocked.
 * What that is good for is seen in tests/host/isolation.c.
 */
#include "nic/busy.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/standby.h"
#include "os/wait.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sys/prctl.h>

enum { PATIENCE_US = 10 * 1000 * 1000, LOOK_US = 1000 };

/* Atomic: its threads run before nic_open() has returned. */
static struct nic *nic;

static int setup(void **state)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				 .entries = 1 << 10,
				 .pool_bytes = 1 << 20};
	struct nic *opened;
	int err = nic_open(&opened, &cfg);

	(void)state;
	if (!err)
		__atomic_store_n(&nic, opened, __ATOMIC_RELEASE);
	return err;
}

static int teardown(void **state)
{
	(void)state;
	nic_close(nic);
	return 0;
}

static bool asleep(void)
{
	return __atomic_load_n(&nic->bg.standby_asleep, __ATOMIC_SEQ_CST);
}

void __real_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd);
void __wrap_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd);
void __real_os_kick(struct os *os);
void __wrap_os_kick(struct os *os);

/* Atomic: of the thread that stands in. */
static unsigned sleeps, overwritten, kicks;

static bool is_standby(void)
{
	char name[16];

	prctl(PR_GET_NAME, name);
	return strcmp(name, "nopin-standby") == 0;
}

void __wrap_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd)
{
	struct nic *of = __atomic_load_n(&nic, __ATOMIC_ACQUIRE);

	if (of && is_standby()) {
		__atomic_fetch_add(
			&overwritten,
			__atomic_load_n(&of->bg.until, __ATOMIC_SEQ_CST) ==
				deadline_ns,
			__ATOMIC_RELAXED);
		__atomic_fetch_add(&sleeps, 1, __ATOMIC_SEQ_CST);
	}
	__real_os_wait(os, what, deadline_ns, extra_fd);
}

void __wrap_os_kick(struct os *os)
{
	if (is_standby())
		__atomic_fetch_add(&kicks, 1, __ATOMIC_SEQ_CST);
	__real_os_kick(os);
}

static unsigned number(const unsigned *of)
{
	return __atomic_load_n(of, __ATOMIC_SEQ_CST);
}

static void until_asleep(void)
{
	for (int us = 0; us < PATIENCE_US && !asleep(); us += LOOK_US)
		usleep(LOOK_US);
	assert_true(asleep());
}

static void busy_mark__idle_nic_costs_nothing(void **state)
{
	unsigned before;

	(void)state;
	until_asleep();
	before = number(&sleeps);
	usleep(50 * LOOK_US);
	assert_true(asleep());
	assert_int_equal(number(&sleeps), before);
}

/* Somebody sleeps between turns until we say that the thread is back. When that sleeps
 * is its own affair, and it may have been kicked in a sleep of the other. */
static void stands_in(void (*begin)(struct nic *nic))
{
	unsigned before, kicked;

	until_asleep();
	before = number(&sleeps);
	kicked = number(&kicks);
	begin(nic);
	for (int us = 0; us < PATIENCE_US && number(&sleeps) < before + 3;
	     us += LOOK_US)
		usleep(LOOK_US);
	assert_true(number(&sleeps) >= before + 3);
	assert_false(asleep());
	busy_mark(nic, false);
	until_asleep();
	assert_int_equal(number(&overwritten), 0);
	assert_true(number(&kicks) > kicked);
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
