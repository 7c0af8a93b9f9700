/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.c: the receive queue of one QP, as a source of receives. */
#include "ring/rq.h"
#include "base/check.h"
#include "ring/receive.h"
#include "ring/wq.h"

#include <stddef.h>

static struct rq *rq_of(struct receive_source *s)
{
	return container_of(s, struct rq, source);
}

static const struct wqe *rq_peek(const struct receive_source *s, uint32_t k)
{
	const struct rq *q = container_of(s, const struct rq, source);
	const uint32_t index = q->next + k;

	return (int32_t)(wq_end(&q->wq) - index) > 0 ? wq_at(&q->wq, index)
						     : NULL;
}

static struct wqe *rq_take(struct receive_source *s)
{
	struct rq *q = rq_of(s);

	return q->next == wq_end(&q->wq) ? NULL : wq_at(&q->wq, q->next++);
}

static void rq_untake(struct receive_source *s, struct wqe *w)
{
	struct rq *q = rq_of(s);

	CHECK(q->next != q->wq.cons && w == wq_at(&q->wq, q->next - 1));
	q->next--;
}

static void rq_done(struct receive_source *s, struct wqe *w)
{
	struct rq *q = rq_of(s);

	CHECK(q->next != q->wq.cons && w == wq_at(&q->wq, q->wq.cons));
	wq_release(&q->wq, q->wq.cons + 1);
}

static const struct receive_ops rq_ops = {rq_peek, rq_take, rq_untake, rq_done};

int rq_init(struct rq *q, uint32_t slots, uint32_t max_sge, uint32_t pd)
{
	q->source = (struct receive_source){&rq_ops, pd};
	q->next = 0;
	return wq_init(&q->wq, slots, max_sge, 0);
}

void rq_fini(struct rq *q)
{
	wq_fini(&q->wq);
}

void rq_reset(struct rq *q)
{
	wq_reset(&q->wq);
	q->next = 0;
}
