/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* bench.h: one connection in RTS with memory of its own: a region of PAGES pages, none of
 * which is there, and queues for what it sends and receives.
 */
#ifndef NOPIN_TESTS_UNIT_XPORT_BENCH_H
#define NOPIN_TESTS_UNIT_XPORT_BENCH_H

#include "base/check.h"
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/deadline.h"
#include "xport/owe.h"
#include "xport/window.h"

#define BENCH_MS    UINT64_C(1000000)
#define BENCH_BEGIN (1000 * BENCH_MS)

enum {
	BENCH_MTU = 1024,
	BENCH_SLOTS = 64,
	BENCH_BASE = 0x100000,
	BENCH_PAGES = 16,
	BENCH_WQES = 16,
	BENCH_MINE = 5, /* secrets of the connection */
	BENCH_THEIRS = 6,
};

struct bench {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq sq;
	struct rq rq;
	struct cq cq;
	struct peer peer;
	struct qp qp;
	struct rx_run run;
	uint32_t pd, key;
	void *slots;
};

/* Its peer is a nopin, or standard; the first PSN of either is @psn. */
static inline void bench_open(struct bench *b, enum peer_kind kind, psn_t psn)
{
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = 4791};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	const uint32_t all = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
			     ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC;
	struct mr_attr mr = {.addr = BENCH_BASE,
			     .iova = BENCH_BASE,
			     .length = BENCH_PAGES * PAGE_BYTES,
			     .access = all};
	struct qp_config cfg = {.transport = &transport_rc,
				.qpn = 7,
				.mtu = BENCH_MTU,
				.sq = &b->sq,
				.rq = &b->rq,
				.receives = &b->rq.source,
				.send_cq = &b->cq,
				.recv_cq = &b->cq};

	memset(b, 0, sizeof(*b));
	b->slots = open_memory_as(&b->mem, &b->x, &b->cnt, BENCH_SLOTS, 32,
				  true);
	b->x.now = BENCH_BEGIN;
	b->x.checked = true;
	b->x.strategies = strategy_set(STRATEGY_REDIRECT);
	cfg.pd = mr.pd = b->pd = (uint32_t)pd_alloc(b->mem);
	assert_int_equal(mr_register(b->mem, &mr, &b->key), 0);
	assert_int_equal(wq_init(&b->sq, BENCH_WQES, 2, 64), 0);
	assert_int_equal(rq_init(&b->rq, BENCH_WQES, 2, b->pd), 0);
	assert_int_equal(timerq_reserve(&b->x.timers, 1), 0);
	assert_int_equal(cq_init(&b->cq, BENCH_WQES), 0);
	list_init(&b->cq.link);
	peer_init(&b->peer, &ep, &local);
	b->peer.kind = PEER_STANDARD;
	connect_receiver(&b->qp, &b->x, &cfg, &b->peer, 0);
	b->peer.kind = kind;
	b->peer.refs = 1;
	/* the kind of the peer is known */
	list_del(&b->qp.open.link);
	b->qp.open.ask_at = TIME_NEVER;
	qp_rearm(&b->qp);
	b->qp.open.mine = BENCH_MINE;
	if (kind == PEER_NOPIN)
		b->qp.open.theirs = BENCH_THEIRS;
	b->qp.state = QPS_RTS;
	b->qp.attr.access = all;
	b->qp.attr.timeout = 14;
	b->qp.attr.retry_cnt = 7;
	b->qp.resp.plan = b->qp.resp.win.head = b->qp.resp.win.next = psn;
	rx_run_init(&b->run);
}

static inline void bench_close(struct bench *b)
{
	dma_release(b->mem, &b->run.holds, 0, false, b->x.now);
	b->qp.rx_moving = b->qp.tx_moving = false;
	qp_fini(&b->qp);
	cq_fini(&b->cq);
	rq_fini(&b->rq);
	wq_fini(&b->sq);
	assert_int_equal(mr_free(b->mem, b->key), 0);
	assert_int_equal(pd_dealloc(b->mem, b->pd), 0);
	xport_close(&b->x);
	mem_close(b->mem);
	free(b->slots);
}

/* The address of the page @i. */
static inline uint64_t bench_page(unsigned i)
{
	return BENCH_BASE + i * PAGE_BYTES;
}

static inline void bench_page_comes(struct bench *b, unsigned i)
{
	spt_map(b->mem, page_of(bench_page(i)), 1, true, b->x.now);
}

/* A packet @opcode of its peer. */
static inline struct pkt bench_pkt(const struct bench *b, uint8_t opcode,
				   psn_t psn)
{
	const bool ext = b->qp.open.theirs != 0;
	const uint8_t wire = ext ? opcode | OP_X_DATA : opcode;

	return (struct pkt){.op = opcode_info(wire)->flags & ~(uint32_t)OPF_EXT,
			    .opcode = opcode,
			    .ext = ext,
			    .epoch = b->qp.open.mine,
			    .psn = psn,
			    .va = BENCH_BASE,
			    .rkey = b->key};
}

/* @w waits for the page @i, to be written. */
static inline void bench_wait(struct bench *b, struct waiter *w, unsigned i)
{
	const struct dma d = {.pd = b->pd,
			      .key = b->key,
			      .iova = bench_page(i),
			      .len = 1,
			      .need = ACCESS_LOCAL_WRITE,
			      .write = true};
	static struct moves moves;
	static struct holds holds;

	assert_int_equal(dma_resolve(b->mem, &d, NULL, 0, b->x.now, 0, w,
				     &moves, &holds),
			 V_WAIT);
}

/* Post a receive of the @len bytes from page @i on. */
static inline void bench_receive(struct bench *b, uint64_t id, unsigned i,
				 uint32_t len)
{
	struct wqe *w = wq_reserve(&b->rq.wq);

	assert_non_null(w);
	*w = (struct wqe){
		.wr_id = id, .op = WR_RECV, .length = len, .num_sge = 1};
	*wqe_sge(w) = (struct sge){bench_page(i), len, b->key};
	wq_publish(&b->rq.wq);
}

#endif
