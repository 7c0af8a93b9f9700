/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rq.h: the receive queue of one QP (IBTA 10.2.5). */
#ifndef NOPIN_RING_RQ_H
#define NOPIN_RING_RQ_H

#include "ring/receive.h"
#include "ring/wq.h"

#include <stdint.h>

/**
 * struct rq - Receives in the order in which they were posted.
 * @next:	engine: index of the one that is taken next; [wq.cons, @next) are out
 */
struct rq {
	struct receive_source source;
	struct wq wq;
	uint32_t next;
};

/** rq_init(), rq_fini() - Initialize and free as wq_init() and wq_fini() do.
 * @pd:	of the QP */
int rq_init(struct rq *q, uint32_t slots, uint32_t max_sge, uint32_t pd);
void rq_fini(struct rq *q);

/** rq_reset() - Forget everything; no other thread may be using the queue. */
void rq_reset(struct rq *q);

#endif
