/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.c: a shared receive queue, as a source of receives. A slot is posted, taken or
 * free; a ring has room for all of them, so none can overflow. What is given back goes in
 * front of what is posted: the place of a receive that is taken is not used again before
 * that one is done and posted anew.
 */
#include "ring/srq.h"
#include "base/check.h"
#include "base/heap.h"
#include "ring/order.h"
#include "ring/receive.h"
#include "ring/wq.h"

#include <errno.h>
#include <stddef.h>

static struct srq *srq_of(struct receive_source *s)
{
	return container_of(s, struct srq, source);
}

/* pairs with srq_publish(): the WQEs are complete */
uint32_t srq_left(const struct srq *q)
{
	return load_acquire(&q->posted_end) - q->posted_at;
}

static const struct wqe *srq_peek(const struct receive_source *s, uint32_t k)
{
	const struct srq *q = container_of(s, const struct srq, source);

	return k < srq_left(q) ? q->posted[(q->posted_at + k) & q->slots.mask]
			       : NULL;
}

static struct wqe *srq_take(struct receive_source *s)
{
	struct srq *q = srq_of(s);

	return srq_left(q) ? q->posted[q->posted_at++ & q->slots.mask] : NULL;
}

static void srq_untake(struct receive_source *s, struct wqe *w)
{
	struct srq *q = srq_of(s);

	CHECK(srq_left(q) < q->slots.slots);
	q->posted[--q->posted_at & q->slots.mask] = w;
}

static void srq_done(struct receive_source *s, struct wqe *w)
{
	struct srq *q = srq_of(s);

	q->free[q->free_end & q->slots.mask] = w;
	/* pairs with srq_reserve(): we are done with the slot */
	store_release(&q->free_end, q->free_end + 1);
}

static const struct receive_ops srq_ops = {srq_peek, srq_take, srq_untake,
					   srq_done};

int srq_init(struct srq *q, uint32_t slots, uint32_t max_sge, uint32_t pd)
{
	const int err = wq_init(&q->slots, slots, max_sge, 0);
	size_t ring;

	if (err)
		return err;
	ring = (size_t)q->slots.mask + 1;
	q->posted = heap_array(2 * ring, sizeof(struct wqe *));
	if (!q->posted) {
		wq_fini(&q->slots);
		return -ENOMEM;
	}
	q->free = q->posted + ring;
	for (uint32_t i = 0; i < slots; i++)
		q->free[i] = wq_at(&q->slots, i);
	q->posted_at = q->posted_end = q->free_at = 0;
	q->free_end = slots;
	q->source = (struct receive_source){&srq_ops, pd};
	return 0;
}

void srq_fini(struct srq *q)
{
	heap_free(q->posted);
	wq_fini(&q->slots);
}

struct wqe *srq_reserve(struct srq *q)
{
	/* pairs with srq_done(): the engine has read what we overwrite */
	return load_acquire(&q->free_end) == q->free_at
		       ? NULL
		       : q->free[q->free_at & q->slots.mask];
}

void srq_publish(struct srq *q)
{
	q->posted[q->posted_end & q->slots.mask] =
		q->free[q->free_at++ & q->slots.mask];
	/* pairs with srq_left(): the WQE is complete */
	store_release(&q->posted_end, q->posted_end + 1);
}
