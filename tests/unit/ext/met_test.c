/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* met_test.c: a program is told what its work requests met. */
#include <nopin.h>

#include "program.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

#define PAGE UINT64_C(4096)

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp[SIDES];
static struct ibv_mr *mr;
static char *buf;

static int setup(void **state)
{
	(void)state;
	ctx = device_open();
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
	buf = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(buf != MAP_FAILED);
	assert_int_equal(madvise(buf, REGION, MADV_NOHUGEPAGE), 0);
	mr = region_reg(pd, buf);
	for (int i = 0; i < SIDES; i++)
		qp[i] = qp_make(pd, cq, false);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(qp_connect(qp[i], qp[!i]->qp_num, 7), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	munmap(buf, REGION);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	return ibv_close_device(ctx);
}

static void write_page(unsigned from, unsigned to, int flags)
{
	const uint64_t at = (uintptr_t)buf;
	struct ibv_sge sge = {at + from * PAGE, 8, mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge,
				 .num_sge = 1,
				 .opcode = IBV_WR_RDMA_WRITE,
				 .send_flags = IBV_SEND_SIGNALED |
					       (unsigned)flags,
				 .wr.rdma = {at + to * PAGE, mr->rkey}};
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp[0], &wr, &bad), 0);
}

static void poll_one(void)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		;
	assert_int_equal(n, 1);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
}

static struct nopin_met met_of(uint64_t back)
{
	struct nopin_met met = {.reserved = 1};

	assert_int_equal(nopin_cq_met(cq, back, &met), 0);
	assert_int_equal(met.reserved, 0);
	return met;
}

/* The first request needs a page that nobody touched; the second needs none. */
static void nopin_cq_met__of_each(void **state)
{
	struct nopin_met first;

	(void)state;
	write_page(1, 2, 0);
	poll_one();
	first = met_of(0);
	assert_true(first.faults > 0);
	write_page(1, 2, IBV_SEND_INLINE);
	poll_one();
	assert_int_equal(met_of(0).faults, 0);
	assert_int_equal(met_of(0).wait_ns, 0);
	assert_int_equal(met_of(1).faults, first.faults);
	assert_int_equal(met_of(1).wait_ns, first.wait_ns);
}

static void nopin_cq_met__not_polled(void **state)
{
	struct nopin_met met = {.faults = 77};

	(void)state;
	assert_int_equal(nopin_cq_met(cq, 0, &met), ENOENT);
	write_page(1, 2, 0);
	poll_one();
	assert_int_equal(nopin_cq_met(cq, 1, &met), ENOENT);
	assert_int_equal(met.faults, 77);
}

static void nopin_cq_met__not_in_a_child(void **state)
{
	struct nopin_met met = {.faults = 77};
	int status;
	pid_t pid;

	(void)state;
	write_page(1, 2, 0);
	poll_one();
	pid = fork();
	if (pid == 0)
		_exit(nopin_cq_met(cq, 0, &met) == ENODEV && met.faults == 77
			      ? 0
			      : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nopin_cq_met__of_each),
		TEST(nopin_cq_met__not_polled),
		TEST(nopin_cq_met__not_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
