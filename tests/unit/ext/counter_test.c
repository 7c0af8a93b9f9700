/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter_test.c: counters as a program uses them. */
#include "pair.h"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct nopin_counter *counter;

static int setup(void **state)
{
	pair_open(state);
	assert_int_equal(nopin_counter_create(pd, NULL, NULL, &counter), 0);
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(nopin_counter_destroy(counter), 0);
	return pair_close(state);
}

/* @len bytes to the second half of the buffer. */
static struct ibv_send_wr write_wr(struct ibv_sge *sge, uint32_t len)
{
	*sge = (struct ibv_sge){(uintptr_t)buf, len, mr->lkey};
	return (struct ibv_send_wr){
		.sg_list = sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = (uintptr_t)buf + PAIR_BUF / 2,
			    .rkey = mr->rkey}};
}

static enum ibv_wc_status notify(uint32_t id, uint32_t len)
{
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(&sge, len);
	struct ibv_wc wc;
	enum ibv_wc_status status;

	assert_int_equal(nopin_post_write_notify(qp[0], &wr, id, &bad), 0);
	status = pair_status(&wc);
	if (!status)
		assert_int_equal(wc.opcode, IBV_WC_RDMA_WRITE);
	return status;
}

static void counter__raise_and_wait(void **state)
{
	const uint32_t id = nopin_counter_id(counter);
	uint64_t v = 7;

	(void)state;
	assert_int_not_equal(id, 0);
	assert_int_equal(*nopin_counter_word(counter), 0);
	for (uint32_t i = 1; i <= 30; i++) {
		memset(buf, (int)i, PAIR_BUF / 2);
		assert_int_equal(notify(id, i * 1000), IBV_WC_SUCCESS);
		assert_int_equal(nopin_counter_wait(counter, i, UINT64_MAX,
						    (enum nopin_wait)(i % 3)),
				 0);
		assert_memory_equal(buf, buf + PAIR_BUF / 2, i * 1000);
	}
	assert_int_equal(nopin_counter_poll(counter, &v), 0);
	assert_int_equal(v, 30);
	assert_int_equal(
		nopin_counter_wait(counter, 31, 1000000, NOPIN_WAIT_BLOCK),
		ETIMEDOUT);
	assert_int_equal(nopin_counter_wait(counter, 31, 0, (enum nopin_wait)3),
			 EINVAL);
}

/* Each of a list; the second is wrong. */
static void counter__list(void **state)
{
	struct ibv_sge sge[3];
	struct ibv_send_wr wr[3], *bad;
	struct ibv_wc wc;

	(void)state;
	for (int i = 0; i < 3; i++) {
		wr[i] = write_wr(&sge[i], 8);
		wr[i].next = i < 2 ? &wr[i + 1] : NULL;
	}
	assert_int_equal(nopin_post_write_notify(
				 qp[0], wr, nopin_counter_id(counter), &bad),
			 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(pair_status(&wc), IBV_WC_SUCCESS);
	assert_int_equal(*nopin_counter_word(counter), 3);
	wr[1].opcode = IBV_WR_RDMA_READ;
	assert_int_equal(nopin_post_write_notify(
				 qp[0], wr, nopin_counter_id(counter), &bad),
			 EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(pair_status(&wc), IBV_WC_SUCCESS);
	assert_int_equal(*nopin_counter_word(counter), 4);
}

static void counter__wrong(void **state)
{
	(void)state;
	assert_int_equal(notify(nopin_counter_id(counter) + 1, 8),
			 IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(*nopin_counter_word(counter), 0);
}

/* A program that knows verbs only. */
static void counter__immediate(void **state)
{
	struct ibv_send_wr *bad;
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(&sge, 8);
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(nopin_qp_set_counting(qp[1], 1), 0);
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl(nopin_counter_id(counter));
	assert_int_equal(ibv_post_send(qp[0], &wr, &bad), 0);
	assert_int_equal(pair_status(&wc), IBV_WC_SUCCESS);
	assert_int_equal(*nopin_counter_word(counter), 1);
}

/* From then on it is an immediate like any other: a receive's. */
static void counter__counting_ends(void **state)
{
	struct ibv_send_wr *bad;
	struct ibv_recv_wr *bad_recv, recv = {.wr_id = 7};
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(&sge, 8);
	struct ibv_wc wc, got = {.wr_id = 0};

	(void)state;
	wr.opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
	wr.imm_data = htonl(nopin_counter_id(counter));
	assert_int_equal(nopin_qp_set_counting(qp[1], 1), 0);
	assert_int_equal(nopin_qp_set_counting(qp[1], 0), 0);
	assert_int_equal(ibv_post_recv(qp[1], &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(qp[0], &wr, &bad), 0);
	do {
		assert_int_equal(pair_status(&wc), IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RDMA_WRITE)
			got = wc;
	} while (wc.opcode != IBV_WC_RDMA_WRITE);
	assert_int_equal(*nopin_counter_word(counter), 0);
	if (!got.wr_id)
		assert_int_equal(pair_status(&got), IBV_WC_SUCCESS);
	assert_int_equal(got.wr_id, 7);
	assert_int_equal(got.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(got.imm_data, wr.imm_data);
}

static void counter__descriptor(void **state)
{
	struct pollfd p = {.events = POLLIN};
	uint64_t v;

	(void)state;
	assert_int_equal(nopin_counter_fd(counter, &p.fd), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(notify(nopin_counter_id(counter), 0), IBV_WC_SUCCESS);
	assert_int_equal(poll(&p, 1, 10000), 1);
	assert_int_equal(nopin_counter_poll(counter, &v), 0);
	assert_int_equal(v, 1);
	assert_int_equal(poll(&p, 1, 0), 0);
}

/* *fd stays what it was, and the next one gets it. */
static void counter__no_descriptor_left(void **state)
{
	struct rlimit was, none;
	int fd = 1234;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(nopin_counter_fd(counter, &fd), EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(fd, 1234);
	assert_int_equal(nopin_counter_fd(counter, &fd), 0);
	assert_true(fd >= 0 && fd != 1234);
}

static int count_to_three(void *arg, uint64_t value)
{
	__atomic_store_n((uint64_t *)arg, value, __ATOMIC_RELEASE);
	return value >= 3;
}

static void counter__handlers(void **state)
{
	struct nopin_counter *c;
	uint64_t seen = 0, here = 0;

	(void)state;
	assert_int_equal(nopin_counter_create(pd, count_to_three, &seen, &c),
			 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(notify(nopin_counter_id(c), 8),
				 IBV_WC_SUCCESS);
		assert_int_equal(notify(nopin_counter_id(counter), 8),
				 IBV_WC_SUCCESS);
	}
	assert_int_equal(nopin_counter_run(counter, count_to_three, &here), 0);
	assert_int_equal(here, 3);
	while (__atomic_load_n(&seen, __ATOMIC_ACQUIRE) < 3)
		usleep(100);
	assert_int_equal(nopin_counter_destroy(c), 0);
}

static void counter__not_for_datagrams(void **state)
{
	struct ibv_qp *ud = pair_qp(IBV_QPT_UD);
	struct ibv_sge sge;
	struct ibv_send_wr wr = write_wr(&sge, 8), *bad = NULL;
	int err;

	(void)state;
	assert_int_equal(nopin_post_write_notify(ud, &wr, 1, &bad), EOPNOTSUPP);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(nopin_qp_set_counting(ud, 1), EOPNOTSUPP);
	assert_int_equal(nopin_qp_notifies(ud), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(ud), 0);
	while ((err = nopin_qp_notifies(qp[0])) == EAGAIN)
		;
	assert_int_equal(err, 0);
}

static void counter__in_a_child(void **state)
{
	uint64_t v;
	int status, fd;

	(void)state;
	if (fork() == 0)
		_exit(nopin_counter_wait(counter, 1, UINT64_MAX,
					 NOPIN_WAIT_FUTEX) != ENODEV ||
		      nopin_counter_poll(counter, &v) != ENODEV ||
		      nopin_counter_fd(counter, &fd) != ENODEV ||
		      nopin_counter_run(counter, count_to_three, &v) !=
			      ENODEV ||
		      nopin_counter_destroy(counter) != ENODEV ||
		      nopin_qp_notifies(qp[0]) != ENODEV ||
		      nopin_qp_set_counting(qp[0], 1) != ENODEV);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
	assert_int_equal(notify(nopin_counter_id(counter), 8), IBV_WC_SUCCESS);
}

/* A device is closed with what the program left behind. */
static int setup_left(void **state)
{
	(void)state;
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	assert_int_equal(
		nopin_counter_create(pd, count_to_three, NULL, &counter), 0);
	assert_int_equal(ibv_dealloc_pd(pd), EBUSY);
	return 0;
}

static void counter__left_behind(void **state)
{
	(void)state;
	assert_int_equal(ibv_close_device(ctx), 0);
	assert_int_equal(*nopin_counter_word(counter), 0);
	assert_int_equal(
		nopin_counter_wait(counter, 1, UINT64_MAX, NOPIN_WAIT_BLOCK),
		ENODEV);
	assert_int_equal(nopin_counter_destroy(counter), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(counter__raise_and_wait),
		T(counter__list),
		T(counter__wrong),
		T(counter__immediate),
		T(counter__counting_ends),
		T(counter__descriptor),
		T(counter__no_descriptor_left),
		T(counter__handlers),
		T(counter__not_for_datagrams),
		T(counter__in_a_child),
		cmocka_unit_test_setup(counter__left_behind, setup_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
