/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* account_test.c: whom a fault is accounted to, as what, and how long it took. */
#include "base/page.h"
#include "fixture.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/ticket.h"
#include "mem/use.h"
#include "mem/waiter.h"

enum { REGION_VPN = 1000 };

struct accounts {
	struct account all, no_owner, no_mr;
};

static struct accounts look(const struct fix *f)
{
	struct accounts a;

	mem_account_copy(f->m, &a.all, &a.no_owner, &a.no_mr);
	return a;
}

/* Of the region of @key, from the list of all of them. */
static struct account of_region(const struct fix *f, uint32_t key)
{
	struct account a, found = {.n = {0}};
	struct mr_attr attr;
	uint32_t at = 0, k;
	unsigned n = 0;

	while (mr_account_next(f->m, &at, &k, &attr, &a))
		if (k == key) {
			found = a;
			n++;
		}
	assert_int_equal(n, 1);
	return found;
}

static struct account *owner;

static void begin(struct fix *f)
{
	fix_open_ageing(f, 4096);
	f->w.account = &owner;
}

static void end(struct fix *f)
{
	mem_account_gone(f->m, &owner);
	assert_null(owner);
	fix_close(f);
}

static void fault_begin__is_counted_for_all_three(void **state)
{
	struct account region;
	struct accounts a;
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 2, true, &f.w), V_WAIT);
	a = look(&f);
	region = of_region(&f, f.all);
	assert_int_equal(a.all.n[ACCT_faults], 1);
	assert_int_equal(owner->n[ACCT_faults], 1);
	assert_int_equal(region.n[ACCT_faults], 1);
	assert_int_equal(a.no_owner.n[ACCT_faults], 0);
	assert_int_equal(a.no_mr.n[ACCT_faults], 0);
	/* it waits for the same: no other fault */
	assert_int_equal(fix_access(&f, 5, 2, true, &f.w), V_WAIT);
	assert_int_equal(owner->n[ACCT_faults], 1);
	waiter_cancel(f.m, &f.w);
	assert_int_equal(owner->n[ACCT_given_up], 1);
	assert_int_equal(owner->n[ACCT_unanswered], 1);
	assert_int_equal(owner->delay.count, 0);
	end(&f);
}

static void fault_answered__by_kind(void **state)
{
	struct ticket_req r;
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(owner->n[ACCT_minor], 1);
	assert_int_equal(owner->service.count, 1);
	assert_int_equal(owner->service.sum_ns, 1000);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_OK);

	assert_int_equal(fix_access(&f, 50, 1, true, &f.w), V_WAIT);
	r = fix_next(&f);
	ticket_major(f.m, r.id);
	fix_done(&f, r, 1, false);
	assert_int_equal(owner->n[ACCT_major], 1);
	assert_int_equal(fix_access(&f, 50, 1, true, &f.w), V_OK);

	assert_int_equal(fix_access(&f, 90, 1, true, &f.w), V_WAIT);
	fix_done(&f, fix_next(&f), 0, true);
	assert_int_equal(fix_access(&f, 90, 1, true, &f.w), V_PROT);
	assert_int_equal(owner->n[ACCT_access], 1);
	assert_int_equal(owner->n[ACCT_minor], 1);
	assert_int_equal(owner->delay.count, 3);
	assert_int_equal(owner->n[ACCT_unanswered], 0);
	end(&f);
}

/* As long as the last ones of its region, or as long as it has taken already. */
static void waiter_fault_ns__learns(void **state)
{
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	assert_int_equal(waiter_fault_ns(f.m, &f.w, f.now), 0);
	assert_int_equal(waiter_fault_ns(f.m, &f.w, f.now + 300), 300);
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_OK);
	assert_int_equal(fix_access(&f, 50, 1, true, &f.w), V_WAIT);
	assert_int_equal(waiter_fault_ns(f.m, &f.w, f.now), 1000);
	assert_int_equal(waiter_fault_ns(f.m, &f.w, f.now + MS), MS);
	/* more than counts */
	list_init(&f.woken);
	ticket_done(f.m, fix_next(&f).id, 1, false, true, 0, 0,
		    UINT64_C(40000) * MS, f.now, &f.woken);
	assert_int_equal(fix_access(&f, 50, 1, true, &f.w), V_OK);
	assert_int_equal(fix_access(&f, 500, 1, true, &f.w), V_WAIT);
	assert_int_equal(waiter_fault_ns(f.m, &f.w, f.now), UINT32_MAX);
	waiter_cancel(f.m, &f.w);
	end(&f);
}

/* The delay is until the access goes on, not until the pager answered; and the
 * waiter hands it over once. */
static void fault_end__when_the_access_goes_on(void **state)
{
	struct met met;
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	f.now += 3 * MS;
	fix_done(&f, fix_next(&f), 1, false);
	assert_int_equal(owner->delay.count, 0);
	assert_int_equal(waiter_met(&f.w).faults, 0);
	f.now += MS;
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_OK);
	assert_int_equal(owner->delay.count, 1);
	assert_int_equal(owner->delay.sum_ns, 4 * MS);
	met = waiter_met(&f.w);
	assert_int_equal(met.faults, 1);
	assert_int_equal(met.ns, 4 * MS);
	assert_int_equal(waiter_met(&f.w).faults, 0);
	waiter_cancel(f.m, &f.w);
	assert_int_equal(owner->n[ACCT_given_up], 0);
	end(&f);
}

/* Who meets one missing page after the other meets as many faults. */
static void fault_begin__ends_the_one_before(void **state)
{
	struct met met;
	struct fix f;

	(void)state;
	begin(&f);
	for (uint64_t vpn = 5; vpn < 8; vpn++) {
		assert_int_equal(fix_access(&f, 5, vpn - 4, true, &f.w),
				 V_WAIT);
		f.now += MS;
		fix_done(&f, fix_next(&f), 1, false);
	}
	assert_int_equal(fix_access(&f, 5, 3, true, &f.w), V_OK);
	assert_int_equal(owner->n[ACCT_faults], 3);
	assert_int_equal(owner->delay.count, 3);
	assert_int_equal(owner->delay.max_ns, MS);
	met = waiter_met(&f.w);
	assert_int_equal(met.faults, 3);
	assert_int_equal(met.ns, 3 * MS);
	end(&f);
}

/* Its page is there, but somebody's move writes it: the fault is not over. */
static void fault_end__not_where_a_move_writes(void **state)
{
	static struct holds holds;
	static struct moves moves;
	struct met met;
	struct dma d;
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	fix_done(&f, fix_next(&f), 1, false);
	d = fix_dma(&f, 5 * PAGE_BYTES, PAGE_BYTES, true);
	assert_int_equal(dma_resolve(f.m, &d, f.slot, 0, f.now, f.fresh, NULL,
				     &moves, &holds),
			 V_OK);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	assert_int_equal(owner->delay.count, 0);
	f.now += MS;
	dma_release(f.m, &holds, 0, true, f.now);
	list_init(&f.woken);
	moved_take(f.m, &f.woken);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_OK);
	assert_int_equal(owner->n[ACCT_faults], 1);
	assert_int_equal(owner->n[ACCT_given_up], 0);
	assert_int_equal(owner->delay.count, 1);
	assert_int_equal(owner->delay.sum_ns, MS);
	met = waiter_met(&f.w);
	assert_int_equal(met.faults, 1);
	end(&f);
}

static void fault_cheap__ends_with_its_move(void **state)
{
	struct ticket_req r;
	struct met met;
	struct fix f;

	(void)state;
	begin(&f);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	r = fix_next(&f);
	list_init(&f.woken);
	ticket_done(f.m, r.id, 1, false, true, 0, 100 * PAGE_BYTES, 1000, f.now,
		    &f.woken);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_OK);
	dma_release(f.m, &f.holds, 0, true, f.now);
	waiter_met(&f.w);
	mem_inline_budget(f.m, 8);
	f.w.set = strategy_set(STRATEGY_INLINE);
	{
		struct dma d = fix_dma(&f, 20 * PAGE_BYTES, 2 * PAGE_BYTES,
				       true);

		d.set = strategy_set(STRATEGY_INLINE);
		assert_int_equal(fix_run(&f, &d, &f.w), V_OK);
	}
	assert_int_equal(owner->n[ACCT_cheap], 1);
	assert_int_equal(owner->strategy[STRATEGY_INLINE], 2);
	assert_int_equal(owner->delay.count, 1);
	met = waiter_met(&f.w);
	assert_int_equal(met.faults, 1);
	assert_int_equal(met.ns, 0);
	f.now += 700;
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(owner->delay.count, 2);
	assert_int_equal(owner->delay.sum_ns, 700);
	assert_int_equal(owner->n[ACCT_faults], 2);
	end(&f);
}

/* Owners and regions go; what they met stays in the sums. */
static void account__of_what_is_gone(void **state)
{
	struct account was;
	struct accounts a;
	uint32_t key;
	struct dma d;
	struct fix f;

	(void)state;
	begin(&f);
	key = fix_mr(&f, REGION_VPN * PAGE_BYTES, 0, 8 * PAGE_BYTES,
		     FIX_RIGHTS);
	d = fix_dma(&f, 0, PAGE_BYTES, true);
	d.key = key;
	assert_int_equal(fix_run(&f, &d, &f.w), V_WAIT);
	mem_account_answer(f.m, &f.w, STRATEGY_REDIRECT);
	assert_int_equal(of_region(&f, key).n[ACCT_faults], 1);
	assert_int_equal(of_region(&f, f.all).n[ACCT_faults], 0);
	assert_int_equal(of_region(&f, key).strategy[STRATEGY_REDIRECT], 1);
	assert_int_equal(mr_free(f.m, key), 0);
	a = look(&f);
	assert_int_equal(a.no_mr.n[ACCT_faults], 1);
	/* what is told of its fault now is nobody's */
	fix_done(&f, fix_next(&f), 1, false);
	waiter_cancel(f.m, &f.w);
	a = look(&f);
	assert_int_equal(a.no_mr.n[ACCT_minor], 1);
	assert_int_equal(a.no_mr.strategy[STRATEGY_REDIRECT], 1);
	assert_int_equal(a.no_owner.n[ACCT_faults], 0);
	was = *owner;
	mem_account_gone(f.m, &owner);
	a = look(&f);
	assert_memory_equal(&a.no_owner, &was, sizeof(was));
	assert_memory_equal(&a.all, &was, sizeof(was));
	end(&f);
}

/* Looking through regions is bounded work, and finds all of them. */
static void mr_account_next__behind_many_free_ones(void **state)
{
	enum { MANY = 5000 };
	static uint32_t key[MANY];
	struct account a;
	struct mr_attr attr;
	uint32_t at = 0, k;
	unsigned found = 0, steps = 0;
	struct fix f;

	(void)state;
	begin(&f);
	for (int i = 0; i < MANY; i++)
		key[i] = fix_mr(&f, 0, 0, PAGE_BYTES, FIX_RIGHTS);
	for (int i = 0; i < MANY - 1; i++)
		assert_int_equal(mr_free(f.m, key[i]), 0);
	while (mr_account_next(f.m, &at, &k, &attr, &a)) {
		found += k != 0;
		steps++;
	}
	assert_int_equal(found, 2);
	assert_true(steps > found);
	assert_int_equal(mr_free(f.m, key[MANY - 1]), 0);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fault_begin__is_counted_for_all_three),
		cmocka_unit_test(fault_answered__by_kind),
		cmocka_unit_test(waiter_fault_ns__learns),
		cmocka_unit_test(fault_end__when_the_access_goes_on),
		cmocka_unit_test(fault_begin__ends_the_one_before),
		cmocka_unit_test(fault_end__not_where_a_move_writes),
		cmocka_unit_test(fault_cheap__ends_with_its_move),
		cmocka_unit_test(account__of_what_is_gone),
		cmocka_unit_test(mr_account_next__behind_many_free_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
