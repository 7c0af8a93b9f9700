/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unsent_test.c: a burst was planned, and then the socket was full: what it said
 * was not said, what was taken for sent was not, whatever came meanwhile.
 */
#include "mem/mr.h"
#include "nic/memory.h"
#include "nic/step.h"
#include "nic/suspension.h"
#include "steps.h"
#include "wire/opcode.h"
#include "wire/xhdr.h"
#include "xport/kick.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/replay.h"
#include "xport/requester.h"
#include "xport/responder.h"

#include <errno.h>

/* Is it a READ response, perhaps in one that is forwarded? */
static bool is_response(const uint8_t *bth)
{
	if (bth[0] == OP_X_FORWARD)
		bth += BTH_BYTES + sizeof(struct forward);
	return (bth[0] & 0x1f) >= OP_READ_RESP_FIRST &&
	       (bth[0] & 0x1f) <= OP_READ_RESP_ONLY;
}

/* Receive until a READ response is in @s, and do not look at it yet. */
static void receive_response(struct side *side_, struct step *s)
{
	struct side *peer = &side[side_ == side];

	side_->nic->rx.peek = 0;
	for (int i = 0; i < TRIES; i++) {
		if (!inlet_receive(side_->nic, s)) {
			pump(peer);
			idle(side_->nic);
			continue;
		}
		if (is_response(s->buf))
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
	struct step *rx = &nic->steps.v[1], *tx = &nic->steps.v[2];
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
	assert_true(r->reads.ask_again);
	full(nic, tx);
	for (int i = 0; i < TRIES && (r->reads.ask_again ||
				      deadline_waits(r->at[REQ_PAUSE]));
	     i++) {
		send_all(&side[0]);
		idle(nic);
	}
	post_at(&side[0], WR_READ, (READS + 1) * 4096, 64);
	send_all(&side[0]);
	assert_int_equal(r->reads.out, MOST);
	assert_int_equal(psn_diff(r->psn.snd, r->psn.una), MOST);
	for (int i = 0; i <= READS + 1; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The ACK of what came behind a READ leaves behind the READ's answer. */
static void unsent__the_rest_of_an_ack(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[1];
	uint64_t parked = nic->cnt.v[CNT_fault_park];
	bool done = false;

	(void)state;
	send_read_between_writes();
	RECEIVE_UNTIL(side[1].qp->qp.resp.win.head ==
		      side[0].qp->qp.req.psn.max);
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
	assert_int_equal(nic->cnt.v[CNT_fault_park], parked + 1);
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
	struct step *slow = &nic->steps.v[2], *tx = &nic->steps.v[3];
	struct qp *qp = &side[0].qp->qp;

	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[0]);
	receive_response(&side[0], slow);
	assert_true(engine_rx_plan(nic, slow, os_now(nic->os)));
	assert_int_equal(slow->run.num, 1);
	qp->peer->flow.granted ^= 1; /* does not fit into a request */
	nic_tick(nic);
	ack_owe(qp);
	post_at(&side[0], WR_WRITE, 0, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_true(tx->burst.acks.num);
	engine_move(nic, tx);
	for (int i = 0; i < TRIES && qp->req.psn.placed != qp->req.psn.max; i++)
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
	struct step *tx = &nic->steps.v[2];
	uint64_t carried;

	(void)state;
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(side[1].qp->qp.resp.ack.owed);
	carried = nic->cnt.v[CNT_acks_carried];
	know_pages(&side[1]);
	post(&side[1], WR_WRITE, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_int_equal(nic->cnt.v[CNT_acks_carried], carried + 1);
	assert_false(side[1].qp->qp.resp.ack.owed);
	full(nic, tx);
	pass_ns(nic, 1000000);
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
	struct step *tx = &nic->steps.v[2];
	uint64_t sent = nic->cnt.v[CNT_tx_packets], now;

	(void)state;
	know_pages(&side[1]);
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(side[1].qp->qp.resp.ack.owed);
	assert_true(side[1].qp->qp.resp.ack.owed);
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_null(tx->burst.qp);
	assert_false(side[1].qp->qp.resp.ack.owed);
	now = os_now(nic->os);
	tx->error = -EAGAIN;
	engine_commit(nic, tx, now);
	assert_int_equal(nic->cnt.v[CNT_tx_packets], sent);
	assert_false(engine_plan(nic, tx, true, now));
	pass_ns(nic, 1000000);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
}

/* The first READ is asked for once more, and the answer does not leave: the second,
 * answered long ago, is not asked for by anybody.
 */
static void unsent__not_what_was_answered_before(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[2];
	struct qp *qp = &side[1].qp->qp;
	const struct resource *s = qp->resp.replay.res;
	struct pkt p;

	(void)state;
	for (int i = 0; i < 2; i++) {
		post_at(&side[0], WR_READ, (uint64_t)i * 4096, 64);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	p = (struct pkt){.op = OPF_READ,
			 .psn = s->psn,
			 .va = s->va,
			 .rkey = s->rkey,
			 .dma_len = s->len};
	nic_tick(nic);
	replay_duplicate(qp, &p);
	know_pages(&side[1]);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_ptr_equal(tx->burst.qp, qp);
	full(nic, tx);
	assert_int_equal(s[0].at, 0);
	assert_int_equal(s[1].at, s[1].num);
	assert_int_equal(replay_pending(qp), 0);
}

/* A packet was lost, and the page that the next request is sent from is missing: what
 * was lost is sent again all the same, also as the trial of a peer that answers and
 * moves nothing (xport/live.c); and then the page is waited for as before.
 */
static void unsent__a_page_behind_what_was_lost(void **state)
{
	struct nic *nic = side[0].nic;
	struct step *tx = &nic->steps.v[2];
	struct qp *qp = &side[0].qp->qp;
	struct req *r = &qp->req;
	struct mr_attr attr;
	uint32_t away;

	(void)state;
	assert_int_equal(nic_mr_query(nic, side[0].key, &attr), 0);
	assert_int_equal(nic_mr_reg(nic, &attr, &away), 0);
	for (int trial = 0; trial < 2; trial++) {
		const uint32_t here = side[0].key;

		assert_int_equal(nic_mr_suspend(nic, away, 0), 0);
		know_pages(&side[0]);
		know_pages(&side[1]);
		post_at(&side[0], WR_WRITE, 0, 64);
		side[0].key = away;
		post_at(&side[0], WR_WRITE, 4096, 64);
		side[0].key = here;
		assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
		tx->error = -ENETDOWN; /* as if it were lost on the way */
		engine_commit(nic, tx, os_now(nic->os));
		send_all(&side[0]);
		assert_int_not_equal(r->wait.ticket.v, 0);
		assert_int_equal(psn_diff(r->psn.snd, r->psn.una), 1);
		if (trial) {
			r->live.trial = TRIAL_DUE;
		} else {
			r->loss.base = r->psn.una;
			r->loss.lost = r->loss.left = 1;
		}
		qp_kick(qp);
		send_all(&side[0]);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
		assert_int_not_equal(r->wait.ticket.v, 0);
		assert_int_equal(nic_mr_resume(nic, away), 0);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_int_equal(nic_mr_dereg(nic, away), 0);
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
		TEST(unsent__not_what_was_answered_before, setup),
		TEST(unsent__a_page_behind_what_was_lost, setup),
		TEST(unsent__only_an_ack, setup),
		TEST(unsent__only_an_ack, setup_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
