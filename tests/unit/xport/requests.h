/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* requests.h: a connection (bench.h) that may send what a test posts. All pages are there,
 * and PSNs wrap within the first requests.
 */
#ifndef NOPIN_TESTS_UNIT_XPORT_REQUESTS_H
#define NOPIN_TESTS_UNIT_XPORT_REQUESTS_H

#include "bench.h"
#include "ring/cqe.h"
#include "ring/wqe.h"
#include "xport/burst.h"
#include "xport/req.h"
#include "xport/tx.h"

enum { MTU = BENCH_MTU, PSN = PSN_MASK - 1, DEST = 99, RETRIES = 3 };
enum { BUDGET = 1 << 20, READ_CHUNK = 64, READS = 16, CWND = 80 };

static struct bench s;
static struct burst b;

static inline int setup_as(enum peer_kind kind)
{
	bench_open(&s, kind, PSN);
	s.peer.path.gso = true;
	s.peer.flow.budget = BUDGET;
	s.peer.quota.slots = BENCH_SLOTS;
	s.peer.read_chunk = READ_CHUNK;
	s.x.budget.push = s.x.budget.read = BUDGET;
	s.x.peers = 1;
	s.qp.attr.max_rd_atomic = READS;
	s.qp.attr.retry_cnt = s.qp.attr.rnr_retry = RETRIES;
	s.qp.attr.dest_qpn = DEST;
	s.qp.attr.sq_psn = PSN;
	req_reset(&s.qp);
	s.qp.req.cwnd = CWND;
	for (unsigned i = 0; i < BENCH_PAGES; i++)
		bench_page_comes(&s, i);
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	return setup_as(PEER_NOPIN);
}

static inline int setup_standard(void **state)
{
	(void)state;
	return setup_as(PEER_STANDARD);
}

static inline int teardown(void **state)
{
	(void)state;
	bench_close(&s);
	return 0;
}

/* Tests with a nopin peer, with a standard one, or with each. */
#define NOPIN(f)    cmocka_unit_test_setup_teardown(f, setup, teardown)
#define STANDARD(f) cmocka_unit_test_setup_teardown(f, setup_standard, teardown)
#define BOTH(f)	    NOPIN(f), STANDARD(f)

/* The request @id, of the @len bytes from the page @id on. posted() posts it. */
static inline struct wqe *make(uint8_t op, uint64_t id, uint32_t len)
{
	struct wqe *w = wq_reserve(&s.sq);

	assert_non_null(w);
	*w = (struct wqe){.wr_id = id,
			  .op = op,
			  .flags = WQE_SIGNALED,
			  .length = len,
			  .num_sge = 1,
			  .raddr = BENCH_BASE,
			  .rkey = s.key};
	*wqe_sge(w) = (struct sge){bench_page((unsigned)id), len, s.key};
	return w;
}

static inline void posted(void)
{
	wq_publish(&s.sq);
	qp_posted(&s.qp);
}

static inline void post(uint8_t op, uint64_t id, uint32_t len)
{
	make(op, id, len);
	posted();
}

/* The next completion. */
static inline void completes(uint64_t id, enum wc_status status)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, id);
	assert_int_equal(e.status, status);
}

static inline void none_completes(void)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
}

#endif
