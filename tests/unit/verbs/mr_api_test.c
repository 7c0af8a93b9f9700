/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "fake_nic.h"
#include "mem/mr.h"
#include "verbs/mr_api.h"

#include <errno.h>
#include <stddef.h>

enum {
	LW = IBV_ACCESS_LOCAL_WRITE,
	RW = IBV_ACCESS_REMOTE_WRITE,
	RR = IBV_ACCESS_REMOTE_READ,
	RA = IBV_ACCESS_REMOTE_ATOMIC,
	OD = IBV_ACCESS_ON_DEMAND,
};

static struct ibv_context *context;
static struct ibv_pd *pd;

static int open_pd(void **state)
{
	fake_reset(state);
	context = fake_open();
	pd = ibv_alloc_pd(context);
	return 0;
}

static int close_pd(void **state)
{
	if (ibv_dealloc_pd(pd) || ibv_close_device(context))
		return -1;
	return fake_check(state);
}

static void access__table(void **state)
{
	static const struct {
		unsigned access, ours;
		int rc;
	} rows[] = {
		{0, 0, 0},
		{LW | RW | RR | RA, LW | RW | RR | RA, 0},
		{RR, RR, 0},
		{RW, 0, -EINVAL},
		{RA, 0, -EINVAL},
		{IBV_ACCESS_HUGETLB | LW, LW, 0},
		{IBV_ACCESS_RELAXED_ORDERING, ACCESS_RELAXED_ORDERING, 0},
		{1u << 29, 0, 0}, /* optional: ignored where unknown */
		{1u << 30, 0, -EINVAL},
		{1u << 8, 0, -EINVAL},
		{1u << 31, 0, -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint32_t out = 77;

		assert_int_equal(access_from_verbs(rows[i].access, &out),
				 rows[i].rc);
		assert_int_equal(out, rows[i].rc ? 77 : rows[i].ours);
	}
}

static void reg__ranges(void **state)
{
	static const struct {
		uint64_t addr, length;
		int access, error;
	} rows[] = {
		{0x1000, 1, LW, 0},	     {0x1000, 0, LW, EINVAL},
		{0x1001, 0, LW, EINVAL},     {0, 1, LW, 0},
		{UINT64_MAX - 9, 10, 0, 0},  {UINT64_MAX - 9, 11, 0, EINVAL},
		{1, UINT64_MAX, 0, 0},	     {2, UINT64_MAX, 0, EINVAL},
		{0, UINT64_MAX, LW | OD, 0}, /* implicit */
		{0, UINT64_MAX, LW, EINVAL}, {0x1000, 1, RW, EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		void *addr = (void *)(uintptr_t)rows[i].addr;
		struct ibv_mr *mr;

		errno = 0;
		mr = ibv_reg_mr(pd, addr, rows[i].length, rows[i].access);
		assert_int_equal(errno, rows[i].error);
		if (!mr)
			continue;
		assert_int_equal(fake.mr.addr, rows[i].addr);
		assert_int_equal(fake.mr.iova, rows[i].addr);
		assert_int_equal(fake.mr.length, rows[i].length);
		assert_int_equal(fake.mr.pd, pd->handle);
		assert_ptr_equal(mr->addr, addr);
		assert_int_equal(mr->length, rows[i].length);
		assert_int_equal(mr->lkey, fake.keys);
		assert_int_equal(mr->rkey, fake.keys);
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void reg__iova(void **state)
{
	char buf[8];
	struct ibv_mr *mr;

	(void)state;
	mr = ibv_reg_mr_iova(pd, buf, 8, 0x7000, LW);
	assert_int_equal(fake.mr.iova, 0x7000);
	assert_int_equal(fake.mr.addr, (uintptr_t)buf);
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr_iova2(pd, buf, 8, 0x9000, LW);
	assert_int_equal(fake.mr.iova, 0x9000);
	ibv_dereg_mr(mr);
	assert_null(ibv_reg_mr_iova(pd, buf, 8, UINT64_MAX - 6, LW));
	assert_int_equal(errno, EINVAL);
	/* zero-based, by either way that the macro of verbs.h chooses */
	mr = ibv_reg_mr(pd, buf, 8, LW | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(fake.mr.iova, 0);
	ibv_dereg_mr(mr);
	mr = ibv_reg_mr_iova2(pd, buf, 8, (uintptr_t)buf,
			      LW | IBV_ACCESS_ZERO_BASED);
	assert_int_equal(fake.mr.iova, 0);
	ibv_dereg_mr(mr);
}

static void reg__nic_refuses(void **state)
{
	(void)state;
	fake.fail_in = 1;
	assert_null(ibv_reg_mr(pd, &fake, 1, 0));
	assert_int_equal(errno, ENOMEM);
}

static void rereg__changes_what_flags_say(void **state)
{
	struct ibv_pd *pd2 = ibv_alloc_pd(context);
	char a[16], b[32];
	struct ibv_mr *mr = ibv_reg_mr(pd, a, sizeof(a), LW);
	const uint32_t key = mr->lkey;

	(void)state;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RR),
		0);
	assert_int_equal(fake.mr.access, RR);
	assert_int_equal(fake.mr.addr, (uintptr_t)a);
	assert_int_equal(mr->lkey, key);
	assert_int_equal(mr->rkey, key);
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, NULL, 0, 0), 0);
	assert_int_equal(fake.mr.pd, pd2->handle);
	assert_int_equal(fake.mr.access, RR);
	assert_ptr_equal(mr->pd, pd2);
	assert_int_equal(mr->lkey, key);
	assert_int_equal(ibv_rereg_mr(mr,
				      IBV_REREG_MR_CHANGE_TRANSLATION |
					      IBV_REREG_MR_CHANGE_PD,
				      pd2, b, sizeof(b), 0),
			 0);
	assert_int_not_equal(mr->lkey, key);
	assert_int_equal(mr->lkey, mr->rkey);
	assert_int_equal(fake.mr.access, RR);
	assert_int_equal(fake.mr.pd, pd2->handle);
	assert_int_equal(fake.mr.iova, (uintptr_t)b);
	assert_ptr_equal(mr->addr, b);
	assert_int_equal(mr->length, sizeof(b));
	assert_ptr_equal(mr->pd, pd2);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd2);
}

/* What a peer has invalidated is made anew. */
static void rereg__of_a_key_that_is_no_more(void **state)
{
	char a[16];
	struct ibv_mr *mr = ibv_reg_mr(pd, a, sizeof(a), LW);
	const uint32_t key = mr->lkey;

	(void)state;
	fake.fail_in = 2;
	fake.error = -ENOENT;
	assert_int_equal(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RR),
		0);
	assert_int_equal(fake.mr.access, RR);
	assert_int_not_equal(mr->lkey, key);
	assert_int_equal(mr->lkey, mr->rkey);
	ibv_dereg_mr(mr);
}

static void rereg__failing_leaves_the_old(void **state)
{
	char a[16];
	struct ibv_mr *mr = ibv_reg_mr(pd, a, sizeof(a), LW);
	struct ibv_context *theirs = fake_open();
	struct ibv_pd *foreign = ibv_alloc_pd(theirs);
	const struct ibv_mr old = *mr;
	const struct {
		int flags;
		size_t length;
		int access;
		unsigned fail_in;
		struct ibv_pd *pd;
	} rows[] = {
		{0, 1, 0, 0, NULL},
		{1 << 3, 1, 0, 0, NULL},
		{IBV_REREG_MR_CHANGE_PD, 1, 0, 0, NULL}, /* without a PD */
		{IBV_REREG_MR_CHANGE_PD, 1, 0, 0, foreign},
		{IBV_REREG_MR_CHANGE_ACCESS, 1, IBV_ACCESS_ZERO_BASED, 0, NULL},
		{IBV_REREG_MR_CHANGE_ACCESS, 1, LW, 1, NULL},
		{IBV_REREG_MR_CHANGE_ACCESS, 1, LW, 2, NULL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 0, 0, 0, NULL},
		{IBV_REREG_MR_CHANGE_ACCESS, 1, RW, 0, NULL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 1, 0, 1, NULL},
		{IBV_REREG_MR_CHANGE_TRANSLATION, 1, 0, 2, NULL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		fake.fail_in = rows[i].fail_in;
		errno = 0;
		assert_int_equal(ibv_rereg_mr(mr, rows[i].flags, rows[i].pd, a,
					      rows[i].length, rows[i].access),
				 IBV_REREG_MR_ERR_INPUT);
		assert_int_equal(errno, rows[i].fail_in ? ENOMEM : EINVAL);
		assert_memory_equal(mr, &old, sizeof(old));
	}
	ibv_dealloc_pd(foreign);
	ibv_close_device(theirs);
	ibv_dereg_mr(mr);
}

static void dereg__nic_refuses(void **state)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, &fake, 1, 0);

	(void)state;
	fake.fail_in = 1;
	fake.error = -ENODEV;
	assert_int_equal(ibv_dereg_mr(mr), ENODEV);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void advise__arguments(void **state)
{
	struct ibv_sge sge = {1, 2, 3};

	(void)state;
	assert_int_equal(
		ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 0),
		EINVAL);
	assert_int_equal(
		ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1),
		EINVAL);
	assert_int_equal(ibv_advise_mr(pd, 3, 0, &sge, 1), EOPNOTSUPP);
	assert_int_equal(fake.num_advised, 0);
	fake.fail_in = 1;
	fake.error = -EFAULT;
	assert_int_equal(ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
				       IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1),
			 EFAULT);
	assert_int_equal(fake.advice, NIC_PREFETCH_WRITE);
	assert_true(fake.flush);
}

static void advise__long_lists(void **state)
{
	static const unsigned nums[] = {1, 31, 32, 33, 64};
	struct ibv_sge sge[64];

	(void)state;
	for (unsigned i = 0; i < 64; i++)
		sge[i] = (struct ibv_sge){i, i + 1, i + 2};
	for (size_t k = 0; k < ARRAY_SIZE(nums); k++) {
		fake.num_advised = 0;
		assert_int_equal(ibv_advise_mr(pd,
					       IBV_ADVISE_MR_ADVICE_PREFETCH, 0,
					       sge, nums[k]),
				 0);
		assert_int_equal(fake.num_advised, nums[k]);
		assert_false(fake.flush);
		for (unsigned i = 0; i < nums[k]; i++) {
			assert_int_equal(fake.advised[i].addr, i);
			assert_int_equal(fake.advised[i].len, i + 1);
			assert_int_equal(fake.advised[i].lkey, i + 2);
		}
	}
}

#define pd_test(name) cmocka_unit_test_setup_teardown(name, open_pd, close_pd)

int main(void)
{
	const struct CMUnitTest tests[] = {
		pd_test(access__table),
		pd_test(reg__ranges),
		pd_test(reg__iova),
		pd_test(reg__nic_refuses),
		pd_test(rereg__changes_what_flags_say),
		pd_test(rereg__of_a_key_that_is_no_more),
		pd_test(rereg__failing_leaves_the_old),
		pd_test(dereg__nic_refuses),
		pd_test(advise__arguments),
		pd_test(advise__long_lists),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
