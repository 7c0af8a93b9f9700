/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h: the engine lock, from below: nothing is done when it is given back. */
#ifndef NOPIN_NIC_LOCK_H
#define NOPIN_NIC_LOCK_H

#include <pthread.h>
#include <stdint.h>

struct nic;

/**
 * struct idle_wait - Threads that wait for a commit.
 * @waiters:	how many (engine lock)
 * @lock:	of what follows; @events: commits
 */
struct idle_wait {
	unsigned waiters;
	pthread_mutex_t lock;
	uint32_t events;
	pthread_cond_t committed;
};

/** nic_lock() - Take the engine lock; nic->x.now is the time from here on. */
void nic_lock(struct nic *nic);

/**
 * nic_time() - Say what time it is, with the engine lock held that was not taken by
 * nic_lock(), or that was given back since.
 * @now_ns:	time; where there was a later one already, because this one was read before
 *		the lock was free, that one stays
 */
void nic_time(struct nic *nic, uint64_t now_ns);

/** nic_wake_idle() - Wake the threads that wait for a commit: something was committed.
 * Engine lock held. */
void nic_wake_idle(struct nic *nic);

#endif
