/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.h: the only memory ordering of the queues. Each use in wq.c and cq.c
 * names its pair. No fences: ThreadSanitizer does not know them. Private to
 * ring/.
 */
#ifndef NOPIN_RING_ORDER_H
#define NOPIN_RING_ORDER_H

#include <stdint.h>

/** load_acquire() - Read a value; all that the other side wrote before its
 * store_release() of it is visible.
 */
static inline uint32_t load_acquire(const uint32_t *p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void store_release(uint32_t *p, uint32_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Read-modify-writes of one variable have one order that all threads agree on,
 * and each synchronises with the one before it.
 */
static inline uint32_t or_acq_rel(uint32_t *p, uint32_t bits)
{
	return __atomic_fetch_or(p, bits, __ATOMIC_ACQ_REL);
}

static inline uint32_t xchg_acq_rel(uint32_t *p, uint32_t v)
{
	return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL);
}

#endif
