/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life_test.c: a QP fails: it gives back its part of all that QPs share, and its program
 * gets the cause, the event and the completions.
 */
#include "bench.h"
#include "ring/cqe.h"
#include "xport/credit.h"
#include "xport/flow.h"
#include "xport/life.h"
#include "xport/reads.h"

enum { CHARGE = 6000, GRANT = 10000, CQES = BENCH_WQES };

static struct bench s;
static struct qp other; /* towards the same peer */

static int setup(void **state)
{
	(void)state;
	bench_open(&s, PEER_NOPIN, 0);
	s.peer.flow.budget = s.x.budget.read = GRANT;
	assert_int_equal(qp_init(&other, &s.x, &s.qp.cfg), 0);
	other.peer = &s.peer;
	other.open.theirs = 1;
	other.state = QPS_RTS;
	other.mtu = BENCH_MTU;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	list_del(&s.cq.link);
	list_del(&other.on.runnable);
	list_del(&other.on.waiting);
	bench_close(&s);
	return 0;
}

static unsigned length(const struct list *list)
{
	unsigned n = 0;

	list_for_each(l, list)
		n++;
	return n;
}

static void push(uint64_t id)
{
	const struct cqe e = {
		.wr_id = id, .qpn = s.qp.cfg.qpn, .status = WC_SUCCESS};

	qp_push_cqe(&s.qp, &s.cq, &e);
}

static void push_all(void)
{
	for (uint64_t i = 0; i < s.cq.limit; i++)
		push(i);
	assert_int_equal(s.qp.state, QPS_RTS);
}

/* A query shows the new state, the flight recorder also the old one. */
static void qp_set_state__is_said(void **state)
{
	const struct flight *f = &s.qp.log;
	const struct flight_event *e;
	struct qp_attr a;

	(void)state;
	qp_set_state(&s.qp, QPS_SQD);
	qp_query(&s.qp, &a);
	assert_int_equal(a.state, QPS_SQD);
	assert_int_equal(s.qp.state, QPS_SQD);
	e = &f->ev[(f->next - 1) % FLIGHT_EVENTS];
	assert_int_equal(e->kind, FLIGHT_STATE);
	assert_int_equal(e->a, QPS_RTS);
	assert_int_equal(e->b, QPS_SQD);
}

static void qp_event__of_several_kinds(void **state)
{
	(void)state;
	qp_event(&s.qp, QP_EVENT_COMM_EST);
	qp_event(&s.qp, QP_EVENT_SQ_DRAINED);
	qp_event(&s.qp, QP_EVENT_COMM_EST);
	assert_int_equal(s.qp.events,
			 1 << QP_EVENT_COMM_EST | 1 << QP_EVENT_SQ_DRAINED);
	assert_int_equal(length(&s.x.work.errors), 1);
	qp_event(&other, QP_EVENT_FATAL);
	assert_int_equal(length(&s.x.work.errors), 2);
	assert_ptr_equal(s.x.work.errors.next, &s.qp.on.errors);
	list_del(&other.on.errors);
}

/* The next QP may use that part of the window, and wakes. */
static void qp_enter_error__gives_the_window_back(void **state)
{
	(void)state;
	assert_true(flow_may_send(&s.qp, CHARGE));
	flow_sent(&s.qp, 1, CHARGE);
	assert_false(flow_may_send(&other, CHARGE));
	qp_enter_error(&s.qp);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.peer.flow.in_flight, 0);
	assert_false(list_empty(&other.on.runnable));
}

static void qp_enter_error__gives_the_room_of_reads_back(void **state)
{
	(void)state;
	assert_true(reads_may_ask(&s.qp, CHARGE));
	reads_asked(&s.qp, CHARGE);
	assert_false(reads_may_ask(&other, CHARGE));
	qp_enter_error(&s.qp);
	assert_int_equal(s.x.budget.read_out, 0);
	assert_false(list_empty(&other.on.runnable));
}

/* All but the first packet fill slots that the peer lent. */
static void qp_enter_error__gives_slots_back(void **state)
{
	(void)state;
	credit_sent(&s.qp, 3);
	assert_int_equal(s.peer.quota.out, 2);
	qp_enter_error(&s.qp);
	assert_int_equal(s.peer.quota.out, 0);
	assert_int_equal(s.cnt.v[CNT_quota_left], 2);
}

static void qp_enter_error__waits_for_nothing(void **state)
{
	(void)state;
	flow_sent(&other, 1, CHARGE);
	assert_false(flow_may_send(&s.qp, CHARGE));
	assert_false(list_empty(&s.qp.on.waiting));
	s.qp.req.at[REQ_SILENT] = s.qp.resp.at[RESP_RESUME] = s.x.now + 1;
	qp_rearm(&s.qp);
	assert_int_equal(timerq_next(&s.x.timers), s.x.now + 1);
	qp_enter_error(&s.qp);
	assert_true(list_empty(&s.qp.on.waiting));
	assert_true(timerq_next(&s.x.timers) == TIME_NEVER);
	assert_true(list_empty(&s.x.work.errors));
	flow_forget(&other);
}

static void qp_fail__with_an_event(void **state)
{
	(void)state;
	qp_fail(&s.qp, QP_EVENT_REQ_ERR);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.events, 1 << QP_EVENT_REQ_ERR);
	assert_int_equal(length(&s.x.work.errors), 1);
}

static void qp_fail__without_one(void **state)
{
	(void)state;
	qp_fail(&s.qp, QP_NO_EVENT);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.events, 0);
	assert_true(list_empty(&s.x.work.errors));
}

static void qp_fail__once(void **state)
{
	(void)state;
	qp_fail(&s.qp, QP_EVENT_REQ_ERR);
	qp_fail(&s.qp, QP_EVENT_ACCESS_ERR);
	assert_int_equal(s.qp.events, 1 << QP_EVENT_REQ_ERR);
}

static void qp_blame__the_first_cause(void **state)
{
	(void)state;
	qp_blame(&s.qp, CAUSE_SILENCE, QP_NO_EVENT);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.cause, CAUSE_SILENCE);
	qp_blame(&s.qp, CAUSE_LENGTH, QP_EVENT_FATAL);
	assert_int_equal(s.qp.cause, CAUSE_SILENCE);
	assert_int_equal(s.qp.events, 0);
}

/* The cause of SQE belongs to the send queue alone. */
static void qp_blame__another_in_sqe(void **state)
{
	(void)state;
	s.qp.cause = CAUSE_ACCESS;
	qp_set_state(&s.qp, QPS_SQE);
	qp_blame(&s.qp, CAUSE_LENGTH, QP_EVENT_FATAL);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.cause, CAUSE_LENGTH);
}

static void qp_push_cqe__in_order(void **state)
{
	struct cqe e[2];

	(void)state;
	push(1);
	push(2);
	assert_int_equal(cq_take(&s.cq, 2, e), 2);
	assert_int_equal(e[0].wr_id, 1);
	assert_int_equal(e[1].wr_id, 2);
	assert_true(list_empty(&s.x.work.fired));
}

static void qp_push_cqe__of_a_cq_that_is_armed(void **state)
{
	(void)state;
	cq_arm(&s.cq, false);
	push(1);
	push(2);
	assert_int_equal(length(&s.x.work.fired), 1);
	assert_ptr_equal(s.x.work.fired.next, &s.cq.link);
}

/* Its program destroys it, or resets it. */
static void qp_push_cqe__none_of_an_abandoned_qp(void **state)
{
	(void)state;
	s.qp.abandoned = true;
	cq_arm(&s.cq, false);
	push(1);
	assert_true(cq_empty(&s.cq));
	assert_true(list_empty(&s.x.work.fired));
}

/* One completion more than there is room for ends the CQ and its QP. */
static void qp_push_cqe__to_a_full_cq(void **state)
{
	(void)state;
	push_all();
	assert_true(list_empty(&s.x.work.fired));
	push(CQES);
	assert_int_equal(length(&s.x.work.fired), 1);
	assert_true(s.cq.overflow);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_int_equal(s.qp.cause, CAUSE_CQ_FULL);
	assert_int_equal(s.qp.events, 1 << QP_EVENT_FATAL);
}

/* Flushed completions find no room: that is not the cause of the failure. */
static void qp_push_cqe__to_a_full_cq_of_a_qp_that_failed(void **state)
{
	(void)state;
	push_all();
	qp_fail(&s.qp, QP_NO_EVENT);
	push(CQES);
	assert_true(s.cq.overflow);
	assert_int_equal(length(&s.x.work.fired), 1);
	assert_int_equal(s.qp.cause, CAUSE_NONE);
	assert_int_equal(s.qp.events, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(qp_set_state__is_said),
		T(qp_event__of_several_kinds),
		T(qp_enter_error__gives_the_window_back),
		T(qp_enter_error__gives_the_room_of_reads_back),
		T(qp_enter_error__gives_slots_back),
		T(qp_enter_error__waits_for_nothing),
		T(qp_fail__with_an_event),
		T(qp_fail__without_one),
		T(qp_fail__once),
		T(qp_blame__the_first_cause),
		T(qp_blame__another_in_sqe),
		T(qp_push_cqe__in_order),
		T(qp_push_cqe__of_a_cq_that_is_armed),
		T(qp_push_cqe__none_of_an_abandoned_qp),
		T(qp_push_cqe__to_a_full_cq),
		T(qp_push_cqe__to_a_full_cq_of_a_qp_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
