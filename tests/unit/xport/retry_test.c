/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* retry_test.c: what is sent again, or did not leave. */
#include "requests.h"
#include "xport/retry.h"

#include <errno.h>

enum { LEN = 64 };

/* The response to the READ at PSN is taken; its bytes have not moved yet. */
static void response_comes(void)
{
	static uint8_t data[MTU];
	static struct pkt p; /* until the run is committed */

	p = bench_pkt(&s, OP_READ_RESP_ONLY, PSN);

	p.payload_len = LEN;
	p.syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	qp_rx(&s.qp, &p, (struct payload){.at = data}, &s.run);
	assert_true(s.qp.rx_moving);
}

static void response_is_placed(void)
{
	s.run.moves.done = s.run.moves.num;
	qp_rx_commit(&s.run);
}

static void socket_has_room(void)
{
	s.x.now += 100 * BENCH_MS;
	timerq_set(&s.x.timers, &s.qp.timer, TIME_NEVER);
	qp_timeout(&s.qp);
}

/* A burst may have left but for its end: a READ of it is answered before the socket says
 * that it is full. Nothing of that is taken back, or the next request would begin where
 * this one ended, and its first packet would never leave. */
static void retry_unsent__while_an_answer_to_it_moves(void **state)
{
	const struct req *r = &s.qp.req;
	struct cqe e;

	(void)state;
	post(WR_READ, 1, LEN);
	assert_true(qp_tx(&s.qp, &b));
	response_comes();
	qp_tx_commit(&b, -EAGAIN);
	response_is_placed();
	assert_int_equal(r->psn.una, psn_add(PSN, 1));
	assert_int_equal(r->psn.snd, r->psn.una);
	assert_int_equal(r->psn.max, r->psn.una);
	assert_int_equal(r->charge.out, 0);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, 1);
	socket_has_room();
	post(WR_WRITE, 2, 3 * MTU);
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(sent_packet(&b, 0).opcode, OP_WRITE_FIRST);
	assert_int_equal(sent_packet(&b, 0).psn, psn_add(PSN, 1));
	qp_tx_commit(&b, 0);
}

/* A READ that was gone back on is answered in part already: the burst that asks for it
 * again did not leave, and is taken back, as no PSN of it is new. */
static void retry_unsent__of_what_was_sent_before(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	post(WR_READ, 1, LEN);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
	r->win.next = psn_add(PSN, 1);
	retry_rewind(&s.qp, FLIGHT_TIMEOUT);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, -EAGAIN);
	assert_int_equal(r->psn.snd, PSN);
	assert_int_equal(r->psn.max, psn_add(PSN, 1));
	r->win.next = PSN;
}

/* It did not leave, so it leaves again, with its first packet. */
static void retry_unsent__comes_again(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	post(WR_WRITE, 1, 3 * MTU);
	assert_true(qp_tx(&s.qp, &b));
	assert_true(psn_diff(r->psn.max, PSN) > 0);
	qp_tx_commit(&b, -EAGAIN);
	assert_int_equal(r->psn.snd, PSN);
	assert_int_equal(r->psn.max, PSN);
	socket_has_room();
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(sent_packet(&b, 0).opcode, OP_WRITE_FIRST);
	assert_int_equal(sent_packet(&b, 0).psn, PSN);
	qp_tx_commit(&b, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(retry_unsent__while_an_answer_to_it_moves),
		BOTH(retry_unsent__of_what_was_sent_before),
		BOTH(retry_unsent__comes_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
