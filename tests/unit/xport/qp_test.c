/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_test.c: which attributes a QP takes from state to state, what it says of itself, and
 * what it keeps of a call that failed.
 */
#include "mem/account.h"
#include "requests.h"

#include <errno.h>

enum { LEN = 8, CODE_MAX = 31, QPN_MAX = 0xffffff };

#define EVERY                                                                  \
	(QPA_EN_SQD_ASYNC_NOTIFY | QPA_ACCESS_FLAGS | QPA_PKEY_INDEX |         \
	 QPA_PORT | QPA_QKEY | QPA_AV | QPA_PATH_MTU | QPA_TIMEOUT |           \
	 QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_RQ_PSN | QPA_MAX_RD_ATOMIC |      \
	 QPA_ALT_PATH | QPA_MIN_RNR_TIMER | QPA_SQ_PSN |                       \
	 QPA_MAX_DEST_RD_ATOMIC | QPA_PATH_MIG_STATE | QPA_CAP |               \
	 QPA_DEST_QPN | QPA_RATE_LIMIT)

/* All that any edge takes, with values that are right. */
static const struct qp_attr good = {.port = 1,
				    .path_mtu = MTU,
				    .has_grh = true,
				    .dgid = {{0xfd, [15] = 2}},
				    .max_rd_atomic = 1,
				    .max_dest_rd_atomic = 1};

static bool takes(const struct transport *t, enum qp_state from,
		  enum qp_state to, uint32_t mask)
{
	struct qp qp = {.cfg.transport = t, .state = from, .attr = good};
	struct qp_attr a = good;

	a.state = to;
	return qp_modify_ok(&qp, &a, mask | QPA_STATE);
}

/* --- attributes ------------------------------------------------------------------ */

/* IBTA table 91, without alternate paths. */
static void qp_modify__what_a_connection_takes(void **state)
{
	static const struct {
		enum qp_state from, to;
		uint32_t need, may;
	} edge[] = {
		{QPS_RESET, QPS_INIT,
		 QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS, 0},
		{QPS_INIT, QPS_RTR,
		 QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
			 QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
		 QPA_ACCESS_FLAGS | QPA_PKEY_INDEX},
		{QPS_RTR, QPS_RTS,
		 QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY | QPA_SQ_PSN |
			 QPA_MAX_RD_ATOMIC,
		 QPA_ACCESS_FLAGS | QPA_PATH_MIG_STATE | QPA_MIN_RNR_TIMER},
		{QPS_RTS, QPS_SQD, 0, QPA_EN_SQD_ASYNC_NOTIFY},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(edge); i++) {
		const enum qp_state from = edge[i].from, to = edge[i].to;
		const uint32_t need = edge[i].need;

		assert_true(takes(&transport_rc, from, to, need));
		assert_true(takes(&transport_rc, from, to, need | edge[i].may));
		for (uint32_t bit = 1; bit <= EVERY; bit <<= 1) {
			if (need & bit)
				assert_false(takes(&transport_rc, from, to,
						   need & ~bit));
			else if (EVERY & ~edge[i].may & bit)
				assert_false(takes(&transport_rc, from, to,
						   need | bit));
		}
	}
}

static void qp_modify__no_way(void **state)
{
	(void)state;
	for (uint32_t mask = 0; mask <= EVERY; mask += EVERY) {
		assert_false(takes(&transport_rc, QPS_RESET, QPS_RTR, mask));
		assert_false(takes(&transport_rc, QPS_INIT, QPS_RTS, mask));
		assert_false(takes(&transport_rc, QPS_RTS, QPS_RTR, mask));
		assert_false(takes(&transport_rc, QPS_RTS, QPS_SQE, mask));
		assert_false(takes(&transport_rc, QPS_ERR, QPS_RTS, mask));
		assert_false(takes(&transport_rc, QPS_SQE, QPS_RTS, mask));
	}
	assert_true(takes(&transport_ud, QPS_SQE, QPS_RTS, 0));
	for (int from = QPS_RESET; from < QPS_NUM; from++) {
		assert_true(
			takes(&transport_rc, (enum qp_state)from, QPS_ERR, 0));
		assert_true(takes(&transport_rc, (enum qp_state)from, QPS_RESET,
				  0));
		assert_false(takes(&transport_rc, (enum qp_state)from, QPS_ERR,
				   QPA_PORT));
	}
}

static bool modifies(struct qp_attr a, uint32_t mask)
{
	return qp_modify_ok(&s.qp, &a, mask);
}

static void qp_modify__in_the_state_that_is_said(void **state)
{
	(void)state;
	assert_true(modifies((struct qp_attr){.cur_state = QPS_RTS},
			     QPA_CUR_STATE));
	assert_false(modifies((struct qp_attr){.cur_state = QPS_SQD},
			      QPA_CUR_STATE));
}

static void qp_modify__values(void **state)
{
	struct qp_attr a = good;

	(void)state;
	s.qp.state = QPS_SQD;
	s.qp.attr.sgid_index = a.sgid_index;
	s.qp.attr.dgid = a.dgid;
	a.timeout = a.min_rnr_timer = CODE_MAX;
	a.max_rd_atomic = a.max_dest_rd_atomic = RD_ATOMIC_MAX;
	assert_true(modifies(a, QPA_TIMEOUT | QPA_MIN_RNR_TIMER | QPA_PORT |
					QPA_MAX_RD_ATOMIC | QPA_AV |
					QPA_MAX_DEST_RD_ATOMIC));
	a.timeout++;
	a.min_rnr_timer++;
	a.max_rd_atomic++;
	a.max_dest_rd_atomic++;
	a.port++;
	a.pkey_index++;
	a.has_grh = false;
	assert_false(modifies(a, QPA_TIMEOUT));
	assert_false(modifies(a, QPA_MIN_RNR_TIMER));
	assert_false(modifies(a, QPA_MAX_RD_ATOMIC));
	assert_false(modifies(a, QPA_MAX_DEST_RD_ATOMIC));
	assert_false(modifies(a, QPA_PORT));
	assert_false(modifies(a, QPA_PKEY_INDEX));
	assert_false(modifies(a, QPA_AV));
	/* who waits in SQD goes on with the peer that it has */
	a = good;
	a.dgid.b[15]++;
	assert_false(modifies(a, QPA_AV));
	a = good;
	a.sgid_index++;
	assert_false(modifies(a, QPA_AV));
}

static void qp_modify__mtu(void **state)
{
	static const uint32_t bad[] = {0, 128, 257, 1000, 8192, UINT32_MAX};
	const uint32_t mask = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
			      QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
			      QPA_MIN_RNR_TIMER | QPA_STATE;
	struct qp_attr a = good;

	(void)state;
	s.qp.state = QPS_INIT;
	a.state = QPS_RTR;
	for (a.path_mtu = 256; a.path_mtu <= 4096; a.path_mtu *= 2)
		assert_true(modifies(a, mask));
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		a.path_mtu = bad[i];
		assert_false(modifies(a, mask));
	}
	a.path_mtu = MTU;
	a.dest_qpn = QPN_MAX;
	assert_true(modifies(a, mask));
	a.dest_qpn++;
	assert_false(modifies(a, mask));
	s.qp.state = QPS_RTS;
}

/* What was taken is said again; counts above 7 are 7, and no reads are one. */
static void qp_query__says_what_was_taken(void **state)
{
	struct qp_attr a = good, q;

	(void)state;
	s.qp.state = QPS_SQD;
	a.sl = 3;
	a.static_rate = 2;
	a.traffic_class = 8;
	a.hop_limit = 9;
	a.flow_label = 10;
	a.timeout = 11;
	a.retry_cnt = a.rnr_retry = 8;
	a.max_rd_atomic = 0;
	assert_int_equal(qp_modify(&s.qp, &a,
				   QPA_AV | QPA_TIMEOUT | QPA_RETRY_CNT |
					   QPA_RNR_RETRY | QPA_MAX_RD_ATOMIC,
				   NULL),
			 0);
	qp_query(&s.qp, &q);
	assert_int_equal(q.sl, 3);
	assert_int_equal(q.static_rate, 2);
	assert_int_equal(q.traffic_class, 8);
	assert_int_equal(q.hop_limit, 9);
	assert_int_equal(q.flow_label, 10);
	assert_int_equal(q.timeout, 11);
	assert_int_equal(q.retry_cnt, 7);
	assert_int_equal(q.rnr_retry, 7);
	assert_int_equal(q.max_rd_atomic, 1);
	assert_int_equal(q.state, QPS_SQD);
	assert_false(q.sq_draining);
	s.qp.state = QPS_RTS;
}

/* PSNs go on as packets do. */
static void qp_query__where_it_is(void **state)
{
	struct qp_attr q;

	(void)state;
	post(WR_SEND, 0, 2 * MTU);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
	qp_query(&s.qp, &q);
	assert_int_equal(q.sq_psn, psn_add(PSN, 2));
	assert_int_equal(q.rq_psn, PSN);
	s.qp.state = QPS_SQD;
	qp_query(&s.qp, &q);
	assert_true(q.sq_draining);
	s.qp.state = QPS_RTS;
}

/* --- calls that failed ------------------------------------------------------------- */

/* A request said that a SEND of the peer is placed, and did not leave. */
static void qp_tx_commit__says_it_again(void **state)
{
	static uint8_t data[LEN];
	static struct pkt p; /* until the run is committed */

	(void)state;
	bench_receive(&s, 1, 0, LEN);
	p = bench_pkt(&s, OP_SEND_ONLY, PSN);
	p.payload_len = LEN;
	p.ack_req = true;
	qp_rx(&s.qp, &p, (struct payload){.at = data}, &s.run);
	commit_run(&s.run, true);
	post(WR_SEND, 0, 1);
	assert_true(qp_tx(&s.qp, &b));
	assert_true(b.acks.says);
	assert_false(s.qp.resp.ack.owed);
	qp_tx_commit(&b, -EAGAIN);
	assert_true(s.qp.resp.ack.owed);
}

static void qp_tx_commit__too_large_for_an_mtu(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
	assert_false(s.qp.req.failure.too_large);
	post(WR_SEND, 1, 1);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, -EMSGSIZE);
	assert_true(s.qp.req.failure.too_large);
}

/* Only packets that left are counted. */
static void qp_tx_commit__counts(void **state)
{
	(void)state;
	post(WR_SEND, 0, 2 * MTU);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, -EAGAIN);
	assert_int_equal(s.cnt.v[CNT_tx_packets], 0);
	s.x.now += PAUSE_FULL_NS;
	qp_timeout(&s.qp);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
	assert_int_equal(s.cnt.v[CNT_tx_packets], b.nsegs);
}

/* One half of it moves: nothing else of that half is planned. */
static void qp_tx__one_burst_at_a_time(void **state)
{
	static struct burst other;

	(void)state;
	post(WR_SEND, 0, 1);
	assert_true(qp_tx(&s.qp, &b));
	post(WR_SEND, 1, 1);
	assert_false(qp_tx(&s.qp, &other));
	qp_tx_commit(&b, 0);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
}

/* A datagram is for no connection. */
static void qp_rx__of_another_service(void **state)
{
	struct pkt p = {.op = opcode_info(OP_UD_SEND_ONLY)->flags,
			.opcode = OP_UD_SEND_ONLY,
			.psn = PSN};

	(void)state;
	bench_receive(&s, 1, 0, LEN);
	assert_int_equal(qp_rx(&s.qp, &p, (struct payload){.at = NULL}, &s.run),
			 RX_NEXT);
	assert_int_equal(s.cnt.v[CNT_drop_opcode], 1);
	assert_null(s.run.qp);
}

/* Requests are flushed when nothing of them moves any more. */
static void qp_error__while_a_burst_moves(void **state)
{
	struct cqe e;

	(void)state;
	post(WR_SEND, 3, 1);
	assert_true(qp_tx(&s.qp, &b));
	qp_error(&s.qp);
	assert_int_equal(cq_take(&s.cq, 1, &e), 0);
	qp_tx_commit(&b, 0);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, 3);
	assert_int_equal(e.status, WC_WR_FLUSH_ERR);
	post(WR_SEND, 4, 1);
	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, 4);
}

int main(void)
{
#define T(f) cmocka_unit_test(f)
	const struct CMUnitTest tests[] = {
		T(qp_modify__what_a_connection_takes),
		T(qp_modify__no_way),
		NOPIN(qp_modify__in_the_state_that_is_said),
		NOPIN(qp_modify__values),
		NOPIN(qp_modify__mtu),
		BOTH(qp_query__says_what_was_taken),
		BOTH(qp_query__where_it_is),
		NOPIN(qp_tx_commit__says_it_again),
		BOTH(qp_tx_commit__too_large_for_an_mtu),
		BOTH(qp_tx_commit__counts),
		BOTH(qp_tx__one_burst_at_a_time),
		BOTH(qp_rx__of_another_service),
		BOTH(qp_error__while_a_burst_moves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
