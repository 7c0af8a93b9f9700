/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handoff.h: the engine lock, and how work that was left while another thread
 * held it is never forgotten (design D9; model: tests/model/handoff.pml).
 *
 * A thread that leaves work (a posted request, a packet, a due timer) calls
 * handoff_leave() and then handoff_try(). The holder of the lock clears the
 * mark before it looks for work, and looks at the mark again after it unlocked.
 * So at least one of the two sees the work: if the try fails, the holder has
 * not yet looked at the mark for the last time.
 */
#ifndef NOPIN_NIC_HANDOFF_H
#define NOPIN_NIC_HANDOFF_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct handoff {
	pthread_mutex_t lock;
	uint32_t pending;
};

static inline void handoff_init(struct handoff *h)
{
	pthread_mutex_init(&h->lock, NULL);
	h->pending = 0;
}

/** handoff_leave() - Note that there is work (again). */
static inline void handoff_leave(struct handoff *h)
{
	__atomic_store_n(&h->pending, 1, __ATOMIC_SEQ_CST);
}

/** handoff_left() - Is there work that no thread has taken on yet? */
static inline bool handoff_left(const struct handoff *h)
{
	return __atomic_load_n(&h->pending, __ATOMIC_SEQ_CST);
}

/** handoff_try() - Take the lock if it is free. */
static inline bool handoff_try(struct handoff *h)
{
	return pthread_mutex_trylock(&h->lock) == 0;
}

/** handoff_take() - Take on the work that was left so far. Lock held. */
static inline void handoff_take(struct handoff *h)
{
	__atomic_store_n(&h->pending, 0, __ATOMIC_SEQ_CST);
}

static inline void handoff_lock(struct handoff *h)
{
	pthread_mutex_lock(&h->lock);
}

/** handoff_unlock() - Give the lock back. The caller must look at handoff_left() then. */
static inline void handoff_unlock(struct handoff *h)
{
	pthread_mutex_unlock(&h->lock);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
