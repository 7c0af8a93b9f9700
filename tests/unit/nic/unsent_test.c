/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unsent_test.c: a burst was planned, and then the socket was full: what it said
 * was not said, what was taken for sent was not, whatever came meanwhile.
 */
#include "steps.h"
#include "xport/impl.h"

#include <errno.h>

/* Its send says that the socket is full. */
static void full(struct nic *nic, struct step *s)
{
	s->error = -EAGAIN;
	engine_commit(nic, s, os_now(nic->os));
}

/* Receive until a READ response is in @s, and do not look at it yet. */
static void receive_response(struct side *side_, struct step *s)
{
	struct side *peer = &side[side_ == side];

	side_->nic->peek = 0;
	for (int i = 0; i < TRIES; i++) {
		if (!engine_receive(side_->nic, s)) {
			pump(peer);
			continue;
		}
		if ((s->buf[0] & 0x1f) >= OP_READ_RESP_FIRST &&
		    (s->buf[0] & 0x1f) <= OP_READ_RESP_ONLY)
			return;
		finish_receive(side_->nic, s); /* to be forwarded */
	}
	fail_msg("no response");
}

/* All READs are asked for again while one more was planned and did not leave:
 * it is sent as what it is, the next one, and counts.
 */
static void unsent__a_read_while_others_are_asked_again(void **state)
{
	enum { READS = 3, MOST = 4 };
	struct nic *nic = side[0].nic;
	struct step *rx = &nic->steps[1], *tx = &nic->steps[2];
	struct req *r = &side[0].qp->qp.req;

	(void)state;
	assert_int_equal(side[0].qp->qp.attr.max_rd_atomic, MOST);
	for (int i = 0; i < READS; i++)
		post_at(&side[0], WR_READ, (uint64_t)i * 4096, 64);
	send_all(&side[0]);
	pump(&side[1]);
	receive_response(&side[0], rx);
	post_at(&side[0], WR_READ, READS * 4096, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	rx->at = rx->rx.seg; /* the first response is lost */
	finish_receive(nic, rx);
	assert_true(r->ask_again);
	full(nic, tx);
	for (int i = 0; i < TRIES && (r->ask_again || r->pause_until); i++) {
		send_all(&side[0]);
		idle(nic);
	}
	post_at(&side[0], WR_READ, (READS + 1) * 4096, 64);
	send_all(&side[0]);
	assert_int_equal(r->rd_out, MOST);
	assert_int_equal(psn_diff(r->snd, r->una), MOST);
	for (int i = 0; i <= READS + 1; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The ACK of what came behind a READ leaves behind the READ's answer. */
static void unsent__the_rest_of_an_ack(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps[1];
	bool done = false;

	(void)state;
	send_read_between_writes();
	for (int i = 0; i < TRIES &&
			side[1].qp->qp.resp.win.head != side[0].qp->qp.req.max;
	     i++)
		receive_silently();
	lose_read_page();
	for (int i = 0; i < TRIES && !done; i++) {
		if (!engine_plan(nic, step, true, os_now(nic->os))) {
			idle(nic);
			continue;
		}
		done = step->burst.qp;
		if (done)
			full(nic, step);
		else
			plan_move_commit(nic, step);
	}
	assert_true(done);
	assert_int_equal(nic->cnt.v[CNT_fault_park], 1);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
}

/* The send of [WRITE][ACK] went out packet by packet and met the full socket at
 * the ACK, so it said so. By then the WRITE was acknowledged, behind a READ whose
 * response is just being placed.
 */
static void unsent__but_for_its_end(void **state)
{
	struct nic *nic = side[0].nic;
	struct step *slow = &nic->steps[2], *tx = &nic->steps[3];
	struct qp *qp = &side[0].qp->qp;

	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[0]);
	receive_response(&side[0], slow);
	assert_true(engine_rx_plan(nic, slow, os_now(nic->os)));
	assert_int_equal(slow->run.num, 1);
	qp->resp.ext = true;
	qp->peer->granted ^= 1; /* does not fit into a request */
	ack_owe(qp, os_now(nic->os));
	post_at(&side[0], WR_WRITE, 0, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_true(tx->burst.acks);
	engine_move(nic, tx);
	for (int i = 0; i < TRIES && qp->req.placed != qp->req.max; i++)
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
	full(nic, tx);
	plan_move_commit(nic, slow);
	finish_receive(nic, slow);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	post_at(&side[0], WR_WRITE, 8192, 64);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
}

/* An answer that carries the ACK of what it answers is sent again with it. */
static void unsent__the_ack_that_it_carried(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];
	uint64_t carried;

	(void)state;
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	for (int i = 0; i < TRIES && !side[1].qp->qp.resp.ack_owed; i++)
		receive_silently();
	carried = nic->cnt.v[CNT_acks_carried];
	know_pages(&side[1]);
	post(&side[1], WR_WRITE, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_int_equal(nic->cnt.v[CNT_acks_carried], carried + 1);
	assert_false(side[1].qp->qp.resp.ack_owed);
	full(nic, tx);
	os_wait(nic->os, 0, os_now(nic->os) + 1000000, -1);
	know_pages(&side[1]);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_ptr_equal(tx->burst.qp, &side[1].qp->qp);
	assert_int_equal(nic->cnt.v[CNT_acks_carried], carried + 2);
	plan_move_commit(nic, tx);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(wait_cqe(&side[1]).op, WR_WRITE);
}

/* A burst that is nothing but an ACK does not leave: the ACK stays owed, and is
 * not tried without end while the socket is full.
 */
static void unsent__only_an_ack(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];
	uint64_t sent = nic->cnt.v[CNT_tx_packets];

	(void)state;
	know_pages(&side[1]);
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	for (int i = 0; i < TRIES && !side[1].qp->qp.resp.ack_owed; i++)
		receive_silently();
	assert_true(side[1].qp->qp.resp.ack_owed);
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_null(tx->burst.qp);
	assert_false(side[1].qp->qp.resp.ack_owed);
	full(nic, tx);
	assert_int_equal(nic->cnt.v[CNT_tx_packets], sent);
	assert_false(engine_plan(nic, tx, true, os_now(nic->os)));
	os_wait(nic->os, 0, os_now(nic->os) + 1000000, -1);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
}

/* --- ACKs and NAKs that side 1 owed, and says again ------------------------------ */

static struct resp *resp(void)
{
	return &side[1].qp->qp.resp;
}

/* What side 1 owes is planned, alone or behind its answers, and meets a full
 * socket. */
static void owed_meets_full(bool behind)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];

	know_pages(&side[1]);
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_true((tx->burst.qp != NULL) == behind);
	assert_true(tx->burst.acks);
	assert_int_equal(resp()->nak, 0);
	full(nic, tx);
}

/* Until @seen of side 1 is set. */
#define RECEIVE_UNTIL(seen)                                                    \
	do {                                                                   \
		side[1].nic->peek = 0;                                         \
		for (int i = 0; i < TRIES && !(seen); i++)                     \
			receive_silently();                                    \
		assert_true(seen);                                             \
	} while (0)

static void forbidden_write(void)
{
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key ^ 0x100},
		  side[0].buf, 8);
}

static void unsent__a_fatal_nak(void **state)
{
	(void)state;
	forbidden_write();
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->nak);
	assert_int_equal(side[1].qp->qp.state, QPS_ERR);
	owed_meets_full(false);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* The program sees the error and destroys its QP before there is room. */
static void unsent__a_fatal_nak_before_destroy(void **state)
{
	struct qp_attr reset = {.state = QPS_RESET};

	(void)state;
	forbidden_write();
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->nak);
	owed_meets_full(false);
	side[1].nic->cfg.manual = false; /* as it is in a program */
	assert_int_equal(nic_qp_modify(side[1].qp, &reset, QPA_STATE), 0);
	side[1].nic->cfg.manual = true;
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* The QP is not in error before the READ is answered. */
static void unsent__a_fatal_nak_behind_a_read(void **state)
{
	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	forbidden_write();
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(resp()->nak);
	owed_meets_full(true);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

static void unsent__an_rnr(void **state)
{
	(void)state;
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->rnr_told);
	owed_meets_full(false);
	side_recv(&side[1], side[1].buf, 4096, 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
}

/* While it waits the SEND comes a second time, and there is a receive now: what
 * is owed is an ACK. */
static void unsent__an_rnr_and_then_its_send(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *rx = &nic->steps[1], *twin = &nic->steps[3];

	(void)state;
	side[0].qp->qp.attr.rnr_retry = side[0].qp->qp.req.rnr_retries = 0;
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	send_all(&side[0]);
	nic->peek = 0;
	for (int i = 0; i < TRIES && !resp()->rnr_told; i++) {
		pump(&side[0]);
		if (!engine_receive(nic, rx))
			continue;
		twin->rx = rx->rx;
		memcpy(twin->buf, rx->buf, rx->rx.len);
		finish_receive(nic, rx);
	}
	owed_meets_full(false);
	side_recv(&side[1], side[1].buf, 4096, 1);
	know_pages(&side[1]);
	twin->at = twin->taken = 0;
	twin->lost = twin->efault = false;
	twin->scatter.qp = NULL;
	rx_run_init(&twin->run);
	finish_receive(nic, twin);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The last resort for a page that is missing; the WRITE waits in a slot. */
static void unsent__an_rnr_for_a_page(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	post_at(&side[0], WR_WRITE, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
	RECEIVE_UNTIL(resp()->wait.ticket.v);
	assert_false(resp()->forgot);
	fault_silence_over(&side[1].qp->qp, os_now(nic->os));
	owed_meets_full(false);
	assert_int_equal(resp()->nak & AETH_KIND_MASK, AETH_RNR);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The page of a READ came before its RNR could be said: what is owed then is an
 * ACK of what came behind. */
static void unsent__an_rnr_for_a_page_of_a_read(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];

	(void)state;
	post_at(&side[0], WR_READ, 0, LEN);
	post_at(&side[0], WR_WRITE, LEN, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
	RECEIVE_UNTIL(side[1].qp->qp.resp.win.head == side[0].qp->qp.req.max);
	while (!resp()->src_wait.ticket.v) {
		assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
		plan_move_commit(nic, tx);
	}
	fault_silence_over(&side[1].qp->qp, os_now(nic->os));
	assert_int_equal(resp()->nak & AETH_KIND_MASK, AETH_RNR);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
}

/* Without it the peer waits for as long as it was asked to. */
static void unsent__resume(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	ack_say(&side[1].qp->qp, XACK_HOLD, os_now(nic->os));
	for (int i = 0; i < TRIES && !side[0].qp->qp.req.held; i++)
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
	assert_true(side[0].qp->qp.req.held);
	post(&side[0], WR_WRITE, 64);
	ack_say(&side[1].qp->qp, XACK_RESUME, os_now(nic->os));
	owed_meets_full(false);
	assert_int_equal(resp()->xack, XACK_RESUME);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Of a connection that is reset before the burst is given up. */
static void unsent__of_an_older_connection(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];
	struct qp_attr reset = {.state = QPS_RESET};

	(void)state;
	ack_say(&side[1].qp->qp, XACK_HOLD, os_now(nic->os));
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_null(tx->burst.qp);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_qp_modify(side[i].qp, &reset, QPA_STATE),
				 0);
	for (int i = 0; i < SIDES; i++)
		side_connect(&side[i], &side[!i]);
	full(nic, tx);
	assert_int_equal(resp()->xack, 0);
	assert_false(resp()->ack_owed);
}

/* Side 1 has [its WRITE][the ACK of ours] planned, and the send says @error. */
static void answer_and_ack(int error)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps[2];

	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->ack_owed);
	know_pages(&side[1]);
	post(&side[1], WR_WRITE, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_ptr_equal(tx->burst.qp, &side[1].qp->qp);
	assert_true(tx->burst.acks);
	assert_false(resp()->ack_owed);
	tx->error = error;
	engine_commit(nic, tx, os_now(nic->os));
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
}

static void unsent__an_ack_behind_a_missing_page(void **state)
{
	(void)state;
	answer_and_ack(-EFAULT);
}

/* By a packet filter, say. Our WRITE is lost as in any network. */
static void unsent__an_ack_behind_what_may_not_leave(void **state)
{
	(void)state;
	answer_and_ack(-EPERM);
}

/* The program breaks the connection 10 us after its last ACK met a socket that
 * was full. */
static void unsent__the_last_ack(void **state)
{
	struct nic *nic = side[1].nic;
	struct qp_attr err = {.state = QPS_ERR};

	(void)state;
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->ack_owed);
	owed_meets_full(false);
	nic->cfg.manual = false; /* as it is in a program */
	assert_int_equal(nic_qp_modify(side[1].qp, &err, QPA_STATE), 0);
	nic->cfg.manual = true;
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

#define TEST(f, setup_) cmocka_unit_test_setup_teardown(f, setup_, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(unsent__a_read_while_others_are_asked_again, setup),
		TEST(unsent__a_read_while_others_are_asked_again,
		     setup_standard),
		TEST(unsent__the_rest_of_an_ack, setup),
		TEST(unsent__the_rest_of_an_ack, setup_standard),
		TEST(unsent__but_for_its_end, setup),
		TEST(unsent__the_ack_that_it_carried, setup),
		TEST(unsent__only_an_ack, setup),
		TEST(unsent__only_an_ack, setup_standard),
		TEST(unsent__a_fatal_nak, setup),
		TEST(unsent__a_fatal_nak, setup_standard),
		TEST(unsent__a_fatal_nak_before_destroy, setup),
		TEST(unsent__a_fatal_nak_before_destroy, setup_standard),
		TEST(unsent__a_fatal_nak_behind_a_read, setup),
		TEST(unsent__a_fatal_nak_behind_a_read, setup_standard),
		TEST(unsent__the_last_ack, setup),
		TEST(unsent__the_last_ack, setup_standard),
		TEST(unsent__an_rnr, setup_standard),
		TEST(unsent__an_rnr_and_then_its_send, setup_standard),
		TEST(unsent__an_rnr_for_a_page, setup_standard),
		TEST(unsent__an_rnr_for_a_page_of_a_read, setup_standard),
		TEST(unsent__an_ack_behind_a_missing_page, setup_standard),
		TEST(unsent__an_ack_behind_what_may_not_leave, setup_standard),
		TEST(unsent__resume, setup),
		TEST(unsent__of_an_older_connection, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
