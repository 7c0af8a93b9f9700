/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.h: event counters of nic/: their users, and waking them (counter.c). Waiting,
 * handlers and life are in event_counter.c; the value and its identifier in
 * mem/eventcount.h.
 */
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
 * struct counter_user - A thread in nic_counter_wait() or nic_counter_run(). Its own, but
 * for what counter_wake() reads and writes, under nic_counter.lock.
 * @counter:	whose list of users it is on
 * @thread:	os_self(), so that a thread does not wake itself
 * @target:	value that it waits for; UINT64_MAX: none
 * @fd:		descriptor that wakes it, or negative
 * @woken:	@target was reached or the counter closed (atomic: read without the lock)
 * @set:	@fd was set and is to be cleared
 * @shy:	it leaves the sockets to other threads, if there are some
 * @handling:	it is in the program's handler
 */
struct counter_user {
	struct list link;
	struct nic_counter *counter;
	uintptr_t thread;
	uint64_t target;
	int fd;
	uint32_t woken;
	bool set, shy, handling;
};

/**
 * struct nic_counter - A counter in use by the program. Locks: doc/threads.md.
 * @word:	copy of the value, which the program reads (atomic)
 * @ec:		under the engine lock
 * @nic:	NULL once the counter is closed
 * @lock:	of @users, @spare, @fd, @polled and writes of @gone
 * @left:	signalled when a user left @users
 * @spare:	descriptor for the next user that needs one, or negative
 * @fd:		what the program polls, or negative; @polled: value it saw last
 * @gone:	it is closed: no value comes any more
 * @handler_fd, @thread, @handler, @arg: of the thread that calls the handler, if any
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

/** counter_value() - Read the value. Acquire: pairs with eventcount_raise(), so what the
 * peer wrote before is seen. */
static inline uint64_t counter_value(const struct nic_counter *c)
{
	return __atomic_load_n(&c->word, __ATOMIC_ACQUIRE);
}

/** counter_wake() - Wake the users whose target is @value or less. Context: c->lock. */
void counter_wake(struct nic_counter *c, uint64_t value);

/** counter_raised() - Wake the users whose target the value has reached, and make the
 * program's descriptor readable. Context: engine lock; takes the counter's. */
void counter_raised(struct eventcount *e);

/** counter_raise() - Raise by one and wake, as for a peer. Context: as counter_raised(). */
void counter_raise(struct nic_counter *c);

#endif
