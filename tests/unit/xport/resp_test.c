/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resp_test.c: requests in the order of their PSNs, and how far behind the first that is not
 * placed they may reach.
 */
#include "bench.h"
#include "mem/pool.h"
#include "xport/wqe.h"

static struct bench s;

static const psn_t first = PSN_MASK - 1; /* the PSNs wrap */

/* Of @len bytes. Return: the PSN behind what was accepted by then. */
static psn_t request_comes(uint8_t opcode, psn_t psn, uint32_t len)
{
	static uint8_t payload[BENCH_MTU];
	static struct pkt p[RUN_PKTS];
	struct pkt *at = &p[s.run.num];

	*at = bench_pkt(&s, opcode, psn);
	at->dma_len = len;
	at->placed_to = PSN_MASK; /* says nothing of what we sent */
	at->payload_len = at->op & OPF_WRITE ? len : 0;
	assert_int_equal(qp_rx(&s.qp, at, payload_of_step(payload), &s.run),
			 RX_NEXT);
	return s.qp.resp.win.next;
}

/* A WRITE waits for its page, and what comes behind it is kept. */
static void write_waits(void)
{
	assert_int_equal(request_comes(OP_WRITE_ONLY, first, 1),
			 psn_add(first, 1));
	assert_true(s.qp.resp.wait.ticket.v);
}

static void begin(enum peer_kind kind)
{
	bench_open(&s, kind, first);
	s.x.checked = true;
}

static void read__behind_a_write_that_waits(void **state)
{
	static const uint32_t lens[] = {0, 1, BENCH_MTU, BENCH_MTU + 1,
					UINT32_C(1) << 31};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		const struct pkt p = {.opcode = OP_READ_REQ,
				      .dma_len = lens[i]};

		begin(PEER_NOPIN);
		write_waits();
		assert_int_equal(
			request_comes(OP_READ_REQ, psn_add(first, 1), lens[i]),
			psn_add(first, 1 + request_psns(&p, BENCH_MTU)));
		assert_int_equal(s.cnt.v[CNT_drop_psn], 0);
		bench_close(&s);
	}
}

/* It stands for more PSNs than can be told from those before: it is dropped, whatever it
 * asks for, as long as something is before it. */
static void read__too_long_to_be_kept(void **state)
{
	static const uint32_t lens[] = {
		(uint32_t)PSN_AHEAD_MAX * MTU_MIN, /* one is before it */
		(UINT32_C(1) << 31) + 1,	   UINT32_MAX - MTU_MIN + 1,
		UINT32_MAX - MTU_MIN + 2,	   UINT32_MAX,
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		begin(PEER_NOPIN);
		s.qp.mtu = MTU_MIN;
		write_waits();
		assert_int_equal(
			request_comes(OP_READ_REQ, psn_add(first, 1), lens[i]),
			psn_add(first, 1));
		assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
		bench_close(&s);
	}
}

/* As many as fit; the sum counts, not each. */
static void read__many_that_are_long(void **state)
{
	const uint32_t len = UINT32_C(1) << 30;
	const uint32_t each = len / MTU_MIN; /* 2^22 */

	(void)state;
	begin(PEER_NOPIN);
	s.qp.mtu = MTU_MIN;
	write_waits();
	assert_int_equal(request_comes(OP_READ_REQ, psn_add(first, 1), len),
			 psn_add(first, 1 + each));
	assert_int_equal(
		request_comes(OP_READ_REQ, psn_add(first, 1 + each), len),
		psn_add(first, 1 + each));
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	/* shorter by the WRITE and one */
	assert_int_equal(request_comes(OP_READ_REQ, psn_add(first, 1 + each),
				       len - 2 * MTU_MIN),
			 psn_add(first, 2 * each - 1));
	bench_close(&s);
}

/* The page of the WRITE is in the way of the same PSN, too. */
static void read__in_the_place_of_a_write(void **state)
{
	(void)state;
	begin(PEER_NOPIN);
	s.qp.mtu = MTU_MIN;
	s.x.strategies = strategy_set(STRATEGY_RESUME);
	assert_int_equal(request_comes(OP_WRITE_ONLY, first, 1), first);
	assert_true(next_forgot(s.qp.resp.next));
	request_comes(OP_READ_REQ, first, UINT32_MAX);
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	bench_close(&s);
}

/* Requests before it are being placed by another run: it is kept, if at all, and so not
 * looked at. */
static void read__while_moves_are_out(void **state)
{
	(void)state;
	begin(PEER_NOPIN);
	s.qp.mtu = MTU_MIN;
	s.qp.rx_moving = true;
	assert_int_equal(
		request_comes(OP_READ_REQ, first, (UINT32_C(1) << 31) + 1),
		first);
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	assert_int_equal(s.qp.resp.win.num, 0);
	bench_close(&s);
}

/* With nothing before it, it is refused. */
static void read__too_long_for_any(void **state)
{
	static const uint32_t lens[] = {UINT32_C(1) << 31, UINT32_MAX};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		begin(PEER_NOPIN);
		s.qp.mtu = MTU_MIN;
		request_comes(OP_READ_REQ, first, lens[i]);
		assert_int_equal(s.qp.resp.ack.nak.syndrome,
				 AETH_NAK | NAK_INVALID_REQUEST);
		bench_close(&s);
	}
}

/* Its page goes before it is placed, and there is no slot for it: what is said from now on is
 * said of it, and not of one behind it. */
static void put_back__without_a_slot(void **state)
{
	int slot[BENCH_SLOTS];
	unsigned n = 0;

	(void)state;
	begin(PEER_NOPIN);
	bench_page_comes(&s, 0);
	assert_int_equal(request_comes(OP_WRITE_ONLY, first, 1),
			 psn_add(first, 1));
	/* no receive is posted */
	assert_int_equal(request_comes(OP_SEND_ONLY, psn_add(first, 1), 0),
			 psn_add(first, 1));
	assert_int_equal(s.qp.resp.ack.nak.psn, psn_add(first, 1));
	assert_int_equal(s.run.num, 1);
	while (slots_free(s.mem))
		slot[n++] = slot_get(s.mem);
	commit_run(&s.run, false);
	assert_int_equal(s.qp.resp.win.next, first);
	assert_int_equal(s.qp.resp.next, NEXT_UNSAID);
	assert_false(s.qp.resp.ack.nak.owed);
	assert_true(s.qp.resp.ack.owed);
	while (n)
		slot_put(s.mem, slot[--n]);
	bench_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(read__behind_a_write_that_waits),
		cmocka_unit_test(read__too_long_to_be_kept),
		cmocka_unit_test(read__many_that_are_long),
		cmocka_unit_test(read__in_the_place_of_a_write),
		cmocka_unit_test(read__while_moves_are_out),
		cmocka_unit_test(read__too_long_for_any),
		cmocka_unit_test(put_back__without_a_slot),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
