/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_rx_test.c: which datagrams find a receive, and their order where no ticket is to be
 * had for the page that the first of them needs, and where moves fail: neither happens to
 * them in the simulator.
 */
#include "datagrams.h"

enum { LEN = 8, SRC_QPN = 77 };

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

static struct pkt datagram(uint32_t imm)
{
	return (struct pkt){.op = opcode_info(OP_UD_SEND_ONLY_IMM)->flags,
			    .opcode = OP_UD_SEND_ONLY_IMM,
			    .qkey = QKEY,
			    .src_qpn = SRC_QPN,
			    .imm = imm,
			    .payload_len = LEN};
}

static void take(struct pkt datagram)
{
	static uint8_t payload[LEN];
	struct pkt *p = &s.pkt[s.pkts++ % RECVS];

	*p = datagram;
	assert_int_equal(qp_rx(&s.qp, p, payload_of_step(payload), &s.run),
			 RX_NEXT);
}

static void come(uint32_t imm)
{
	take(datagram(imm));
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

/* --- which find a receive ------------------------------------------------------ */

static void dropped(struct pkt p, enum counter why)
{
	const uint64_t before = s.cnt.v[why];

	take(p);
	assert_int_equal(s.cnt.v[why], before + 1);
	assert_int_equal(s.run.num, 0);
	assert_true(cq_empty(&s.cq));
}

/* The receives are there for the next. */
static void next_is_received(void)
{
	pages_come();
	come(100);
	assert_int_equal(s.run.num, 1);
	commit(1);
	received(0, (const uint32_t[]){100}, 1);
}

static void ud_rx__another_qkey(void **state)
{
	struct pkt p = datagram(1);

	(void)state;
	p.qkey = QKEY + 1;
	dropped(p, CNT_drop_qkey);
	p.qkey = QKEY | 1U << 31;
	dropped(p, CNT_drop_qkey);
	next_is_received();
}

static void ud_rx__receive_that_is_too_short(void **state)
{
	struct pkt p = datagram(1);

	(void)state;
	p.payload_len = PAGE_BYTES - GRH_BYTES + 1;
	dropped(p, CNT_drop_recv_short);
	p.payload_len = UINT32_MAX;
	dropped(p, CNT_drop_recv_short);
	next_is_received();
}

static void ud_rx__fills_its_receive(void **state)
{
	struct pkt p = datagram(1);

	(void)state;
	pages_come();
	p.payload_len = PAGE_BYTES - GRH_BYTES;
	take(p);
	assert_int_equal(s.run.num, 1);
	assert_int_equal(s.run.pkt[0].cqe.byte_len, PAGE_BYTES);
	commit(1);
}

static void ud_rx__no_receive(void **state)
{
	(void)state;
	pages_come();
	for (uint32_t i = 0; i < RECVS; i++)
		come(i);
	assert_int_equal(s.run.num, RECVS);
	commit(RECVS);
	received(0, (const uint32_t[]){0, 1, 2, 3}, RECVS);
	dropped(datagram(4), CNT_drop_no_recv);
	post_recv(0);
	come(5);
	commit(1);
	received(0, (const uint32_t[]){5}, 1);
}

/* The header first, then the payload (IBTA 11.4.1.2); @v4: it came by IPv4. */
static void is_received_from(bool v4)
{
	struct pkt p = datagram(9);
	const struct move *m = s.run.moves.m;
	struct cqe e;

	pages_come();
	p.solicited = true;
	p.fwd_src.ip = (struct ipaddr){{0xfd, [15] = 3}};
	if (v4)
		p.fwd_src.ip = (struct ipaddr){
			{[10] = 0xff, [11] = 0xff, 10, 0, 0, 3}};
	take(p);
	assert_int_equal(s.run.moves.num, 2);
	assert_true(m[0].addr == BASE && m[1].addr == BASE + GRH_BYTES);
	assert_int_equal(m[0].len, GRH_BYTES);
	assert_int_equal(m[1].len, LEN);
	commit(1);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.byte_len, GRH_BYTES + LEN);
	assert_int_equal(e.src_qpn, SRC_QPN);
	assert_int_equal(e.imm, 9);
	assert_true(e.solicited);
	assert_int_equal(e.flags, CQE_GRH | CQE_IMM | (v4 ? CQE_IP4 : 0));
}

static void ud_rx__from_ipv6(void **state)
{
	(void)state;
	is_received_from(false);
}

static void ud_rx__from_ipv4(void **state)
{
	(void)state;
	is_received_from(true);
}

/* The receive that may not be written says so; those behind it are flushed. */
static void ud_rx__where_nothing_may_be_written(void **state)
{
	struct cqe e;

	(void)state;
	pages_come();
	wqe_sge(wq_at(&s.rq.wq, 0))->lkey++;
	come(1);
	assert_int_equal(s.qp.state, QPS_ERR);
	for (uint64_t i = 0; i < RECVS; i++) {
		assert_int_equal(cq_take(&s.cq, 1, &e), 1);
		assert_int_equal(e.wr_id, i);
		assert_int_equal(e.status,
				 i ? WC_WR_FLUSH_ERR : WC_LOC_PROT_ERR);
	}
}

/* What waited behind it is dropped, and gives back the receives that it took. */
static void ud_rx__dropped_behind_what_failed(void **state)
{
	struct cqe e;

	(void)state;
	wqe_sge(wq_at(&s.rq.wq, 1))->lkey++;
	come(1);
	come(2);
	come(3);
	assert_int_equal(s.qp.ud.held, 3);
	pages_come();
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp, &s.run));
	assert_int_equal(s.run.num, 1);
	commit(1);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.status, WC_SUCCESS);
	for (uint64_t i = 1; i < RECVS; i++) {
		assert_int_equal(cq_take(&s.cq, 1, &e), 1);
		assert_int_equal(e.wr_id, i);
		assert_int_equal(e.status,
				 i > 1 ? WC_WR_FLUSH_ERR : WC_LOC_PROT_ERR);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ud_rx__nobody_overtakes_who_got_no_ticket),
		T(commit__what_was_not_placed_is_placed_again),
		T(commit__what_cannot_be_kept_is_lost),
		T(ud_rx__another_qkey),
		T(ud_rx__receive_that_is_too_short),
		T(ud_rx__fills_its_receive),
		T(ud_rx__no_receive),
		T(ud_rx__from_ipv6),
		T(ud_rx__from_ipv4),
		T(ud_rx__where_nothing_may_be_written),
		T(ud_rx__dropped_behind_what_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
