/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h: a receive queue that several QPs share (IBTA 10.2.9). Receives are taken in the
 * order in which they were posted, and end in any order. Posters and the engine as in
 * wq.h.
 */
#ifndef NOPIN_RING_SRQ_H
#define NOPIN_RING_SRQ_H

#include "ring/receive.h"
#include "ring/wq.h"

#include <stdint.h>

/**
 * struct srq - Receives are in slots. Two rings of pointers say which slots are posted
 * and not taken, and which are free; each is filled by one side and emptied by the other.
 * Indices count for ever, and wrap at 2^32.
 * @slots:	memory of the slots alone
 * @posted, @free: the rings, of slots.mask + 1 pointers
 */
struct srq {
	struct receive_source source;
	struct wq slots;
	struct wqe **posted, **free;
	/* poster */
	uint32_t posted_end __attribute__((aligned(64)));
	uint32_t free_at;
	/* engine */
	uint32_t posted_at __attribute__((aligned(64)));
	uint32_t free_end;
};

/**
 * srq_init() - Initialize a queue of @slots > 0 receives of up to @max_sge SGEs.
 * @pd:		of the memory of its receives
 * Return: 0 or -ENOMEM.
 */
int srq_init(struct srq *q, uint32_t slots, uint32_t max_sge, uint32_t pd);
void srq_fini(struct srq *q);

/** srq_reserve() - Return a free slot for the poster, or NULL when all are used. */
struct wqe *srq_reserve(struct srq *q);

/** srq_publish() - Post the reserved slot, which is complete. */
void srq_publish(struct srq *q);

/** srq_left() - Return how many receives are posted and not taken. Context: the engine. */
uint32_t srq_left(const struct srq *q);

#endif
