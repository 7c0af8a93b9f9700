/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/page.h"
#include "fixture.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/suspend.h"
#include "mem/ticket.h"
#include "mem/waiter.h"

enum { PAGE = 16, PAGES = 8, OTHER = 4096 };

static struct fix f;
static uint32_t key;

static int setup(void **state)
{
	(void)state;
	fix_open_ageing(&f, 1024);
	key = fix_mr(&f, PAGE * PAGE_BYTES, 0x1000000, PAGES * PAGE_BYTES,
		     FIX_RIGHTS);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dma_release(f.m, &f.holds, 0, false, f.now);
	(void)mr_free(f.m, key);
	fix_close(&f);
	return 0;
}

/* One page of the region through its key. */
static enum verdict access(unsigned page, bool write, struct waiter *w)
{
	struct dma d = fix_dma(&f, 0x1000000 + page * PAGE_BYTES, PAGE_BYTES,
			       write);

	d.key = key;
	return fix_run(&f, &d, w);
}

static void make_ready(uint64_t vpn)
{
	spt_map(f.m, vpn, PAGES, true, f.now);
}

static void release(bool ok)
{
	dma_release(f.m, &f.holds, 0, ok, f.now);
	f.mv.num = 0;
}

static void mr_suspend__holds_keep_it_moving(void **state)
{
	struct mr_suspension s;

	(void)state;
	make_ready(PAGE);
	assert_int_equal(access(0, true, &f.w), V_OK);
	assert_int_equal(mr_suspend(f.m, key, 7, f.now), 0);
	assert_int_equal(mr_suspension(f.m, key, &s), 0);
	assert_true(s.suspended && s.moving);
	assert_int_equal(
		mr_update(f.m, key, OTHER * PAGE_BYTES, PAGES * PAGE_BYTES),
		-EBUSY);
	release(true);
	assert_int_equal(mr_suspension(f.m, key, &s), 0);
	assert_true(s.suspended && !s.moving);
	assert_int_equal(s.expected_ns, 7);
	assert_int_equal(s.since_ns, f.now);
}

static void mr_suspend__refused(void **state)
{
	struct mr_suspension s;
	uint32_t whole = fix_mr(&f, 0, 0, UINT64_MAX, FIX_RIGHTS);

	(void)state;
	assert_int_equal(mr_suspend(f.m, key ^ 0x100, 0, f.now), -ENOENT);
	assert_int_equal(mr_suspend(f.m, whole, 0, f.now), -EOPNOTSUPP);
	assert_int_equal(mr_resume(f.m, key, f.now), -EINVAL);
	assert_int_equal(mr_resume(f.m, key ^ 0x100, f.now), -ENOENT);
	assert_int_equal(mr_suspension(f.m, key ^ 0x100, &s), -ENOENT);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	fix_sleep(&f, MS);
	assert_int_equal(mr_suspend(f.m, key, 9, f.now), -EINVAL);
	assert_int_equal(mr_suspension(f.m, key, &s), 0);
	assert_int_equal(s.since_ns, f.now - MS);
	assert_int_equal(s.expected_ns, 0);
	assert_int_equal(mr_free(f.m, whole), 0);
}

/* Rights and bounds are what they were: an error is no reason to wait. */
static void mr_suspend__checks_go_on(void **state)
{
	struct dma d = fix_dma(&f, 0x1000000, PAGE_BYTES, true);

	(void)state;
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	d.key = key;
	assert_int_equal(dma_check(f.m, &d), V_OK);
	d.len = PAGES * PAGE_BYTES + 1;
	assert_int_equal(fix_run(&f, &d, &f.w), V_PROT);
	assert_int_equal(f.w.ticket.v, 0);
	/* the same pages through another region are not suspended */
	make_ready(PAGE);
	assert_int_equal(fix_access(&f, PAGE, 1, true, &f.w), V_OK);
}

static void mr_resume__wakes_in_order(void **state)
{
	enum { WAITERS = 5 };
	struct waiter w[WAITERS];
	struct list woken;
	uint64_t ns = 0;

	(void)state;
	assert_int_equal(mr_suspend(f.m, key, 77, f.now), 0);
	for (int i = 0; i < WAITERS; i++) {
		waiter_init(&w[i], &w[i]);
		assert_int_equal(access((unsigned)i % 2, i % 2, &w[i]), V_WAIT);
	}
	/* who asks again keeps its place */
	assert_int_equal(access(3, true, &w[0]), V_WAIT);
	assert_int_equal(waiter_suspended(f.m, &w[2], &ns), key);
	assert_int_equal(ns, 77);
	assert_false(moved_waiters(f.m));
	assert_false(ticket_new(f.m));
	waiter_cancel(f.m, &w[1]);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	assert_int_equal(waiter_suspended(f.m, &w[2], &ns), 0);
	assert_true(moved_waiters(f.m));
	list_init(&woken);
	moved_take(f.m, &woken);
	for (int i = 0; i < WAITERS; i++) {
		if (i == 1)
			continue;
		assert_ptr_equal(woken.next, &w[i].link);
		assert_int_equal(w[i].ticket.v, 0);
		list_del(&w[i].link);
	}
	assert_true(list_empty(&woken));
}

/* Only those of this region. */
static void mr_resume__others_sleep_on(void **state)
{
	uint32_t other = fix_mr(&f, PAGE * PAGE_BYTES, 0x1000000,
				PAGES * PAGE_BYTES, FIX_RIGHTS);
	struct waiter w[2];
	struct list woken;
	struct dma d = fix_dma(&f, 0x1000000, 8, false);

	(void)state;
	list_init(&woken);
	waiter_init(&w[0], NULL);
	waiter_init(&w[1], NULL);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(mr_suspend(f.m, other, 0, f.now), 0);
	assert_int_equal(access(0, false, &w[0]), V_WAIT);
	d.key = other;
	assert_int_equal(fix_run(&f, &d, &w[1]), V_WAIT);
	assert_int_equal(mr_resume(f.m, other, f.now), 0);
	moved_take(f.m, &woken);
	assert_ptr_equal(woken.next, &w[1].link);
	assert_ptr_equal(woken.prev, &w[1].link);
	list_del(&w[1].link);
	waiter_cancel(f.m, &w[0]);
	assert_int_equal(mr_free(f.m, other), 0);
}

static void mr_resume__says_how_long(void **state)
{
	struct mr_suspension s;
	struct list woken;

	(void)state;
	list_init(&woken);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	fix_sleep(&f, MS);
	assert_int_equal(access(0, false, &f.w), V_WAIT);
	fix_sleep(&f, 3 * MS);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	assert_int_equal(mr_suspension(f.m, key, &s), 0);
	assert_int_equal(s.pause_ns, 3 * MS);
	waiter_cancel(f.m, &f.w);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	fix_sleep(&f, MS);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	assert_int_equal(mr_suspension(f.m, key, &s), 0);
	assert_int_equal(s.pause_ns, 0);
}

/* What was known of the pages was learned of memory that may be another's. */
static void mr_resume__pages_are_not_known(void **state)
{
	(void)state;
	make_ready(PAGE);
	assert_int_equal(access(0, true, &f.w), V_OK);
	release(true);
	assert_int_equal(access(0, true, &f.w), V_OK);
	release(true);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	assert_int_equal(access(0, true, &f.w), V_WAIT);
	assert_true(ticket_new(f.m));
	waiter_cancel(f.m, &f.w);
}

static void mr_update__moves_the_region(void **state)
{
	(void)state;
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(
		mr_update(f.m, key, OTHER * PAGE_BYTES, PAGES * PAGE_BYTES), 0);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	fix_sleep(&f, 30 * MS);
	make_ready(OTHER);
	assert_int_equal(access(1, true, &f.w), V_OK);
	assert_int_equal(f.mv.m[0].addr, (OTHER + 1) * PAGE_BYTES);
}

/* Of the new range as well: it was somebody's, maybe. */
static void mr_update__pages_are_not_known(void **state)
{
	(void)state;
	make_ready(OTHER);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(
		mr_update(f.m, key, OTHER * PAGE_BYTES, PAGES * PAGE_BYTES), 0);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	assert_int_equal(access(1, true, &f.w), V_WAIT);
	assert_int_equal(fix_next(&f).vpn, OTHER + 1);
	waiter_cancel(f.m, &f.w);
}

static void mr_update__refused(void **state)
{
	const uint64_t len = PAGES * PAGE_BYTES;
	struct mr_attr a;

	(void)state;
	assert_int_equal(mr_update(f.m, key, OTHER, len), -EINVAL);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(mr_update(f.m, key ^ 0x100, OTHER, len), -ENOENT);
	assert_int_equal(mr_update(f.m, key, OTHER, len - 1), -EINVAL);
	assert_int_equal(mr_update(f.m, key, OTHER, len + 1), -EINVAL);
	assert_int_equal(mr_update(f.m, key, UINT64_MAX - 7, len), -EINVAL);
	assert_int_equal(mr_update(f.m, key, OTHER + 4, len), -EINVAL);
	assert_int_equal(mr_query(f.m, key, &a), 0);
	assert_int_equal(a.addr, PAGE * PAGE_BYTES);
	assert_int_equal(a.length, len);
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
}

/* Deregistered or invalidated: that is what its users are waiting for, then. */
static void mr_revoke__wakes(void **state)
{
	struct list woken;

	(void)state;
	for (int i = 0; i < 3; i++) {
		list_init(&woken);
		assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
		assert_int_equal(access(0, false, &f.w), V_WAIT);
		if (i == 0)
			assert_int_equal(mr_free(f.m, key), 0);
		else if (i == 1)
			assert_int_equal(mr_invalidate(f.m, f.pd, key), V_OK);
		else
			assert_int_equal(mr_revoke(f.m, key), 0);
		moved_take(f.m, &woken);
		assert_ptr_equal(woken.next, &f.w.link);
		list_del(&f.w.link);
		assert_int_equal(access(0, false, &f.w), V_PROT);
		teardown(NULL);
		setup(NULL);
	}
}

/* What the QP chose is for pages: nothing is lost for a suspension. */
static void suspend_wait__drops_nothing(void **state)
{
	(void)state;
	assert_int_equal(mr_set_fault(f.m, key, STRATEGY_DROP), 0);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	assert_int_equal(access(0, true, &f.w), V_WAIT);
	assert_true(f.w.set & STRATEGY_BIT(STRATEGY_REDIRECT));
	assert_false(f.w.set & STRATEGY_BIT(STRATEGY_DROP));
	waiter_cancel(f.m, &f.w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(mr_suspend__holds_keep_it_moving),
		T(mr_suspend__refused),
		T(mr_suspend__checks_go_on),
		T(mr_update__moves_the_region),
		T(mr_update__pages_are_not_known),
		T(mr_update__refused),
		T(mr_resume__wakes_in_order),
		T(mr_resume__others_sleep_on),
		T(mr_resume__says_how_long),
		T(mr_resume__pages_are_not_known),
		T(mr_revoke__wakes),
		T(suspend_wait__drops_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
