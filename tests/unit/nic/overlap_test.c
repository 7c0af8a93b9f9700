/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* overlap_test.c: what has to wait for another step's moves, and what need not
 * mind that another step overtook it.
 */
#include "nic/engine.h"
#include "nic/inlet.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "nic/stint.h"
#include "owed.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/life.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"

/* A small WRITE of side[1] has come; @step is to move it. */
static void plan_arriving(struct step *step)
{
	struct nic *nic = side[0].nic;

	post(&side[1], WR_WRITE, 64);
	send_all(&side[1]);
	know_pages(&side[0]);
	nic->rx.peek = 0;
	assert_true(inlet_receive(nic, step));
	assert_true(engine_rx_plan(nic, step, os_now(nic->os)));
	assert_int_equal(step->run.moves.num, 1);
}

/* Somebody else's move is out that writes a page; a step that needs the page
 * waits for its end, and goes on then without being asked.
 */
static void engine_plan__not_where_a_move_writes(void **state)
{
	struct step *slow = &side[0].nic->steps.v[2];
	struct step *other = &side[0].nic->steps.v[1];
	struct nic *nic = side[0].nic;

	(void)state;
	memset(side[1].buf, 7, LEN);
	plan_arriving(slow);

	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key},
		  side[0].buf + BUF / 2, 64);
	know_pages(&side[0]);
	assert_false(engine_plan(nic, other, false, os_now(nic->os)));
	assert_true(engine_settled(nic, false, os_now(nic->os)));

	plan_move_commit(nic, slow);
	assert_false(engine_settled(nic, false, os_now(nic->os)));
	know_pages(&side[0]);
	assert_true(engine_plan(nic, other, false, os_now(nic->os)));
	assert_int_equal(other->burst.gathers.num, 1);
	plan_move_commit(nic, other);
	finish_receive(nic, slow);
	for (unsigned i = 0; i < SIDES; i++)
		assert_int_equal(wait_cqe(&side[i]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf, side[0].buf + BUF / 2, 64);
	assert_int_equal(side[1].buf[0], 7);
}

/* A region is invalidated while a peer's WRITE is on its way into it: the program
 * hears of it when nothing moves there any more.
 */
static void local_inv__not_before_the_last_move(void **state)
{
	struct step *slow = &side[0].nic->steps.v[2];
	struct nic *nic = side[0].nic;
	struct cqe e;
	int early;

	(void)state;
	plan_arriving(slow);

	side_post(&side[0],
		  (struct wqe){.op = WR_LOCAL_INV, .imm = side[0].key}, NULL,
		  0);
	send_all(&side[0]);
	early = nic_cq_poll(side[0].cq, 1, &e);

	plan_move_commit(nic, slow);
	assert_int_equal(early, 0);
	finish_receive(nic, slow);
	send_all(&side[0]);
	assert_int_equal(nic_cq_poll(side[0].cq, 1, &e), 1);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.op, WR_LOCAL_INV);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
}

/* It fails while something before it is not acknowledged: what is behind it, which
 * may say that it was done, is not sent.
 */
static void local_inv__wrong_ends_what_is_behind(void **state)
{
	const struct req *r = &side[0].qp->qp.req;
	struct cqe e;

	(void)state;
	post(&side[0], WR_WRITE, 64);
	side_post(&side[0],
		  (struct wqe){.op = WR_LOCAL_INV, .imm = side[0].key ^ 1},
		  NULL, 0);
	post_at(&side[0], WR_WRITE, 4096, 64);
	send_all(&side[0]);
	assert_int_equal(psn_diff(r->psn.max, r->psn.una), 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	e = wait_cqe(&side[0]);
	assert_int_equal(e.status, WC_MW_BIND_ERR);
	assert_int_equal(e.vendor_err, CAUSE_INVALIDATE);
	e = wait_cqe(&side[0]);
	assert_int_equal(e.status, WC_WR_FLUSH_ERR);
	assert_int_equal(e.vendor_err, CAUSE_INVALIDATE);
	assert_int_equal(side[1].buf[BUF / 2 + 4096], 0);
}

/* A peer's SEND invalidates a region that something of ours is still read from:
 * its receive completes when nothing moves there any more.
 */
static void send_with_inv__not_before_the_last_move(void **state)
{
	struct step *slow = &side[0].nic->steps.v[2];
	struct nic *nic = side[0].nic;
	struct wqe *w;
	struct cqe e;
	int early;

	(void)state;
	assert_int_equal(nic_recv_begin(side[0].qp), 0);
	w = nic_recv_slot(side[0].qp);
	*w = (struct wqe){.wr_id = 5};
	nic_recv_publish(side[0].qp);
	nic_recv_end(side[0].qp);
	post(&side[0], WR_WRITE, 64);
	know_pages(&side[0]);
	assert_true(engine_plan(nic, slow, false, os_now(nic->os)));
	assert_int_equal(slow->burst.gathers.num, 1);

	side_post(&side[1], (struct wqe){.op = WR_SEND_INV, .imm = side[0].key},
		  NULL, 0);
	send_all(&side[1]);
	for (int i = 0; i < 3; i++)
		pump(&side[0]);
	early = nic_cq_poll(side[0].cq, 1, &e);

	plan_move_commit(nic, slow);
	assert_int_equal(early, 0);
	e = wait_cqe(&side[0]);
	assert_int_equal(e.wr_id, 5);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.flags, CQE_INV);
	assert_int_equal(e.imm, side[0].key);
	e = wait_cqe(&side[0]);
	assert_int_equal(e.op, WR_WRITE);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
}

/* Who was to send an ACK loses its CPU, and the next ACK overtakes it. */
static void ack__overtaken_is_no_drop(void **state)
{
	struct step *slow = &side[1].nic->steps.v[2];
	struct nic *nic = side[1].nic;

	(void)state;
	write_comes();
	assert_true(engine_plan(nic, slow, true, os_now(nic->os)));
	post(&side[0], WR_WRITE, 8);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	plan_move_commit(nic, slow);
	pump(&side[0]);
	assert_int_equal(side[0].nic->cnt.v[CNT_drop_psn], 0);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
}

/* A card gets no ACK for what is answered by a response. */
static void ack__not_for_a_read(void **state)
{
	const uint64_t *acks = &side[1].nic->cnt.v[CNT_acks_tx];
	const uint64_t before = *acks;

	(void)state;
	post(&side[0], WR_READ, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	pump(&side[1]);
	assert_int_equal(*acks, before);
}

/* A burst needs more moves than one plan has. Whoever overtakes the thread that
 * moves its first part goes on with the second, not with what came after it.
 */
static void progress_receive__rest_of_an_overtaken_burst(void **state)
{
	enum { MSGS = MOVES_MAX / SIDE_SGES };
	struct step *slow = &side[1].nic->steps.v[2];
	struct nic *nic = side[1].nic;
	uint64_t now;

	(void)state;
	for (unsigned i = 0; i < MSGS; i++) {
		side_recv(&side[1], side[1].buf + i * 64, 64, SIDE_SGES);
		memset(side[0].buf + i * 64, (int)i + 1, 64);
		side_post(&side[0], (struct wqe){.op = WR_SEND},
			  side[0].buf + i * 64, 64);
	}
	know_pages(&side[0]);
	send_all(&side[0]);
	know_pages(&side[1]);
	nic->rx.peek = 0;
	assert_true(inlet_receive(nic, slow));
	assert_true(engine_rx_plan(nic, slow, os_now(nic->os)));
	assert_true(slow->at < slow->rx.len);
	assert_ptr_equal(nic->rx.rest, slow);

	/* taken long ago, and it moves */
	nic->rx.token = 1 << 1 | 1;
	__atomic_and_fetch(&nic->steps.free, ~(1u << slow->index),
			   __ATOMIC_RELAXED);
	now = os_now(nic->os);
	assert_true(progress_receive(nic, &now));
	assert_int_equal(slow->at, slow->rx.len);
	assert_null(nic->rx.rest);
	plan_move_commit(nic, slow);
	finish_receive(nic, slow);
	step_put(nic, slow);

	for (unsigned i = 0; i < MSGS; i++) {
		assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
		assert_memory_equal(side[1].buf + i * 64, side[0].buf + i * 64,
				    64);
	}
	assert_int_equal(nic->cnt.v[CNT_gaps_rx], 0);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
	for (unsigned i = 0; i < MSGS; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* A response is lost while READs follow one another without a pause. What came
 * behind it was not taken; it is asked for again at once, and no READ after that
 * is asked for twice.
 */
static void read__a_gap_is_closed_once(void **state)
{
	enum { READS = 40, DEEP = 4 };
	struct step *step = &side[0].nic->steps.v[1];
	unsigned posted = 0;

	(void)state;
	for (; posted < DEEP; posted++)
		post(&side[0], WR_READ, 64);
	send_all(&side[0]);
	pump(&side[1]);
	while (!inlet_receive(side[0].nic, step))
		pump(&side[1]);
	step->at = step->rx.seg; /* lost */
	finish_receive(side[0].nic, step);
	for (; posted < READS; posted++) {
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
		post(&side[0], WR_READ, 64);
	}
	for (unsigned i = 0; i < DEEP; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_in_range(side[0].nic->cnt.v[CNT_retransmits], 1, DEEP);
	assert_int_equal(side[0].nic->cnt.v[CNT_timeouts], 0);
}

/* While a READ waits for its page only the WRITE before it may be acknowledged;
 * the one behind it is when the READ is answered.
 */
static void ack__of_what_came_behind_a_slow_read(void **state)
{
	struct nic *nic = side[1].nic;
	uint64_t parked = nic->cnt.v[CNT_fault_park];

	(void)state;
	send_read_between_writes();
	RECEIVE_UNTIL(side[1].qp->qp.resp.replay.at !=
		      side[1].qp->qp.resp.replay.next);
	lose_read_page();
	send_all(&side[1]);
	assert_int_equal(nic->cnt.v[CNT_fault_park], parked + 1);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(side[0].nic->cnt.v[CNT_retransmits], 0);
}

/* The headers of a request say all of an ACK that is owed but the credit that was
 * counted for it: that is told all the same.
 */
static void ack__credit_is_told(void **state)
{
	struct step *step = &side[0].nic->steps.v[1];
	struct qp *qp = &side[0].qp->qp;

	(void)state;
	send_all(&side[0]);
	assert_false(qp->resp.ack.owed);
	qp->peer->flow.granted ^= 1;
	nic_tick(side[0].nic);
	ack_owe(qp);
	post(&side[0], WR_SEND_IMM, 8);
	know_pages(&side[0]);
	assert_true(
		engine_plan(side[0].nic, step, false, os_now(side[0].nic->os)));
	assert_true(qp->resp.ack.owed || step->burst.acks.num);
	plan_move_commit(side[0].nic, step);
}

/* While a READ waits for its page the request behind it is refused: the READ is
 * answered, then comes the NAK.
 */
static void nak__behind_a_slow_read(void **state)
{
	struct nic *nic = side[1].nic;
	uint64_t parked = nic->cnt.v[CNT_fault_park];

	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	forbidden_write();
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(side[1].qp->qp.resp.ack.nak.owed);
	lose_read_page();
	send_all(&side[1]);
	assert_int_equal(nic->cnt.v[CNT_fault_park], parked + 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* A response is being placed when the ACK of what came behind it arrives. */
static void ack__of_what_is_behind_a_moving_response(void **state)
{
	struct step *slow = &side[0].nic->steps.v[2];
	struct nic *nic = side[0].nic;

	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[0]);
	nic->rx.peek = 0;
	for (int i = 0; i < TRIES && !slow->run.num; i++) {
		pump(&side[1]);
		if (inlet_receive(nic, slow))
			engine_rx_plan(nic, slow, os_now(nic->os));
	}
	assert_int_equal(slow->run.num, 1);
	post_at(&side[0], WR_WRITE, 0, 64);
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
	plan_move_commit(nic, slow);
	finish_receive(nic, slow);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
	assert_int_equal(nic->cnt.v[CNT_retransmits], 0);
}

/* side[1] has a SEND of side[0], and owes the ACK; both can receive one. */
static void take_a_send(void)
{
	for (int k = 0; k < SIDES; k++)
		side_recv(&side[k], side[k].buf, 64, 1);
	post(&side[0], WR_SEND, 8);
	send_all(&side[0]);
	for (int i = 0; i < TRIES && !side[1].qp->qp.resp.ack.owed; i++)
		receive_silently();
}

/* Also when there is more to say than fits into the answer. */
static void ack__is_not_later_than_the_answer(void **state)
{
	(void)state;
	take_a_send();
	side[1].qp->qp.peer->flow.granted ^= 1;
	post(&side[1], WR_SEND, 8);
	assert_int_equal(wait_cqe(&side[0]).op, WR_SEND);
	assert_int_equal(wait_cqe(&side[0]).op, WR_RECV);
	assert_int_equal(wait_cqe(&side[1]).op, WR_RECV);
	assert_int_equal(wait_cqe(&side[1]).op, WR_SEND);
}

/* Also when a thread that planned to send it lost its CPU. */
static void ack__is_not_left_to_a_slow_thread(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *slow = &nic->steps.v[2];

	(void)state;
	take_a_send();
	assert_true(engine_plan(nic, slow, true, os_now(nic->os)));
	assert_int_equal(side[1].qp->qp.peer->acks.out, 1);
	post(&side[1], WR_SEND, 8);
	assert_int_equal(wait_cqe(&side[0]).op, WR_SEND);
	assert_int_equal(wait_cqe(&side[0]).op, WR_RECV);
	plan_move_commit(nic, slow);
	assert_int_equal(side[1].qp->qp.peer->acks.out, 0);
	assert_int_equal(wait_cqe(&side[1]).op, WR_RECV);
	assert_int_equal(wait_cqe(&side[1]).op, WR_SEND);
	assert_int_equal(nic->cnt.v[CNT_drop_psn], 0);
}

/* What comes twice or too early is answered once in a while only, but it is. What
 * moves on is answered at once. */
static void ack__of_what_moves_nothing_on(void **state)
{
	struct nic *nic = side[1].nic;
	struct qp *qp = &side[1].qp->qp;
	const uint64_t *acks = &nic->cnt.v[CNT_acks_tx];
	struct resp *r = &qp->resp;
	uint64_t before;

	(void)state;
	nic_tick(nic);
	ack_repeat(qp);
	assert_true(r->ack.owed);
	send_all(&side[1]);
	nic->x.ack_delay_ns = UINT64_C(1000000000);
	before = *acks;
	nic_tick(nic);
	for (int i = 0; i < 3; i++)
		ack_repeat(qp);
	assert_false(r->ack.owed);
	r->at[RESP_REPEAT] = os_now(nic->os); /* time passes */
	qp_rearm(qp);
	for (int i = 0; i < TRIES && *acks == before; i++)
		pump(&side[1]);
	assert_int_equal(*acks, before + 1);
	assert_false(deadline_waits(r->at[RESP_REPEAT]));
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(r->ack.owed);
	send_all(&side[1]);
	assert_int_equal(*acks, before + 2);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Of what only goes on in order bursts count as whole, after a while. */
static void flow_whole__of_what_goes_on(void **state)
{
	(void)state;
	assert_false(flow_whole(side[0].qp->qp.peer));
	for (int i = 0; i < 20; i++) {
		post(&side[0], WR_WRITE, LEN);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_true(flow_whole(side[0].qp->qp.peer));
}

/* The ACK is in the socket, where nobody has looked since: it is not missed yet. */
static void run_timers__not_ahead_of_the_sockets(void **state)
{
	struct nic *nic = side[0].nic;
	const uint64_t begin = os_now(nic->os), late = begin + 5000000000;

	(void)state;
	post(&side[0], WR_WRITE, 8);
	send_all(&side[0]);
	pump(&side[1]);
	nic->rx.heard = begin;
	nic->cfg.manual = false;
	while (engine_plan(nic, &nic->steps.v[1], false, late))
		plan_move_commit(nic, &nic->steps.v[1]);
	assert_false(side[0].qp->qp.req.probe.asked);
	nic->rx.heard = late; /* as if somebody had */
	while (engine_plan(nic, &nic->steps.v[1], false, late))
		plan_move_commit(nic, &nic->steps.v[1]);
	assert_true(side[0].qp->qp.req.probe.asked);
	nic->cfg.manual = true;
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			ack__is_not_left_to_a_slow_thread, setup, sides_close),
		cmocka_unit_test_setup_teardown(
			ack__is_not_later_than_the_answer, setup, sides_close),
		cmocka_unit_test_setup_teardown(
			ack__of_what_is_behind_a_moving_response, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			ack__of_what_is_behind_a_moving_response,
			setup_standard, sides_close),
		cmocka_unit_test_setup_teardown(
			ack__of_what_came_behind_a_slow_read, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			ack__of_what_came_behind_a_slow_read, setup_standard,
			sides_close),
		cmocka_unit_test_setup_teardown(ack__credit_is_told, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(nak__behind_a_slow_read, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(nak__behind_a_slow_read,
						setup_standard, sides_close),
		cmocka_unit_test_setup_teardown(read__a_gap_is_closed_once,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(read__a_gap_is_closed_once,
						setup_standard, sides_close),
		cmocka_unit_test_setup_teardown(
			progress_receive__rest_of_an_overtaken_burst, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			local_inv__wrong_ends_what_is_behind, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			local_inv__not_before_the_last_move, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			send_with_inv__not_before_the_last_move, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			engine_plan__not_where_a_move_writes, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(flow_whole__of_what_goes_on,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(ack__of_what_moves_nothing_on,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(ack__not_for_a_read,
						setup_standard, sides_close),
		cmocka_unit_test_setup_teardown(ack__overtaken_is_no_drop,
						setup_standard, sides_close),
		cmocka_unit_test_setup_teardown(
			run_timers__not_ahead_of_the_sockets, setup,
			sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
