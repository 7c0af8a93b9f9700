/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* blame_test.c: which receive says what failed: that of the message that did. Of three
 * receives the second is outside its region; two messages come at once.
 */
#include "base/check.h"
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/xport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum {
	RECVS = 3,
	BAD = 1, /* of them */
	MESSAGES = 2,
	SLOTS = 16,
	MTU = 256,
	QKEY = 7,
	BASE = 0x100000,
};

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq *sq;
	struct rq *rq;
	struct cq cq;
	struct peer peer;
	struct qp qp;
	struct rx_run run;
	struct pkt pkt[MESSAGES];
	uint64_t posted;
	uint32_t pd, key;
} s;

static void post(uint64_t addr)
{
	struct wqe *w = wq_reserve(&s.rq->wq);

	assert_non_null(w);
	*w = (struct wqe){.wr_id = s.posted++,
			  .op = WR_RECV,
			  .length = PAGE_BYTES,
			  .num_sge = 1};
	*wqe_sge(w) = (struct sge){addr, PAGE_BYTES, s.key};
	wq_publish(&s.rq->wq);
}

static void connect(bool ud)
{
	const struct qp_config cfg = {.transport = ud ? &transport_ud
						      : &transport_rc,
				      .mtu = MTU,
				      .pd = s.pd,
				      .sq = s.sq,
				      .rq = s.rq,
				      .receives = &s.rq->source,
				      .send_cq = &s.cq,
				      .recv_cq = &s.cq};

	connect_receiver(&s.qp, &s.x, &cfg, &s.peer, QKEY);
}

/* Both messages have come, the first is about to move, and the second has failed. */
static int setup_as(void **state, bool ud)
{
	const uint8_t opcode = ud ? OP_UD_SEND_ONLY : OP_SEND_ONLY;
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = 4791};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	static uint8_t payload[MTU];
	struct mr_attr mr = {.addr = BASE,
			     .iova = BASE,
			     .length = RECVS * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 8, true);
	s.x.strategies = strategy_set(ud ? STRATEGY_BACKUP : STRATEGY_REDIRECT);
	s.pd = mr.pd = (uint32_t)pd_alloc(s.mem);
	assert_int_equal(mr_register(s.mem, &mr, &s.key), 0);
	s.sq = aligned_alloc(_Alignof(struct wq), sizeof(*s.sq));
	s.rq = aligned_alloc(_Alignof(struct rq), sizeof(*s.rq));
	assert_int_equal(wq_init(s.sq, 1, 1, 64), 0);
	assert_int_equal(rq_init(s.rq, RECVS, 1, s.pd), 0);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	assert_int_equal(cq_init(&s.cq, 2 * RECVS), 0);
	list_init(&s.cq.link);
	peer_init(&s.peer, &ep, &local);
	s.peer.kind = PEER_STANDARD;
	for (unsigned i = 0; i < RECVS; i++)
		post(BASE + i * PAGE_BYTES +
		     (i == BAD ? RECVS * PAGE_BYTES : 0));
	spt_map(s.mem, BASE >> PAGE_SHIFT, 1, true, 0);
	connect(ud);
	rx_run_init(&s.run);
	for (unsigned i = 0; i < MESSAGES; i++) {
		s.pkt[i] = (struct pkt){.op = opcode_info(opcode)->flags,
					.opcode = opcode,
					.psn = i,
					.qkey = QKEY,
					.payload_len = MTU};
		assert_int_equal(qp_rx(&s.qp, &s.pkt[i],
				       payload_of_step(payload), &s.run),
				 RX_NEXT);
	}
	assert_int_equal(s.run.num, 1);
	return 0;
}

static int setup_rc(void **state)
{
	return setup_as(state, false);
}

static int setup_ud(void **state)
{
	return setup_as(state, true);
}

static int teardown(void **state)
{
	qp_fini(&s.qp);
	cq_fini(&s.cq);
	wq_fini(s.sq);
	rq_fini(s.rq);
	free(s.sq);
	free(s.rq);
	assert_int_equal(mr_free(s.mem, s.key), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static void commit(bool ok)
{
	commit_run(&s.run, ok);
}

/* All receives have completed, in order; @first: the one that was about to move. */
static void completed(enum wc_status first, enum wc_status bad)
{
	struct cqe e;

	for (uint64_t i = 0; i < RECVS; i++) {
		assert_int_equal(cq_take(&s.cq, 1, &e), 1);
		assert_int_equal(e.wr_id, i);
		assert_int_equal(e.status, i == 0     ? first
					   : i == BAD ? bad
						      : WC_WR_FLUSH_ERR);
	}
	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
}

static void blame__behind_one_that_was_placed(void **state)
{
	(void)state;
	commit(true);
	assert_int_equal(s.qp.state, QPS_ERR);
	completed(WC_SUCCESS, WC_LOC_PROT_ERR);
}

/* The page of the first went; it is executed again, and so is the other. */
static void blame__behind_one_that_was_not_placed(void **state)
{
	(void)state;
	commit(false);
	assert_int_equal(s.qp.state, QPS_RTR);
	assert_false(qp_drain(&s.qp, &s.run)); /* it asks for its page */
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp, &s.run));
	commit(true);
	if (s.qp.state == QPS_ERR) {
		completed(WC_SUCCESS, WC_LOC_PROT_ERR);
		return;
	}
	/* a datagram that fails is lost; a request comes again */
	qp_error(&s.qp);
	completed(WC_SUCCESS, WC_WR_FLUSH_ERR);
}

/* The program ends the QP before that. */
static void blame__of_what_is_executed_again(void **state)
{
	(void)state;
	commit(false);
	qp_error(&s.qp);
	completed(WC_WR_FLUSH_ERR, WC_WR_FLUSH_ERR);
}

/* The program ends the QP while the first moves. */
static void blame__of_a_qp_that_ends(void **state)
{
	(void)state;
	qp_error(&s.qp);
	commit(true);
	completed(WC_WR_FLUSH_ERR, WC_LOC_PROT_ERR);
}

/* The place of the one that failed is posted again. */
static void blame__is_said_once(void **state)
{
	struct cqe e;

	(void)state;
	commit(true);
	completed(WC_SUCCESS, WC_LOC_PROT_ERR);
	for (unsigned i = 0; i < RECVS; i++)
		post(BASE);
	qp_posted(&s.qp);
	for (unsigned i = 0; i < RECVS; i++) {
		assert_int_equal(cq_take(&s.cq, 1, &e), 1);
		assert_int_equal(e.status, WC_WR_FLUSH_ERR);
	}
}

int main(void)
{
#define T(f)                                                                   \
	cmocka_unit_test_setup_teardown(f, setup_rc, teardown),                \
	{                                                                      \
		"UD: " #f, f, setup_ud, teardown, NULL                         \
	}
	const struct CMUnitTest tests[] = {
		T(blame__behind_one_that_was_placed),
		T(blame__behind_one_that_was_not_placed),
		T(blame__of_what_is_executed_again),
		T(blame__of_a_qp_that_ends),
		T(blame__is_said_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
