/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "ring/cqe.h"
#include "verbs/object.h"

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

static struct ibv_context *context;
static struct ibv_cq *cq;

static int open_cq(void **state)
{
	fake_reset(state);
	context = fake_open();
	cq = ibv_create_cq(context, 64, NULL, NULL, 0);
	return 0;
}

static int close_cq(void **state)
{
	if (ibv_destroy_cq(cq) || ibv_close_device(context))
		return -1;
	return fake_check(state);
}

static const struct {
	enum wr_op op;
	enum ibv_wc_opcode opcode;
} ops[] = {
	{WR_SEND, IBV_WC_SEND},
	{WR_SEND_IMM, IBV_WC_SEND},
	{WR_SEND_INV, IBV_WC_SEND},
	{WR_WRITE, IBV_WC_RDMA_WRITE},
	{WR_WRITE_IMM, IBV_WC_RDMA_WRITE},
	{WR_READ, IBV_WC_RDMA_READ},
	{WR_CMP_SWP, IBV_WC_COMP_SWAP},
	{WR_FETCH_ADD, IBV_WC_FETCH_ADD},
	{WR_LOCAL_INV, IBV_WC_LOCAL_INV},
	{WR_BIND_MW, IBV_WC_BIND_MW},
	{WR_RECV, IBV_WC_RECV},
	{WR_RECV_IMM, IBV_WC_RECV_RDMA_WITH_IMM},
};

static const struct {
	uint8_t ours;
	unsigned theirs;
	uint8_t sl; /* what adapters say: 8: with UDP, | 1: IPv6, | 2: IPv4 */
} flags[] = {
	{0, 0, 0},
	{CQE_GRH, IBV_WC_GRH, 9},
	{CQE_GRH | CQE_IP4, IBV_WC_GRH, 10},
	{CQE_IMM, IBV_WC_WITH_IMM, 0},
	{CQE_INV, IBV_WC_WITH_INV, 0},
	{CQE_GRH | CQE_IMM, IBV_WC_GRH | IBV_WC_WITH_IMM, 9},
};

static void poll__translates(void **state)
{
	struct cqe cqe = {
		.wr_id = 0x1122334455667788,
		.byte_len = 9,
		.imm = 0xa1b2c3d4,
		.qpn = 5,
		.src_qpn = 6,
		.vendor_err = 7,
		.status = WC_REM_ACCESS_ERR,
		.op = WR_READ,
		.flags = CQE_IMM,
	};
	const struct ibv_wc want = {
		.wr_id = 0x1122334455667788,
		.byte_len = 9,
		.imm_data = 0xa1b2c3d4,
		.qp_num = 5,
		.src_qp = 6,
		.vendor_err = 7,
		.status = IBV_WC_REM_ACCESS_ERR,
		.opcode = IBV_WC_RDMA_READ,
		.wc_flags = IBV_WC_WITH_IMM,
	};
	struct ibv_wc wc;

	(void)state;
	memset(&wc, 0xee, sizeof(wc));
	fake_complete(cq, &cqe);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
	assert_memory_equal(&wc, &want,
			    offsetof(struct ibv_wc, dlid_path_bits) + 1);
	assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
}

static void poll__operations_and_flags(void **state)
{
	struct ibv_wc wc;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ops); i++) {
		struct cqe cqe = {.op = (uint8_t)ops[i].op};

		fake_complete(cq, &cqe);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.opcode, ops[i].opcode);
	}
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		struct cqe cqe = {.op = WR_RECV, .flags = flags[i].ours};

		fake_complete(cq, &cqe);
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 1);
		assert_int_equal(wc.wc_flags, flags[i].theirs);
		assert_int_equal(wc.sl, flags[i].sl);
	}
}

/* Around the chunk in which they are taken. */
static void poll__many(void **state)
{
	static const int nums[] = {1, 15, 16, 17, 32, 33};
	struct ibv_wc wc[64];

	(void)state;
	for (size_t k = 0; k < ARRAY_SIZE(nums); k++) {
		for (int i = 0; i < nums[k]; i++) {
			struct cqe cqe = {.op = WR_SEND, .wr_id = (uint64_t)i};

			fake_complete(cq, &cqe);
		}
		assert_int_equal(ibv_poll_cq(cq, 0, wc), 0);
		/* more than there are, then all but the last */
		if (k % 2)
			assert_int_equal(ibv_poll_cq(cq, nums[k] - 1, wc),
					 nums[k] - 1);
		assert_int_equal(
			ibv_poll_cq(cq, 64, k % 2 ? wc + nums[k] - 1 : wc),
			k % 2 ? 1 : nums[k]);
		for (int i = 0; i < nums[k]; i++)
			assert_int_equal(wc[i].wr_id, i);
	}
}

static void poll__errors(void **state)
{
	struct cqe cqe = {.op = WR_SEND};
	struct ibv_wc wc[32];

	(void)state;
	fake.error = -ENODEV;
	fake.fail_in = 1;
	assert_int_equal(ibv_poll_cq(cq, 1, wc), -ENODEV);
	/* what came before the error is not lost */
	for (int i = 0; i < 16; i++)
		fake_complete(cq, &cqe);
	fake.fail_in = 2;
	assert_int_equal(ibv_poll_cq(cq, 32, wc), 16);
}

static void arm__passes_on(void **state)
{
	(void)state;
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_false(fake.solicited);
	assert_int_equal(ibv_req_notify_cq(cq, 1), 0);
	assert_true(fake.solicited);
	fake.fail_in = 1;
	fake.error = -ENODEV;
	assert_int_equal(ibv_req_notify_cq(cq, 1), ENODEV);
}

static void iterator__walks(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &attr);
	struct ibv_poll_cq_attr poll = {0};
	struct cqe cqe = {.op = WR_RECV,
			  .status = WC_SUCCESS,
			  .wr_id = 1,
			  .byte_len = 2,
			  .imm = 3,
			  .qpn = 4,
			  .src_qpn = 5,
			  .vendor_err = 6,
			  .flags = CQE_IMM | CQE_GRH | CQE_IP4};

	(void)state;
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	fake_complete(ibv_cq_ex_to_cq(ex), &cqe);
	cqe.wr_id = 10;
	cqe.status = WC_WR_FLUSH_ERR;
	fake_complete(ibv_cq_ex_to_cq(ex), &cqe);
	assert_int_equal(ibv_start_poll(ex, &poll), 0);
	assert_int_equal(ex->wr_id, 1);
	assert_int_equal(ex->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_opcode(ex), IBV_WC_RECV);
	assert_int_equal(ibv_wc_read_byte_len(ex), 2);
	assert_int_equal(ibv_wc_read_imm_data(ex), 3);
	assert_int_equal(ibv_wc_read_qp_num(ex), 4);
	assert_int_equal(ibv_wc_read_src_qp(ex), 5);
	assert_int_equal(ibv_wc_read_vendor_err(ex), 6);
	assert_int_equal(ibv_wc_read_wc_flags(ex),
			 IBV_WC_WITH_IMM | IBV_WC_GRH);
	assert_int_equal(ibv_wc_read_slid(ex), 0);
	assert_int_equal(ibv_wc_read_sl(ex), 10);
	assert_int_equal(ibv_wc_read_dlid_path_bits(ex), 0);
	assert_int_equal(ibv_next_poll(ex), 0);
	assert_int_equal(ex->wr_id, 10);
	assert_int_equal(ex->status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_next_poll(ex), ENOENT);
	/* still locked, as until end_poll */
	assert_int_equal(
		pthread_mutex_trylock(&vcq_of(ibv_cq_ex_to_cq(ex))->ex_lock),
		EBUSY);
	ibv_end_poll(ex);
	poll.comp_mask = 1;
	assert_int_equal(ibv_start_poll(ex, &poll), EINVAL);
	poll.comp_mask = 0;
	/* neither failed start left it locked */
	assert_int_equal(ibv_start_poll(ex, &poll), ENOENT);
	ibv_destroy_cq(ibv_cq_ex_to_cq(ex));
}

#define cq_test(name) cmocka_unit_test_setup_teardown(name, open_cq, close_cq)

static pthread_barrier_t both;

static void *polls(void *arg)
{
	struct ibv_poll_cq_attr poll = {0};

	assert_int_equal(ibv_start_poll(arg, &poll), 0);
	pthread_barrier_wait(&both);
	pthread_barrier_wait(&both);
	ibv_end_poll(arg);
	return NULL;
}

/* A thread that the child does not have was between start and end. */
static void iterator__does_not_wait_in_a_child(void **state)
{
	struct ibv_cq_init_attr_ex attr = {.cqe = 8};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(context, &attr);
	struct ibv_poll_cq_attr poll = {0};
	struct cqe cqe = {.op = WR_SEND};
	pthread_t thread;

	(void)state;
	fake_complete(ibv_cq_ex_to_cq(ex), &cqe);
	pthread_barrier_init(&both, NULL, 2);
	pthread_create(&thread, NULL, polls, ex);
	pthread_barrier_wait(&both);
	fake.child = true;
	assert_int_equal(ibv_start_poll(ex, &poll), ENODEV);
	fake.child = false;
	pthread_barrier_wait(&both);
	pthread_join(thread, NULL);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cq_test(poll__translates),
		cq_test(poll__operations_and_flags),
		cq_test(poll__many),
		cq_test(poll__errors),
		cq_test(arm__passes_on),
		cq_test(iterator__walks),
		cq_test(iterator__does_not_wait_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
