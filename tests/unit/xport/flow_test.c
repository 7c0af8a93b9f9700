/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow_test.c: two QPs send to one nopin, whose grant the first one uses up. Whatever
 * gives some of it back wakes the second.
 */
#include "mem/mem.h"
#include "mem/state.h"
#include "memory.h"
#include "xport/flow.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/reads.h"
#include "xport/xport.h"

enum { SLOTS = 80, QPS = 2, GRANT = 10000, CHARGE = 6000, END = 1000 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp[QPS];
} s;

static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};

	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	peer_init(&s.peer, &ep, &ep.ip);
	s.peer.kind = PEER_NOPIN;
	s.peer.flow.budget = GRANT;
	for (int i = 0; i < QPS; i++) {
		s.qp[i] = (struct qp){.x = &s.x,
				      .peer = &s.peer,
				      .mtu = 1024,
				      .open = {.mine = 1, .theirs = 1}};
		list_init(&s.qp[i].on.waiting);
		list_init(&s.qp[i].on.runnable);
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < QPS; i++) {
		list_del(&s.qp[i].on.waiting);
		list_del(&s.qp[i].on.runnable);
	}
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static bool runs(const struct qp *qp)
{
	return !list_empty(&qp->on.runnable);
}

/* The first has sent, and there is too little left for the second. */
static void use_up(void)
{
	assert_true(flow_may_send(&s.qp[0], CHARGE));
	flow_sent(&s.qp[0], END, CHARGE);
	assert_false(flow_may_send(&s.qp[1], CHARGE));
	assert_false(list_empty(&s.qp[1].on.waiting));
	assert_false(runs(&s.qp[1]));
}

/* The second was woken, and may send. */
static void check_woken(void)
{
	assert_int_equal(s.peer.flow.in_flight, 0);
	assert_true(runs(&s.qp[1]));
	assert_true(list_empty(&s.qp[1].on.waiting));
	assert_true(flow_may_send(&s.qp[1], CHARGE));
}

static void flow__accepted_wakes(void **state)
{
	(void)state;
	use_up();
	flow_accepted(&s.qp[0], END);
	check_woken();
}

/* It sends all again, or ends: what was charged is no more. */
static void flow__forgotten_wakes(void **state)
{
	(void)state;
	use_up();
	flow_forget(&s.qp[0]);
	check_woken();
}

/* Sent again besides, and forgotten with the rest. */
static void flow__copies_are_forgotten_too(void **state)
{
	(void)state;
	use_up();
	s.qp[0].req.psn.snd = END;
	flow_again(&s.qp[0], END - 4, END, CHARGE);
	assert_in_range(s.peer.flow.in_flight, CHARGE + 1, 2 * CHARGE);
	flow_forget(&s.qp[0]);
	check_woken();
}

static void flow__unsent_wakes(void **state)
{
	(void)state;
	use_up();
	flow_unsent(&s.qp[0], END - 1, CHARGE);
	check_woken();
}

/* READs share what their answers may fill of our buffer; a peer that answers none keeps
 * nobody waiting, or its QPs would end one budget full after the other. */
static void flow__reads_of_a_quiet_peer(void **state)
{
	(void)state;
	s.x.budget.read = CHARGE;
	assert_true(reads_may_ask(&s.qp[0], CHARGE));
	reads_asked(&s.qp[0], CHARGE);
	assert_false(reads_may_ask(&s.qp[1], CHARGE));
	reads_quiet(&s.qp[0], true);
	assert_true(runs(&s.qp[1]));
	assert_true(reads_may_ask(&s.qp[1], CHARGE));
	reads_asked(&s.qp[1], CHARGE);
	reads_quiet(&s.qp[0], false);
	reads_forget(&s.qp[0]);
	assert_false(reads_may_ask(&s.qp[0], CHARGE));
	reads_forget(&s.qp[1]);
	assert_true(reads_may_ask(&s.qp[0], CHARGE));
	assert_int_equal(s.x.budget.read_out, 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(flow__accepted_wakes),	   T(flow__forgotten_wakes),
		T(flow__copies_are_forgotten_too), T(flow__unsent_wakes),
		T(flow__reads_of_a_quiet_peer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
