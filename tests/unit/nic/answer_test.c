/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answer_test.c: a request completes before its answer does, whatever another step
 * is at meanwhile. In all of it side 0 asks and side 1 answers.
 */
#include "nic/engine.h"
#include "nic/inlet.h"
#include "nic/step.h"
#include "steps.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/kick.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/reply.h"
#include "xport/rx.h"
#include "xport/tx.h"

/* A WRITE of side 0 is in the memory of side 1, where a program that polls may see
 * it, and not yet committed. */
static struct step *write_seen(void)
{
	struct nic *nic = side[1].nic;
	struct step *slow = &nic->steps.v[2];

	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	nic->rx.peek = 0;
	slow->run.num = 0;
	for (int i = 0; i < TRIES && !slow->run.num; i++) {
		pump(&side[0]);
		if (inlet_receive(nic, slow))
			engine_rx_plan(nic, slow, os_now(nic->os));
		else
			idle(nic);
	}
	assert_int_equal(slow->run.num, 1);
	engine_move(nic, slow);
	return slow;
}

static bool plan_of_side_1(void)
{
	struct nic *nic = side[1].nic;

	know_pages(&side[1]);
	return engine_plan(nic, &nic->steps.v[3], false, os_now(nic->os));
}

/* What request number @i of the burst that side 1 plans says. */
static struct pkt request_at(unsigned i)
{
	const struct burst *b = &side[1].nic->steps.v[3].burst;
	const struct seg *s = &b->seg[i];
	struct pkt p;

	assert_true(b->request && i < b->nsegs);
	assert_int_equal(pkt_parse(b->bytes + s->hdr, s->hdr_len,
				   s->hdr_len + s->payload_len + ICRC_BYTES,
				   &p),
			 CNT_NUM);
	return p;
}

/* Until it has received it, side 0 is told nothing else. */
static void answer_arrives(void)
{
	struct nic *nic = side[0].nic;
	struct step *step = &nic->steps.v[1];
	const uint32_t done = side[0].qp->sq.cons;

	plan_move_commit(side[1].nic, &side[1].nic->steps.v[3]);
	nic->rx.peek = 0;
	for (int i = 0; i < TRIES && side[0].qp->sq.cons == done; i++) {
		if (!inlet_receive(nic, step)) {
			idle(nic);
			continue;
		}
		engine_rx_plan(nic, step, os_now(nic->os));
		/* before anything of the answer itself */
		assert_int_not_equal(side[0].qp->sq.cons, done);
		plan_move_commit(nic, step);
		finish_receive(nic, step);
	}
	assert_int_equal(side[0].qp->sq.cons, done + 1);
}

static void answer__not_before_its_request_is_committed(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *slow = write_seen();
	bool early, settled;

	(void)state;
	post_at(&side[1], WR_WRITE, 4096, 64);
	early = plan_of_side_1();
	settled = engine_settled(nic, false, os_now(nic->os));
	if (early) /* else nothing ends any more */
		plan_move_commit(nic, &nic->steps.v[3]);
	engine_commit(nic, slow, os_now(nic->os));
	assert_false(early);
	assert_true(settled);
	assert_false(engine_settled(nic, false, os_now(nic->os)));
	assert_true(plan_of_side_1());
	assert_int_equal(psn_add(request_at(0).placed_to, 1),
			 side[0].qp->qp.req.psn.max);
	answer_arrives();
	finish_receive(nic, slow);
}

/* It answers nothing, and may be what the memory that is written to waits for. */
static void answer__a_read_is_none(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *slow = write_seen();

	(void)state;
	post_at(&side[1], WR_READ, 4096, 64);
	assert_true(plan_of_side_1());
	plan_move_commit(nic, &nic->steps.v[3]);
	engine_commit(nic, slow, os_now(nic->os));
	finish_receive(nic, slow);
	assert_int_equal(wait_cqe(&side[1]).op, WR_READ);
}

/* Immediate data, a message of many packets: any of them may come first. */
static void answer__all_its_packets_say_it(void **state)
{
	const uint32_t mtu = side[0].qp->qp.mtu;

	(void)state;
	side_recv(&side[0], side[0].buf, LEN, 1);
	engine_commit(side[1].nic, write_seen(), os_now(side[1].nic->os));
	side[1].qp->qp.peer->path.gso = true;
	post(&side[1], WR_WRITE_IMM, 3 * mtu);
	assert_true(plan_of_side_1());
	assert_int_equal(side[1].nic->steps.v[3].burst.nsegs, 3);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(psn_add(request_at(i).placed_to, 1),
				 side[0].qp->qp.req.psn.max);
		assert_false(request_at(i).unanswered);
	}
	answer_arrives();
}

/* The ACK was said, and lost; so was the answer, and what is sent again says it. */
static void answer__sent_again_says_it(void **state)
{
	struct nic *nic = side[1].nic;
	struct qp *qp = &side[1].qp->qp;

	(void)state;
	engine_commit(nic, write_seen(), os_now(nic->os));
	ack_cancel(qp);
	post_at(&side[1], WR_WRITE, 4096, 64);
	assert_true(plan_of_side_1());
	full(nic, &nic->steps.v[3]);
	ack_cancel(qp);
	qp->req.at[REQ_PAUSE] = TIME_NEVER;
	qp_kick(qp);
	assert_true(plan_of_side_1());
	answer_arrives();
}

/* A copy of a packet that had come says it as well. */
static void answer__a_duplicate_says_it(void **state)
{
	struct qp *qp = &side[0].qp->qp;
	uint8_t byte = 0;
	struct rx_run run;
	struct pkt p = {.op = opcode_info(OP_X_DATA | OP_SEND_ONLY)->flags &
			      ~(uint32_t)OPF_EXT,
			.opcode = OP_SEND_ONLY,
			.ext = true,
			.psn = psn_add(qp->resp.win.head, PSN_MASK),
			.payload_len = 1};
	const uint32_t done = side[0].qp->sq.cons;

	(void)state;
	post(&side[0], WR_WRITE, 64);
	send_all(&side[0]);
	rx_run_init(&run);
	p.placed_to = psn_add(qp->req.psn.max, PSN_MASK);
	nic_tick(side[0].nic);
	assert_int_equal(qp_rx(qp, &p, payload_of_step(&byte), &run), RX_NEXT);
	assert_int_equal(side[0].qp->sq.cons, done + 1);
}

/* Nobody can have placed what was not sent. */
static void answer__to_what_was_not_asked(void **state)
{
	const uint64_t before = side[0].nic->cnt.v[CNT_drop_psn];
	struct qp *qp = &side[0].qp->qp;
	const struct pkt p = {.placed_to = qp->req.psn.max};

	(void)state;
	nic_tick(side[0].nic);
	reply_carried(qp, &p);
	assert_int_equal(qp->req.psn.una, qp->req.psn.max);
	assert_int_equal(side[0].nic->cnt.v[CNT_drop_psn], before + 1);
}

/* A card hears nothing of it from requests: the ACK is its own packet, in front. */
static void answer__behind_the_ack_that_is_owed(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *ack = &nic->steps.v[3], *request = &nic->steps.v[4];

	(void)state;
	engine_commit(nic, write_seen(), os_now(nic->os));
	assert_true(side[1].qp->qp.resp.ack.owed);
	post_at(&side[1], WR_WRITE, 4096, 64);
	assert_true(plan_of_side_1());
	assert_false(ack->burst.request);
	assert_int_equal(ack->burst.acks.num, 1);
	/* while another thread sends it */
	know_pages(&side[1]);
	assert_false(engine_plan(nic, request, true, os_now(nic->os)));
	plan_move_commit(nic, ack);
	assert_true(plan_of_side_1());
	assert_true(ack->burst.request);
	plan_move_commit(nic, ack);
	assert_int_equal(wait_cqe(&side[1]).op, WR_WRITE);
}

/* Nor does a socket that is full let the request overtake it. */
static void answer__behind_the_ack_that_did_not_leave(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *ack = &nic->steps.v[3];
	uint64_t now;

	(void)state;
	engine_commit(nic, write_seen(), os_now(nic->os));
	post_at(&side[1], WR_WRITE, 4096, 64);
	assert_true(plan_of_side_1());
	know_pages(&side[1]);
	now = os_now(nic->os);
	ack->error = -EAGAIN;
	engine_commit(nic, ack, now);
	assert_false(engine_plan(nic, ack, true, now));
	pass_ns(nic, 1000000);
	assert_true(plan_of_side_1());
	assert_int_equal(ack->burst.acks.num, 1);
	plan_move_commit(nic, ack);
	assert_int_equal(wait_cqe(&side[1]).op, WR_WRITE);
}

/* Side 0 SENDs, and side 1 has it. */
static void send_comes(void)
{
	struct nic *nic = side[1].nic;
	const uint32_t got = side[1].qp->rq.wq.cons;

	for (int k = 0; k < SIDES; k++)
		side_recv(&side[k], side[k].buf, 64, 1);
	post(&side[0], WR_SEND, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	nic->rx.peek = 0;
	for (int i = 0; i < TRIES && side[1].qp->rq.wq.cons == got; i++)
		receive_silently();
	assert_int_equal(side[1].qp->rq.wq.cons, got + 1);
}

/* Whoever has seen the completion may be gone before anything else is asked of the
 * engine. */
static void ack__of_a_receive_is_due(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	send_comes();
	assert_false(engine_settled(nic, false, os_now(nic->os)));
	assert_true(plan_of_side_1());
	assert_int_equal(nic->steps.v[3].burst.acks.num, 1);
	plan_move_commit(nic, &nic->steps.v[3]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* So it is not one packet more to send and receive, for each of a long series. */
static void ack__of_a_receive_that_is_always_answered(void **state)
{
	struct nic *nic = side[1].nic;
	uint64_t carried;

	(void)state;
	for (int i = 0; i < 8; i++) {
		send_comes();
		post(&side[1], WR_SEND, 64);
		for (int k = 0; k < 2; k++) /* its request, and the answer */
			assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	send_comes();
	assert_true(
		engine_settled(nic, false, side[1].qp->qp.resp.ack.said_ns));
	assert_false(plan_of_side_1());
	post(&side[1], WR_SEND, 64);
	carried = nic->cnt.v[CNT_acks_carried];
	assert_true(plan_of_side_1());
	assert_int_equal(nic->cnt.v[CNT_acks_carried], carried + 1);
	plan_move_commit(nic, &nic->steps.v[3]);
	/* two in turn: it is no such series any more */
	send_comes();
	send_comes();
	assert_true(plan_of_side_1());
	assert_int_equal(nic->steps.v[3].burst.acks.num, 1);
	plan_move_commit(nic, &nic->steps.v[3]);
}

/* The program hears otherwise that its SEND arrived, and breaks the connection: the
 * ACK is in the socket. */
static void error__behind_the_ack_that_came(void **state)
{
	struct qp_attr attr = {.state = QPS_ERR};
	struct nic *nic = side[0].nic;
	struct cqe e;

	(void)state;
	send_comes();
	send_all(&side[1]);
	nic->cfg.manual = false; /* as it is in a program */
	assert_int_equal(nic_qp_modify(side[0].qp, &attr, QPA_STATE), 0);
	nic->cfg.manual = true;
	assert_int_equal(nic_cq_poll(side[0].cq, 1, &e), 1);
	assert_int_equal(e.op, WR_SEND);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(nic_cq_poll(side[0].cq, 1, &e), 1);
	assert_int_equal(e.op, WR_RECV);
	assert_int_equal(e.status, WC_WR_FLUSH_ERR);
}

#define STANDARD(f)                                                            \
	cmocka_unit_test_setup_teardown(f, setup_standard, sides_close)
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(answer__not_before_its_request_is_committed),
		TEST(answer__a_read_is_none),
		TEST(answer__all_its_packets_say_it),
		TEST(answer__sent_again_says_it),
		TEST(answer__a_duplicate_says_it),
		TEST(answer__to_what_was_not_asked),
		TEST(ack__of_a_receive_is_due),
		STANDARD(ack__of_a_receive_is_due),
		TEST(ack__of_a_receive_that_is_always_answered),
		TEST(error__behind_the_ack_that_came),
		STANDARD(error__behind_the_ack_that_came),
		STANDARD(answer__behind_the_ack_that_is_owed),
		STANDARD(answer__behind_the_ack_that_did_not_leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
