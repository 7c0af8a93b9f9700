/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "nic/pair.h"
#include "verbs/object.h"

#include <errno.h>
#include <stddef.h>

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

static int open_cq(void **state)
{
	fake_reset(state);
	context = fake_open();
	pd = ibv_alloc_pd(context);
	cq = ibv_create_cq(context, 16, NULL, NULL, 0);
	return 0;
}

static int close_cq(void **state)
{
	if (ibv_destroy_cq(cq) || ibv_dealloc_pd(pd) ||
	    ibv_close_device(context))
		return -1;
	return fake_check(state);
}

static struct ibv_qp_init_attr good(void)
{
	return (struct ibv_qp_init_attr){
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {1, 2, 3, 4, 5},
		.qp_type = IBV_QPT_RC,
	};
}

static void create__fills_in(void **state)
{
	int mine;
	struct ibv_qp_init_attr init = good();
	struct ibv_qp *qp;

	(void)state;
	init.qp_context = &mine;
	qp = ibv_create_qp(pd, &init);
	assert_non_null(qp);
	assert_ptr_equal(qp->context, context);
	assert_ptr_equal(qp->qp_context, &mine);
	assert_ptr_equal(qp->pd, pd);
	assert_ptr_equal(qp->send_cq, cq);
	assert_int_equal(qp->qp_num, 0x1234);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(nic_qp_limits(vqp_of(qp)->nic)->max_inline, 5);
	assert_int_equal(init.cap.max_recv_sge, 4);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void create__refuses(void **state)
{
	static const struct {
		enum ibv_qp_type type;
		struct ibv_qp_cap cap;
		bool no_send_cq, no_recv_cq;
		int error;
	} rows[] = {
		{IBV_QPT_RC, {0}, 0, 0, 0},
		{IBV_QPT_UC, {0}, 0, 0, EOPNOTSUPP},
		{IBV_QPT_UD, {0}, 0, 0, 0},
		{IBV_QPT_RAW_PACKET, {0}, 0, 0, EOPNOTSUPP},
		{IBV_QPT_XRC_SEND, {0}, 0, 0, EOPNOTSUPP},
		{IBV_QPT_DRIVER, {0}, 0, 0, EOPNOTSUPP},
		{IBV_QPT_RC, {0}, 1, 0, EINVAL},
		{IBV_QPT_RC, {0}, 0, 1, EINVAL},
		{IBV_QPT_RC, {.max_send_wr = NIC_MAX_QP_WR}, 0, 0, 0},
		{IBV_QPT_RC, {.max_send_wr = NIC_MAX_QP_WR + 1}, 0, 0, EINVAL},
		{IBV_QPT_RC, {.max_recv_wr = NIC_MAX_QP_WR + 1}, 0, 0, EINVAL},
		{IBV_QPT_RC, {.max_send_sge = NIC_MAX_SGE + 1}, 0, 0, EINVAL},
		{IBV_QPT_RC, {.max_recv_sge = NIC_MAX_SGE + 1}, 0, 0, EINVAL},
		{IBV_QPT_RC,
		 {.max_inline_data = NIC_MAX_INLINE + 1},
		 0,
		 0,
		 EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_qp_init_attr init = good();
		struct ibv_qp *qp;

		init.qp_type = rows[i].type;
		init.cap = rows[i].cap;
		if (rows[i].no_send_cq)
			init.send_cq = NULL;
		if (rows[i].no_recv_cq)
			init.recv_cq = NULL;
		errno = 0;
		qp = ibv_create_qp(pd, &init);
		assert_int_equal(errno, rows[i].error);
		assert_int_equal(qp == NULL, rows[i].error != 0);
		if (qp)
			ibv_destroy_qp(qp);
	}
}

static void create__foreign_cq(void **state)
{
	struct ibv_context *other = fake_open();
	struct ibv_cq *theirs = ibv_create_cq(other, 1, NULL, NULL, 0);
	struct ibv_qp_init_attr init = good();

	(void)state;
	init.recv_cq = theirs;
	assert_null(ibv_create_qp(pd, &init));
	assert_int_equal(errno, EINVAL);
	ibv_destroy_cq(theirs);
	ibv_close_device(other);
}

static void create__nic_refuses(void **state)
{
	struct ibv_qp_init_attr init = good();
	const uint32_t slot = fake_next_slot();

	(void)state;
	fake.fail_in = 1;
	assert_null(ibv_create_qp(pd, &init));
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fake_next_slot(), slot);
}

/* Before the table of events is locked. */
static void create__refused_in_a_child(void **state)
{
	struct ibv_qp_init_attr init = good();

	(void)state;
	fake.child = true;
	assert_null(ibv_create_qp(pd, &init));
	assert_int_equal(errno, ENODEV);
	fake.child = false;
}

static void create_ex__masks(void **state)
{
	const struct {
		uint32_t comp_mask, create_flags;
		uint64_t ops;
		int error;
	} rows[] = {
		{IBV_QP_INIT_ATTR_PD, 0, 0, 0},
		{0, 0, 0, EINVAL},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD, 0, 0, EOPNOTSUPP},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS, 0, 0, 0},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		 IBV_QP_CREATE_SOURCE_QPN, 0, EOPNOTSUPP},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		 IBV_QP_EX_WITH_SEND, 0},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		 IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_TSO, EOPNOTSUPP},
		{IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, 0,
		 IBV_QP_EX_WITH_BIND_MW, EOPNOTSUPP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_qp_init_attr_ex attr = {
			.send_cq = cq,
			.recv_cq = cq,
			.qp_type = IBV_QPT_RC,
			.comp_mask = rows[i].comp_mask,
			.pd = pd,
			.create_flags = rows[i].create_flags,
			.send_ops_flags = rows[i].ops,
		};
		struct ibv_qp *qp;

		errno = 0;
		qp = ibv_create_qp_ex(context, &attr);
		assert_int_equal(errno, rows[i].error);
		if (!qp)
			continue;
		assert_int_equal(ibv_qp_to_qp_ex(qp) != NULL, rows[i].ops != 0);
		ibv_destroy_qp(qp);
	}
}

static void modify__passes_on(void **state)
{
	struct ibv_qp_init_attr init = good();
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	(void)state;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT),
			 0);
	assert_int_equal(fake.mask, QPA_STATE | QPA_PORT);
	assert_int_equal(fake.attr.state, QPS_INIT);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	/* refused by the NIC: the state is what it was */
	attr.qp_state = IBV_QPS_RTS;
	fake.fail_in = 1;
	fake.error = -EINVAL;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	/* refused before it */
	fake.mask = 0;
	attr.path_mtu = 9;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_PATH_MTU), EINVAL);
	assert_int_equal(fake.mask, 0);
	/* not a change of state */
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_TIMEOUT), 0);
	assert_int_equal(qp->state, IBV_QPS_INIT);
	ibv_destroy_qp(qp);
}

static void query__everything(void **state)
{
	int mine;
	struct ibv_qp_init_attr init = good(), got;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp;

	(void)state;
	init.sq_sig_all = 1;
	init.qp_context = &mine;
	qp = ibv_create_qp(pd, &init);
	fake.attr = (struct qp_attr){.state = QPS_ERR, .dest_qpn = 77};
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &got), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_ERR);
	assert_int_equal(qp->state, IBV_QPS_ERR);
	assert_int_equal(attr.dest_qp_num, 77);
	assert_int_equal(attr.cap.max_send_sge, 3);
	assert_ptr_equal(got.send_cq, cq);
	assert_ptr_equal(got.qp_context, &mine);
	assert_int_equal(got.sq_sig_all, 1);
	assert_int_equal(got.qp_type, IBV_QPT_RC);
	assert_memory_equal(&got.cap, &init.cap, sizeof(got.cap));
	fake.fail_in = 1;
	fake.error = -ENODEV;
	assert_int_equal(ibv_query_qp(qp, &attr, 0, &got), ENODEV);
	ibv_destroy_qp(qp);
}

static void *queries(void *arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	for (int i = 0; i < 1000; i++)
		assert_int_equal(ibv_query_qp(arg, &attr, 0, &init), 0);
	return NULL;
}

/* ThreadSanitizer judges. */
static void query__by_two_threads(void **state)
{
	struct ibv_qp_init_attr init = good();
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	pthread_t thread;

	(void)state;
	pthread_create(&thread, NULL, queries, qp);
	queries(qp);
	pthread_join(thread, NULL);
	ibv_destroy_qp(qp);
}

static void destroy__nic_refuses(void **state)
{
	struct ibv_qp_init_attr init = good();
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	(void)state;
	fake.fail_in = 1;
	fake.error = -ENODEV;
	assert_int_equal(ibv_destroy_qp(qp), ENODEV);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void in_order__by_operation(void **state)
{
	static const struct {
		enum ibv_wr_opcode op;
		uint32_t flags;
		int answer;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, 0, 1}, {IBV_WR_RDMA_WRITE_WITH_IMM, 0, 1},
		{IBV_WR_RDMA_READ, 0, 0},  {IBV_WR_SEND, 0, 0},
		{IBV_WR_RDMA_WRITE, 1, 3}, {IBV_WR_SEND, 1, 0},
		{IBV_WR_RDMA_WRITE, 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(ibv_query_qp_data_in_order(NULL, rows[i].op,
							    rows[i].flags),
				 rows[i].answer);
}

#define cq_test(name) cmocka_unit_test_setup_teardown(name, open_cq, close_cq)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cq_test(create__fills_in),
		cq_test(create__refuses),
		cq_test(create__foreign_cq),
		cq_test(create__nic_refuses),
		cq_test(create__refused_in_a_child),
		cq_test(create_ex__masks),
		cq_test(modify__passes_on),
		cq_test(query__everything),
		cq_test(query__by_two_threads),
		cq_test(destroy__nic_refuses),
		cq_test(in_order__by_operation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
