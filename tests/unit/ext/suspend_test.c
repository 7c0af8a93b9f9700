/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend_test.c: a program suspends a region, gives it other memory, and resumes
 * it; what cannot be done changes nothing.
 */
#include "device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096, LEN = 4 * PAGE };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static char *mem[2];

static int setup(void **state)
{
	(void)state;
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	for (int i = 0; i < 2; i++)
		mem[i] = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mr = ibv_reg_mr(pd, mem[0], LEN, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	for (int i = 0; i < 2; i++)
		munmap(mem[i], LEN);
	return 0;
}

static struct nopin_suspension query(void)
{
	struct nopin_suspension s;

	memset(&s, 0xff, sizeof(s));
	assert_int_equal(nopin_mr_query_suspension(mr, &s, sizeof(s)), 0);
	return s;
}

static void suspend__update_resume(void **state)
{
	const uint32_t rkey = mr->rkey;

	(void)state;
	assert_int_equal(query().suspended, 0);
	assert_true(query().limit_ns == UINT64_MAX);
	assert_int_equal(nopin_mr_suspend(mr, 12345), 0);
	assert_int_equal(query().suspended, 1);
	assert_int_equal(query().expected_ns, 12345);
	assert_int_equal(query().held, 0);
	assert_int_equal(nopin_mr_update(mr, mem[1], LEN), 0);
	assert_ptr_equal(mr->addr, mem[1]);
	assert_int_equal(mr->rkey, rkey);
	assert_int_equal(nopin_mr_resume(mr), 0);
	assert_int_equal(query().suspended, 0);
	assert_int_equal(query().since_ns, 0);
}

static void suspend__refused(void **state)
{
	struct ibv_mr *whole = ibv_reg_mr(pd, NULL, SIZE_MAX,
					  IBV_ACCESS_ON_DEMAND);
	struct nopin_suspension s;

	(void)state;
	assert_int_equal(nopin_mr_resume(mr), EINVAL);
	assert_int_equal(nopin_mr_update(mr, mem[1], LEN), EINVAL);
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
	assert_int_equal(nopin_mr_suspend(mr, 0), EINVAL);
	assert_int_equal(nopin_mr_update(mr, mem[1], LEN - 1), EINVAL);
	assert_int_equal(nopin_mr_update(mr, mem[1] + 1, LEN), EINVAL);
	munmap(mem[1] + PAGE, PAGE);
	assert_int_equal(nopin_mr_update(mr, mem[1], LEN), EFAULT);
	assert_ptr_equal(mr->addr, mem[0]);
	assert_int_equal(query().suspended, 1);
	assert_int_equal(nopin_mr_resume(mr), 0);
	assert_int_equal(nopin_mr_query_suspension(mr, &s, 0), EINVAL);
	assert_int_equal(nopin_mr_query_suspension(mr, &s, sizeof(s) + 1),
			 EINVAL);
	assert_non_null(whole);
	assert_int_equal(nopin_mr_suspend(whole, 0), EOPNOTSUPP);
	assert_int_equal(ibv_dereg_mr(whole), 0);
}

/* teardown() deregisters it. */
static void suspend__dereg(void **state)
{
	(void)state;
	assert_int_equal(nopin_mr_suspend(mr, 0), 0);
}

static void suspend__in_a_child(void **state)
{
	int status;

	(void)state;
	if (fork() == 0)
		_exit(nopin_mr_suspend(mr, 0) != ENODEV ||
		      nopin_mr_update(mr, mem[1], LEN) != ENODEV ||
		      nopin_mr_resume(mr) != ENODEV);
	assert_true(wait(&status) > 0);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(suspend__update_resume),
		T(suspend__refused),
		T(suspend__dereg),
		T(suspend__in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
