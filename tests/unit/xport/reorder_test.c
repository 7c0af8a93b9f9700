/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reorder_test.c: how long is a packet waited for, after what was seen? And what
 * does it cost to send it again? */
#include "wire/ext.h"
#include "xport/attr.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/life.h"
#include "xport/live.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/reorder.h"
#include "xport/req.h"
#include "xport/requester.h"
#include "xport/retry.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { US = 1000, MS = 1000 * US, PERIOD = 16 };

static void gaps(struct lateness *l, unsigned n)
{
	while (n--)
		late_gap(l);
}

static void late__nothing_seen(void **state)
{
	struct lateness l = {0};

	(void)state;
	gaps(&l, 10 * PERIOD);
	assert_int_equal(l.wait_ns, 0);
}

static void late__twice_as_late_as_seen(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 100 * US);
	assert_int_equal(l.wait_ns, 200 * US);
	late_came(&l, 40 * US);
	assert_int_equal(l.wait_ns, 200 * US);
	late_came(&l, 1);
	assert_int_equal(l.wait_ns, 200 * US);
}

static void late__bounds(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 1);
	assert_int_equal(l.wait_ns, 10 * US);
	late_came(&l, 3600 * (uint64_t)1000 * MS);
	assert_int_equal(l.wait_ns, 10 * MS);
	late_doubted(&l, UINT64_MAX);
	assert_int_equal(l.wait_ns, 10 * MS);
}

/* How late it was at most is known; or else twice as long as before it is. */
static void late__doubted(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_doubted(&l, 300 * US);
	assert_int_equal(l.wait_ns, 300 * US);
	late_doubted(&l, 50 * US);
	assert_int_equal(l.wait_ns, 600 * US);
}

static void late__shrinks(void **state)
{
	struct lateness l = {0};

	(void)state;
	late_came(&l, 400 * US);
	gaps(&l, PERIOD);
	assert_int_equal(l.wait_ns, 800 * US);
	late_came(&l, 300 * US);
	gaps(&l, PERIOD - 1);
	assert_int_equal(l.wait_ns, 800 * US);
	gaps(&l, 1);
	assert_int_equal(l.wait_ns, 600 * US);
	gaps(&l, PERIOD);
	assert_int_equal(l.wait_ns, 300 * US);
	/* and where nothing is overtaken any more, ends */
	gaps(&l, 5 * PERIOD);
	assert_int_equal(l.wait_ns, 0);
}

/* Copies that came make room for what other QPs have to send to the peer. */
static void flow_copies_came__others_go_on(void **state)
{
	const uint32_t each = flow_charge(false, 1, 1024);
	struct counters cnt = {0};
	struct xport x = {.budget.read = 1 << 20, .cnt = &cnt};
	struct peer p = {.kind = PEER_NOPIN,
			 .flow.budget = 4 * each,
			 .late = {.wait_ns = 300 * US}};
	struct qp qp = {.x = &x,
			.peer = &p,
			.open = {.theirs = 1, .ask_at = TIME_NEVER},
			.state = QPS_RTS,
			.mtu = 1024};
	struct qp other = {.x = &x,
			   .peer = &p,
			   .open = {.theirs = 1, .ask_at = TIME_NEVER},
			   .state = QPS_RTS,
			   .mtu = 1024};

	(void)state;
	list_init(&p.stalled);
	list_init(&x.work.runnable);
	list_init(&other.on.waiting);
	list_init(&other.on.runnable);
	timerq_init(&x.timers);
	assert_int_equal(timerq_reserve(&x.timers, 1), 0);
	deadlines_none(qp.req.at, REQ_DEADLINES);
	deadlines_none(qp.resp.at, RESP_DEADLINES);
	live_reset(&qp.req);
	qp.req.psn.snd = qp.req.psn.max = 4;
	flow_sent(&qp, 4, 4 * each);
	flow_again(&qp, 0, 4, 4 * each);
	x.now = 1000 * US;
	flow_accepted(&qp, 4);
	assert_false(flow_may_send(&other, each));
	x.now = 1299 * US;
	req_timeout(&qp);
	assert_false(list_empty(&p.stalled));
	x.now = 1300 * US;
	req_timeout(&qp);
	assert_true(list_empty(&p.stalled));
	assert_ptr_equal(x.work.runnable.next, &other.on.runnable);
	assert_true(flow_may_send(&other, each));
	qp_rearm(&qp);
	timerq_fini(&x.timers);
}

/* Where packets overtake others bursts arrive in pieces, and are charged so: also
 * before that is known. */
static void flow_whole__once_seen_in_order(void **state)
{
	struct peer p = {.path.gso = true, .features = HELLO_GRO};

	(void)state;
	assert_false(flow_whole(&p));
	flow_even(&p, 1000, false);
	assert_true(flow_whole(&p));
	flow_even(&p, 1, true);
	flow_even(&p, 1, false);
	assert_false(flow_whole(&p));
	flow_even(&p, 1000, false);
	late_came(&p.late, 400 * US);
	assert_false(flow_whole(&p));
}

/* A copy is charged besides what it stands for, but once, however often it is sent:
 * or what never comes would take all that others may send. */
static void flow_again__once(void **state)
{
	const uint32_t charge = 10000, each = flow_charge(false, 1, 1024);
	struct xport x = {.budget.read = 1 << 20};
	struct peer p = {.kind = PEER_NOPIN};
	struct qp qp = {.x = &x,
			.peer = &p,
			.open = {.theirs = 1, .ask_at = TIME_NEVER},
			.mtu = 1024};
	struct req *r = &qp.req;

	(void)state;
	list_init(&p.stalled);
	list_init(&x.work.read_waiters);
	deadlines_none(r->at, REQ_DEADLINES);
	r->psn.snd = r->psn.max = 8;
	flow_sent(&qp, 8, charge);
	for (int i = 0; i < 1000; i++)
		flow_again(&qp, 0, 4, 4 * each);
	assert_int_equal(p.flow.in_flight, charge + 4 * each);
	flow_again(&qp, 3, 5, 2 * each);
	assert_int_equal(p.flow.in_flight, charge + 5 * each);
	x.now = US;
	flow_accepted(&qp, 7);
	assert_int_equal(p.flow.in_flight, charge + 5 * each);
	x.now = US;
	flow_accepted(&qp, 8);
	assert_int_equal(p.flow.in_flight, 0);

	reads_asked(&qp, charge);
	for (int i = 0; i < 1000; i++)
		reads_asked_again(&qp, 4, charge);
	assert_int_equal(x.budget.read_out, 2 * charge);
	reads_answered(&qp, 3);
	assert_int_equal(x.budget.read_out, 2 * charge);
	/* not after what is behind it */
	reads_answered(&qp, 4);
	assert_int_equal(x.budget.read_out, charge);
	reads_asked_again(&qp, 8, charge);
	flow_forget(&qp);
	reads_forget(&qp);
	assert_int_equal(x.budget.read_out, 0);
	assert_int_equal(r->charge.read_twice, 0);
}

/* Where packets are late, and nothing was sent. */
static void late_open(struct qp *qp)
{
	list_init(&qp->peer->stalled);
	list_init(&qp->x->work.read_waiters);
	timerq_init(&qp->x->timers);
	assert_int_equal(timerq_reserve(&qp->x->timers, 1), 0);
	deadlines_none(qp->req.at, REQ_DEADLINES);
	deadlines_none(qp->resp.at, RESP_DEADLINES);
	live_reset(&qp->req);
}

/* What was late came, but its copy is as late: it may lie in the socket, too. */
static void flow_again__late(void **state)
{
	const uint32_t each = flow_charge(false, 1, 1024);
	struct xport x = {.budget.read = 1 << 20};
	struct peer p = {.kind = PEER_NOPIN, .late = {.wait_ns = 300 * US}};
	struct qp qp = {.x = &x,
			.peer = &p,
			.open = {.theirs = 1, .ask_at = TIME_NEVER},
			.state = QPS_RTS,
			.mtu = 1024};
	struct req *r = &qp.req;

	(void)state;
	late_open(&qp);
	r->psn.snd = r->psn.max = 8;
	flow_sent(&qp, 8, 8 * each);
	flow_again(&qp, 0, 4, 4 * each);
	x.now = 1000 * US;
	flow_accepted(&qp, 8);
	assert_int_equal(p.flow.in_flight, 4 * each);
	x.now = 1100 * US;
	flow_accepted(&qp, 8);
	assert_int_equal(p.flow.in_flight, 4 * each);
	assert_int_equal(timerq_next(&x.timers), 1300 * US);
	x.now = 1299 * US;
	req_timeout(&qp);
	assert_int_equal(p.flow.in_flight, 4 * each);
	x.now = 1300 * US;
	req_timeout(&qp);
	assert_int_equal(p.flow.in_flight, 0);
	flow_again(&qp, 4, 5, each);
	x.now = 1400 * US;
	flow_accepted(&qp, 8);
	flow_forget(&qp);
	reads_forget(&qp);
	assert_false(deadline_waits(r->at[REQ_LATE]));
	qp_rearm(&qp);
	timerq_fini(&x.timers);
}

/* The timer of a QP that does nothing else, until @now. */
static void pass(struct qp *qp, uint64_t now)
{
	uint64_t at;

	while ((at = timerq_next(&qp->x->timers)) <= now) {
		qp->x->now = at;
		req_timeout(qp);
		qp_rearm(qp);
	}
}

/* Whatever else is sent again meanwhile, and whether or not all that was sent is ever
 * accepted at a time: each copy is charged for twice as long as packets are late, at
 * most. Else others to the peer would wait for what came long ago. */
static void flow_again__ends(void **state)
{
	enum { ROUNDS = 200, WAIT = 10 };
	const uint32_t each = flow_charge(false, 1, 1024);

	(void)state;
	for (unsigned behind = 0; behind < 4; behind++) {
		struct xport x = {.budget.read = 1 << 20};
		struct peer p = {.kind = PEER_NOPIN,
				 .late = {.wait_ns = WAIT * MS}};
		struct qp qp = {.x = &x,
				.peer = &p,
				.open = {.theirs = 1, .ask_at = TIME_NEVER},
				.state = QPS_RTS,
				.mtu = 1024};
		struct req *r = &qp.req;
		uint64_t now = MS;

		late_open(&qp);
		for (unsigned i = 1; i <= ROUNDS; i++, now += MS) {
			r->psn.snd = r->psn.max = i;
			flow_sent(&qp, i, each);
			flow_again(&qp, i - 1, i, each);
			x.now = now;
			if (i > behind)
				flow_accepted(&qp, i - behind);
			pass(&qp, now);
			assert_in_range(p.flow.in_flight, each,
					(2 * WAIT + 3 * behind + 2) * each);
		}
		x.now = now;
		flow_accepted(&qp, ROUNDS);
		pass(&qp, now + WAIT * MS - 1);
		assert_in_range(p.flow.in_flight, each, 2 * WAIT * each);
		pass(&qp, now + 2 * WAIT * MS);
		assert_int_equal(p.flow.in_flight, 0);
		assert_int_equal(timerq_next(&x.timers), TIME_NEVER);
		timerq_fini(&x.timers);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(late__nothing_seen),
		cmocka_unit_test(late__twice_as_late_as_seen),
		cmocka_unit_test(late__bounds),
		cmocka_unit_test(late__doubted),
		cmocka_unit_test(late__shrinks),
		cmocka_unit_test(flow_whole__once_seen_in_order),
		cmocka_unit_test(flow_copies_came__others_go_on),
		cmocka_unit_test(flow_again__once),
		cmocka_unit_test(flow_again__late),
		cmocka_unit_test(flow_again__ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
