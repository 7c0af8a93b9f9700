/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.c: a program that knows nothing of nopin notifies one that does: its WRITEs
 * with immediate data raise a counter, which nothing is posted for. When the counter
 * has risen all of the WRITE is there, also where pages had to come first.
 *
 *   notify ROUNDS [standard]
 *   notify ROUNDS reader FD
 *
 * "standard": nor does its NIC know anything of nopin, nor ours of it. "reader":
 * the sender is at the other end of the stream socket FD, and its NIC may be any
 * (tests/net/interop).
 */
#include "notify.h"

#include <nopin.h>
#include <stdlib.h>
#include <string.h>

enum { EVICT = 8 };

static uint64_t rounds;

static enum nopin_wait way(uint64_t round)
{
	return round % 3 == 0	? NOPIN_WAIT_SPIN
	       : round % 3 == 1 ? NOPIN_WAIT_BLOCK
				: NOPIN_WAIT_FUTEX;
}

static uint64_t value(const struct nopin_counter *counter)
{
	return __atomic_load_n(nopin_counter_word(counter), __ATOMIC_ACQUIRE);
}

static void reader(int fd)
{
	struct nopin_counter *counter;
	static struct slow slow;
	uint8_t *base;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	base = host_map(NULL, NOTIFY_PAGES * PAGE);
	slow_open(&slow, SLOW_USER, base, NOTIFY_PAGES * PAGE, 20000);
	mr = host_reg(&h, base, NOTIFY_PAGES * PAGE);
	link_open(&l, &h, fd, mr);
	REQUIRE(nopin_qp_set_counting(l.qp, 1) == 0);
	REQUIRE(nopin_counter_create(h.pd, NULL, NULL, &counter) == 0);
	host_say(fd, nopin_counter_id(counter));
	for (uint64_t i = 1; i <= rounds; i++) {
		REQUIRE(nopin_counter_wait(counter, i, UINT64_MAX, way(i)) ==
			0);
		REQUIRE_EQ(value(counter), i);
		host_check(base + NOTIFY_OFFSET, NOTIFY_LEN, i);
		if (i % EVICT == 0)
			slow_evict(&slow, 0, NOTIFY_PAGES * PAGE);
		host_say(fd, i);
	}
	host_hear(fd);
	REQUIRE_EQ(value(counter), rounds);
	REQUIRE(nopin_counter_destroy(counter) == 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_LE(rounds / EVICT,
		   __atomic_load_n(&slow.faults, __ATOMIC_RELAXED));
}

int main(int argc, char **argv)
{
	int fd;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	REQUIRE(rounds > 0);
	if (argc == 3)
		setenv("NOPIN_TEST", argv[2], 1);
	host_start();
	if (argc == 4) {
		reader(atoi(argv[3]));
		return 0;
	}
	fd = host_fork(reader);
	notify_sender(fd, rounds);
	host_join();
	return 0;
}
