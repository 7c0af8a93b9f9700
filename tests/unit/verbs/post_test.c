/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"

#include <errno.h>
#include <stddef.h>

static struct rc rc;

static int open_rc(void **state)
{
	fake_reset(state);
	rc_open(&rc, 0, 0);
	return 0;
}

static int close_rc(void **state)
{
	rc_close(&rc);
	return fake_check(state);
}

static int send_one(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	const int err = ibv_post_send(rc.qp, wr, &bad);

	assert_ptr_equal(bad, err ? wr : NULL);
	return err;
}

static void send__operations(void **state)
{
	static const struct {
		enum ibv_wr_opcode opcode;
		enum wr_op op;
		bool remote;
	} rows[] = {
		{IBV_WR_RDMA_WRITE, WR_WRITE, true},
		{IBV_WR_RDMA_WRITE_WITH_IMM, WR_WRITE_IMM, true},
		{IBV_WR_SEND, WR_SEND, false},
		{IBV_WR_SEND_WITH_IMM, WR_SEND_IMM, false},
		{IBV_WR_RDMA_READ, WR_READ, true},
		{IBV_WR_LOCAL_INV, WR_LOCAL_INV, false},
		{IBV_WR_SEND_WITH_INV, WR_SEND_INV, false},
		{IBV_WR_BIND_MW, WR_NONE, false},
		{IBV_WR_TSO, WR_NONE, false},
		{IBV_WR_DRIVER1, WR_NONE, false},
		{(enum ibv_wr_opcode)12, WR_NONE, false},
		{IBV_WR_ATOMIC_WRITE, WR_NONE, false},
		{(enum ibv_wr_opcode)77, WR_NONE, false},
		{(enum ibv_wr_opcode) - 1, WR_NONE, false},
	};

	(void)state;
	for (size_t i = 0, good = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_send_wr wr = {
			.wr_id = i,
			.opcode = rows[i].opcode,
			.imm_data = 0x11223344,
			.wr.rdma = {.remote_addr = 0x5000, .rkey = 0x66},
		};
		struct wqe *wqe;

		if (rows[i].op == WR_NONE) {
			assert_int_equal(send_one(&wr), EINVAL);
			assert_null(fake_wqe(rc.qp, true, (unsigned)good));
			continue;
		}
		if (good == 4) { /* the queue is full */
			rc_close(&rc);
			rc_open(&rc, 0, 0);
			good = 0;
		}
		assert_int_equal(send_one(&wr), 0);
		wqe = fake_wqe(rc.qp, true, (unsigned)good++);
		assert_int_equal(wqe->op, rows[i].op);
		assert_int_equal(wqe->wr_id, i);
		assert_int_equal(wqe->imm, 0x11223344);
		/* what the program left there else stays in its process */
		assert_int_equal(wqe->raddr, rows[i].remote ? 0x5000 : 0);
		assert_int_equal(wqe->rkey, rows[i].remote ? 0x66 : 0);
		assert_int_equal(wqe->flags, 0);
		assert_int_equal(wqe->num_sge, 0);
		assert_int_equal(wqe->length, 0);
	}
}

static void send__atomics(void **state)
{
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.wr.atomic = {.remote_addr = 1,
			      .compare_add = 2,
			      .swap = 3,
			      .rkey = 4},
	};
	struct wqe *wqe;

	(void)state;
	assert_int_equal(send_one(&wr), 0);
	wqe = fake_wqe(rc.qp, true, 0);
	assert_int_equal(wqe->op, WR_CMP_SWP);
	assert_int_equal(wqe->raddr, 1);
	assert_int_equal(wqe->compare, 2);
	assert_int_equal(wqe->swap_add, 3);
	assert_int_equal(wqe->rkey, 4);
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	assert_int_equal(send_one(&wr), 0);
	wqe = fake_wqe(rc.qp, true, 1);
	assert_int_equal(wqe->op, WR_FETCH_ADD);
	assert_int_equal(wqe->swap_add, 2);
	assert_int_equal(wqe->rkey, 4);
}

static void send__flags(void **state)
{
	static const struct {
		unsigned theirs;
		uint8_t ours;
	} rows[] = {
		{IBV_SEND_SIGNALED, WQE_SIGNALED},
		{IBV_SEND_SOLICITED, WQE_SOLICITED},
		{IBV_SEND_FENCE, WQE_FENCE},
		{IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED,
		 WQE_FENCE | WQE_SIGNALED | WQE_SOLICITED},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
					 .send_flags = rows[i].theirs};

		assert_int_equal(send_one(&wr), 0);
		assert_int_equal(fake_wqe(rc.qp, true, i)->flags, rows[i].ours);
	}
	rc_close(&rc);
	rc_open(&rc, 0, 0);
	for (unsigned bit = IBV_SEND_INLINE << 1; bit; bit <<= 1)
		assert_int_equal(
			send_one(&(struct ibv_send_wr){.opcode = IBV_WR_SEND,
						       .send_flags = bit}),
			EINVAL);
	rc_close(&rc);
	rc_open(&rc, 0, 1);
	assert_int_equal(send_one(&(struct ibv_send_wr){.opcode = IBV_WR_SEND}),
			 0);
	assert_int_equal(fake_wqe(rc.qp, true, 0)->flags, WQE_SIGNALED);
}

static void send__scatter_gather(void **state)
{
	static const uint32_t G = UINT32_C(1) << 30;
	const struct {
		uint32_t len[3];
		int num, error, used;
		uint64_t length;
	} rows[] = {
		{{0}, 0, 0, 0, 0},
		{{5}, 1, 0, 1, 5},
		{{5, 6, 7}, 3, 0, 3, 18},
		{{0, 6, 0}, 3, 0, 1, 6},
		{{2 * G}, 1, 0, 1, UINT64_C(1) << 31},
		{{2 * G, 1}, 2, EINVAL, 0, 0},
		{{UINT32_MAX, UINT32_MAX, 3}, 3, EINVAL, 0, 0},
		{{5}, 4, EINVAL, 0, 0}, /* more than max_send_sge */
		{{5}, -1, EINVAL, 0, 0},
		{{5}, -2147483647 - 1, EINVAL, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_sge sge[4] = {0};
		struct ibv_send_wr wr = {.opcode = IBV_WR_SEND,
					 .sg_list = sge,
					 .num_sge = rows[i].num};
		struct wqe *wqe;

		for (unsigned k = 0; k < 3; k++)
			sge[k] = (struct ibv_sge){100 + k, rows[i].len[k],
						  200 + k};
		rc_close(&rc);
		rc_open(&rc, 0, 0);
		assert_int_equal(send_one(&wr), rows[i].error);
		wqe = fake_wqe(rc.qp, true, 0);
		assert_int_equal(wqe == NULL, rows[i].error != 0);
		if (!wqe)
			continue;
		assert_int_equal(wqe->num_sge, rows[i].used);
		assert_int_equal(wqe->length, rows[i].length);
		for (unsigned k = 0, at = 0; k < 3; k++) {
			if (!rows[i].len[k])
				continue;
			assert_int_equal(wqe_sge(wqe)[at].addr, 100 + k);
			assert_int_equal(wqe_sge(wqe)[at].lkey, 200 + k);
			assert_int_equal(wqe_sge(wqe)[at++].len,
					 rows[i].len[k]);
		}
	}
}

static void send__inline(void **state)
{
	char a[40] = "abcdefghijklmnopqrstuvwxyz0123456789";
	static const struct {
		uint32_t len[2];
		enum ibv_wr_opcode opcode;
		int error;
	} rows[] = {
		{{0, 0}, IBV_WR_SEND, 0},
		{{1, 2}, IBV_WR_SEND, 0},
		{{32, 0}, IBV_WR_RDMA_WRITE, 0},
		{{31, 1}, IBV_WR_RDMA_WRITE, 0},
		{{33, 0}, IBV_WR_SEND, EINVAL},
		{{32, 1}, IBV_WR_SEND, EINVAL},
		{{1, UINT32_MAX}, IBV_WR_SEND, EINVAL},
		{{1, 0}, IBV_WR_RDMA_READ, EINVAL},
		{{8, 0}, IBV_WR_ATOMIC_FETCH_AND_ADD, EINVAL},
		{{1, 0}, IBV_WR_LOCAL_INV, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct ibv_sge sge[2] = {
			{(uintptr_t)a, rows[i].len[0], 0},
			{(uintptr_t)a + 3, rows[i].len[1], 0},
		};
		struct ibv_send_wr wr = {.opcode = rows[i].opcode,
					 .sg_list = sge,
					 .num_sge = 2,
					 .send_flags = IBV_SEND_INLINE};
		struct wqe *wqe;

		rc_close(&rc);
		rc_open(&rc, 0, 0);
		assert_int_equal(send_one(&wr), rows[i].error);
		wqe = fake_wqe(rc.qp, true, 0);
		assert_int_equal(wqe == NULL, rows[i].error != 0);
		if (!wqe)
			continue;
		assert_int_equal(wqe->flags, WQE_INLINE);
		assert_int_equal(wqe->length, rows[i].len[0] + rows[i].len[1]);
		assert_memory_equal(wqe_inline(wqe), a, rows[i].len[0]);
		assert_memory_equal(wqe_inline(wqe) + rows[i].len[0], a + 3,
				    rows[i].len[1]);
	}
}

/* As by the functions of wr.c. */
static void send__local_inv_has_no_data(void **state)
{
	struct ibv_sge sge[2] = {{1, 0, 2}, {3, 4, 5}};
	struct ibv_send_wr wr = {.opcode = IBV_WR_LOCAL_INV,
				 .sg_list = sge,
				 .num_sge = 2,
				 .invalidate_rkey = 7};

	(void)state;
	assert_int_equal(send_one(&wr), EINVAL);
	wr.num_sge = 1; /* an empty entry is none */
	assert_int_equal(send_one(&wr), 0);
	wr.num_sge = 0;
	wr.send_flags = IBV_SEND_INLINE;
	assert_int_equal(send_one(&wr), 0);
	assert_int_equal(fake_wqe(rc.qp, true, 1)->op, WR_LOCAL_INV);
	assert_int_equal(fake_wqe(rc.qp, true, 1)->imm, 7);
	assert_int_equal(fake_wqe(rc.qp, true, 1)->length, 0);
}

/* What comes before the bad one is posted, what comes after is not. */
static void send__bad_wr(void **state)
{
	struct ibv_send_wr wr[6] = {0}, *bad = NULL;

	(void)state;
	for (int i = 0; i < 6; i++) {
		wr[i].opcode = IBV_WR_SEND;
		wr[i].next = i < 5 ? &wr[i + 1] : NULL;
	}
	wr[1].opcode = IBV_WR_TSO;
	assert_int_equal(ibv_post_send(rc.qp, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(fake_published(rc.qp), 1);
	wr[1].opcode = IBV_WR_SEND;
	assert_int_equal(ibv_post_send(rc.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[3]);
	assert_int_equal(fake_published(rc.qp), 4);
}

static void send__state_refuses(void **state)
{
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};

	(void)state;
	fake.fail_in = 1;
	fake.error = -EINVAL;
	assert_int_equal(send_one(&wr), EINVAL);
	assert_int_equal(fake_published(rc.qp), 0);
}

static void recv__posts(void **state)
{
	struct ibv_sge sge[3] = {{1, 2, 3}, {4, 0, 5}, {6, 7, 8}};
	struct ibv_recv_wr wr[3] = {
		{.wr_id = 10, .next = &wr[1], .sg_list = sge, .num_sge = 2},
		{.wr_id = 11, .next = &wr[2]},
		{.wr_id = 12},
	};
	struct ibv_recv_wr *bad = NULL;
	struct wqe *wqe;

	(void)state;
	assert_int_equal(ibv_post_recv(rc.qp, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[2]);
	wqe = fake_wqe(rc.qp, false, 0);
	assert_int_equal(wqe->wr_id, 10);
	assert_int_equal(wqe->op, WR_RECV);
	assert_int_equal(wqe->num_sge, 1);
	assert_int_equal(wqe->length, 2);
	assert_int_equal(wqe_sge(wqe)[0].addr, 1);
	assert_int_equal(fake_wqe(rc.qp, false, 1)->wr_id, 11);
	assert_null(fake_wqe(rc.qp, false, 2));
}

static void recv__refuses(void **state)
{
	struct ibv_sge sge[3] = {{1, 2, 3}, {4, 0, 5}, {6, 7, 8}};
	struct ibv_recv_wr wr = {.sg_list = sge, .num_sge = 3}, *bad = NULL;

	(void)state;
	assert_int_equal(ibv_post_recv(rc.qp, &wr, &bad), EINVAL);
	wr.num_sge = -1;
	assert_int_equal(ibv_post_recv(rc.qp, &wr, &bad), EINVAL);
	wr.num_sge = 1;
	bad = NULL;
	fake.fail_in = 1;
	fake.error = -ENODEV;
	assert_int_equal(ibv_post_recv(rc.qp, &wr, &bad), ENODEV);
	assert_ptr_equal(bad, &wr);
	assert_null(fake_wqe(rc.qp, false, 0));
}

#define rc_test(name) cmocka_unit_test_setup_teardown(name, open_rc, close_rc)

int main(void)
{
	const struct CMUnitTest tests[] = {
		rc_test(send__operations), rc_test(send__atomics),
		rc_test(send__flags),	   rc_test(send__scatter_gather),
		rc_test(send__inline),	   rc_test(send__local_inv_has_no_data),
		rc_test(send__bad_wr),	   rc_test(send__state_refuses),
		rc_test(recv__posts),	   rc_test(recv__refuses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
