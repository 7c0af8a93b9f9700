/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owed_test.c: ACKs, NAKs, RNRs and RESUMEs that were said and did not leave, or
 * wait for something, whatever comes meanwhile: what is still so is said.
 */
#include "mem/state.h"
#include "nic/step.h"
#include "owed.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "xport/attr.h"
#include "xport/fault.h"
#include "xport/fault_rnr.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/resp.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/rx.h"

/* A WRITE to a page that is missing is on its way. */
static void write_to_missing(void)
{
	post_at(&side[0], WR_WRITE, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
}

/* It came, and waits in a slot. */
static void write_waits(void)
{
	write_to_missing();
	RECEIVE_UNTIL(resp()->wait.ticket.v);
}

/* A SEND came for which there is no receive. */
static void send_comes(void)
{
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(next_rnr(resp()->next));
}

/* The next @n of side 0's requests succeed. */
static void succeed(int n)
{
	while (n--)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The READ's answer is tried: its page is missing. */
static void read_waits(void)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[3];

	for (int i = 0; i < TRIES && !resp()->replay.wait.ticket.v; i++)
		if (engine_plan(nic, tx, false, os_now(nic->os)))
			plan_move_commit(nic, tx);
	assert_true(resp()->replay.wait.ticket.v);
}

/* Side 1 says HOLD, and side 0 holds. */
static void hold(void)
{
	nic_tick(side[1].nic);
	ack_say(&side[1].qp->qp, XACK_HOLD);
	for (int i = 0; i < TRIES && !req_held(&side[0].qp->qp.req); i++)
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
	assert_true(req_held(&side[0].qp->qp.req));
}

static void owed__a_fatal_nak(void **state)
{
	(void)state;
	forbidden_write();
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->ack.nak.owed);
	assert_int_equal(side[1].qp->qp.state, QPS_ERR);
	owed_meets_full(false);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* The program sees the error and destroys its QP before there is room. */
static void owed__a_fatal_nak_before_destroy(void **state)
{
	(void)state;
	forbidden_write();
	send_all(&side[0]);
	RECEIVE_UNTIL(resp()->ack.nak.owed);
	owed_meets_full(false);
	leave(QPS_RESET);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* The QP is not in error before the READ is answered. */
static void owed__a_fatal_nak_behind_a_read(void **state)
{
	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	forbidden_write();
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(resp()->ack.nak.owed);
	owed_meets_full(true);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

static void owed__an_rnr(void **state)
{
	(void)state;
	send_comes();
	owed_meets_full(false);
	side_recv(&side[1], side[1].buf, 4096, 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
}

/* Receive until @seen; what came last is received by @twin, too. */
static void receive_twice(struct step *rx, struct step *twin,
			  bool (*seen)(enum next_state now))
{
	struct nic *nic = side[1].nic;

	nic->rx.peek = 0;
	for (int i = 0; i < TRIES && !seen(resp()->next); i++) {
		pump(&side[0]);
		if (!inlet_receive(nic, rx)) {
			idle(nic);
			continue;
		}
		twin->rx = rx->rx;
		memcpy(twin->buf, rx->buf, rx->rx.len);
		finish_receive(nic, rx);
	}
	assert_true(seen(resp()->next));
}

static void twin_comes(struct step *twin)
{
	twin->at = twin->taken = 0;
	twin->lost = twin->efault = false;
	twin->scatter.qp = NULL;
	rx_run_init(&twin->run);
	finish_receive(side[1].nic, twin);
}

/* While it waits the SEND comes a second time, and there is a receive now: what
 * is owed is an ACK. */
static void owed__an_rnr_and_then_its_send(void **state)
{
	struct step *rx = &side[1].nic->steps.v[1];
	struct step *twin = &side[1].nic->steps.v[3];

	(void)state;
	side[0].qp->qp.attr.rnr_retry = side[0].qp->qp.req.rnr_retries = 0;
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	send_all(&side[0]);
	receive_twice(rx, twin, next_rnr);
	owed_meets_full(false);
	side_recv(&side[1], side[1].buf, 4096, 1);
	twin_comes(twin);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The last resort for a page that is missing; the WRITE waits in a slot. */
static void owed__an_rnr_for_a_page(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	write_waits();
	assert_false(next_forgot(resp()->next));
	nic_tick(nic);
	fault_silence_over(&side[1].qp->qp);
	owed_meets_full(false);
	assert_true(resp()->ack.page_rnr.owed);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The page of a READ came before its RNR could be said: what is owed then is an
 * ACK of what came behind. */
static void owed__an_rnr_for_a_page_of_a_read(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[2];

	(void)state;
	post_at(&side[0], WR_READ, 0, LEN);
	post_at(&side[0], WR_WRITE, LEN, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
	RECEIVE_UNTIL(side[1].qp->qp.resp.win.head ==
		      side[0].qp->qp.req.psn.max);
	while (!resp()->replay.wait.ticket.v) {
		assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
		plan_move_commit(nic, tx);
	}
	nic_tick(nic);
	fault_silence_over(&side[1].qp->qp);
	assert_true(resp()->ack.page_rnr.owed);
	assert_int_equal(wait_cqe(&side[0]).op, WR_READ);
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
}

/* Without it the peer waits for as long as it was asked to. */
static void owed__resume(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	hold();
	post(&side[0], WR_WRITE, 64);
	nic_tick(nic);
	ack_say(&side[1].qp->qp, XACK_RESUME);
	owed_meets_full(false);
	assert_int_equal(resp()->ack.xack, XACK_RESUME);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Of a connection that is reset before the burst is given up. */
static void owed__of_an_older_connection(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[2];
	struct qp_attr reset = {.state = QPS_RESET};

	(void)state;
	nic_tick(nic);
	ack_say(&side[1].qp->qp, XACK_HOLD);
	assert_true(engine_plan(nic, tx, true, os_now(nic->os)));
	assert_null(tx->burst.qp);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_qp_modify(side[i].qp, &reset, QPA_STATE),
				 0);
	for (int i = 0; i < SIDES; i++)
		side_connect(&side[i], &side[!i]);
	full(nic, tx);
	assert_int_equal(resp()->ack.xack, 0);
	assert_false(resp()->ack.owed);
}

/* Side 1 has [its WRITE][the ACK of ours] planned, for that has credit to tell, and
 * the send says @error. */
static void answer_and_ack(int error)
{
	struct nic *nic = side[1].nic;
	struct step *tx = &nic->steps.v[2];

	write_comes();
	know_pages(&side[1]);
	side[1].qp->qp.peer->flow.granted ^= 1;
	post(&side[1], WR_WRITE, 64);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	assert_ptr_equal(tx->burst.qp, &side[1].qp->qp);
	assert_true(tx->burst.acks.num);
	assert_false(resp()->ack.owed);
	tx->error = error;
	engine_commit(nic, tx, os_now(nic->os));
	assert_int_equal(wait_cqe(&side[0]).op, WR_WRITE);
}

static void owed__an_ack_behind_a_missing_page(void **state)
{
	(void)state;
	answer_and_ack(-EFAULT);
}

/* By a packet filter, say. Our WRITE is lost as in any network. */
static void owed__an_ack_behind_what_may_not_leave(void **state)
{
	(void)state;
	answer_and_ack(-EPERM);
}

/* --- what comes between ------------------------------------------------------------ */

/* What side 0 has to send is lost on the way. */
static void lose(void)
{
	struct nic *nic = side[0].nic;
	struct step *tx = &nic->steps.v[2];

	while (engine_plan(nic, tx, false, os_now(nic->os))) {
		tx->error = tx->burst.qp ? -EPERM : 0;
		engine_commit(nic, tx, os_now(nic->os));
	}
}

/* A WRITE that is lost, and one that is not. */
static void post_gap(void)
{
	post_at(&side[0], WR_WRITE, 0, 64);
	lose();
	post_at(&side[0], WR_WRITE, 64, 64);
	send_all(&side[0]);
}

/* Side 1 has a WRITE planned, in @rx. */
static void write_is_planned(struct step *rx)
{
	post_at(&side[0], WR_WRITE, 4096, 64);
	request_is_planned(rx);
}

/* Its moves meet EFAULT. */
static void write_faults(struct step *rx)
{
	struct nic *nic = side[1].nic;

	rx->run.moves.done = 0;
	rx->run.moves.error = -EFAULT;
	engine_commit(nic, rx, os_now(nic->os));
	finish_receive(nic, rx);
}

enum { SLOTS = 4096 };

/* Half of the ACK timeout has passed without the page. */
static void silence_is_over(void)
{
	assert_true(deadline_waits(resp()->at[RESP_SILENCE]));
	side[1].nic->x.now = resp()->at[RESP_SILENCE];
	resp_timeout(&side[1].qp->qp);
	assert_true(resp()->ack.page_rnr.owed);
}

/* A pager was asked for the page and has brought it; side 1 did not look yet. */
static void page_is_fetched(void)
{
	struct nic *nic = side[1].nic;

	for (int i = 0; i < TRIES && !os_pages_waiting(nic->os); i++)
		idle(nic);
	assert_true(os_pages_waiting(nic->os));
}

/* The thread that learns it asked for the time long before it had the lock, and others
 * met the fault meanwhile. */
static void owed__time_does_not_go_back(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[3];
	const uint64_t before = os_now(nic->os);
	const struct hist *delay = &nic->mem->account.all.delay;
	uint64_t had;

	(void)state;
	pass_ns(nic, 1000000);
	write_waits();
	if (engine_plan(nic, step, false, os_now(nic->os))) /* asks for it */
		plan_move_commit(nic, step);
	page_is_fetched();
	had = delay->count;
	for (int i = 0; i < TRIES && delay->count == had; i++)
		if (engine_plan(nic, step, false, before))
			plan_move_commit(nic, step);
	assert_true(delay->count > had);
	succeed(1);
	assert_true(delay->max_ns < os_now(nic->os)); /* not below 0 */
}

/* A READ whose page is missing, then a forbidden WRITE: an RNR for the one, and
 * later a NAK for the other.
 */
static void owed__a_fatal_nak_and_an_rnr_for_a_page(void **state)
{
	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	forbidden_write();
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
	RECEIVE_UNTIL(resp()->ack.nak.owed);
	assert_true(resp()->dead);
	read_waits();
	silence_is_over();
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* A gap behind a READ whose page comes before its RNR is said. */
static void owed__a_sequence_nak_and_an_rnr_for_a_page(void **state)
{
	(void)state;
	post_at(&side[0], WR_READ, 4096, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	lose_read_page();
	RECEIVE_UNTIL(resp()->replay.at != resp()->replay.next);
	read_waits();
	post_gap();
	RECEIVE_UNTIL(resp()->next == NEXT_GAP);
	silence_is_over();
	page_is_fetched();
	succeed(3);
}

/* An RNR for a page, and before it leaves a packet behind a gap. */
static void owed__an_rnr_for_a_page_and_then_a_gap(void **state)
{
	(void)state;
	write_waits();
	silence_is_over();
	owed_meets_full(false);
	assert_true(resp()->ack.page_rnr.owed);
	post_gap();
	RECEIVE_UNTIL(resp()->next == NEXT_GAP);
	assert_true(resp()->ack.page_rnr.owed);
	succeed(3);
}

/* An RNR stands for the page of a packet in a slot and for the packet behind it,
 * which found no slot. The page comes before the RNR leaves.
 */
static void owed__an_rnr_for_a_page_and_what_was_dropped(void **state)
{
	struct nic *nic = side[1].nic;
	int slots[SLOTS];
	unsigned n;

	(void)state;
	write_waits();
	engine_plan(nic, &nic->steps.v[3], false, os_now(nic->os));
	n = take_slots(side[1].nic, slots, SLOTS);
	post_at(&side[0], WR_WRITE, 0, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(next_forgot(resp()->next));
	silence_is_over();
	assert_true(next_rnr(resp()->next));
	page_is_fetched();
	give_slots(side[1].nic, slots, n);
	succeed(2);
	assert_int_equal(side[0].nic->cnt.v[CNT_timeouts], 0);
}

/* A gap behind a packet whose page went away under its move. */
static void owed__a_sequence_nak_behind_a_fault(void **state)
{
	struct step *rx = &side[1].nic->steps.v[3];

	(void)state;
	write_is_planned(rx);
	post_gap();
	RECEIVE_UNTIL(resp()->next == NEXT_GAP);
	write_faults(rx);
	succeed(3);
}

/* A page went away and there is no slot: a sequence NAK. While that meets a full
 * socket the packet comes again, in the last try that its requester has.
 */
static void owed__a_sequence_nak_and_then_its_packet(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *rx = &nic->steps.v[3], *tx;
	struct qp *peer = &side[0].qp->qp;
	int slots[SLOTS];
	unsigned n;

	(void)state;
	n = take_slots(side[1].nic, slots, SLOTS);
	write_is_planned(rx);
	write_faults(rx);
	assert_int_equal(resp()->ack.nak.syndrome, AETH_NAK | NAK_PSN_SEQUENCE);
	give_slots(side[1].nic, slots, n);
	tx = owed_is_planned(2);
	assert_null(tx->burst.qp);
	nic_tick(nic);
	retry_rewind(peer, FLIGHT_TIMEOUT);
	peer->req.retries = peer->attr.retry_cnt = 0;
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(resp()->ack.owed);
	full(nic, tx);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* A sequence NAK meets a full socket, and nothing else happens. */
static void owed__a_sequence_nak(void **state)
{
	(void)state;
	post_gap();
	RECEIVE_UNTIL(resp()->next == NEXT_GAP);
	owed_meets_full(false);
	succeed(2);
	assert_int_equal(side[0].nic->cnt.v[CNT_timeouts], 0);
}

/* One burst is out with an RNR, a later one with what a duplicate asked for. */
static void owed__an_rnr_in_the_older_of_two(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *older, *newer;

	(void)state;
	send_comes();
	older = owed_is_planned(2);
	nic_tick(nic);
	ack_owe(&side[1].qp->qp);
	newer = owed_is_planned(3);
	plan_move_commit(nic, newer);
	full(nic, older);
	side_recv(&side[1], side[1].buf, 4096, 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* An RNR is in the hands of a slow thread. Its SEND comes again, is taken and
 * acknowledged: then the RNR says nothing, of the next SEND neither.
 */
static void owed__an_rnr_after_its_ack(void **state)
{
	struct nic *nic = side[1].nic;
	struct qp *peer = &side[0].qp->qp;
	struct step *tx;

	(void)state;
	peer->attr.rnr_retry = peer->req.rnr_retries = 0;
	send_comes();
	tx = owed_is_planned(2);
	side_recv(&side[1], side[1].buf, 4096, 1);
	nic_tick(nic);
	retry_rewind(peer, FLIGHT_TIMEOUT);
	assert_int_equal(wait_cqe(&side[1]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	side_recv(&side[1], side[1].buf, 4096, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	lose();
	plan_move_commit(nic, tx);
	for (int i = 0; i < 20; i++) {
		pump(&side[1]);
		pump(&side[0]);
		idle(nic);
	}
	assert_int_equal(peer->state, QPS_RTS);
}

static void owed__resume_in_the_older_of_two(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *older, *newer;

	(void)state;
	hold();
	nic_tick(nic);
	ack_say(&side[1].qp->qp, XACK_RESUME);
	older = owed_is_planned(2);
	nic_tick(nic);
	ack_say(&side[1].qp->qp, XACK_PROBE);
	newer = owed_is_planned(3);
	plan_move_commit(nic, newer);
	full(nic, older);
	assert_true(resp()->ack.xack & XACK_RESUME);
}

/* HOLD, because there was no slot. The same packet comes once more (it was not
 * lost, but overtaken) and finds one: the peer may go on.
 */
static void owed__hold_and_then_its_packet(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *rx = &nic->steps.v[1], *twin = &nic->steps.v[3];
	int slots[SLOTS];
	unsigned n;

	(void)state;
	nic->x.strategies |= 1u << STRATEGY_RESUME;
	n = take_slots(side[1].nic, slots, SLOTS);
	write_to_missing();
	receive_twice(rx, twin, next_forgot);
	owed_meets_full(false);
	assert_true(resp()->ack.xack & XACK_HOLD);
	give_slots(side[1].nic, slots, n);
	twin_comes(twin);
	assert_false(next_forgot(resp()->next));
	assert_false(resp()->ack.xack & XACK_HOLD);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_false(req_held(&side[0].qp->qp.req));
}

/* A filter that lets no ACK through is asked once for each, not without end. */
static void owed__an_ack_that_may_not_leave(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *tx;

	(void)state;
	write_comes();
	tx = owed_is_planned(2);
	assert_null(tx->burst.qp);
	tx->error = -EPERM;
	engine_commit(nic, tx, os_now(nic->os));
	assert_false(resp()->ack.owed);
}

/* Silent peers are told RNR, and half of the ACK timeout is long. */
static int setup_rnr(void **state)
{
	int ret = setup_standard(state);

	for (int i = 0; i < SIDES; i++) {
		side[i].nic->x.strategies |= 1u << STRATEGY_RNR;
		side[i].qp->qp.attr.timeout = 20;
	}
	return ret;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(owed__a_fatal_nak, setup),
		TEST(owed__a_fatal_nak, setup_standard),
		TEST(owed__a_fatal_nak_before_destroy, setup),
		TEST(owed__a_fatal_nak_before_destroy, setup_standard),
		TEST(owed__a_fatal_nak_behind_a_read, setup),
		TEST(owed__a_fatal_nak_behind_a_read, setup_standard),
		TEST(owed__an_rnr, setup_standard),
		TEST(owed__an_rnr_and_then_its_send, setup_standard),
		TEST(owed__an_rnr_for_a_page, setup_standard),
		TEST(owed__an_rnr_for_a_page_of_a_read, setup_standard),
		TEST(owed__an_ack_behind_a_missing_page, setup),
		TEST(owed__an_ack_behind_what_may_not_leave, setup),
		TEST(owed__resume, setup),
		TEST(owed__of_an_older_connection, setup),
		TEST(owed__time_does_not_go_back, setup),
		TEST(owed__a_fatal_nak_and_an_rnr_for_a_page, setup_rnr),
		TEST(owed__a_sequence_nak_and_an_rnr_for_a_page, setup_rnr),
		TEST(owed__an_rnr_for_a_page_and_then_a_gap, setup_rnr),
		TEST(owed__an_rnr_for_a_page_and_what_was_dropped, setup_rnr),
		TEST(owed__a_sequence_nak_behind_a_fault, setup_standard),
		TEST(owed__a_sequence_nak_and_then_its_packet, setup_standard),
		TEST(owed__a_sequence_nak, setup_standard),
		TEST(owed__an_rnr_in_the_older_of_two, setup_standard),
		TEST(owed__an_rnr_after_its_ack, setup_standard),
		TEST(owed__resume_in_the_older_of_two, setup),
		TEST(owed__hold_and_then_its_packet, setup),
		TEST(owed__an_ack_that_may_not_leave, setup),
		TEST(owed__an_ack_that_may_not_leave, setup_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
