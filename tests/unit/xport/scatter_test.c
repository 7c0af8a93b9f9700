/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scatter_test.c: which bursts are received straight to where they belong, how much of
 * them, and when not.
 */
#include "requests.h"
#include "xport/responder.h"

enum { ALL = 64, PACKETS = 16, BEHIND = 1234 };

static struct moves pieces;
static struct scatter sc = {.pieces = &pieces};

static psn_t psn_at(int i)
{
	return psn_add(PSN, i);
}

/* The packet @i from its peer, the first of a burst; its message has @dma_len bytes. */
static struct pkt head(uint8_t opcode, int i, uint32_t dma_len)
{
	struct pkt p = bench_pkt(&s, opcode, psn_at(i));

	p.dma_len = dma_len;
	p.payload_len = MTU;
	p.placed_to = PSN_MASK; /* says nothing of what we sent */
	p.syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	return p;
}

static bool plans(const struct pkt *p, unsigned max)
{
	return qp_scatter_plan(&s.qp, p, max, &sc);
}

/* Nothing is begun, and nothing stays held. */
static void goes_on(const struct pkt *p)
{
	const bool moving = s.qp.rx_moving;

	assert_false(plans(p, ALL));
	assert_null(sc.qp);
	assert_int_equal(sc.holds.num, 0);
	assert_int_equal(pieces.num, 0);
	assert_int_equal(s.qp.rx_moving, moving);
}

/* @num packets, @bytes, from @addr on. The burst is out. */
static void planned(const struct pkt *p, unsigned max, unsigned num,
		    uint32_t bytes, uint64_t addr)
{
	uint64_t sum = 0;

	assert_true(plans(p, max));
	assert_ptr_equal(sc.qp, &s.qp);
	assert_int_equal(sc.num, num);
	assert_int_equal(sc.bytes, bytes);
	for (unsigned i = 0; i < pieces.num; i++) {
		assert_true(pieces.m[i].addr == addr + sum);
		sum += pieces.m[i].len;
	}
	assert_int_equal(sum, bytes);
	assert_true(sc.holds.num > 0);
	assert_true(s.qp.rx_moving);
}

static void done(bool ok)
{
	qp_scatter_done(&sc, ok);
	assert_int_equal(sc.holds.num, 0);
	assert_false(s.qp.rx_moving);
}

static void placed(const struct pkt *p, unsigned max, unsigned num,
		   uint32_t bytes, uint64_t addr)
{
	planned(p, max, num, bytes, addr);
	done(true);
}

/* It comes by itself, and is moved. */
static void comes(uint8_t opcode, int i, uint32_t dma_len)
{
	static uint8_t payload[MTU];
	static struct pkt p;

	p = head(opcode, i, dma_len);
	assert_int_equal(qp_rx(&s.qp, &p, payload_of_step(payload), &s.run),
			 RX_NEXT);
	commit_run(&s.run, true);
}

/* --- how much ---------------------------------------------------------------------- */

/* Programs spin on its last byte. */
static void scatter_plan__a_write_but_its_end(void **state)
{
	static const struct {
		uint32_t len;
		unsigned max, num;
	} is[] = {{MTU + 1, ALL, 1},	 {2 * MTU, ALL, 1},
		  {2 * MTU + 1, ALL, 2}, {9 * MTU - 1, ALL, 8},
		  {9 * MTU, ALL, 8},	 {9 * MTU, 8, 8},
		  {9 * MTU, 7, 7},	 {BENCH_PAGES * PAGE_BYTES, ALL, 63}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		const struct pkt p = head(OP_WRITE_FIRST, 0, is[i].len);

		placed(&p, is[i].max, is[i].num, is[i].num * MTU, BENCH_BASE);
	}
}

/* Nothing is in front of the end; or more comes than was said. */
static void scatter_plan__nothing_is_in_front_of_the_end(void **state)
{
	struct pkt p;

	(void)state;
	for (uint32_t len = 0; len <= MTU; len += MTU) {
		p = head(OP_WRITE_FIRST, 0, len);
		goes_on(&p);
	}
	bench_receive(&s, 0, 3, 2 * MTU);
	p = head(OP_SEND_FIRST, 0, 0);
	goes_on(&p);
}

/* Where it belongs is said by its first packet. */
static void scatter_plan__a_write_in_progress(void **state)
{
	struct pkt p;

	(void)state;
	comes(OP_WRITE_FIRST, 0, 4 * MTU + 1);
	p = head(OP_WRITE_MIDDLE, 1, 0);
	p.va = 0;
	p.rkey = 0;
	placed(&p, ALL, 3, 3 * MTU, BENCH_BASE + MTU);
	comes(OP_WRITE_MIDDLE, 1, 0);
	p = head(OP_WRITE_MIDDLE, 2, 0);
	placed(&p, ALL, 2, 2 * MTU, BENCH_BASE + 2 * MTU);
	comes(OP_WRITE_MIDDLE, 2, 0);
	comes(OP_WRITE_MIDDLE, 3, 0);
	p = head(OP_WRITE_LAST, 4, 0);
	goes_on(&p);
}

static void scatter_plan__a_send(void **state)
{
	static const struct {
		uint32_t len;
		unsigned max, num;
		uint32_t bytes;
	} is[] = {{MTU + 1, ALL, 2, MTU + 1},
		  {2 * MTU, ALL, 2, 2 * MTU},
		  {2 * MTU, 1, 1, MTU},
		  {5 * MTU - 1, ALL, 5, 5 * MTU - 1},
		  {5 * MTU - 1, 4, 4, 4 * MTU}};

	(void)state;
	bench_receive(&s, 0, 3, 5 * MTU - 1);
	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		const struct pkt p = head(OP_SEND_FIRST, 0, is[i].len);

		placed(&p, is[i].max, is[i].num, is[i].bytes, bench_page(3));
	}
}

static void scatter_plan__a_send_in_progress(void **state)
{
	struct pkt p;

	(void)state;
	bench_receive(&s, 0, 3, 4 * MTU);
	bench_receive(&s, 1, 5, 4 * MTU);
	comes(OP_SEND_FIRST, 0, 3 * MTU);
	p = head(OP_SEND_MIDDLE, 1, 3 * MTU);
	placed(&p, ALL, 2, 2 * MTU, bench_page(3) + MTU);
	/* more than it is to have came before it */
	p.dma_len = MTU - 1;
	goes_on(&p);
	p.dma_len = MTU;
	goes_on(&p);
}

/* Behind another one, with a receive of its own from the start on. */
static void scatter_plan__a_send_behind_a_send(void **state)
{
	struct pkt p;

	(void)state;
	bench_receive(&s, 0, 3, 2 * MTU);
	bench_receive(&s, 1, 5, 4 * MTU);
	comes(OP_SEND_ONLY, 0, MTU);
	p = head(OP_SEND_FIRST, 1, 4 * MTU);
	placed(&p, ALL, 4, 4 * MTU, bench_page(5));
}

/* The receive is too short by a byte for this burst; of the rest its own packets tell. */
static void scatter_plan__a_send_longer_than_its_receive(void **state)
{
	struct pkt p = head(OP_SEND_FIRST, 0, 4 * MTU);

	(void)state;
	bench_receive(&s, 0, 3, 3 * MTU - 1);
	goes_on(&p);
	placed(&p, 2, 2, 2 * MTU, bench_page(3));
}

static void scatter_plan__a_send_without_a_receive(void **state)
{
	const struct pkt p = head(OP_SEND_FIRST, 0, 4 * MTU);

	(void)state;
	goes_on(&p);
	bench_receive(&s, 0, 3, 4 * MTU);
	placed(&p, ALL, 4, 4 * MTU, bench_page(3));
}

static void read_of(unsigned page, uint32_t len)
{
	post(WR_READ, page, len);
	while (qp_tx(&s.qp, &b))
		qp_tx_commit(&b, 0);
}

/* From the burst's first packet to the end of the READ request that it answers. */
static void scatter_plan__responses(void **state)
{
	struct pkt p = head(OP_READ_RESP_FIRST, 0, 0);

	(void)state;
	s.qp.req.reads.chunk = 4;
	read_of(2, 7 * MTU - 1);
	placed(&p, ALL, 4, 4 * MTU, bench_page(2));
	placed(&p, 3, 3, 3 * MTU, bench_page(2));
	comes(OP_READ_RESP_FIRST, 0, 0);
	/* it came, and one before it is due */
	goes_on(&p);
	p = head(OP_READ_RESP_MIDDLE, 2, 0);
	goes_on(&p);
	p = head(OP_READ_RESP_MIDDLE, 1, 0);
	placed(&p, ALL, 3, 3 * MTU, bench_page(2) + MTU);
	comes(OP_READ_RESP_MIDDLE, 1, 0);
	comes(OP_READ_RESP_MIDDLE, 2, 0);
	comes(OP_READ_RESP_LAST, 3, 0);
	p = head(OP_READ_RESP_FIRST, 4, 0);
	placed(&p, ALL, 3, 3 * MTU - 1, bench_page(2) + 4 * MTU);
}

/* The faults that the burst met are those of its READ. */
static void scatter_plan__a_response_meets_a_fault(void **state)
{
	const struct pkt p = head(OP_READ_RESP_FIRST, 0, 0);
	struct cqe e;

	(void)state;
	read_of(2, 2 * MTU);
	dma_fault(s.mem, bench_page(2), 1);
	goes_on(&p);
	assert_true(s.qp.req.rsp_wait.ticket.v);
	s.x.now += BENCH_MS;
	pages_brought(s.mem);
	placed(&p, ALL, 2, 2 * MTU, bench_page(2));
	assert_int_equal(wq_at(&s.sq, 0)->met.faults, 1);
	assert_true(wq_at(&s.sq, 0)->met.ns == BENCH_MS);
	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
}

/* --- when not ------------------------------------------------------------------------ */

static void scatter_plan__not_of_a_standard_peer(void **state)
{
	const struct pkt p = head(OP_WRITE_FIRST, 0, 4 * MTU);

	(void)state;
	goes_on(&p);
}

static void scatter_plan__not_of_packets_that_are_short(void **state)
{
	struct pkt p = head(OP_WRITE_FIRST, 0, 4 * MTU);

	(void)state;
	for (uint32_t len = MTU - 1; len <= MTU + 1; len += 2) {
		p.payload_len = len;
		goes_on(&p);
	}
}

static void scatter_plan__not_of_other_kinds(void **state)
{
	static const uint8_t opcodes[] = {OP_READ_REQ, OP_FETCH_ADD, OP_ACK,
					  OP_ATOMIC_ACK};

	(void)state;
	read_of(2, 4 * MTU);
	bench_receive(&s, 0, 3, 4 * MTU);
	for (unsigned i = 0; i < ARRAY_SIZE(opcodes); i++) {
		const struct pkt p = head(opcodes[i], 0, 4 * MTU);

		goes_on(&p);
	}
}

/* @p is the next, but it does not follow what came. */
static void scatter_plan__not_in_the_middle_of_nothing(void **state)
{
	struct pkt p;

	(void)state;
	bench_receive(&s, 0, 3, 4 * MTU);
	p = head(OP_WRITE_MIDDLE, 0, 4 * MTU);
	goes_on(&p);
	p = head(OP_SEND_MIDDLE, 0, 4 * MTU);
	goes_on(&p);
	comes(OP_WRITE_FIRST, 0, 4 * MTU);
	p = head(OP_SEND_MIDDLE, 1, 4 * MTU);
	goes_on(&p);
	p = head(OP_WRITE_FIRST, 1, 4 * MTU);
	goes_on(&p);
}

/* What was before it has not come, or it came before. */
static void scatter_plan__not_out_of_order(void **state)
{
	struct pkt p;

	(void)state;
	for (int i = -1; i <= 1; i += 2) {
		p = head(OP_WRITE_FIRST, i, 4 * MTU);
		goes_on(&p);
	}
}

/* What is before it is not placed: packets that are kept, a page, a run that is out. */
static void scatter_plan__not_past_what_waits(void **state)
{
	struct resp *r = &s.qp.resp;
	const struct pkt p = head(OP_WRITE_FIRST, 0, 4 * MTU);

	(void)state;
	r->win.num++;
	goes_on(&p);
	r->win.num--;
	r->plan = psn_at(1);
	goes_on(&p);
	r->plan = PSN;
	s.qp.rx_moving = true;
	goes_on(&p);
	s.qp.rx_moving = false;
	dma_fault(s.mem, bench_page(2), 1);
	bench_wait(&s, &r->wait, 2);
	goes_on(&p);
	pages_brought(s.mem);
	placed(&p, ALL, 3, 3 * MTU, BENCH_BASE);
}

static void scatter_plan__not_in_other_states(void **state)
{
	const struct pkt write = head(OP_WRITE_FIRST, 0, 4 * MTU);
	const struct pkt response = head(OP_READ_RESP_FIRST, 0, 0);

	(void)state;
	read_of(2, 4 * MTU);
	s.qp.connected = false;
	goes_on(&write);
	goes_on(&response);
	s.qp.connected = true;
	s.qp.rx_moving = true;
	goes_on(&response);
	s.qp.rx_moving = false;
	s.qp.resp.dead = true;
	goes_on(&write);
	placed(&response, ALL, 4, 4 * MTU, bench_page(2));
	s.qp.resp.dead = false;
	s.qp.state = QPS_RTR;
	goes_on(&response);
	placed(&write, ALL, 3, 3 * MTU, BENCH_BASE);
	s.qp.state = QPS_ERR;
	goes_on(&response);
	goes_on(&write);
	s.qp.state = QPS_RTS;
}

/* The key, the right, the range of the whole message: its own packets say so. */
static void scatter_plan__not_where_it_must_not(void **state)
{
	struct pkt p = head(OP_WRITE_FIRST, 0, 4 * MTU);

	(void)state;
	p.rkey ^= 1;
	goes_on(&p);
	p.rkey ^= 1;
	p.va = bench_page(BENCH_PAGES) - 2 * MTU;
	goes_on(&p);
	p.va = BENCH_BASE - 1;
	goes_on(&p);
	p.va = BENCH_BASE;
	s.qp.attr.access &= ~(uint32_t)ACCESS_REMOTE_WRITE;
	goes_on(&p);
	s.qp.attr.access |= ACCESS_REMOTE_WRITE;
	placed(&p, ALL, 3, 3 * MTU, BENCH_BASE);
}

/* The page is asked for: the packets that follow wait for it. */
static void scatter_plan__not_without_its_page(void **state)
{
	const struct pkt p = head(OP_WRITE_FIRST, 0, 2 * (uint32_t)PAGE_BYTES);

	(void)state;
	dma_fault(s.mem, bench_page(1), 1);
	/* as far as the pages are there */
	placed(&p, 4, 4, 4 * MTU, BENCH_BASE);
	goes_on(&p);
	assert_true(s.qp.resp.wait.ticket.v);
	pages_brought(s.mem);
	placed(&p, ALL, 7, 7 * MTU, BENCH_BASE);
}

/* So are those that the same message needs behind the burst. */
static void scatter_plan__not_without_its_page_and_those_behind(void **state)
{
	const struct pkt p = head(OP_WRITE_FIRST, 0, 3 * (uint32_t)PAGE_BYTES);
	const unsigned in_a_page = PAGE_BYTES / MTU;

	(void)state;
	dma_fault(s.mem, bench_page(0), 3 * PAGE_BYTES);
	assert_false(plans(&p, in_a_page));
	pages_brought(s.mem);
	placed(&p, ALL, 3 * in_a_page - 1, (3 * in_a_page - 1) * MTU,
	       BENCH_BASE);
}

static void scatter_plan__not_where_the_kernel_may_refuse(void **state)
{
	const struct pkt p = head(OP_WRITE_FIRST, 0, 4 * MTU);

	(void)state;
	user_only_learn(s.mem, BENCH_BASE, 1);
	goes_on(&p);
}

/* --- what came ------------------------------------------------------------------------ */

static bool expects(unsigned i, struct pkt p)
{
	return scatter_expects(&sc, i, &p);
}

/* Of one message, in order, each as long as the path MTU but its last. */
static void scatter_expects__the_next_of_the_message(void **state)
{
	const struct pkt first = head(OP_SEND_FIRST, 0, 2 * MTU + 1);
	const struct pkt middle = head(OP_SEND_MIDDLE, 1, 2 * MTU + 1);
	struct pkt p, last = head(OP_SEND_LAST, 2, 2 * MTU + 1);

	(void)state;
	last.payload_len = 1;
	bench_receive(&s, 0, 3, 3 * MTU);
	planned(&first, ALL, 3, 2 * MTU + 1, bench_page(3));
	assert_true(expects(0, first));
	assert_true(expects(1, middle));
	assert_true(expects(2, last));
	p = head(OP_SEND_FIRST, 1, 2 * MTU + 1);
	assert_false(expects(1, p));
	p = head(OP_SEND_LAST, 1, 2 * MTU + 1);
	assert_false(expects(1, p));
	assert_false(expects(2, middle));
	last.payload_len = MTU;
	assert_false(expects(2, last));
	last.payload_len = 0;
	assert_false(expects(2, last));
	done(true);
}

/* Between the look and the receiving something else came. */
static void scatter_expects__nothing_else(void **state)
{
	const struct pkt first = head(OP_WRITE_FIRST, 0, 4 * MTU);
	const struct pkt middle = head(OP_WRITE_MIDDLE, 1, 4 * MTU);
	struct pkt p[9];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		p[i] = middle;
	p[0].ext = false;
	p[1].qpn++;
	p[2].epoch++;
	p[3].psn = psn_at(2);
	p[4].va++;
	p[5].rkey++;
	p[6].dma_len++;
	p[7].payload_len--;
	p[8] = head(OP_SEND_MIDDLE, 1, 4 * MTU);
	planned(&first, ALL, 3, 3 * MTU, BENCH_BASE);
	assert_true(expects(1, middle));
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		assert_false(expects(1, p[i]));
	/* the first is to be what was looked at */
	p[0] = first;
	p[0].opcode = OP_WRITE_MIDDLE;
	p[0].op &= ~(uint32_t)OPF_FIRST;
	assert_false(expects(0, p[0]));
	done(true);
}

/* --- its end -------------------------------------------------------------------------- */

static void scatter_done__the_pages_had_gone(void **state)
{
	const struct pkt p = head(OP_WRITE_FIRST, 0, 9 * MTU);

	(void)state;
	planned(&p, ALL, 8, 8 * MTU, BENCH_BASE);
	done(false);
	goes_on(&p);
	assert_true(s.qp.resp.wait.ticket.v);
	pages_brought(s.mem);
	placed(&p, ALL, 8, 8 * MTU, BENCH_BASE);
}

/* A QP that fails meanwhile keeps its receives until nobody writes to them. */
static void scatter_done__what_waited_goes_on(void **state)
{
	const struct pkt p = head(OP_SEND_FIRST, 0, 2 * MTU);
	const struct qp_attr a = {.state = QPS_ERR};
	struct cqe e;

	(void)state;
	bench_receive(&s, BEHIND, 3, 2 * MTU);
	planned(&p, ALL, 2, 2 * MTU, bench_page(3));
	assert_int_equal(qp_modify(&s.qp, &a, QPA_STATE, NULL), 0);
	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
	done(true);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, BEHIND);
	assert_int_equal(e.status, WC_WR_FLUSH_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NOPIN(scatter_plan__a_write_but_its_end),
		NOPIN(scatter_plan__nothing_is_in_front_of_the_end),
		NOPIN(scatter_plan__a_write_in_progress),
		NOPIN(scatter_plan__a_send),
		NOPIN(scatter_plan__a_send_in_progress),
		NOPIN(scatter_plan__a_send_behind_a_send),
		NOPIN(scatter_plan__a_send_longer_than_its_receive),
		NOPIN(scatter_plan__a_send_without_a_receive),
		NOPIN(scatter_plan__responses),
		NOPIN(scatter_plan__a_response_meets_a_fault),
		STANDARD(scatter_plan__not_of_a_standard_peer),
		NOPIN(scatter_plan__not_of_packets_that_are_short),
		NOPIN(scatter_plan__not_of_other_kinds),
		NOPIN(scatter_plan__not_in_the_middle_of_nothing),
		NOPIN(scatter_plan__not_out_of_order),
		NOPIN(scatter_plan__not_past_what_waits),
		NOPIN(scatter_plan__not_in_other_states),
		NOPIN(scatter_plan__not_where_it_must_not),
		NOPIN(scatter_plan__not_without_its_page),
		NOPIN(scatter_plan__not_without_its_page_and_those_behind),
		NOPIN(scatter_plan__not_where_the_kernel_may_refuse),
		NOPIN(scatter_expects__the_next_of_the_message),
		NOPIN(scatter_expects__nothing_else),
		NOPIN(scatter_done__the_pages_had_gone),
		NOPIN(scatter_done__what_waited_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
