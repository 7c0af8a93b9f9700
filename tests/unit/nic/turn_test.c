/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turn_test.c: for how long the background thread leaves the NIC to threads of the
 * program that sleep for an event.
 */
#include "base/timerq.h"
#include "nic/attend.h"
#include "nic/due.h"
#include "nic/turn.h"
#include "side.h"

#include <unistd.h>

enum { LOOK_US = 1000, PATIENCE_US = 10 * 1000 * 1000, LONG_NS = 50000000 };

static int setup(void **state)
{
	(void)state;
	sides_open_usual();
	return 0;
}

/* As a thread of the program that begins, or ends, a sleep. */
static void blocks(struct nic *nic, int more)
{
	__atomic_fetch_add(&nic->sleepers.blocks, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&nic->sleepers.blocked, (uint32_t)more,
			   __ATOMIC_SEQ_CST);
}

static bool sleeps_long(const struct nic *nic)
{
	return __atomic_load_n(&nic->bg.left[0].ns, __ATOMIC_RELAXED) >=
		       LONG_NS &&
	       __atomic_load_n(&nic->bg.until, __ATOMIC_SEQ_CST) >
		       os_now(nic->os) + LONG_NS / 2;
}

/* What came as the connection began is taken by no such thread. */
static void await_long_sleep(struct nic *nic)
{
	for (int us = 0; us < PATIENCE_US && !sleeps_long(nic); us += LOOK_US) {
		if (__atomic_load_n(&nic->sleepers.lapsed, __ATOMIC_RELAXED) ==
		    __atomic_load_n(&nic->sleepers.blocks, __ATOMIC_RELAXED))
			blocks(nic, 0);
		usleep(LOOK_US);
	}
	assert_true(sleeps_long(nic));
}

static void write_ends(void)
{
	side_post(&side[0], (struct wqe){.op = WR_WRITE}, side[0].buf, 0);
	side_ended(&side[0], WC_SUCCESS, CAUSE_NONE);
}

/* A handler runs in its sleep, or has left it for good: packets do not wait for it. */
static void left__to_a_thread_that_does_not_come(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	for (int i = 0; i < 2; i++) {
		blocks(nic, 1);
		write_ends();
		/* the next one finds the background thread awake for packets */
		write_ends();
	}
	blocks(nic, -2);
}

/* The longer it sleeps the less often it is looked at. */
static void left__longer_and_longer(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	blocks(nic, 1);
	await_long_sleep(nic);
	write_ends();
	blocks(nic, -1);
}

void __real_os_kick(struct os *os);
void __wrap_os_kick(struct os *os);

/* By this thread: those of the NICs kick when they like. */
static __thread unsigned kicks;

void __wrap_os_kick(struct os *os)
{
	kicks++;
	__real_os_kick(os);
}

/* Of a background thread that sleeps for so long. */
static unsigned kicks_of(struct nic *nic, uint64_t sleep_ns)
{
	const uint64_t now = os_now(nic->os);
	const unsigned before = kicks;

	__atomic_store_n(&nic->bg.until, now + sleep_ns, __ATOMIC_SEQ_CST);
	due_left(nic, now);
	return kicks - before;
}

/* The background thread is woken, once, and only if it relied on that for long. */
static void due_left__wakes(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	assert_int_equal(kicks_of(nic, LONG_NS), 1);
	assert_int_equal(kicks_of(nic, POLLED_RECENTLY_NS), 0);
	write_ends();
}

void __real_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd);
void __wrap_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd);

static struct os *sleepless; /* of a NIC that has no threads */
static unsigned sleeps;

void __wrap_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd)
{
	if (os == sleepless)
		sleeps++;
	else
		__real_os_wait(os, what, deadline_ns, extra_fd);
}

/* The turn before saw a thread that sleeps, and is to sleep for long itself. */
static struct nic *open_after_a_turn(void)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				       .entries = 1 << 10,
				       .pool_bytes = 1 << 20,
				       .manual = true};
	struct nic *nic;

	assert_int_equal(nic_open(&nic, &cfg), 0);
	sleepless = nic->os;
	sleeps = 0;
	nic->deadline = TIME_NEVER;
	nic->polls.last_ns = 0;
	blocks(nic, 1);
	nic->bg.left[0] = (struct left){LONG_NS, nic->sleepers.blocks};
	return nic;
}

static unsigned sleeps_of(struct nic *nic)
{
	const unsigned before = sleeps;

	turn_sleep(nic, os_now(nic->os) + LONG_NS, OS_WAIT_TIMER);
	return sleeps - before;
}

/* A timer that is set between its look and its sleep is not slept over: nobody kicks a
 * thread that does not sleep yet. */
static void turn_sleep__of_a_deadline_set_meanwhile(void **state)
{
	struct nic *nic = open_after_a_turn();

	(void)state;
	assert_int_equal(sleeps_of(nic), 1);
	nic->deadline = os_now(nic->os) + LONG_NS / 10;
	assert_int_equal(sleeps_of(nic), 0);
	nic_close(nic);
}

/* Nor is it the NIC's sleeper any more that has left since, and polled once. */
static void turn_sleep__of_a_thread_that_left_meanwhile(void **state)
{
	struct nic *nic = open_after_a_turn();

	(void)state;
	blocks(nic, -1);
	nic->polls.last_ns = os_now(nic->os);
	assert_int_equal(sleeps_of(nic), 0);
	nic_close(nic);
}

/* Another that seems to sleep may have left its sleep by siglongjmp(). */
static void attend_block__wakes_as_it_leaves(void **state)
{
	struct os_signals sig = {.blocked = false};
	struct nic *nic = open_after_a_turn();
	const int fd = os_event_own();
	const uint32_t woken = 0;
	const uint64_t now = os_now(nic->os);
	unsigned before;

	(void)state;
	assert_true(fd >= 0);
	nic->cfg.manual = false; /* it has no threads still */
	nic->bg.until = now + 1000 * (uint64_t)LONG_NS;
	before = kicks;
	assert_int_equal(
		attend_block(nic, fd, &woken, now + LONG_NS / 50, &sig), 0);
	os_signals_restore(&sig);
	assert_int_equal(kicks, before + 1);
	nic->cfg.manual = true;
	os_event_close(fd);
	nic_close(nic);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(left__to_a_thread_that_does_not_come),
		TEST(left__longer_and_longer),
		TEST(due_left__wakes),
		cmocka_unit_test(attend_block__wakes_as_it_leaves),
		cmocka_unit_test(turn_sleep__of_a_deadline_set_meanwhile),
		cmocka_unit_test(turn_sleep__of_a_thread_that_left_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
