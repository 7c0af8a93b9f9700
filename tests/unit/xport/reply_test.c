/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reply_test.c: what becomes of our requests when their peer says something of them. */
#include "requests.h"
#include "xport/reply.h"
#include "xport/retry.h"

#include <errno.h>

enum { PACKETS = 16, ORIGINAL = 4711 };

static const uint64_t wait_ns = BENCH_MS / 2;

static struct pkt came[PACKETS]; /* until their run is committed */
static uint8_t data[PACKETS][MTU];

static psn_t psn_at(int i)
{
	return psn_add(PSN, i);
}

static unsigned send_all(void)
{
	unsigned n = 0;

	while (qp_tx(&s.qp, &b)) {
		n += b.nsegs;
		qp_tx_commit(&b, 0);
	}
	return n;
}

/* So many requests of one packet are on their way. */
static void sent(uint8_t op, int num)
{
	for (int i = 0; i < num; i++)
		post(op, (uint64_t)i, 8);
	assert_int_equal(send_all(), num);
}

/* --- ACK and NAK ---------------------------------------------------------------- */

/* What the peer says of the request @psn, and of all before it; a nopin says that it has
 * accepted no more. */
static struct pkt ack_pkt(psn_t psn, uint8_t syndrome)
{
	const bool x = s.qp.open.theirs != 0;
	const bool nak = (syndrome & AETH_KIND_MASK) != AETH_ACK;
	struct pkt p = {.opcode = OP_ACK,
			.psn = psn,
			.syndrome = syndrome,
			.accepted = psn_add(psn, nak ? -1 : 0),
			.credit = BUDGET};

	if (x) {
		p.opcode = OP_X_ACK;
		p.ext = true;
		p.epoch = BENCH_MINE;
	}
	p.op = opcode_info(p.opcode)->flags;
	return p;
}

static void hear(struct pkt p)
{
	assert_int_equal(qp_rx(&s.qp, &p, (struct payload){.at = NULL}, &s.run),
			 RX_NEXT);
}

static void ack(int i)
{
	hear(ack_pkt(psn_at(i), AETH_ACK | AETH_CREDIT_INVALID));
}

static void nak(int i, uint8_t code)
{
	hear(ack_pkt(psn_at(i), AETH_NAK | code));
}

static void reply__ack_of_all_before(void **state)
{
	(void)state;
	sent(WR_SEND, 3);
	ack(1);
	completes(0, WC_SUCCESS);
	completes(1, WC_SUCCESS);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, psn_at(2));
	ack(2);
	completes(2, WC_SUCCESS);
	assert_int_equal(s.qp.req.psn.una, s.qp.req.psn.max);
}

/* The first packets of a message are placed: it is not complete. */
static void reply__ack_within_a_message(void **state)
{
	(void)state;
	post(WR_WRITE, 0, 3 * MTU);
	assert_int_equal(send_all(), 3);
	ack(1);
	none_completes();
	ack(2);
	completes(0, WC_SUCCESS);
}

static void reply__ack_of_what_was_not_sent(void **state)
{
	(void)state;
	sent(WR_SEND, 1);
	ack(1);
	none_completes();
	assert_int_equal(s.cnt.v[CNT_drop_psn], 1);
	ack(1 << 23);
	none_completes();
	assert_int_equal(s.cnt.v[CNT_drop_psn], 2);
	assert_int_equal(s.qp.state, QPS_RTS);
}

static void reply__ack_that_others_overtook(void **state)
{
	(void)state;
	sent(WR_SEND, 2);
	ack(1);
	completes(0, WC_SUCCESS);
	completes(1, WC_SUCCESS);
	ack(0);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, psn_at(2));
}

/* An RNR NAK that was overtaken spoke of a request that is done since, and says nothing
 * of the one after it. */
static void reply__rnr_that_others_overtook(void **state)
{
	(void)state;
	sent(WR_SEND, 2);
	ack(0);
	completes(0, WC_SUCCESS);
	hear(ack_pkt(psn_at(0), AETH_RNR | 1));
	assert_int_equal(s.qp.req.rnr_retries, RETRIES);
	assert_int_equal(s.qp.req.psn.snd, psn_at(2));
	hear(ack_pkt(psn_at(1), AETH_RNR | 1));
	assert_int_equal(s.qp.req.rnr_retries, RETRIES - 1);
	assert_int_equal(s.qp.req.psn.snd, psn_at(1));
}

/* What was before it completes; what is behind it is flushed. */
static void reply__nak_ends_a_request(void **state)
{
	static const struct {
		uint8_t code;
		enum wc_status status;
	} ends[] = {{NAK_INVALID_REQUEST, WC_REM_INV_REQ_ERR},
		    {NAK_REMOTE_ACCESS, WC_REM_ACCESS_ERR},
		    {NAK_REMOTE_OPERATION, WC_REM_OP_ERR}};

	for (unsigned i = 0; i < ARRAY_SIZE(ends); i++) {
		sent(WR_WRITE, 3);
		nak(1, ends[i].code);
		completes(0, WC_SUCCESS);
		completes(1, ends[i].status);
		completes(2, WC_WR_FLUSH_ERR);
		assert_int_equal(s.qp.state, QPS_ERR);
		assert_int_equal(s.cnt.v[CNT_naks_rx], 1);
		bench_close(&s);
		setup(state);
	}
}

static void reply__nak_that_means_nothing(void **state)
{
	(void)state;
	sent(WR_WRITE, 2);
	nak(0, AETH_VALUE_MASK);
	none_completes();
	assert_int_equal(s.qp.state, QPS_RTS);
	hear(ack_pkt(psn_at(0), AETH_NAK & ~AETH_RNR));
	none_completes();
	assert_int_equal(s.qp.state, QPS_RTS);
}

/* A standard peer misses something: that costs a retry, and all from there on is sent
 * again. */
static void reply__nak_sequence_of_a_standard_peer(void **state)
{
	(void)state;
	sent(WR_SEND, 3);
	ack(0);
	completes(0, WC_SUCCESS);
	for (int i = RETRIES; i > 0; i--) {
		nak(1, NAK_PSN_SEQUENCE);
		assert_int_equal(s.qp.req.psn.snd, psn_at(1));
		assert_int_equal(s.qp.req.retries, i - 1);
		assert_int_equal(send_all(), 2);
	}
	nak(1, NAK_PSN_SEQUENCE);
	completes(1, WC_RETRY_EXC_ERR);
	assert_int_equal(s.qp.state, QPS_ERR);
}

/* A nopin says so of what it forgot, as often as its pages make it: no retry is spent. */
static void reply__nak_sequence_of_a_nopin(void **state)
{
	(void)state;
	sent(WR_SEND, 3);
	for (int i = 0; i < 3 * RETRIES; i++) {
		nak(1, NAK_PSN_SEQUENCE);
		assert_int_equal(s.qp.req.psn.snd, psn_at(1));
		assert_int_equal(send_all(), 2);
	}
	completes(0, WC_SUCCESS);
	assert_int_equal(s.qp.req.retries, RETRIES);
	assert_int_equal(s.qp.state, QPS_RTS);
}

/* Nor is one before it is known that the peer is a nopin. */
static void reply__nak_sequence_before_it_opened(void **state)
{
	(void)state;
	sent(WR_SEND, 2);
	s.peer.kind = PEER_PROBING;
	nak(0, NAK_PSN_SEQUENCE);
	assert_int_equal(s.qp.req.psn.snd, PSN);
	assert_int_equal(s.qp.req.retries, RETRIES);
}

/* The newest question is answered, no earlier one. */
static void reply__answers_the_newest_question(void **state)
{
	struct pkt p;

	(void)state;
	sent(WR_SEND, 1);
	s.qp.req.probe.asked = true;
	s.qp.req.probe.question = 8;
	p = ack_pkt(psn_add(PSN, -1), AETH_ACK | AETH_CREDIT_INVALID);
	p.xack_flags = XACK_PROBED;
	p.answer = 7;
	hear(p);
	assert_true(s.qp.req.probe.asked);
	p.answer = 8;
	hear(p);
	assert_false(s.qp.req.probe.asked);
}

/* --- responses ---------------------------------------------------------------------- */

static enum rx_result response_op(int i, uint8_t opcode, uint32_t len)
{
	struct pkt *p = &came[i];

	*p = bench_pkt(&s, opcode, psn_at(i));
	p->payload_len = len;
	p->syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	return qp_rx(&s.qp, p, (struct payload){.at = data[i]}, &s.run);
}

static void response(int i, uint32_t len)
{
	assert_int_equal(response_op(i, OP_READ_RESP_ONLY, len), RX_NEXT);
}

static void commit(void)
{
	assert_ptr_equal(s.run.qp, &s.qp);
	commit_run(&s.run, true);
}

static bool drain(void)
{
	return qp_drain(&s.qp, &s.run);
}

/* @i is moved from @from to the byte @off of the page @page. */
static void check_move(unsigned i, const void *from, unsigned page,
		       uint32_t off, uint32_t len)
{
	const struct move *m = &s.run.moves.m[i];

	assert_true(i < s.run.moves.num);
	assert_true(m->addr == bench_page(page) + off);
	assert_int_equal(m->len, len);
	if (from)
		assert_ptr_equal(m->nic, from);
}

/* It completes when its bytes are where they belong. */
static void reply__responses_are_placed(void **state)
{
	(void)state;
	post(WR_READ, 2, 2 * MTU + 1);
	assert_int_equal(send_all(), 1);
	assert_int_equal(response_op(0, OP_READ_RESP_FIRST, MTU), RX_NEXT);
	assert_int_equal(response_op(1, OP_READ_RESP_MIDDLE, MTU), RX_NEXT);
	assert_int_equal(response_op(2, OP_READ_RESP_LAST, 1), RX_NEXT);
	check_move(0, data[0], 2, 0, MTU);
	check_move(1, data[1], 2, MTU, MTU);
	check_move(2, data[2], 2, 2 * MTU, 1);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, PSN);
	commit();
	completes(2, WC_SUCCESS);
	assert_int_equal(s.qp.req.psn.una, psn_at(3));
	assert_int_equal(s.qp.req.reads.out, 0);
	assert_int_equal(s.x.budget.read_out, 0);
}

static void reply__read_of_nothing(void **state)
{
	(void)state;
	post(WR_READ, 0, 0);
	assert_int_equal(send_all(), 1);
	response(0, 0);
	commit();
	completes(0, WC_SUCCESS);
}

/* It tells of what was before it, too (IBTA 9.7.5.1.1). */
static void reply__response_acknowledges(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	post(WR_READ, 1, 8);
	assert_int_equal(send_all(), 2);
	response(1, 8);
	completes(0, WC_SUCCESS);
	none_completes();
	commit();
	completes(1, WC_SUCCESS);
}

static void reply__atomic_brings_what_was_there(void **state)
{
	(void)state;
	post(WR_FETCH_ADD, 3, ATOMIC_BYTES);
	assert_int_equal(send_all(), 1);
	came[0] = bench_pkt(&s, OP_ATOMIC_ACK, PSN);
	came[0].syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	came[0].swap_add = ORIGINAL;
	assert_int_equal(
		qp_rx(&s.qp, &came[0], (struct payload){.at = NULL}, &s.run),
		RX_NEXT);
	check_move(0, &came[0].swap_add, 3, 0, ATOMIC_BYTES);
	commit();
	completes(3, WC_SUCCESS);
	assert_int_equal(s.qp.req.reads.out, 0);
}

static void reply__response_of_another_length(void **state)
{
	static const uint32_t len[] = {0, MTU - 1, MTU};

	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		post(WR_READ, 1, MTU + 1);
		assert_int_equal(send_all(), 1);
		response(0, MTU);
		commit();
		response(1, len[i]);
		completes(1, WC_BAD_RESP_ERR);
		assert_int_equal(s.qp.state, QPS_ERR);
		bench_close(&s);
		setup(state);
	}
}

static void reply__response_of_another_kind(void **state)
{
	(void)state;
	post(WR_READ, 1, 8);
	assert_int_equal(send_all(), 1);
	response_op(0, OP_ATOMIC_ACK, 0);
	completes(1, WC_BAD_RESP_ERR);
}

static void reply__response_to_nothing(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	post(WR_SEND, 1, 1);
	assert_int_equal(send_all(), 2);
	response(0, 8);
	response(2, 8);
	assert_null(s.run.qp);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, PSN);
}

static void reply__response_that_came_before(void **state)
{
	(void)state;
	post(WR_READ, 0, MTU + 1);
	assert_int_equal(send_all(), 1);
	response(0, MTU);
	commit();
	response(0, MTU);
	assert_null(s.run.qp);
	assert_int_equal(s.cnt.v[CNT_dups_rx], 1);
	response(1, 1);
	commit();
	completes(0, WC_SUCCESS);
}

/* --- out of order ---------------------------------------------------------------------- */

/* What comes ahead of a gap is kept, and placed behind what fills that. */
static void reply__response_ahead_of_a_gap(void **state)
{
	(void)state;
	post(WR_READ, 0, 2 * MTU);
	post(WR_READ, 4, MTU);
	assert_int_equal(send_all(), 2);
	response(2, MTU);
	response(1, MTU);
	assert_false(drain());
	none_completes();
	response(0, MTU);
	check_move(0, data[0], 0, 0, MTU);
	assert_int_equal(s.run.moves.num, 1);
	commit();
	none_completes();
	assert_true(drain());
	check_move(0, NULL, 0, MTU, MTU);
	check_move(1, NULL, 4, 0, MTU);
	commit();
	completes(0, WC_SUCCESS);
	completes(4, WC_SUCCESS);
	assert_int_equal(s.qp.req.psn.una, psn_at(3));
}

/* Those of a standard peer come in order: all from the gap on is asked for again. */
static void reply__gap_of_a_standard_peer(void **state)
{
	(void)state;
	post(WR_READ, 0, 3 * MTU);
	assert_int_equal(send_all(), 1);
	response(1, MTU);
	assert_true(list_empty(&s.qp.req.win.waiting));
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(sent_packet(&b, 0).opcode, OP_READ_REQ);
	assert_int_equal(sent_packet(&b, 0).psn, PSN);
	assert_int_equal(sent_packet(&b, 0).dma_len, 3 * MTU);
	qp_tx_commit(&b, 0);
	response(2, MTU); /* it is asked for once only */
	assert_int_equal(send_all(), 0);
}

/* Where packets overtake each other a response may only be late. The timer knows when it
 * counts as lost. */
static void reply__response_that_is_late(void **state)
{
	(void)state;
	s.peer.late.wait_ns = wait_ns;
	post(WR_READ, 0, 2 * MTU);
	assert_int_equal(send_all(), 1);
	response(1, MTU);
	assert_int_equal(send_all(), 0);
	assert_int_equal(timerq_next(&s.x.timers), s.x.now + wait_ns);
	s.x.now += wait_ns - 1;
	reply_timeout(&s.qp);
	assert_int_equal(send_all(), 0);
	s.x.now++;
	reply_timeout(&s.qp);
	assert_int_equal(send_all(), 1);
	assert_int_equal(s.cnt.v[CNT_read_restarts], 1);
	response(0, MTU);
	commit();
	assert_true(drain());
	commit();
	completes(0, WC_SUCCESS);
}

/* An ACK comes behind the responses before it. */
static void reply__ack_overtakes_no_response(void **state)
{
	(void)state;
	post(WR_READ, 0, 8);
	post(WR_SEND, 1, 1);
	assert_int_equal(send_all(), 2);
	ack(1);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, PSN);
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(sent_packet(&b, 0).opcode, OP_READ_REQ);
	assert_int_equal(sent_packet(&b, 0).psn, PSN);
	qp_tx_commit(&b, 0);
	response(0, 8);
	commit();
	completes(0, WC_SUCCESS);
	completes(1, WC_SUCCESS);
}

/* --- pages ------------------------------------------------------------------------------- */

static bool asked_for_page(unsigned i)
{
	struct ticket_req t;

	if (!ticket_next(s.mem, &t))
		return false;
	assert_int_equal(t.vpn, page_of(bench_page(i)));
	return true;
}

/* The page that a response is for is missing, and so are those of READs behind it: all
 * are asked for at once. */
static void reply__page_that_is_missing(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++)
		spt_unmap(s.mem, page_of(bench_page(i)), 1);
	post(WR_READ, 0, 8);
	post(WR_READ, 1, 8);
	assert_int_equal(send_all(), 2);
	response(0, 8);
	assert_true(asked_for_page(0));
	assert_true(asked_for_page(1));
	none_completes();
}

/* The peer was ready, so it may say RNR as often as ever: if that is asked for again, or
 * of what is behind it. */
static void reply__response_after_rnrs(void **state)
{
	(void)state;
	post(WR_READ, 0, 8);
	post(WR_READ, 1, 8);
	assert_int_equal(send_all(), 2);
	spt_unmap(s.mem, page_of(bench_page(0)), 1);
	for (int i = 0; i < 2; i++) {
		s.qp.req.rnr_retries = 0;
		response(i, 8);
		none_completes();
		assert_int_equal(s.qp.req.rnr_retries, RETRIES);
	}
}

/* A page went between the look at it and the move: what was planned is kept. */
static void reply__page_that_went(void **state)
{
	(void)state;
	post(WR_READ, 0, 2 * MTU);
	assert_int_equal(send_all(), 1);
	response(0, MTU);
	response(1, MTU);
	spt_unmap(s.mem, page_of(bench_page(0)), 1);
	commit_run(&s.run, false);
	none_completes();
	assert_int_equal(s.qp.req.psn.una, PSN);
	assert_false(drain());
	pages_brought(s.mem);
	assert_true(drain());
	check_move(0, NULL, 0, 0, MTU);
	check_move(1, NULL, 0, MTU, MTU);
	commit();
	completes(0, WC_SUCCESS);
}

/* What a READ brings may not go there: it fails, and what was before it does not. */
static void reply__where_nothing_may_be_written(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	wqe_sge(make(WR_READ, 1, 8))->lkey = 0x77;
	posted();
	assert_int_equal(send_all(), 2);
	response(1, 8);
	completes(0, WC_SUCCESS);
	completes(1, WC_LOC_PROT_ERR);
	assert_int_equal(s.qp.state, QPS_ERR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(reply__ack_of_all_before),
		BOTH(reply__ack_within_a_message),
		BOTH(reply__ack_of_what_was_not_sent),
		BOTH(reply__ack_that_others_overtook),
		BOTH(reply__rnr_that_others_overtook),
		BOTH(reply__nak_ends_a_request),
		BOTH(reply__nak_that_means_nothing),
		STANDARD(reply__nak_sequence_of_a_standard_peer),
		NOPIN(reply__nak_sequence_of_a_nopin),
		STANDARD(reply__nak_sequence_before_it_opened),
		NOPIN(reply__answers_the_newest_question),
		BOTH(reply__responses_are_placed),
		BOTH(reply__read_of_nothing),
		BOTH(reply__response_acknowledges),
		BOTH(reply__atomic_brings_what_was_there),
		BOTH(reply__response_of_another_length),
		BOTH(reply__response_of_another_kind),
		BOTH(reply__response_to_nothing),
		BOTH(reply__response_that_came_before),
		NOPIN(reply__response_ahead_of_a_gap),
		STANDARD(reply__gap_of_a_standard_peer),
		NOPIN(reply__response_that_is_late),
		BOTH(reply__ack_overtakes_no_response),
		BOTH(reply__page_that_is_missing),
		BOTH(reply__response_after_rnrs),
		NOPIN(reply__page_that_went),
		BOTH(reply__where_nothing_may_be_written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
