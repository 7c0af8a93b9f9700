/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "nic/shared.h"
#include "verbs/object.h"

#include <errno.h>

enum { WRS = 3, SGES = 2 };

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_srq *srq;
static int mine;

static struct ibv_srq *make(void)
{
	struct ibv_srq_init_attr init = {
		.srq_context = &mine,
		.attr = {.max_wr = WRS, .max_sge = SGES, .srq_limit = 2}};

	return ibv_create_srq(pd, &init);
}

static int open_srq(void **state)
{
	fake_reset(state);
	context = fake_open();
	pd = ibv_alloc_pd(context);
	srq = make();
	return srq ? 0 : -1;
}

static int close_srq(void **state)
{
	if (ibv_destroy_srq(srq) || ibv_dealloc_pd(pd) ||
	    ibv_close_device(context))
		return -1;
	return fake_check(state);
}

static void create__fills_in(void **state)
{
	struct ibv_srq_attr attr;

	(void)state;
	assert_ptr_equal(srq->context, context);
	assert_ptr_equal(srq->pd, pd);
	assert_ptr_equal(srq->srq_context, &mine);
	assert_int_equal(srq->events_completed, 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, WRS);
	assert_int_equal(attr.max_sge, SGES);
	/* it is not armed by this */
	assert_int_equal(attr.srq_limit, 0);
}

static void create__fails(void **state)
{
	const uint32_t slot = fake_next_slot();

	(void)state;
	fake.fail_in = 1;
	errno = 0;
	assert_null(make());
	assert_int_equal(errno, ENOMEM);
	assert_int_equal(fake_next_slot(), slot);
	fake.child = true;
	assert_null(make());
	assert_int_equal(errno, ENODEV);
	fake.child = false;
}

static void create_ex__of_the_basic_kind(void **state)
{
	struct ibv_srq_init_attr_ex ex = {
		.attr = {.max_wr = WRS, .max_sge = SGES},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = pd};
	struct ibv_srq *other = ibv_create_srq_ex(context, &ex);

	(void)state;
	assert_non_null(other);
	assert_int_equal(ibv_destroy_srq(other), 0);
	ex.srq_type = IBV_SRQT_TM;
	assert_null(ibv_create_srq_ex(context, &ex));
	assert_int_equal(errno, EOPNOTSUPP);
}

static void modify__arms(void **state)
{
	struct ibv_srq_attr attr = {.max_wr = 9, .srq_limit = 2};

	(void)state;
	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	attr.srq_limit = 2;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
	attr.srq_limit = 1;
	assert_int_equal(
		ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT | IBV_SRQ_MAX_WR),
		EOPNOTSUPP);
	assert_int_equal(ibv_modify_srq(srq, &attr, 4), EINVAL);
	fake.fail_in = 1;
	fake.error = -EINVAL;
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 2);
}

/* All that come before the first that cannot be posted are. */
static void post__until_the_first_bad_one(void **state)
{
	char buf[8];
	struct ibv_sge sge[SGES + 1] = {{(uintptr_t)buf, 3, 1},
					{(uintptr_t)buf, 0, 2},
					{(uintptr_t)buf, 5, 3}};
	struct ibv_recv_wr wr[WRS + 1] = {
		{.wr_id = 10, .sg_list = sge, .num_sge = 2},
		{.wr_id = 11, .sg_list = sge + 1, .num_sge = 2},
		{.wr_id = 12},
		{.wr_id = 13},
	};
	struct ibv_recv_wr *bad = NULL;

	(void)state;
	wr[0].next = &wr[1];
	assert_int_equal(ibv_post_srq_recv(srq, wr, &bad), 0);
	assert_null(bad);
	assert_int_equal(fake_srq_wqe(srq, 0)->wr_id, 10);
	assert_int_equal(fake_srq_wqe(srq, 0)->length, 3);
	assert_int_equal(fake_srq_wqe(srq, 1)->length, 5);
	wr[1].sg_list = sge;
	wr[1].num_sge = SGES + 1;
	wr[1].next = NULL;
	assert_int_equal(ibv_post_srq_recv(srq, &wr[1], &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_null(fake_srq_wqe(srq, 2));
	wr[2].next = &wr[3];
	assert_int_equal(ibv_post_srq_recv(srq, &wr[2], &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[3]);
	assert_int_equal(fake_srq_wqe(srq, 2)->wr_id, 12);
}

static void qp__takes_its_receives_from_it(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.srq = srq,
					.cap = {.max_send_wr = 1,
						.max_recv_wr = UINT32_MAX,
						.max_recv_sge = UINT32_MAX},
					.qp_type = IBV_QPT_RC},
				told;
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	struct ibv_context *other = fake_open();
	struct ibv_qp_attr attr;
	struct ibv_pd *theirs;

	(void)state;
	assert_non_null(qp);
	assert_ptr_equal(qp->srq, srq);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &told), 0);
	assert_ptr_equal(told.srq, srq);
	assert_int_equal(ibv_destroy_srq(srq), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	/* that of another device */
	theirs = ibv_alloc_pd(other);
	init.send_cq = init.recv_cq = ibv_create_cq(other, 4, NULL, NULL, 0);
	assert_null(ibv_create_qp(theirs, &init));
	assert_int_equal(errno, EINVAL);
	ibv_destroy_cq(init.send_cq);
	ibv_dealloc_pd(theirs);
	ibv_close_device(other);
	ibv_destroy_cq(cq);
}

static void async__names_it(void **state)
{
	struct ibv_async_event event;

	(void)state;
	fake_async(context, NIC_EVENT_SRQ_LIMIT_REACHED,
		   vsrq_of(srq)->events.cookie);
	assert_int_equal(ibv_get_async_event(context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_int_equal(srq->events_completed, 0);
	ibv_ack_async_event(&event);
	assert_int_equal(srq->events_completed, 1);
}

static void close__takes_it_down(void **state)
{
	(void)state;
	assert_int_equal(ibv_close_device(context), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_srq, close_srq)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(create__fills_in),
		T(create__fails),
		T(create_ex__of_the_basic_kind),
		T(modify__arms),
		T(post__until_the_first_bad_one),
		T(qp__takes_its_receives_from_it),
		T(async__names_it),
		cmocka_unit_test_setup_teardown(close__takes_it_down, open_srq,
						fake_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
