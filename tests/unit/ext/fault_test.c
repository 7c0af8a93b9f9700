/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_test.c: what a program chooses for a QP or a region is what it is told
 * afterwards, and what cannot be chosen changes nothing.
 */
#include "device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct fix {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	char buf[8192];
};

static void fix_open(struct fix *f, const char *fault)
{
	setenv("NOPIN_FAULT", fault, 1);
	f->ctx = open_device();
	f->pd = ibv_alloc_pd(f->ctx);
	f->cq = ibv_create_cq(f->ctx, 1, NULL, NULL, 0);
	f->mr = ibv_reg_mr(f->pd, f->buf, sizeof(f->buf), 0);
	f->qp = ibv_create_qp(
		f->pd, &(struct ibv_qp_init_attr){.send_cq = f->cq,
						  .recv_cq = f->cq,
						  .qp_type = IBV_QPT_RC,
						  .cap = {.max_send_wr = 1,
							  .max_recv_wr = 1,
							  .max_send_sge = 1,
							  .max_recv_sge = 1}});
	assert_true(f->pd && f->cq && f->qp && f->mr);
}

static void fix_close(struct fix *f)
{
	assert_int_equal(ibv_destroy_qp(f->qp), 0);
	assert_int_equal(ibv_dereg_mr(f->mr), 0);
	assert_int_equal(ibv_destroy_cq(f->cq), 0);
	assert_int_equal(ibv_dealloc_pd(f->pd), 0);
	assert_int_equal(ibv_close_device(f->ctx), 0);
}

static void nopin_fault_name__and_back(void **state)
{
	enum nopin_fault f;

	(void)state;
	for (int i = NOPIN_FAULT_DEFAULT; i <= NOPIN_FAULT_ADAPTIVE; i++) {
		const char *name = nopin_fault_name((enum nopin_fault)i);

		assert_non_null(name);
		assert_int_equal(nopin_fault_parse(name, &f), 0);
		assert_int_equal(f, i);
	}
	assert_null(nopin_fault_name((enum nopin_fault)12));
	assert_null(nopin_fault_name((enum nopin_fault) - 1));
	f = NOPIN_FAULT_PARK;
	assert_int_equal(nopin_fault_parse("none", &f), EINVAL);
	assert_int_equal(nopin_fault_parse("", &f), EINVAL);
	assert_int_equal(f, NOPIN_FAULT_PARK);
}

static void nopin_set_fault__each(void **state)
{
	struct fix f;
	enum nopin_fault got;

	(void)state;
	fix_open(&f, "resume");
	assert_int_equal(nopin_get_fault(f.ctx, &got), 0);
	assert_int_equal(got, NOPIN_FAULT_RESUME);
	for (int i = NOPIN_FAULT_ADAPTIVE; i >= NOPIN_FAULT_DEFAULT; i--) {
		int want = i == NOPIN_FAULT_BLOCK ? EOPNOTSUPP : 0;
		enum nopin_fault set = (enum nopin_fault)i;

		assert_int_equal(nopin_qp_set_fault(f.qp, set), want);
		assert_int_equal(nopin_mr_set_fault(f.mr, set), want);
		if (want)
			continue;
		assert_int_equal(nopin_qp_get_fault(f.qp, &got), 0);
		assert_int_equal(got, i);
		assert_int_equal(nopin_mr_get_fault(f.mr, &got), 0);
		assert_int_equal(got, i);
	}
	fix_close(&f);
}

static void nopin_set_fault__bad_changes_nothing(void **state)
{
	struct fix f;
	enum nopin_fault got;

	(void)state;
	fix_open(&f, "adaptive");
	assert_int_equal(nopin_qp_set_fault(f.qp, NOPIN_FAULT_RNR), 0);
	assert_int_equal(nopin_mr_set_fault(f.mr, NOPIN_FAULT_REDIRECT), 0);
	for (int bad = -1; bad <= 12; bad += 13) {
		enum nopin_fault set = (enum nopin_fault)bad;

		assert_int_equal(nopin_qp_set_fault(f.qp, set), EINVAL);
		assert_int_equal(nopin_mr_set_fault(f.mr, set), EINVAL);
	}
	assert_int_equal(nopin_qp_get_fault(f.qp, &got), 0);
	assert_int_equal(got, NOPIN_FAULT_RNR);
	assert_int_equal(nopin_mr_get_fault(f.mr, &got), 0);
	assert_int_equal(got, NOPIN_FAULT_REDIRECT);
	fix_close(&f);
}

static void nopin_set_fault__not_where_the_nic_blocks(void **state)
{
	struct fix f;
	enum nopin_fault got;

	(void)state;
	fix_open(&f, "block");
	assert_int_equal(nopin_get_fault(f.ctx, &got), 0);
	assert_int_equal(got, NOPIN_FAULT_BLOCK);
	assert_int_equal(nopin_qp_set_fault(f.qp, NOPIN_FAULT_RNR), EOPNOTSUPP);
	assert_int_equal(nopin_mr_set_fault(f.mr, NOPIN_FAULT_RNR), EOPNOTSUPP);
	assert_int_equal(nopin_mr_get_fault(f.mr, &got), 0);
	assert_int_equal(got, NOPIN_FAULT_DEFAULT);
	fix_close(&f);
}

static bool all_enodev(struct fix *f)
{
	enum nopin_fault got = NOPIN_FAULT_DROP;

	return nopin_get_fault(f->ctx, &got) == ENODEV &&
	       nopin_qp_set_fault(f->qp, NOPIN_FAULT_RNR) == ENODEV &&
	       nopin_qp_get_fault(f->qp, &got) == ENODEV &&
	       nopin_mr_set_fault(f->mr, NOPIN_FAULT_RNR) == ENODEV &&
	       nopin_mr_get_fault(f->mr, &got) == ENODEV &&
	       got == NOPIN_FAULT_DROP;
}

static void nopin_set_fault__not_in_a_child(void **state)
{
	struct fix f;
	int status;
	pid_t pid;

	(void)state;
	fix_open(&f, "adaptive");
	pid = fork();
	if (pid == 0)
		_exit(all_enodev(&f) ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nopin_fault_name__and_back),
		cmocka_unit_test(nopin_set_fault__each),
		cmocka_unit_test(nopin_set_fault__bad_changes_nothing),
		cmocka_unit_test(nopin_set_fault__not_where_the_nic_blocks),
		cmocka_unit_test(nopin_set_fault__not_in_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
