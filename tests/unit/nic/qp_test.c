/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_test.c: what a program's own call to destroy or reset a QP may not do to
 * the others of its completion queue.
 */
#include "nic/completion.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "side.h"

#include <errno.h>
#include <unistd.h>

enum { SMALL = 8 };

static struct nic_channel *channel;
static struct nic_cq *small; /* smaller than a receive queue */
static struct nic_qp *doomed, *neighbour;

static struct nic_qp *qp_on(struct nic_cq *cq)
{
	struct nic_qp_init init = {.max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = 1,
				   .max_recv_sge = 1,
				   .pd = side[0].pd,
				   .send_cq = cq,
				   .recv_cq = cq};
	struct qp_attr a = {.state = QPS_INIT, .port = 1};
	struct nic_qp *qp;
	uint32_t qpn;

	assert_int_equal(nic_qp_create(side[0].nic, NULL, &init, &qp, &qpn), 0);
	assert_int_equal(nic_qp_modify(qp, &a,
				       QPA_STATE | QPA_PKEY_INDEX | QPA_PORT |
					       QPA_ACCESS_FLAGS),
			 0);
	return qp;
}

static void post_recvs(struct nic_qp *qp, int n)
{
	struct wqe *w;

	assert_int_equal(nic_recv_begin(qp), 0);
	for (int i = 0; i < n; i++) {
		w = nic_recv_slot(qp);
		assert_non_null(w);
		*w = (struct wqe){.wr_id = 77};
		nic_recv_publish(qp);
	}
	nic_recv_end(qp);
}

static int setup(void **state)
{
	const struct nic_config cfg = {.os = {.addr = "lo"},
				       .entries = 1 << 10,
				       .manual = true,
				       .pool_bytes = 1 << 20,
				       .strategies = 1u << STRATEGY_REDIRECT};
	int fd;

	(void)state;
	sides_open(&cfg);
	assert_int_equal(nic_channel_open(side[0].nic, &channel, &fd), 0);
	assert_int_equal(
		nic_cq_create(side[0].nic, NULL, channel, SMALL, NULL, &small),
		0);
	doomed = qp_on(small);
	neighbour = qp_on(small);
	post_recvs(doomed, 2 * SMALL);
	post_recvs(neighbour, SMALL);
	assert_int_equal(nic_cq_arm(small, false), 0);
	return 0;
}

static int teardown(void **state)
{
	if (doomed)
		assert_int_equal(nic_qp_destroy(doomed), 0);
	doomed = NULL;
	assert_int_equal(nic_qp_destroy(neighbour), 0);
	assert_int_equal(nic_cq_destroy(small), 0);
	nic_channel_close(channel);
	return sides_close(state);
}

/* The neighbour's receives are flushed, into a CQ that has room for them. */
static void neighbour_is_well(void)
{
	const struct qp_attr a = {.state = QPS_ERR};
	struct cqe e[2 * SMALL];

	assert_int_equal(neighbour->qp.state, QPS_INIT);
	assert_int_equal(nic_qp_modify(neighbour, &a, QPA_STATE), 0);
	assert_int_equal(nic_cq_poll(small, 2 * SMALL, e), SMALL);
	assert_int_equal(e[0].qpn, neighbour->qp.cfg.qpn);
	assert_int_equal(neighbour->qp.events, 0);
}

static void nobody_was_told(void)
{
	struct cqe e;

	assert_int_equal(nic_cq_poll(small, 1, &e), 0);
	assert_false(small->cq.overflow);
	assert_int_equal(small->pending, 0);
	assert_false(small->cq.fired);
}

static void destroy__is_not_told(void **state)
{
	(void)state;
	assert_int_equal(nic_qp_destroy(doomed), 0);
	doomed = NULL;
	nobody_was_told();
	neighbour_is_well();
}

static void *destroys(void *arg)
{
	assert_int_equal(nic_qp_destroy(arg), 0);
	return NULL;
}

/* Another thread destroys the CQ as soon as it may: not while the QP's completions
 * are taken out of it. */
static void destroy__uses_the_cq_to_the_end(void **state)
{
	struct nic_cq *cq;
	struct nic_qp *qp;
	pthread_t thread;

	(void)state;
	assert_int_equal(
		nic_cq_create(side[0].nic, NULL, NULL, SMALL, NULL, &cq), 0);
	qp = qp_on(cq);
	pthread_mutex_lock(&cq->poll);
	pthread_create(&thread, NULL, destroys, qp);
	usleep(20000);
	assert_int_equal(nic_cq_destroy(cq), -EBUSY);
	pthread_mutex_unlock(&cq->poll);
	pthread_join(thread, NULL);
	assert_int_equal(nic_cq_destroy(cq), 0);
}

static void reset__is_not_told(void **state)
{
	const struct qp_attr a = {.state = QPS_RESET};

	(void)state;
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE), 0);
	nobody_was_told();
	neighbour_is_well();
}

/* It is a QP as any other afterwards. */
static void reset__tells_the_next_life(void **state)
{
	struct qp_attr a = {.state = QPS_RESET, .port = 1};
	struct cqe e[2 * SMALL];

	(void)state;
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE), 0);
	a.state = QPS_INIT;
	assert_int_equal(nic_qp_modify(doomed, &a,
				       QPA_STATE | QPA_PKEY_INDEX | QPA_PORT |
					       QPA_ACCESS_FLAGS),
			 0);
	post_recvs(doomed, 2);
	a.state = QPS_ERR;
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE), 0);
	assert_int_equal(nic_cq_poll(small, 2 * SMALL, e), 2);
	assert_int_equal(e[0].status, WC_WR_FLUSH_ERR);
}

/* What is refused changes nothing; what is allowed may name the state it was. */
static void reset__current_state(void **state)
{
	struct qp_attr a = {.state = QPS_RESET, .cur_state = QPS_RTS};

	(void)state;
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE | QPA_CUR_STATE),
			 -EINVAL);
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE | QPA_TIMEOUT),
			 -EINVAL);
	assert_int_equal(doomed->qp.state, QPS_INIT);
	a.cur_state = QPS_INIT;
	assert_int_equal(nic_qp_modify(doomed, &a, QPA_STATE | QPA_CUR_STATE),
			 0);
	assert_int_equal(doomed->qp.state, QPS_RESET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(destroy__is_not_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(destroy__uses_the_cq_to_the_end,
						setup, teardown),
		cmocka_unit_test_setup_teardown(reset__is_not_told, setup,
						teardown),
		cmocka_unit_test_setup_teardown(reset__tells_the_next_life,
						setup, teardown),
		cmocka_unit_test_setup_teardown(reset__current_state, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
