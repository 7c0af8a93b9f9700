/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_test.c: the order of datagrams where no ticket is to be had for the page that
 * the first of them needs, and where moves fail: neither happens to them in the
 * simulator.
 */
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

static void post_recv(uint64_t i)
{
	struct wqe *w = wq_reserve(&s.rq.wq);

	*w = (struct wqe){
		.wr_id = i, .op = WR_RECV, .length = PAGE_BYTES, .num_sge = 1};
	wqe_sge(w)[0] = (struct sge){BASE + i * PAGE_BYTES, PAGE_BYTES, s.key};
	wq_publish(&s.rq.wq);
}

static void ready(void)
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

static int setup(void **state)
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
	assert_int_equal(rq_init(&s.rq, RECVS, 1), 0);
	assert_int_equal(cq_init(&s.cq, 2 * RECVS), 0);
	list_init(&s.cq.link);
	ready();
	for (uint64_t i = 0; i < RECVS; i++)
		post_recv(i);
	rx_run_init(&s.run);
	return 0;
}

static int teardown(void **state)
{
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

/* Somebody else has the only ticket. */
static void take_ticket(struct waiter *w)
{
	const struct dma d = {.pd = s.pd,
			      .key = s.key,
			      .iova = BASE + 32 * PAGE_BYTES,
			      .len = 1,
			      .write = true,
			      .set = s.x.strategies};
	struct moves mv = {0};
	struct holds h = {.num = 0};

	waiter_init(w, NULL);
	assert_int_equal(dma_resolve(s.mem, &d, NULL, 0, 0, 0, w, &mv, &h),
			 V_WAIT);
}

static void come(uint32_t imm)
{
	static uint8_t payload[8];
	struct pkt *p = &s.pkt[s.pkts++ % RECVS];

	*p = (struct pkt){.op = opcode_info(OP_UD_SEND_ONLY_IMM)->flags,
			  .opcode = OP_UD_SEND_ONLY_IMM,
			  .qkey = QKEY,
			  .imm = imm,
			  .payload_len = sizeof(payload)};
	assert_int_equal(qp_rx(&s.qp, p, payload_of_step(payload), &s.run),
			 RX_NEXT);
}

/* Whoever has its turn goes on. */
static void wake(void)
{
	struct list woken;

	list_init(&woken);
	moved_take(s.mem, &woken);
	assert_false(list_empty(&woken));
	wake_all(&woken);
}

static void ud_rx__nobody_overtakes_who_got_no_ticket(void **state)
{
	struct waiter other;

	(void)state;
	take_ticket(&other);
	come(100);
	assert_int_equal(s.qp.ud.held, 1);
	assert_int_equal(s.cnt.v[CNT_ticket_waits], 1);
	waiter_cancel(s.mem, &other);
	spt_map(s.mem, BASE >> PAGE_SHIFT, RECVS, true, 0);
	come(101);
	assert_int_equal(s.run.num, 0);
	wake();
	assert_true(qp_drain(&s.qp, &s.run));
	assert_int_equal(s.run.num, 2);
	assert_int_equal(s.run.pkt[0].cqe.imm, 100);
	assert_int_equal(s.run.pkt[1].cqe.imm, 101);
	s.run.moves.done = s.run.moves.num;
	qp_rx_commit(&s.run);
	assert_int_equal(s.qp.ud.held, 0);
	assert_int_equal(s.rq.wq.cons, 2);
}

static void pages_come(void)
{
	spt_map(s.mem, BASE >> PAGE_SHIFT, RECVS, true, 0);
}

/* All moves of the first @n datagrams are done (two each), and the next failed. */
static void commit(unsigned n)
{
	s.run.moves.done = 2 * n;
	if (s.run.moves.done < s.run.moves.num)
		s.run.moves.error = -EFAULT;
	qp_rx_commit(&s.run);
}

/* The datagrams that were received since, in this order, in receives from @first. */
static void received(uint64_t first, const uint32_t *imm, unsigned n)
{
	struct cqe e;

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(cq_take(&s.cq, 1, &e), 1);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.wr_id, first + i);
		assert_int_equal(e.imm, imm[i]);
	}
	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
}

static void commit__what_was_not_placed_is_placed_again(void **state)
{
	(void)state;
	pages_come();
	for (uint32_t i = 0; i < 3; i++)
		come(100 + i);
	assert_int_equal(s.run.num, 3);
	commit(1);
	received(0, (const uint32_t[]){100}, 1);
	assert_int_equal(s.qp.ud.held, 2);
	come(103); /* behind them */
	assert_int_equal(s.qp.ud.held, 3);
	pages_come();
	assert_true(qp_drain(&s.qp, &s.run));
	assert_int_equal(s.run.num, 3);
	commit(3);
	received(1, (const uint32_t[]){101, 102, 103}, 3);
	assert_int_equal(s.qp.ud.held, 0);
}

/* It is lost, and with it all behind it; the receives are there for the next. */
static void commit__what_cannot_be_kept_is_lost(void **state)
{
	int slot[SLOTS];

	(void)state;
	pages_come();
	for (uint32_t i = 0; i < 2; i++)
		come(100 + i);
	for (unsigned i = 0; i < SLOTS; i++)
		slot[i] = slot_get(s.mem);
	commit(0);
	assert_int_equal(s.cnt.v[CNT_drop_no_backup], 2);
	for (unsigned i = 0; i < SLOTS; i++)
		slot_put(s.mem, slot[i]);
	pages_come();
	assert_false(qp_drain(&s.qp, &s.run));
	come(102);
	assert_int_equal(s.run.num, 1);
	commit(1);
	received(0, (const uint32_t[]){102}, 1);
}

/* One datagram, inline, to a NIC that is known. */
static void send_begins(struct peer *peer)
{
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2},
				    .port = ROCE_PORT};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	struct qp_attr a = {.state = QPS_RTS, .sq_psn = 0xffffff};
	struct wqe *w = wq_reserve(&s.sq);

	peer_init(peer, &ep, &local);
	peer->kind = PEER_STANDARD;
	assert_int_equal(qp_modify(&s.qp, &a, QPA_STATE | QPA_SQ_PSN, NULL), 0);
	*w = (struct wqe){.op = WR_SEND,
			  .flags = WQE_INLINE | WQE_SIGNALED,
			  .length = 4,
			  .to = {.dgid = ep.ip, .qpn = 5}};
	wq_publish(&s.sq);
	assert_ptr_equal(ud_next(&s.qp), &w->to);
	assert_null(ud_aim(&s.qp, &w->to, peer));
	assert_null(ud_next(&s.qp));
	assert_true(qp_tx(&s.qp, &s.burst));
	assert_int_equal(s.burst.nsegs, 1);
}

static void send_ends(void)
{
	struct cqe e;

	s.x.now = SECOND;
	assert_true(qp_tx(&s.qp, &s.burst));
	s.x.now = SECOND;
	qp_tx_commit(&s.burst, 0);
	assert_int_equal(cq_take(&s.cq, 2, &e), 1);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(s.qp.req.snd, 0); /* it has wrapped */
	s.x.now = SECOND;
	assert_false(qp_tx(&s.qp, &s.burst));
}

/* Its source could not be read: nothing was sent, and it is tried again. */
static void tx_commit__what_could_not_be_read_is_not_sent(void **state)
{
	static struct peer peer; /* until teardown() */

	(void)state;
	send_begins(&peer);
	qp_tx_commit(&s.burst, -EFAULT);
	assert_true(cq_empty(&s.cq));
	send_ends();
}

static void tx_commit__a_full_socket_is_left_alone_for_a_while(void **state)
{
	static struct peer peer; /* until teardown() */

	(void)state;
	send_begins(&peer);
	qp_tx_commit(&s.burst, -EAGAIN);
	assert_true(cq_empty(&s.cq));
	assert_false(qp_tx(&s.qp, &s.burst));
	assert_true(s.qp.timer.at_ns < SECOND);
	s.x.now = s.qp.timer.at_ns;
	qp_timeout(&s.qp);
	send_ends();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			ud_rx__nobody_overtakes_who_got_no_ticket, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			commit__what_was_not_placed_is_placed_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			commit__what_cannot_be_kept_is_lost, setup, teardown),
		cmocka_unit_test_setup_teardown(
			tx_commit__what_could_not_be_read_is_not_sent, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			tx_commit__a_full_socket_is_left_alone_for_a_while,
			setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
