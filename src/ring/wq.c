/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wq.c: work queues. The poster fills the slot at prod and publishes it, the
 * engine works on [cons, prod) and releases from the front; each index has one
 * writer. The meaning of a WQE, and which thread may post when, are left to verbs/ and
 * xport/ (IBTA 10.8.2 to 10.8.3).
 */
#include "ring/wq.h"
#include "base/check.h"
#include "base/heap.h"
#include "ring/order.h"
#include "ring/wqe.h"

#include <errno.h>
#include <stdlib.h>

/* So many slots can be told apart by 32-bit indices, with room to spare. */
enum { SLOTS_MAX = 1 << 30 };

static uint32_t pow2_at_least(uint32_t n)
{
	return n <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(n - 1));
}

static struct wqe *wq_slot(const struct wq *q, uint32_t index)
{
	return (struct wqe *)(q->mem + (size_t)(index & q->mask) * q->stride);
}

int wq_init(struct wq *q, uint32_t slots, uint32_t max_sge, uint32_t max_inline)
{
	const uint64_t data = MAX((uint64_t)max_sge * sizeof(struct sge),
				  (uint64_t)max_inline);
	const uint64_t stride = DIV_ROUND_UP(sizeof(struct wqe) + data,
					     _Alignof(struct wqe)) *
				_Alignof(struct wqe);
	uint32_t ring = pow2_at_least(MIN(slots, SLOTS_MAX));
	uint8_t *mem = NULL;

	if (slots > SLOTS_MAX || stride > UINT32_MAX)
		return -ENOMEM;
	if (slots) {
		/* large queues stay untouched until they are used */
		mem = heap_array(ring, stride);
		if (!mem)
			return -ENOMEM;
	}
	*q = (struct wq){
		.mem = mem,
		.slots = slots,
		.mask = ring - 1,
		.stride = (uint32_t)stride,
		.bytes = slots ? ring * stride : 0,
	};
	return 0;
}

void wq_fini(struct wq *q)
{
	heap_free(q->mem);
	*q = (struct wq){0};
}

struct wqe *wq_reserve_ahead(struct wq *q, uint32_t ahead)
{
	/* pairs with wq_release(): the engine has read what we overwrite */
	const uint32_t used = q->prod - load_acquire(&q->cons);

	if (ahead >= q->slots - used)
		return NULL;
	return wq_slot(q, q->prod + ahead);
}

struct wqe *wq_reserve(struct wq *q)
{
	return wq_reserve_ahead(q, 0);
}

void wq_publish_many(struct wq *q, uint32_t n)
{
	/* pairs with wq_end(): the WQEs are complete */
	store_release(&q->prod, q->prod + n);
}

void wq_publish(struct wq *q)
{
	wq_publish_many(q, 1);
}

uint32_t wq_end(const struct wq *q)
{
	/* pairs with wq_publish_many() */
	return load_acquire(&q->prod);
}

struct wqe *wq_at(const struct wq *q, uint32_t index)
{
	return wq_slot(q, index);
}

void wq_release(struct wq *q, uint32_t index)
{
	/* pairs with wq_reserve_ahead(): we are done with the slots */
	store_release(&q->cons, index);
}

void wq_reset(struct wq *q)
{
	store_release(&q->prod, 0);
	store_release(&q->cons, 0);
}
