/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spt_test.c: the shadow page table: freshness, replacement, holds. */
#include "fixture.h"
#include "mem/ageing.h"
#include "mem/dma.h"
#include "mem/holds.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/spt.h"
#include "mem/table.h"
#include "mem/ticket.h"
#include "mem/waiter.h"

#define TICK (UINT64_C(1) << 20)

static unsigned num_entries(const struct fix *f)
{
	unsigned n = 0;

	for (uint64_t i = 0; i <= f->m->spt.sets.mask * SPT_WAYS + 3; i++)
		n += f->m->spt.e[i] != 0;
	return n;
}

static void spt_map__pages(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 3, false, f.now);
	spt_map(f.m, 12, 2, true, f.now);
	spt_map(f.m, 20, 0, true, f.now);
	for (uint64_t p = 8; p < 22; p++) {
		assert_int_equal(fix_ready(&f, p, false), p >= 10 && p < 14);
		assert_int_equal(fix_ready(&f, p, true), p == 12 || p == 13);
	}
	fix_close(&f);
}

static void spt_map__takes_no_right_away(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 1, true, f.now);
	spt_map(f.m, 10, 1, false, f.now);
	assert_true(fix_ready(&f, 10, true));
	fix_close(&f);
}

static void spt_map__end_of_the_address_space(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, VPN_END - 2, UINT64_MAX, true, f.now);
	spt_map(f.m, VPN_END, 5, true, f.now);
	spt_map(f.m, UINT64_MAX, 5, true, f.now);
	assert_int_equal(num_entries(&f), 2);
	assert_true(fix_ready(&f, VPN_END - 1, true));
	assert_true(fix_ready(&f, VPN_END - 2, true));
	assert_int_equal(spt_unmap(f.m, VPN_END - 1, UINT64_MAX), 0);
	assert_false(fix_ready(&f, VPN_END - 1, true));
	assert_true(fix_ready(&f, VPN_END - 2, true));
	fix_close(&f);
}

/* More than fits costs no more than what fits. */
static void spt_map__more_than_the_table(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 0, UINT64_C(1) << 40, true, f.now);
	assert_int_equal(num_entries(&f), 64);
	assert_true(fix_ready(&f, (UINT64_C(1) << 40) - 1, true));
	assert_false(fix_ready(&f, 0, true));
	fix_close(&f);
}

/* Long ranges are found from the entries, short ones from the pages; both must
 * hit the same. Pages all over the address space.
 */
static void spt_unmap__long_and_short_ranges(void **state)
{
	static const uint64_t edge[] = {
		0, 1, 1 << 20, UINT64_C(1) << 35, VPN_END / 2, VPN_END - 4000};
	struct rnd r = {1, 2, 0};
	struct fix f;

	(void)state;
	for (int round = 0; round < 200; round++) {
		uint64_t lo = rnd_next(&r) % VPN_END, page[40];
		uint64_t num = rnd_next(&r) % (VPN_END - lo);

		fix_open_exact(&f, 1024);
		for (unsigned i = 0; i < ARRAY_SIZE(page); i++) {
			page[i] = edge[i % ARRAY_SIZE(edge)] +
				  rnd_next(&r) % 4000;
			if (i % 4 == 0)
				page[i] = lo + i - 20;
			if (i % 4 == 1)
				page[i] = (lo + num + i - 20) % VPN_END;
			page[i] %= VPN_END;
			spt_map(f.m, page[i], 1, true, f.now);
		}
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
		assert_int_equal(spt_protect(f.m, lo, num), 0);
		for (unsigned i = 0; i < ARRAY_SIZE(page); i++) {
			bool hit = page[i] >= lo && page[i] - lo < num;

			assert_int_equal(fix_ready(&f, page[i], true), !hit);
		}
		assert_int_equal(spt_unmap(f.m, lo, num), 0);
		for (unsigned i = 0; i < ARRAY_SIZE(page); i++)
			assert_int_equal(fix_ready(&f, page[i], false),
					 page[i] < lo || page[i] - lo >= num);
		fix_close(&f);
	}
}

/* --- freshness ----------------------------------------------------------- */

static void spt_view__freshness(void **state)
{
	const uint64_t t0 = 1000 * TICK;
	const struct {
		uint64_t stamp, now, fresh;
		bool ready;
	} cases[] = {
		{t0, t0, t0, true},
		{t0 + 500, t0 + 500, t0 + 500, true},
		{t0 + 500, t0 + 500, t0 + 501, false}, /* in the future */
		{t0, t0, UINT64_MAX, false},
		{t0 + 5, t0 + 10 * TICK, t0, true},
		{t0 + 5, t0 + 10 * TICK, t0 + 1, false}, /* errs on stale */
		{t0 + 5, t0 + 10 * TICK, t0 + 6, false},
		{t0 + TICK - 1, t0 + 10 * TICK, t0, true},
		{t0 + TICK - 1, t0 + 10 * TICK, t0 + TICK, false},
		{t0 + TICK, t0 + 10 * TICK, t0 + 1, true},
		{t0, t0 + 10 * TICK, 0, true},
		{t0, t0 + (TICK << 18), 0, true},
		{t0, t0 + (TICK << 18) + TICK, 0, false},
		{t0, t0 + (TICK << 20), t0 + (TICK << 20), false},
		{t0, t0 + (TICK << 20), t0 + (TICK << 20) - 9 * TICK, false},
		{t0, t0 + (TICK << 20), 0, false},
		{t0, t0 + (TICK << 21), t0 + (TICK << 21) - 9 * TICK, false},
		{t0 + 2 * TICK, t0 + TICK, t0 + TICK, true}, /* clock skew */
	};
	struct fix f;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		fix_open_ageing(&f, 64);
		spt_map(f.m, 10, 1, true, cases[i].stamp);
		f.now = cases[i].now;
		f.fresh = cases[i].fresh;
		if (fix_ready(&f, 10, true) != cases[i].ready)
			print_error("case %u\n", i);
		assert_int_equal(fix_ready(&f, 10, true), cases[i].ready);
		assert_int_equal(fix_ready(&f, 10, false), cases[i].ready);
		fix_close(&f);
	}
}

static void spt_view__exact_hosts_do_not_age(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 1, true, f.now);
	f.now += TICK << 22;
	f.fresh = UINT64_MAX;
	assert_true(fix_ready(&f, 10, true));
	fix_close(&f);
}

/* Whenever one looks, an entry whose stamp wrapped is not fresh. */
static void spt_tick__wrapped_stamps_are_gone(void **state)
{
	static const uint64_t step[] = {
		1,	 7,	 100, 5000, 1 << 17, 1 << 18, (1 << 18) + 1,
		1 << 19, 1 << 20};
	struct fix f;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(step); i++) {
		fix_open_ageing(&f, 1 << 12);
		spt_map(f.m, 10, 1000, true, f.now);
		for (uint64_t t = 0; t < (1 << 20) + 20; t += step[i]) {
			fix_sleep(&f, step[i] * TICK);
			spt_tick(&f.m->spt, f.now);
			if (t < 20)
				continue;
			for (uint64_t p = 10; p < 1010; p += 333)
				assert_false(fix_ready(&f, p, false));
			if (t > 1 << 19 && step[i] < 5000)
				break;
		}
		assert_int_equal(num_entries(&f), 0);
		fix_close(&f);
	}
}

/* The sweep must not take what is in use. */
static void spt_tick__keeps_what_is_young(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	for (uint64_t t = 0; t < 3 << 20; t += 1 << 13) {
		spt_map(f.m, 10, 30, true, f.now);
		fix_sleep(&f, 8 * MS);
		for (uint64_t p = 10; p < 40; p++)
			assert_true(fix_ready(&f, p, true));
		fix_sleep(&f, TICK << 13);
	}
	assert_int_equal(num_entries(&f), 30);
	fix_close(&f);
}

/* --- fork ---------------------------------------------------------------- */

static void spt_protect_all__readable_only(void **state)
{
	struct fix f;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f,
			 (struct mem_config){.entries = 64, .exact = exact});
		spt_map(f.m, 10, 2, true, f.now);
		spt_protect_all(f.m);
		assert_false(fix_ready(&f, 10, true));
		assert_true(fix_ready(&f, 10, false));
		/* a page written since, in the same moment */
		spt_map(f.m, 11, 1, true, f.now);
		assert_true(fix_ready(&f, 11, true));
		/* seen present is not seen writable */
		spt_map(f.m, 10, 1, false, f.now);
		assert_false(fix_ready(&f, 10, true));
		fix_close(&f);
	}
}

static void spt_protect_all__many_in_a_tick(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	for (int i = 0; i < 30; i++) {
		spt_map(f.m, 10, 1, true, f.now);
		assert_true(fix_ready(&f, 10, true));
		spt_protect_all(f.m);
		assert_false(fix_ready(&f, 10, true));
		assert_true(fix_ready(&f, 10, false));
	}
	assert_true(f.m->spt.time.tick - (f.now >> 20) <= 8);
	fix_sleep(&f, 30 * TICK);
	assert_false(fix_ready(&f, 10, false));
	spt_map(f.m, 10, 1, true, f.now);
	assert_true(fix_ready(&f, 10, true));
	fix_close(&f);
}

/* Touches that only read keep the right to write while they are frequent. */
static void spt_install__keeps_writable(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	spt_map(f.m, 10, 2, true, f.now);
	for (int i = 0; i < 100; i++) {
		fix_sleep(&f, 9 * MS);
		spt_map(f.m, 10, 1, false, f.now);
		assert_true(fix_ready(&f, 10, true));
	}
	spt_map(f.m, 11, 1, false, f.now);
	assert_true(fix_ready(&f, 11, false));
	assert_false(fix_ready(&f, 11, true));
	fix_close(&f);
}

/* What was seen long ago says nothing of a page that was fetched ahead since. */
static void spt_install__old_news_of_a_page_fetched_ahead(void **state)
{
	struct fix f;
	uint64_t tick;

	(void)state;
	for (unsigned old = 0; old < 2; old++) {
		fix_open_ageing(&f, 64);
		fix_sleep(&f, TICK << 19);
		spt_tick(&f.m->spt, f.now);
		tick = f.m->spt.time.tick;
		spt_install_ahead(f.m, 10, true, tick, 0);
		spt_install(f.m, 10, true, -1, tick - (1 << 18) - old);
		assert_int_equal(spt_use(f.m, 10), old);
		assert_int_equal(num_entries(&f), 1);
		fix_close(&f);
	}
}

/* --- replacement --------------------------------------------------------- */

static void spt_place__oldest_goes(void **state)
{
	struct fix f;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f,
			 (struct mem_config){.entries = 16, .exact = exact});
		spt_map(f.m, 0, 16, true, f.now);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
		assert_int_equal(num_entries(&f), 16);
		for (uint64_t p = 1000; p < 1100; p++) {
			fix_sleep(&f, 2 * MS);
			spt_map(f.m, 5, 1, true, f.now);
			spt_map(f.m, p, 1, true, f.now);
			assert_true(fix_ready(&f, 5, true));
			assert_true(fix_ready(&f, p, true));
		}
		for (uint64_t p = 0; p < 16; p++)
			assert_int_equal(fix_ready(&f, p, true), p == 5);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 100);
		assert_int_equal(num_entries(&f), 16);
		fix_close(&f);
	}
}

/* A contiguous stretch as long as half the table always fits. */
static void spt_place__half_a_table_fits(void **state)
{
	struct fix f;

	(void)state;
	for (uint64_t base = 0; base < 4000; base += 17) {
		fix_open_exact(&f, 64);
		spt_map(f.m, base, 32, true, f.now);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
		fix_close(&f);
	}
}

static void spt_was_replaced__counts_table_misses(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 16);
	spt_map(f.m, 0, 16, true, f.now);
	spt_map(f.m, 1000, 64, true, f.now);
	assert_int_equal(fix_access(&f, 3, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_table_misses], 1);
	waiter_cancel(f.m, &f.w);
	/* told once */
	assert_int_equal(fix_access(&f, 3, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_table_misses], 1);
	waiter_cancel(f.m, &f.w);
	/* really gone since */
	assert_int_equal(spt_unmap(f.m, 4, 1), 0);
	assert_int_equal(fix_access(&f, 4, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_table_misses], 1);
	waiter_cancel(f.m, &f.w);
	/* never there */
	for (uint64_t p = 5000; p < 5100; p++) {
		assert_int_equal(fix_access(&f, p, 1, true, &f.w), V_WAIT);
		waiter_cancel(f.m, &f.w);
	}
	assert_int_equal(f.cnt.v[CNT_table_misses], 1);
	assert_int_equal(fix_access(&f, 5, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_table_misses], 2);
	waiter_cancel(f.m, &f.w);
	assert_int_equal(spt_unmap(f.m, 0, UINT64_MAX), 0);
	assert_int_equal(fix_access(&f, 6, 1, true, &f.w), V_WAIT);
	assert_int_equal(f.cnt.v[CNT_table_misses], 2);
	waiter_cancel(f.m, &f.w);
	fix_close(&f);
}

/* --- holds --------------------------------------------------------------- */

static void spt_hold__keeps_pages(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 10, 10, true, f.now);
	assert_int_equal(fix_access(&f, 12, 2, true, NULL), V_OK);
	assert_int_equal(fix_access(&f, 13, 2, false, NULL), V_OK);
	for (uint64_t p = 8; p < 20; p++)
		assert_int_equal(spt_held(f.m, p, 1), p >= 12 && p < 15);
	assert_true(spt_held(f.m, 0, UINT64_MAX));
	assert_false(spt_held(f.m, 15, UINT64_MAX));
	assert_false(spt_held(f.m, 12, 0));
	assert_int_equal(spt_unmap(f.m, 14, 5), -EBUSY);
	assert_int_equal(spt_protect(f.m, 0, UINT64_MAX), -EBUSY);
	assert_true(fix_ready(&f, 14, true));
	assert_int_equal(spt_unmap(f.m, 10, 2), 0);
	dma_release(f.m, &f.holds, 1, true, f.now);
	assert_int_equal(spt_unmap(f.m, 14, 5), 0);
	assert_int_equal(spt_unmap(f.m, 13, 1), -EBUSY);
	dma_release(f.m, &f.holds, 0, false, f.now);
	assert_int_equal(spt_unmap(f.m, 12, 2), 0);
	assert_int_equal(num_entries(&f), 1);
	fix_close(&f);
}

static void spt_hold__is_not_replaced(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 16);
	spt_map(f.m, 3, 2, true, f.now);
	assert_int_equal(fix_access(&f, 3, 2, true, NULL), V_OK);
	spt_map(f.m, 1000, 2000, true, f.now);
	for (uint64_t p = 3000; p < 5000; p++)
		spt_map(f.m, p, 1, true, f.now);
	assert_true(fix_ready(&f, 3, true));
	assert_true(spt_held(f.m, 4, 1));
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_true(fix_ready(&f, 4, true));
	fix_close(&f);
}

static void spt_hold__table_full_of_holds(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 16);
	spt_map(f.m, 0, 16, true, f.now);
	assert_int_equal(fix_access(&f, 0, 16, true, NULL), V_OK);
	spt_map(f.m, 500, 1, true, f.now);
	assert_int_equal(fix_access(&f, 500, 1, true, &f.w), V_NO_RESOURCE);
	assert_int_equal(f.w.ticket.v, 0);
	assert_int_equal(tickets_out(f.m), 0);
	assert_int_equal(f.cnt.v[CNT_faults], 0);
	dma_release(f.m, &f.holds, 0, true, f.now);
	spt_map(f.m, 500, 1, true, f.now);
	assert_int_equal(fix_access(&f, 500, 1, true, &f.w), V_OK);
	fix_close(&f);
}

static void spt_hold__does_not_overflow(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 16);
	spt_map(f.m, 6, 2, true, f.now);
	for (int i = 0; i < (1 << 20) - 1; i++)
		assert_true(spt_hold(f.m, 7));
	assert_false(spt_hold(f.m, 7));
	/* what was held before the page that failed is let go again */
	assert_int_equal(fix_access(&f, 6, 2, true, NULL), V_NO_RESOURCE);
	assert_int_equal(f.holds.num, 0);
	assert_int_equal(f.mv.num, 0);
	assert_false(spt_held(f.m, 6, 1));
	for (int i = 0; i < (1 << 20) - 1; i++)
		spt_unhold(f.m, 7);
	assert_false(spt_held(f.m, 7, 1));
	assert_true(fix_ready(&f, 7, true));
	fix_close(&f);
}

/* The bits of the count are the stamp's there. */
static void spt_hold__not_on_ageing_hosts(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 64);
	spt_map(f.m, 10, 1, true, f.now);
	assert_int_equal(fix_access(&f, 10, 1, true, NULL), V_OK);
	assert_false(spt_held(f.m, 10, 1));
	assert_int_equal(spt_protect(f.m, 10, 1), 0);
	assert_false(fix_ready(&f, 10, true));
	assert_int_equal(spt_unmap(f.m, 10, 1), 0);
	assert_false(fix_ready(&f, 10, false));
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spt_map__pages),
		cmocka_unit_test(spt_map__takes_no_right_away),
		cmocka_unit_test(spt_map__end_of_the_address_space),
		cmocka_unit_test(spt_map__more_than_the_table),
		cmocka_unit_test(spt_unmap__long_and_short_ranges),
		cmocka_unit_test(spt_view__freshness),
		cmocka_unit_test(spt_view__exact_hosts_do_not_age),
		cmocka_unit_test(spt_tick__wrapped_stamps_are_gone),
		cmocka_unit_test(spt_tick__keeps_what_is_young),
		cmocka_unit_test(spt_protect_all__readable_only),
		cmocka_unit_test(spt_protect_all__many_in_a_tick),
		cmocka_unit_test(spt_install__keeps_writable),
		cmocka_unit_test(spt_install__old_news_of_a_page_fetched_ahead),
		cmocka_unit_test(spt_place__oldest_goes),
		cmocka_unit_test(spt_place__half_a_table_fits),
		cmocka_unit_test(spt_was_replaced__counts_table_misses),
		cmocka_unit_test(spt_hold__keeps_pages),
		cmocka_unit_test(spt_hold__is_not_replaced),
		cmocka_unit_test(spt_hold__table_full_of_holds),
		cmocka_unit_test(spt_hold__does_not_overflow),
		cmocka_unit_test(spt_hold__not_on_ageing_hosts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
