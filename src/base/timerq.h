/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* timerq.h: deadlines in order. Knows no clock. A binary heap of pointers,
 * sized when the owner adds timers, so that arming never allocates.
 */
#ifndef NOPIN_BASE_TIMERQ_H
#define NOPIN_BASE_TIMERQ_H

#include <stdint.h>

#define TIME_NEVER UINT64_MAX

/** struct timer - One deadline of its owner; embed it. @at_ns is read-only: TIME_NEVER
 * once it was disarmed. */
struct timer {
	uint64_t at_ns;
	uint32_t pos; /* index in the heap + 1, or 0 when not armed */
};

struct timerq {
	struct timer **heap;
	uint32_t num, cap;
};

void timerq_init(struct timerq *q);
void timerq_fini(struct timerq *q);

/**
 * timerq_reserve() - Make sure that @cap timers can be armed at once.
 * Return: 0 or -ENOMEM, the queue then unchanged.
 */
int timerq_reserve(struct timerq *q, uint32_t cap);

/** timerq_set() - Arm, move or (TIME_NEVER) disarm @t. */
void timerq_set(struct timerq *q, struct timer *t, uint64_t at_ns);

/** timerq_next() - Return the earliest deadline, or TIME_NEVER. */
uint64_t timerq_next(const struct timerq *q);

/** timerq_pop() - Disarm and return a timer due at @now_ns, or NULL. */
struct timer *timerq_pop(struct timerq *q, uint64_t now_ns);

#endif
