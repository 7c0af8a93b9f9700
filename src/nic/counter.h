/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.h: event counters, and what waits for them. */
#ifndef NOPIN_NIC_COUNTER_H
#define NOPIN_NIC_COUNTER_H

#include "base/list.h"
#include "mem/eventcount.h"
#include "nic/event_counter.h"

#include <pthread.h>
#include <stdint.h>

struct nic;
struct os_thread;

/**
 * struct counter_user - A thread in nic_counter_wait() or nic_counter_run().
 * @target:	what it waits for; UINT64_MAX: nothing
 * @fd:		what wakes it; -1: nothing has to
 * @set:	@fd is
 * @shy:	it leaves the sockets to others, if there are some
 * @woken:	the value has come (atomic)
 * @handling:	it is in the program's handler
 */
struct counter_user {
	struct list link;
	struct nic_counter *counter; /* of nic_counter_run() */
	uintptr_t thread;
	uint64_t target;
	int fd;
	uint32_t woken;
	bool set, shy, handling;
};

/**
 * struct nic_counter
 * @word:	what the program reads
 * @ec:		engine lock
 * @spare:	descriptor that the last user left, or -1
 * @fd:		what the program polls, or -1; @polled: what it saw last
 * @gone:	no value comes any more
 * @nic:	NULL: there is none any more
 */
struct nic_counter {
	uint64_t word __attribute__((aligned(64)));
	struct eventcount ec;
	struct nic *nic;
	pthread_mutex_t lock;
	pthread_cond_t left;
	struct list users;
	int spare, fd;
	uint64_t polled;
	bool gone;
	int handler_fd;
	struct os_thread *thread;
	nic_counter_fn handler;
	void *arg;
};

/** counter_value() - Read the value; what the peer wrote before it is there, too. */
static inline uint64_t counter_value(const struct nic_counter *c)
{
	return __atomic_load_n(&c->word, __ATOMIC_ACQUIRE);
}

/** counter_wake() - Counter locked: wake the users that wait for @value or less. */
void counter_wake(struct nic_counter *c, uint64_t value);

/** counter_raised() - Engine lock held: wake who waits for its value. */
void counter_raised(struct eventcount *e);

/** counter_raise() - Engine lock held: as if a peer had, and all that follows. */
void counter_raise(struct nic_counter *c);

#endif
