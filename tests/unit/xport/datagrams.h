/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* datagrams.h: a QP of datagrams in RTR with receives of a page each, of which none is
 * there, and one ticket.
 */
#ifndef NOPIN_TESTS_UNIT_XPORT_DATAGRAMS_H
#define NOPIN_TESTS_UNIT_XPORT_DATAGRAMS_H

#include "base/check.h"
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/pool.h"
#include "mem/spt.h"
#include "mem/state.h"
#include "mem/waiter.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/opcode.h"
#include "xport/aim.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/tx.h"
#include "xport/xport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	SLOTS = 16,
	QKEY = 7,
	BASE = 0x100000, /* where nothing is touched: nothing moves here */
	RECVS = 4,
	SECOND = 1000 * 1000 * 1000,
};

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq sq;
	struct rq rq;
	struct cq cq;
	struct qp qp;
	struct rx_run run;
	struct burst burst;
	uint32_t pd, key;
	struct pkt pkt[RECVS]; /* until the run is committed */
	unsigned pkts;
} s;

static inline void post_recv(uint64_t i)
{
	struct wqe *w = wq_reserve(&s.rq.wq);

	*w = (struct wqe){
		.wr_id = i, .op = WR_RECV, .length = PAGE_BYTES, .num_sge = 1};
	wqe_sge(w)[0] = (struct sge){BASE + i * PAGE_BYTES, PAGE_BYTES, s.key};
	wq_publish(&s.rq.wq);
}

static inline void ready(void)
{
	const struct qp_config cfg = {.transport = &transport_ud,
				      .mtu = 1024,
				      .pd = s.pd,
				      .sq = &s.sq,
				      .rq = &s.rq,
				      .receives = &s.rq.source,
				      .send_cq = &s.cq,
				      .recv_cq = &s.cq};
	static const uint32_t mask[] = {QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY,
					0};
	struct qp_attr a = {.port = 1, .qkey = QKEY};

	qp_init(&s.qp, &s.x, &cfg);
	for (unsigned i = 0; i < ARRAY_SIZE(mask); i++) {
		a.state = (enum qp_state)(QPS_INIT + i);
		assert_int_equal(
			qp_modify(&s.qp, &a, QPA_STATE | mask[i], NULL), 0);
	}
}

static inline int setup(void **state)
{
	struct mr_attr mr = {.addr = BASE,
			     .iova = BASE,
			     .length = 64 * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	memset(&s.cnt, 0, sizeof(s.cnt));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 1, true);
	s.x.strategies = strategy_set(STRATEGY_BACKUP);
	s.pd = mr.pd = (uint32_t)pd_alloc(s.mem);
	assert_int_equal(mr_register(s.mem, &mr, &s.key), 0);
	assert_int_equal(wq_init(&s.sq, RECVS, 1, 64), 0);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	assert_int_equal(rq_init(&s.rq, RECVS, 1, s.pd), 0);
	assert_int_equal(cq_init(&s.cq, 2 * RECVS), 0);
	list_init(&s.cq.link);
	ready();
	for (uint64_t i = 0; i < RECVS; i++)
		post_recv(i);
	rx_run_init(&s.run);
	return 0;
}

static inline int teardown(void **state)
{
	s.qp.rx_moving = s.qp.tx_moving = false;
	qp_fini(&s.qp);
	cq_fini(&s.cq);
	rq_fini(&s.rq);
	wq_fini(&s.sq);
	assert_int_equal(mr_free(s.mem, s.key), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

#endif
