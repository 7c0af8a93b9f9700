/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport_rc_test.c: which half of a connection a packet or a burst belongs to, in which
 * state.
 */
#include "requests.h"
#include "xport/kick.h"

#include <errno.h>

enum { ASKED = 4711, LINES = 2, LINE = 40, PACKETS = 4 };

static struct pkt came[PACKETS]; /* until their run is committed */
static uint8_t data[MTU];

/* The packet of the peer with our PSN @i, for either half. */
static struct pkt from_peer(uint8_t opcode, int i, uint32_t len)
{
	struct pkt p = bench_pkt(&s, opcode, psn_add(PSN, i));

	p.dma_len = p.payload_len = len;
	p.placed_to = PSN_MASK - 2; /* nothing of what we sent */
	p.syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	return p;
}

/* A nopin's: of all up to the request @i. */
static struct pkt ack_pkt(int i, uint32_t flags)
{
	return (struct pkt){.op = opcode_info(OP_X_ACK)->flags,
			    .opcode = OP_X_ACK,
			    .ext = true,
			    .epoch = BENCH_MINE,
			    .psn = psn_add(PSN, i),
			    .accepted = psn_add(PSN, i),
			    .syndrome = AETH_ACK | AETH_CREDIT_INVALID,
			    .xack_flags = flags,
			    .question = ASKED,
			    .credit = BUDGET / 2};
}

static enum rx_result take(struct pkt p)
{
	static unsigned n;
	struct pkt *at = &came[n++ % PACKETS];

	*at = p;
	return qp_rx(&s.qp, at, (struct payload){.at = data}, &s.run);
}

static void taken(struct pkt p)
{
	assert_int_equal(take(p), RX_NEXT);
}

static void commit(void)
{
	assert_ptr_equal(s.run.qp, &s.qp);
	commit_run(&s.run, true);
}

/* What leaves next. Its burst is out. */
static struct pkt leaves(void)
{
	assert_true(qp_tx(&s.qp, &b));
	return sent_packet(&b, 0);
}

static void left(int error)
{
	qp_tx_commit(&b, error);
}

static void sends(uint64_t id)
{
	post(WR_SEND, id, 8);
	assert_int_equal(leaves().opcode, OP_SEND_ONLY);
	left(0);
}

static void asks_for(uint64_t page, uint32_t len)
{
	post(WR_READ, page, len);
	assert_int_equal(leaves().opcode, OP_READ_REQ);
	left(0);
}

static void in_state(enum qp_state state)
{
	s.qp.state = state;
}

/* --- time and state ---------------------------------------------------------------- */

static void ready__knows_its_peer(void **state)
{
	(void)state;
	assert_ptr_equal(s.qp.peer, &s.peer);
	assert_ptr_equal(s.qp.req.win.peer, &s.peer);
	assert_ptr_equal(s.qp.resp.win.peer, &s.peer);
	assert_ptr_equal(s.qp.req.win.held, &s.peer.lend.slots);
	assert_ptr_equal(s.qp.resp.win.held, &s.peer.lend.slots);
}

/* A pause after a full socket ends, where requests may leave. */
static void timeout__of_requests_in_rts_and_sqd(void **state)
{
	static const struct {
		enum qp_state state;
		bool ends;
	} is[] = {{QPS_RTR, false},
		  {QPS_RTS, true},
		  {QPS_SQD, true},
		  {QPS_SQE, false}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		s.qp.req.at[REQ_PAUSE] = s.x.now;
		in_state(is[i].state);
		qp_timeout(&s.qp);
		assert_int_equal(s.qp.req.at[REQ_PAUSE] == TIME_NEVER,
				 is[i].ends);
	}
	in_state(QPS_RTS);
}

/* --- what leaves ------------------------------------------------------------------- */

/* The peer waits for our answer, and may answer nothing until it has that. */
static void tx__answers_before_requests(void **state)
{
	(void)state;
	taken(from_peer(OP_READ_REQ, 0, 8));
	commit();
	post(WR_SEND, 0, 8);
	assert_int_equal(leaves().opcode, OP_READ_RESP_ONLY);
	assert_false(b.request);
	left(0);
	assert_int_equal(leaves().opcode, OP_SEND_ONLY);
	assert_true(b.request);
	left(0);
	assert_false(qp_tx(&s.qp, &b));
}

/* Requests wait until it is known what the peer is; answers do not. */
static void tx__before_the_peer_is_known(void **state)
{
	(void)state;
	s.qp.open.theirs = 0;
	s.peer.kind = PEER_PROBING;
	s.peer.quota.slots = 0;
	taken(from_peer(OP_READ_REQ, 0, 8));
	commit();
	post(WR_SEND, 0, 8);
	assert_int_equal(leaves().opcode, OP_READ_RESP_ONLY);
	left(0);
	assert_true(list_empty(&s.qp.on.waiting));
	for (int i = 0; i < 2; i++) { /* it waits once */
		assert_false(qp_tx(&s.qp, &b));
		assert_ptr_equal(s.peer.stalled.next, &s.qp.on.waiting);
		assert_ptr_equal(s.peer.stalled.prev, &s.qp.on.waiting);
	}
	/* the time of its silence has begun */
	assert_true(timerq_next(&s.x.timers) != TIME_NEVER);
	s.qp.open.theirs = BENCH_THEIRS;
	s.peer.kind = PEER_NOPIN;
	s.peer.quota.slots = BENCH_SLOTS;
	list_del(&s.qp.on.waiting);
	qp_kick(&s.qp);
	assert_int_equal(leaves().opcode, OP_SEND_ONLY);
	left(0);
}

/* Bursts with payload take the lines in turn: requests and answers. */
static void tx__lines_in_turn(void **state)
{
	(void)state;
	s.peer.path.lines = LINES;
	for (int i = 0; i < LINES; i++)
		s.peer.path.line[i] = LINE + i;
	for (int i = 0; i < 2 * LINES; i++) {
		taken(from_peer(OP_READ_REQ, i, 8));
		commit();
		assert_int_equal(leaves().opcode, OP_READ_RESP_ONLY);
		assert_int_equal(b.way.line, LINE + 1);
		left(0);
		post(WR_SEND, (uint64_t)i, 8);
		assert_int_equal(leaves().opcode, OP_SEND_ONLY);
		assert_int_equal(b.way.line, LINE);
		left(0);
	}
}

/* After a pause, and when its page has come. */
static bool leaves_again(void)
{
	s.x.now += BENCH_MS;
	qp_timeout(&s.qp);
	if (!qp_tx(&s.qp, &b)) {
		pages_brought(s.mem);
		if (!qp_tx(&s.qp, &b))
			return false;
	}
	left(0);
	return true;
}

/* A socket that was full, a page that had gone: it did not leave. What another error met is
 * lost like any packet. */
static void tx_commit__did_not_leave(void **state)
{
	static const struct {
		int error;
		bool again;
	} is[] = {{0, false},
		  {-ENETUNREACH, false},
		  {-EPERM, false},
		  {-EAGAIN, true},
		  {-EFAULT, true}};

	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		post(WR_SEND, 0, 8);
		leaves();
		left(is[i].error);
		assert_int_equal(leaves_again(), is[i].again);
		bench_close(&s);
		setup(state);

		taken(from_peer(OP_READ_REQ, 0, 8));
		commit();
		assert_int_equal(leaves().opcode, OP_READ_RESP_ONLY);
		left(is[i].error);
		assert_int_equal(leaves_again(), is[i].again);
		bench_close(&s);
		setup(state);
	}
}

/* --- what comes ---------------------------------------------------------------------- */

/* A run is of one half. */
static void rx__one_half_at_a_time(void **state)
{
	(void)state;
	asks_for(2, 8);
	taken(from_peer(OP_WRITE_ONLY, 0, 8));
	assert_false(s.run.responses);
	assert_int_equal(take(from_peer(OP_READ_RESP_ONLY, 0, 8)), RX_FULL);
	commit();
	taken(from_peer(OP_READ_RESP_ONLY, 0, 8));
	assert_true(s.run.responses);
	assert_int_equal(take(from_peer(OP_WRITE_ONLY, 1, 8)), RX_FULL);
	commit();
	completes(2, WC_SUCCESS);
	taken(from_peer(OP_WRITE_ONLY, 1, 8));
	commit();
}

/* And of one QP. */
static void rx__one_qp_at_a_time(void **state)
{
	struct qp other;

	(void)state;
	s.run.qp = &other;
	assert_int_equal(take(from_peer(OP_WRITE_ONLY, 0, 8)), RX_FULL);
	assert_int_equal(s.qp.resp.win.next, PSN);
	s.run.qp = NULL;
	taken(from_peer(OP_WRITE_ONLY, 0, 8));
	commit();
}

/* Responses and ACKs are for QPs that have sent, requests for those that take them. */
static void rx__in_each_state(void **state)
{
	static const struct {
		enum qp_state state;
		bool response, request;
	} is[] = {{QPS_RESET, false, false}, {QPS_INIT, false, false},
		  {QPS_RTR, false, true},    {QPS_RTS, true, true},
		  {QPS_SQD, true, true},     {QPS_SQE, true, true},
		  {QPS_ERR, false, false}};

	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		asks_for(2, 8);
		in_state(is[i].state);
		taken(from_peer(OP_READ_RESP_ONLY, 0, 8));
		assert_int_equal(s.run.qp != NULL, is[i].response);
		assert_int_equal(s.cnt.v[CNT_drop_state], !is[i].response);
		if (s.run.qp)
			commit();
		taken(from_peer(OP_WRITE_ONLY, 0, 8));
		assert_int_equal(s.run.qp != NULL, is[i].request);
		assert_int_equal(s.cnt.v[CNT_drop_state],
				 !is[i].response + !is[i].request);
		if (s.run.qp)
			commit();
		in_state(QPS_RTS);
		bench_close(&s);
		setup(state);
	}
}

/* Whatever comes of a nopin says that it runs, and that READs are not in vain. */
static void rx__is_heard(void **state)
{
	(void)state;
	s.peer.quiet = true;
	s.peer.probes.num = 1;
	taken(ack_pkt(-1, 0));
	assert_false(s.peer.quiet);
	assert_int_equal(s.peer.probes.num, 0);
	assert_true(s.peer.probes.heard_ns == s.x.now);
}

/* A standard peer is asked nothing. */
static void rx__standard_peer_is_not_asked(void **state)
{
	(void)state;
	s.peer.quiet = true;
	s.peer.probes.num = 1;
	taken(from_peer(OP_WRITE_ONLY, 0, 8));
	commit();
	assert_false(s.peer.quiet);
	assert_int_equal(s.peer.probes.num, 1);
}

/* A question is answered wherever requests are taken, and taken no further in RTR, where
 * nothing was sent. */
static void rx__question_in_each_state(void **state)
{
	static const struct {
		enum qp_state state;
		bool answered, dropped;
	} is[] = {{QPS_INIT, false, true}, {QPS_RTR, true, false},
		  {QPS_RTS, true, false},  {QPS_SQD, true, false},
		  {QPS_SQE, true, false},  {QPS_ERR, false, true}};

	for (unsigned i = 0; i < ARRAY_SIZE(is); i++) {
		in_state(is[i].state);
		taken(ack_pkt(-1, XACK_PROBE));
		assert_int_equal(s.cnt.v[CNT_drop_state], is[i].dropped);
		assert_int_equal(!!(s.qp.resp.ack.xack & XACK_PROBED),
				 is[i].answered);
		assert_int_equal(s.qp.resp.ack.answer,
				 is[i].answered ? ASKED : 0);
		in_state(QPS_RTS);
		bench_close(&s);
		setup(state);
	}
}

/* An ACK that asks nothing is not answered. In RTR it says how much the peer takes. */
static void rx__ack_that_asks_nothing(void **state)
{
	(void)state;
	in_state(QPS_RTR);
	taken(ack_pkt(-1, 0));
	assert_int_equal(s.qp.resp.ack.xack & XACK_PROBED, 0);
	assert_int_equal(s.peer.flow.budget, BUDGET / 2);
	in_state(QPS_RTS);
}

/* A request says up to where its sender has placed ours. */
static void rx__request_carries_an_ack(void **state)
{
	static const enum qp_state in[] = {QPS_RTS, QPS_SQD, QPS_SQE};

	for (unsigned i = 0; i < ARRAY_SIZE(in); i++) {
		struct pkt p = from_peer(OP_WRITE_ONLY, 0, 8);

		p.placed_to = PSN;
		sends(0);
		in_state(in[i]);
		taken(p);
		/* before the packet's own completion */
		completes(0, WC_SUCCESS);
		commit();
		in_state(QPS_RTS);
		bench_close(&s);
		setup(state);
	}
}

/* Not before we have sent, nor a packet that cannot say so. */
static void rx__request_that_carries_none(void **state)
{
	struct pkt p = from_peer(OP_WRITE_ONLY, 0, 8);

	(void)state;
	p.placed_to = PSN;
	sends(0);
	in_state(QPS_RTR);
	taken(p);
	commit();
	none_completes();
	in_state(QPS_RTS);
	p = from_peer(OP_WRITE_ONLY, 1, 8);
	p.placed_to = PSN;
	p.ext = false;
	taken(p);
	commit();
	none_completes();
}

/* --- what waited ------------------------------------------------------------------------ */

/* Either half had something that waits for a page. */
static void drain__both_halves(void **state)
{
	(void)state;
	asks_for(2, 8);
	dma_fault(s.mem, bench_page(2), 1);
	dma_fault(s.mem, BENCH_BASE, 1);
	taken(from_peer(OP_READ_RESP_ONLY, 0, 8));
	taken(from_peer(OP_WRITE_ONLY, 0, 8));
	assert_null(s.run.qp);
	assert_false(qp_drain(&s.qp, &s.run));
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp, &s.run));
	assert_false(s.run.responses);
	commit();
	none_completes();
	assert_true(qp_drain(&s.qp, &s.run));
	assert_true(s.run.responses);
	commit();
	completes(2, WC_SUCCESS);
	assert_false(qp_drain(&s.qp, &s.run));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(ready__knows_its_peer),
		BOTH(timeout__of_requests_in_rts_and_sqd),
		BOTH(tx__answers_before_requests),
		NOPIN(tx__before_the_peer_is_known),
		NOPIN(tx__lines_in_turn),
		NOPIN(tx_commit__did_not_leave),
		BOTH(rx__one_half_at_a_time),
		BOTH(rx__one_qp_at_a_time),
		NOPIN(rx__in_each_state),
		NOPIN(rx__is_heard),
		STANDARD(rx__standard_peer_is_not_asked),
		NOPIN(rx__question_in_each_state),
		NOPIN(rx__ack_that_asks_nothing),
		NOPIN(rx__request_carries_an_ack),
		NOPIN(rx__request_that_carries_none),
		NOPIN(drain__both_halves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
