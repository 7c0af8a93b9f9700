/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requests.h: a connection (bench.h) that may send as much as a test posts. */
#ifndef NOPIN_TESTS_UNIT_XPORT_REQUESTS_H
#define NOPIN_TESTS_UNIT_XPORT_REQUESTS_H

#include "bench.h"
#include "ring/cqe.h"
#include "ring/wqe.h"
#include "xport/burst.h"
#include "xport/req.h"
#include "xport/tx.h"

enum { REQUESTS_BUDGET = 1 << 20, REQUESTS_CHUNK = 64, REQUESTS_READS = 16 };

/* The first PSN of its requests is @psn, too. No page is there. */
static inline void requests_open(struct bench *b, enum peer_kind kind,
				 psn_t psn)
{
	bench_open(b, kind, psn);
	b->peer.path.gso = true;
	b->peer.flow.budget = REQUESTS_BUDGET;
	b->peer.quota.slots = BENCH_SLOTS;
	b->peer.read_chunk = REQUESTS_CHUNK;
	b->x.budget.push = b->x.budget.read = REQUESTS_BUDGET;
	b->x.peers = 1;
	b->qp.attr.max_rd_atomic = REQUESTS_READS;
	b->qp.attr.rnr_retry = 7;
	b->qp.attr.sq_psn = psn;
	req_reset(&b->qp);
}

static inline void requests_pages_come(struct bench *b)
{
	for (unsigned i = 0; i < BENCH_PAGES; i++)
		bench_page_comes(b, i);
}

/* The request @id, of the @len bytes from the page @id on. requests_post() posts it. */
static inline struct wqe *requests_make(struct bench *b, uint8_t op,
					uint64_t id, uint32_t len)
{
	struct wqe *w = wq_reserve(&b->sq);

	assert_non_null(w);
	*w = (struct wqe){.wr_id = id,
			  .op = op,
			  .flags = WQE_SIGNALED,
			  .length = len,
			  .num_sge = 1,
			  .raddr = BENCH_BASE,
			  .rkey = b->key};
	*wqe_sge(w) = (struct sge){bench_page((unsigned)id), len, b->key};
	return w;
}

static inline void requests_post(struct bench *b)
{
	wq_publish(&b->sq);
	qp_posted(&b->qp);
}

#endif
