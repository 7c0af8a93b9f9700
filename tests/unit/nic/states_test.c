/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* states_test.c: which state of a QP follows which, with which attributes (IBTA
 * 10.3.1, table 91), and what it does in SQD.
 */
#include "nic/async.h"
#include "nic/completion.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "side.h"

#include <errno.h>

static struct side by[SIDES]; /* a connection with events */
static struct nic_async *async;
static int async_fd;

static int setup(void **state)
{
	(void)state;
	sides_open_usual();
	assert_int_equal(nic_async_open(side[0].nic, &async, &async_fd), 0);
	for (int i = 0; i < SIDES; i++) {
		by[i] = side[i];
		side_qp(&by[i], DEPTH, i ? NULL : async, NULL);
	}
	for (int i = 0; i < SIDES; i++)
		side_connect(&by[i], &by[!i]);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < SIDES; i++)
		side_qp_close(&by[i]);
	nic_async_close(async);
	return sides_close(state);
}

/* Brings @s to @to, by way of RESET. */
static void go_to(struct side *s, const struct side *peer, enum qp_state to)
{
	struct qp_attr a = side_attr(s, peer);
	const struct qp_attr reset = {.state = QPS_RESET};

	assert_int_equal(nic_qp_modify(s->qp, &reset, QPA_STATE), 0);
	for (enum qp_state at = QPS_INIT; at <= to && at <= QPS_RTS; at++)
		assert_int_equal(side_next(s, &a, at), 0);
	a.state = to;
	if (to > QPS_RTS)
		assert_int_equal(nic_qp_modify(s->qp, &a, QPA_STATE), 0);
	assert_int_equal(side_query(s).state, to);
}

static void modify__needs_every_attribute(void **state)
{
	struct side *s = &side[0];
	struct qp_attr a = side_attr(s, &side[1]);

	(void)state;
	for (enum qp_state to = QPS_INIT; to <= QPS_RTS; to++) {
		go_to(s, &side[1], to - 1);
		a.state = to;
		for (uint32_t bit = 1; bit <= side_mask[to]; bit <<= 1) {
			const uint32_t mask = QPA_STATE | side_mask[to];

			if (!(side_mask[to] & bit))
				continue;
			assert_int_equal(nic_qp_modify(s->qp, &a, mask & ~bit),
					 -EINVAL);
			assert_int_equal(side_query(s).state, to - 1);
		}
		/* and none that belongs elsewhere */
		assert_int_equal(
			nic_qp_modify(s->qp, &a,
				      QPA_STATE | side_mask[to] | QPA_QKEY),
			-EINVAL);
		assert_int_equal(side_query(s).state, to - 1);
	}
}

static void modify__transitions(void **state)
{
	static const bool legal[QPS_NUM][QPS_NUM] = {
		[QPS_RESET] = {[QPS_INIT] = true},
		[QPS_INIT] = {[QPS_INIT] = true, [QPS_RTR] = true},
		[QPS_RTR] = {[QPS_RTS] = true},
		[QPS_RTS] = {[QPS_RTS] = true, [QPS_SQD] = true},
		[QPS_SQD] = {[QPS_SQD] = true, [QPS_RTS] = true},
	};
	struct side *s = &side[0];
	struct qp_attr a = side_attr(s, &side[1]);

	(void)state;
	for (enum qp_state from = QPS_RESET; from < QPS_NUM; from++)
		for (enum qp_state to = QPS_RESET; to < QPS_NUM; to++) {
			const bool always = to == QPS_RESET || to == QPS_ERR;
			const uint32_t mask =
				QPA_STATE | (to <= QPS_RTS ? side_mask[to] : 0);
			const int ret = always || legal[from][to] ? 0 : -EINVAL;

			if (from == QPS_SQE || to == QPS_SQE)
				continue; /* not of RC */
			go_to(s, &side[1], from);
			a.state = to;
			if (to != from + 1 || to > QPS_RTS)
				assert_int_equal(
					nic_qp_modify(s->qp, &a, QPA_STATE),
					ret);
			if (ret || to == from + 1)
				assert_int_equal(nic_qp_modify(s->qp, &a, mask),
						 ret);
		}
}

static void modify__values(void **state)
{
	struct side *s = &side[0];
	const struct qp_attr good = side_attr(s, &side[1]);
	struct qp_attr bad[12];
	enum qp_state to[ARRAY_SIZE(bad)];
	size_t n = 0;

#define BAD(state_, change)                                                    \
	do {                                                                   \
		bad[n] = good;                                                 \
		bad[n].change;                                                 \
		to[n++] = state_;                                              \
	} while (0)
	(void)state;
	BAD(QPS_INIT, port = 2);
	BAD(QPS_INIT, port = 0);
	BAD(QPS_INIT, pkey_index = 1);
	BAD(QPS_RTR, path_mtu = 128);
	BAD(QPS_RTR, path_mtu = 8192);
	BAD(QPS_RTR, dest_qpn = 1 << 24);
	BAD(QPS_RTR, max_dest_rd_atomic = NIC_MAX_RD_ATOMIC + 1);
	BAD(QPS_RTR, min_rnr_timer = 32);
	BAD(QPS_RTR, has_grh = false);
	BAD(QPS_RTR, dgid = (struct ipaddr){0});
	BAD(QPS_RTS, timeout = 32);
	BAD(QPS_RTS, max_rd_atomic = NIC_MAX_RD_ATOMIC + 1);
#undef BAD
	assert_int_equal(n, ARRAY_SIZE(bad));
	for (size_t i = 0; i < n; i++) {
		go_to(s, &side[1], to[i] - 1);
		assert_int_equal(side_next(s, &bad[i], to[i]), -EINVAL);
		assert_int_equal(side_query(s).state, to[i] - 1);
	}
}

/* As with cards. */
static void modify__no_reads_are_one(void **state)
{
	struct side *s = &side[0];
	struct qp_attr a = side_attr(s, &side[1]);

	(void)state;
	go_to(s, &side[1], QPS_RTR);
	a.max_rd_atomic = 0;
	assert_int_equal(side_next(s, &a, QPS_RTS), 0);
	assert_int_equal(side_query(s).max_rd_atomic, 1);
}

/* --- SQD ---------------------------------------------------------------------- */

static void drain(struct side *s)
{
	const struct qp_attr a = {.state = QPS_SQD,
				  .en_sqd_async_notify = true};

	assert_int_equal(
		nic_qp_modify(s->qp, &a, QPA_STATE | QPA_EN_SQD_ASYNC_NOTIFY),
		0);
}

static struct qp_attr query_sqd(const struct side *s)
{
	const struct qp_attr a = side_query(s);

	assert_int_equal(a.state, QPS_SQD);
	return a;
}

static bool draining(const struct side *s)
{
	return query_sqd(s).sq_draining;
}

static void is_drained(void)
{
	struct nic_event ev;

	assert_true(side_readable(async_fd, 10000));
	assert_int_equal(nic_async_get(async, &ev), 0);
	assert_int_equal(ev.type, NIC_EVENT_SQ_DRAINED);
	assert_ptr_equal(ev.cookie, &by[0]);
	assert_false(side_readable(async_fd, 0));
	assert_false(draining(&by[0]));
}

/* What is posted in SQD waits: a round trip of the others is long enough. */
static void sqd__nothing_begins(void **state)
{
	const struct qp_attr rts = {.state = QPS_RTS};
	struct cqe e;
	uint32_t psn;

	(void)state;
	drain(&by[0]);
	is_drained();
	psn = query_sqd(&by[0]).sq_psn;
	side_post(&by[0],
		  (struct wqe){.op = WR_WRITE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key},
		  by[0].buf, 8);
	side_recv(&side[1], side[1].buf, 64, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(side_cqe(&side[1]).status, WC_SUCCESS);
	assert_int_equal(query_sqd(&by[0]).sq_psn, psn);
	assert_int_equal(nic_cq_poll(by[0].cq, 1, &e), 0);
	assert_int_equal(nic_qp_modify(by[0].qp, &rts, QPA_STATE), 0);
	assert_int_equal(side_cqe(&by[0]).status, WC_SUCCESS);
}

/* What was begun ends, and then the program is told. */
static void sqd__what_was_begun_ends(void **state)
{
	struct counters c;

	(void)state;
	side_post(&by[0], (struct wqe){.op = WR_SEND}, by[0].buf, 8);
	do
		nic_counters(side[0].nic, &c);
	while (!c.v[CNT_rnr_rx]);
	drain(&by[0]);
	assert_true(draining(&by[0]));
	assert_false(side_readable(async_fd, 0));
	side_recv(&by[1], by[1].buf, 64, 1);
	assert_int_equal(side_cqe(&by[0]).status, WC_SUCCESS);
	assert_int_equal(side_cqe(&by[1]).status, WC_SUCCESS);
	is_drained();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(modify__needs_every_attribute),
		TEST(modify__transitions),
		TEST(modify__values),
		TEST(modify__no_reads_are_one),
		TEST(sqd__nothing_begins),
		TEST(sqd__what_was_begun_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
