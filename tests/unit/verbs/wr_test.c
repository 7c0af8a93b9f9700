/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"

#include <errno.h>
#include <stddef.h>

enum {
	ALL = IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
	      IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
	      IBV_QP_EX_WITH_RDMA_READ | IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
	      IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | IBV_QP_EX_WITH_LOCAL_INV |
	      IBV_QP_EX_WITH_SEND_WITH_INV,
};

static struct rc rc;
static struct ibv_qp_ex *qp;

static int open_rc(void **state)
{
	fake_reset(state);
	rc_open(&rc, ALL, 0);
	qp = ibv_qp_to_qp_ex(rc.qp);
	return 0;
}

static int close_rc(void **state)
{
	rc_close(&rc);
	return fake_check(state);
}

static void build(unsigned i)
{
	switch (i) {
	case 0:
		ibv_wr_rdma_write(qp, 1, 2);
		break;
	case 1:
		ibv_wr_rdma_write_imm(qp, 1, 2, 3);
		break;
	case 2:
		ibv_wr_rdma_read(qp, 1, 2);
		break;
	case 3:
		ibv_wr_atomic_cmp_swp(qp, 1, 2, 4, 5);
		break;
	case 4:
		ibv_wr_atomic_fetch_add(qp, 1, 2, 5);
		break;
	case 5:
		ibv_wr_send(qp);
		break;
	case 6:
		ibv_wr_send_imm(qp, 3);
		break;
	case 7:
		ibv_wr_send_inv(qp, 3);
		break;
	case 8:
		ibv_wr_local_inv(qp, 3);
		break;
	}
}

static const struct {
	uint64_t needs;
	enum wr_op op;
	uint32_t rkey;
	uint64_t raddr;
	uint32_t imm;
	uint64_t compare, swap_add;
} built[] = {
	{IBV_QP_EX_WITH_RDMA_WRITE, WR_WRITE, 1, 2, 0, 0, 0},
	{IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, WR_WRITE_IMM, 1, 2, 3, 0, 0},
	{IBV_QP_EX_WITH_RDMA_READ, WR_READ, 1, 2, 0, 0, 0},
	{IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, WR_CMP_SWP, 1, 2, 0, 4, 5},
	{IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, WR_FETCH_ADD, 1, 2, 0, 0, 5},
	{IBV_QP_EX_WITH_SEND, WR_SEND, 0, 0, 0, 0, 0},
	{IBV_QP_EX_WITH_SEND_WITH_IMM, WR_SEND_IMM, 0, 0, 3, 0, 0},
	{IBV_QP_EX_WITH_SEND_WITH_INV, WR_SEND_INV, 0, 0, 3, 0, 0},
	{IBV_QP_EX_WITH_LOCAL_INV, WR_LOCAL_INV, 0, 0, 3, 0, 0},
};

static void build__each(void **state)
{
	for (unsigned i = 0; i < ARRAY_SIZE(built); i++) {
		struct wqe *wqe;

		close_rc(state);
		open_rc(state);
		qp->wr_id = 100 + i;
		qp->wr_flags = i % 2 ? IBV_SEND_SIGNALED | IBV_SEND_FENCE : 0;
		ibv_wr_start(qp);
		build(i);
		assert_int_equal(ibv_wr_complete(qp), 0);
		wqe = fake_wqe(rc.qp, true, 0);
		assert_non_null(wqe);
		assert_int_equal(wqe->wr_id, 100 + i);
		assert_int_equal(wqe->flags,
				 i % 2 ? WQE_SIGNALED | WQE_FENCE : 0);
		assert_int_equal(wqe->op, built[i].op);
		assert_int_equal(wqe->rkey, built[i].rkey);
		assert_int_equal(wqe->raddr, built[i].raddr);
		assert_int_equal(wqe->imm, built[i].imm);
		assert_int_equal(wqe->compare, built[i].compare);
		assert_int_equal(wqe->swap_add, built[i].swap_add);
	}
}

static void build__only_what_was_asked_for(void **state)
{
	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(built); i++) {
		rc_close(&rc);
		rc_open(&rc, ALL & ~built[i].needs, 0);
		qp = ibv_qp_to_qp_ex(rc.qp);
		ibv_wr_start(qp);
		build(i);
		ibv_wr_set_sge(qp, 1, 2, 3);
		assert_int_equal(ibv_wr_complete(qp), EINVAL);
		assert_int_equal(fake_published(rc.qp), 0);
	}
}

static void setters__data(void **state)
{
	const struct ibv_sge sge[3] = {{1, 2, 3}, {4, 0, 5}, {6, 7, 8}};
	char data[] = "0123456789";
	const struct ibv_data_buf bufs[2] = {{data, 4}, {data + 6, 3}};
	struct wqe *wqe;

	(void)state;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 7, 8, 9);
	ibv_wr_rdma_write(qp, 1, 2);
	ibv_wr_set_sge_list(qp, 3, sge);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, data, 10);
	ibv_wr_rdma_write(qp, 1, 2);
	ibv_wr_set_inline_data_list(qp, 2, bufs);
	assert_int_equal(fake_published(rc.qp), 0);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_published(rc.qp), 4);

	wqe = fake_wqe(rc.qp, true, 0);
	assert_int_equal(wqe->num_sge, 1);
	assert_int_equal(wqe->length, 9);
	assert_int_equal(wqe_sge(wqe)->lkey, 7);
	assert_int_equal(wqe_sge(wqe)->addr, 8);
	wqe = fake_wqe(rc.qp, true, 1);
	assert_int_equal(wqe->num_sge, 2);
	assert_int_equal(wqe->length, 9);
	wqe = fake_wqe(rc.qp, true, 2);
	assert_int_equal(wqe->flags, WQE_INLINE);
	assert_int_equal(wqe->length, 10);
	assert_memory_equal(wqe_inline(wqe), data, 10);
	wqe = fake_wqe(rc.qp, true, 3);
	assert_int_equal(wqe->length, 7);
	assert_memory_equal(wqe_inline(wqe), "0123678", 7);
}

/* A list of nothing is nothing, whatever was set before. */
static void setters__inline_of_nothing(void **state)
{
	char data[] = "012";

	(void)state;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, data, 3);
	ibv_wr_set_inline_data_list(qp, 0, NULL);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 7, 8, 9);
	ibv_wr_set_inline_data_list(qp, 0, NULL);
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct wqe *wqe = fake_wqe(rc.qp, true, i);

		assert_int_equal(wqe->num_sge, 0);
		assert_int_equal(wqe->length, 0);
	}
}

/* Of two the last one counts. */
static void setters__again(void **state)
{
	char data[] = "0123456789";
	struct wqe *wqe;

	(void)state;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, data, 10);
	ibv_wr_set_inline_data(qp, data + 3, 2);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, data, 10);
	ibv_wr_set_sge(qp, 7, 8, 9);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 7, 8, 9);
	ibv_wr_set_inline_data(qp, data, 10);
	assert_int_equal(ibv_wr_complete(qp), 0);
	wqe = fake_wqe(rc.qp, true, 0);
	assert_int_equal(wqe->length, 2);
	assert_memory_equal(wqe_inline(wqe), "34", 2);
	wqe = fake_wqe(rc.qp, true, 1);
	assert_int_equal(wqe->flags & WQE_INLINE, 0);
	assert_int_equal(wqe->length, 9);
	assert_int_equal(wqe_sge(wqe)->addr, 8);
	wqe = fake_wqe(rc.qp, true, 2);
	assert_int_equal(wqe->flags & WQE_INLINE, WQE_INLINE);
	assert_int_equal(wqe->length, 10);
	assert_int_equal(wqe->num_sge, 0);
}

static void too_many_sges(void)
{
	const struct ibv_sge sge[4] = {{1, 2, 3}};

	ibv_wr_set_sge_list(qp, 4, sge);
}

static void too_much_inline(void)
{
	char data[33] = "";

	ibv_wr_set_inline_data(qp, data, sizeof(data));
}

static void inline_that_wraps(void)
{
	char data[1] = "";
	const struct ibv_data_buf bufs[2] = {{data, 1}, {data, SIZE_MAX}};

	ibv_wr_set_inline_data_list(qp, 2, bufs);
}

static void inline_for_read(void)
{
	char data[1] = "";

	ibv_wr_rdma_read(qp, 1, 2);
	ibv_wr_set_inline_data(qp, data, 1);
}

static void local_inv_of_data(void)
{
	ibv_wr_local_inv(qp, 3);
	ibv_wr_set_sge(qp, 1, 2, 3);
}

static void local_inv_of_inline(void)
{
	char data[1] = "";

	ibv_wr_local_inv(qp, 3);
	ibv_wr_set_inline_data(qp, data, 1);
}

static void unknown_flag(void)
{
	qp->wr_flags = IBV_SEND_IP_CSUM;
	ibv_wr_send(qp);
	qp->wr_flags = 0;
}

static void over_2_gib(void)
{
	const struct ibv_sge sge[2] = {{0, UINT32_C(1) << 31, 0}, {0, 1, 0}};

	ibv_wr_set_sge_list(qp, 2, sge);
}

static void bind_window(void)
{
	ibv_wr_bind_mw(qp, NULL, 0, NULL);
}

static void tso(void)
{
	ibv_wr_send_tso(qp, NULL, 0, 0);
}

static void ud_address(void)
{
	ibv_wr_set_ud_addr(qp, NULL, 0, 0);
}

static void xrc_srqn(void)
{
	ibv_wr_set_xrc_srqn(qp, 0);
}

static void atomic_write(void)
{
	ibv_wr_atomic_write(qp, 0, 0, NULL);
}

/* A mistake anywhere takes the whole posting back, and the next one works. */
static void complete__all_or_nothing(void **state)
{
	static const struct {
		void (*mistake)(void);
		int error;
	} rows[] = {
		{too_many_sges, EINVAL},       {too_much_inline, EINVAL},
		{inline_that_wraps, EINVAL},   {inline_for_read, EINVAL},
		{unknown_flag, EINVAL},	       {local_inv_of_data, EINVAL},
		{local_inv_of_inline, EINVAL}, {over_2_gib, EINVAL},
		{bind_window, EOPNOTSUPP},     {tso, EOPNOTSUPP},
		{ud_address, EOPNOTSUPP},      {xrc_srqn, EOPNOTSUPP},
		{atomic_write, EOPNOTSUPP},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		ibv_wr_start(qp);
		ibv_wr_send(qp);
		ibv_wr_send(qp);
		rows[i].mistake();
		ibv_wr_send(qp);
		ibv_wr_set_sge(qp, 0, 0, 0);
		assert_int_equal(ibv_wr_complete(qp), rows[i].error);
		assert_int_equal(fake.locks, 0);
		assert_int_equal(fake_published(rc.qp), 0);
	}
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_published(rc.qp), 1);
}

static void complete__full_queue(void **state)
{
	(void)state;
	ibv_wr_start(qp);
	for (int i = 0; i < 5; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), ENOMEM);
	assert_int_equal(fake_published(rc.qp), 0);
	ibv_wr_start(qp);
	for (int i = 0; i < 4; i++)
		ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_published(rc.qp), 4);
}

static void abort__discards(void **state)
{
	(void)state;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_abort(qp);
	assert_int_equal(fake.locks, 0);
	assert_int_equal(fake_published(rc.qp), 0);
	ibv_wr_start(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_published(rc.qp), 0);
}

static void start__child_refuses(void **state)
{
	(void)state;
	fake.fail_in = 1;
	fake.error = -ENODEV;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, 0, 0, 0);
	assert_int_equal(ibv_wr_complete(qp), ENODEV);
	assert_int_equal(fake.locks, 0);
	fake.fail_in = 1;
	ibv_wr_start(qp);
	ibv_wr_abort(qp);
	assert_int_equal(fake.locks, 0);
}

/* Nobody else enters before complete, also if it is refused. */
static void start__state_refuses_locked(void **state)
{
	(void)state;
	fake.fail_in = 2;
	fake.error = -EINVAL;
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	assert_int_equal(fake.locks, 1);
	assert_int_equal(ibv_wr_complete(qp), EINVAL);
	assert_int_equal(fake.locks, 0);
	assert_int_equal(fake_published(rc.qp), 0);
}

static void sig_all__signals(void **state)
{
	(void)state;
	rc_close(&rc);
	rc_open(&rc, ALL, 1);
	qp = ibv_qp_to_qp_ex(rc.qp);
	ibv_wr_start(qp);
	ibv_wr_send(qp);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(fake_wqe(rc.qp, true, 0)->flags, WQE_SIGNALED);
}

#define rc_test(name) cmocka_unit_test_setup_teardown(name, open_rc, close_rc)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rc_test(build__each),
		rc_test(build__only_what_was_asked_for),
		rc_test(setters__data),
		rc_test(setters__inline_of_nothing),
		rc_test(setters__again),
		rc_test(complete__all_or_nothing),
		rc_test(complete__full_queue),
		rc_test(abort__discards),
		rc_test(start__child_refuses),
		rc_test(start__state_refuses_locked),
		rc_test(sig_all__signals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
