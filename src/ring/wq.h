/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wq.h: a work queue between the application's threads and the engine. One producer and
 * one consumer at a time: the posting threads take turns (a lock per queue), the engine
 * has the engine lock. Publication order is in acquire/release pairs inside ring/ only
 * (ring/order.h). struct wq is aligned to 64 bytes: embed it only in objects from
 * heap_alloc() or static ones.
 */
#ifndef NOPIN_RING_WQ_H
#define NOPIN_RING_WQ_H

#include "ring/wqe.h"

#include <stddef.h>
#include <stdint.h>

/**
 * struct wq - A ring of WQEs of equal stride. Indices count for ever and wrap
 * at 2^32, so the ring in memory is a power of two (@mask + 1).
 */
struct wq {
	uint8_t *mem;
	uint32_t slots; /* as many as the program asked for, exactly */
	uint32_t mask;
	uint32_t stride; /* bytes a WQE with its SGEs or inline data */
	size_t bytes;
	/* poster */
	uint32_t prod __attribute__((aligned(64)));
	/* engine */
	uint32_t cons __attribute__((aligned(64)));
};

/**
 * wq_init() - Initialize a queue of @slots >= 0; memory is mapped but not touched.
 * Return: 0 or -ENOMEM.
 */
int wq_init(struct wq *q, uint32_t slots, uint32_t max_sge,
	    uint32_t max_inline);
void wq_fini(struct wq *q);

/** wq_reserve() - Return the next free slot for the poster, or NULL when full. */
struct wqe *wq_reserve(struct wq *q);

/** wq_publish() - Publish the reserved slot, which is complete; the engine may see it. */
void wq_publish(struct wq *q);

/** wq_reserve_ahead() - Return the slot @ahead behind that of wq_reserve(), or NULL. */
struct wqe *wq_reserve_ahead(struct wq *q, uint32_t ahead);

/** wq_publish_many() - Publish the next @n slots, all reserved and complete. */
void wq_publish_many(struct wq *q, uint32_t n);

/** wq_end() - Return the index after the newest published WQE. Context: the engine. */
uint32_t wq_end(const struct wq *q);

/** wq_at() - Return the WQE at @index in [cons, wq_end()). Context: the engine. */
struct wqe *wq_at(const struct wq *q, uint32_t index);

/** wq_release() - Release all WQEs before @index, which are done with.
 * Context: the engine. */
void wq_release(struct wq *q, uint32_t index);

/** wq_reset() - Forget everything; no other thread may be using the queue. */
void wq_reset(struct wq *q);

#endif
