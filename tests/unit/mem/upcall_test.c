/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "mem/dma.h"
#include "mem/limits.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spt.h"
#include "mem/suspend.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "mem/watch.h"
#include "watched.h"

/* --- what is told --------------------------------------------------------- */

static void upcall__of_a_replaced_page(void **state)
{
	uint64_t p[5];
	uint32_t key;
	struct upcall u;

	(void)state;
	same_set(p, 5);
	key = reg_usual();
	for (int i = 0; i < 4; i++)
		map(p[i]);
	none();
	assert_null(upcalls_next(f.m));
	f.now += MS;
	map(p[4]);
	assert_true(upcalls_news(f.m));
	assert_ptr_equal(upcalls_next(f.m), &q);
	assert_false(upcalls_news(f.m));
	u = take(UPCALL_REPLACED);
	assert_int_equal(u.iova, IOVA);
	assert_int_equal(u.length, PAGE_BYTES);
	assert_int_equal(u.at_ns, f.now);
	assert_false(u.below);
	assert_non_null(u.cookie);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

static void upcall__of_an_unmapped_page(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	map(FIRST + 3);
	assert_int_equal(spt_unmap(f.m, FIRST + 2, 4), 0);
	expect(UPCALL_EVICTED, IOVA + 3 * PAGE_BYTES, PAGE_BYTES);
	/* it is known no longer: there is nothing to tell */
	assert_int_equal(spt_unmap(f.m, FIRST + 2, 4), 0);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

/* Its hold keeps the entry of a page that a move found absent, and no more. */
static void upcall__of_a_move_that_failed(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	map(FIRST);
	assert_int_equal(fix_access(&f, FIRST, 1, true, &f.w), V_OK);
	dma_fault(f.m, FIRST * PAGE_BYTES, 100);
	expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
	dma_release(f.m, &f.holds, 0, false, f.now);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

static void upcall__of_a_protected_page(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	map(FIRST);
	spt_map(f.m, FIRST + 5, 1, false, f.now);
	assert_int_equal(spt_protect(f.m, FIRST, 8), 0);
	expect(UPCALL_PROTECTED, IOVA, PAGE_BYTES);
	none();
	spt_protect_all(f.m);
	expect(UPCALL_PROTECTED, IOVA, PAGES * PAGE_BYTES);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

/* What was fetched is known, and what is fetched again not lost. */
static void upcall__of_a_page_fetched_ahead(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	spt_map_ahead(f.m, FIRST, 1, false, f.now, f.fresh, key);
	spt_map_ahead(f.m, FIRST, 1, true, f.now, f.fresh, key);
	map(FIRST);
	none();
	spt_map_ahead(f.m, FIRST + 1, 1, true, f.now, f.fresh, key);
	assert_int_equal(spt_unmap(f.m, FIRST + 1, 1), 0);
	expect(UPCALL_EVICTED, IOVA + PAGE_BYTES, PAGE_BYTES);
	/* for reading only, this time */
	spt_map_ahead(f.m, FIRST + 2, 1, true, f.now, f.fresh, key);
	spt_map(f.m, FIRST + 2, 1, false, f.now);
	expect(UPCALL_PROTECTED, IOVA + 2 * PAGE_BYTES, PAGE_BYTES);
	/* nobody will use it */
	spt_map_ahead(f.m, FIRST + 3, 1, true, f.now, f.fresh, key);
	spt_drop_ahead(f.m, FIRST + 3);
	expect(UPCALL_REPLACED, IOVA + 3 * PAGE_BYTES, PAGE_BYTES);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

static void upcall__suspension_in_order(void **state)
{
	const uint64_t all = PAGES * PAGE_BYTES;
	uint32_t key = reg_usual();
	int n = 0;

	(void)state;
	for (; n < 2; n++) {
		assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
		if (n == 1)
			assert_int_equal(mr_update(f.m, key, 0x9000000, all),
					 0);
		assert_int_equal(mr_resume(f.m, key, f.now), 0);
	}
	expect(UPCALL_SUSPENDED, IOVA, all);
	expect(UPCALL_RESUMED, IOVA, all);
	expect(UPCALL_SUSPENDED, IOVA, all);
	expect(UPCALL_MOVED, IOVA, all);
	expect(UPCALL_RESUMED, IOVA, all);
	none();
	/* it is elsewhere now */
	map(FIRST);
	assert_int_equal(spt_unmap(f.m, FIRST, 1), 0);
	none();
	map(page_of(0x9000000) + 1);
	assert_int_equal(spt_unmap(f.m, page_of(0x9000000) + 1, 1), 0);
	expect(UPCALL_EVICTED, IOVA + PAGE_BYTES, PAGE_BYTES);
	assert_int_equal(mr_free(f.m, key), 0);
}

/* --- queues --------------------------------------------------------------- */

static void evict(uint64_t vpn)
{
	map(vpn);
	assert_int_equal(spt_unmap(f.m, vpn, 1), 0);
}

static void upcalls__neighbours_merge(void **state)
{
	static const uint64_t order[] = {10, 11, 8, 9, 20, 12, 7};
	uint32_t key = reg_usual();

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(order); i++)
		evict(FIRST + order[i]);
	/* what came between them is part of one of them, not of both */
	expect(UPCALL_EVICTED, IOVA + 10 * PAGE_BYTES, 3 * PAGE_BYTES);
	expect(UPCALL_EVICTED, IOVA + 7 * PAGE_BYTES, 3 * PAGE_BYTES);
	expect(UPCALL_EVICTED, IOVA + 20 * PAGE_BYTES, PAGE_BYTES);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

static void upcalls__overflow_is_one_event(void **state)
{
	uint32_t key = reg_usual();
	struct upcall u;

	(void)state;
	for (uint64_t i = 0; i < CAP; i++)
		evict(FIRST + 2 * i);
	f.now += MS;
	evict(FIRST + 2 * CAP);
	f.now += MS;
	evict(FIRST);
	assert_int_equal(mr_suspend(f.m, key, 0, f.now), 0);
	u = take(UPCALL_EVERYTHING);
	assert_null(u.cookie);
	assert_int_equal(u.length, UINT64_MAX);
	assert_int_equal(u.at_ns, f.now - MS);
	none();
	assert_int_equal(mr_resume(f.m, key, f.now), 0);
	evict(FIRST);
	expect(UPCALL_RESUMED, IOVA, PAGES * PAGE_BYTES);
	expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
	none();
	assert_int_equal(f.cnt.v[CNT_upcall_overflows], 1);
	assert_int_equal(mr_free(f.m, key), 0);
}

/* Full, but nothing was lost. */
static void upcalls__as_many_as_it_holds(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		for (uint64_t i = 0; i < CAP; i++)
			evict(FIRST + 2 * i);
		evict(FIRST + 2 * CAP - 1); /* touches the last */
		for (uint64_t i = 0; i < CAP; i++)
			expect(UPCALL_EVICTED, IOVA + 2 * i * PAGE_BYTES,
			       (1 + (i == CAP - 1)) * PAGE_BYTES);
		none();
	}
	assert_int_equal(mr_free(f.m, key), 0);
}

static void upcalls__nothing_of_a_region_that_is_gone(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		uint32_t key = reg_usual(), other = reg_usual();

		evict(FIRST);
		if (i == 0)
			assert_int_equal(mr_free(f.m, key), 0);
		else if (i == 1)
			assert_int_equal(mr_revoke(f.m, key), 0);
		else
			assert_int_equal(mr_invalidate(f.m, f.pd, key), V_OK);
		evict(FIRST + 9);
		expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
		expect(UPCALL_EVICTED, IOVA + 9 * PAGE_BYTES, PAGE_BYTES);
		none();
		assert_int_equal(q.regions, 2 - (i == 0));
		if (i > 0)
			assert_int_equal(mr_free(f.m, key), 0);
		evict(FIRST);
		assert_int_equal(mr_free(f.m, other), 0);
		assert_true(q.waiting);
		none();
	}
	assert_int_equal(f.m->watch.num, 0);
}

static void upcalls__bad_sizes(void **state)
{
	struct upcalls bad;

	(void)state;
	assert_int_equal(upcalls_init(&bad, 0), -EINVAL);
	assert_int_equal(upcalls_init(&bad, UPCALLS_MAX + 1), -EINVAL);
}

/* --- ranges --------------------------------------------------------------- */

static void upcall__only_bytes_of_the_region(void **state)
{
	static const struct {
		uint64_t off, len; /* of the region, from FIRST */
		uint64_t page, at, bytes; /* page lost; 0 bytes: nothing */
	} t[] = {
		{0, 0, 0, 0, 0},	   {0, 1, 0, 0, 1},
		{0, 1, 1, 0, 0},	   {5, 1, 0, 0, 1},
		{0, 4095, 0, 0, 4095},	   {0, 4096, 0, 0, 4096},
		{0, 4096, 1, 0, 0},	   {0, 4097, 0, 0, 4096},
		{0, 4097, 1, 4096, 1},	   {0, 4097, 2, 0, 0},
		{4095, 2, 0, 0, 1},	   {4095, 2, 1, 1, 1},
		{100, 8192, 0, 0, 3996},   {100, 8192, 1, 3996, 4096},
		{100, 8192, 2, 8092, 100},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		uint32_t key;

		assert_int_equal(
			reg((struct mr_attr){.addr = FIRST * PAGE_BYTES +
						     t[i].off,
					     .length = t[i].len,
					     .iova = IOVA,
					     .upcalls = &q},
			    &key),
			0);
		evict(FIRST + t[i].page);
		if (t[i].bytes)
			expect(UPCALL_EVICTED, IOVA + t[i].at, t[i].bytes);
		none();
		assert_int_equal(mr_free(f.m, key), 0);
	}
}

static void upcall__ends_of_the_address_space(void **state)
{
	const uint64_t last = VPN_END - 1;
	uint32_t all, end, beyond;

	(void)state;
	assert_int_equal(
		reg((struct mr_attr){.length = UINT64_MAX, .upcalls = &q},
		    &all),
		0);
	assert_int_equal(reg((struct mr_attr){.addr = last << PAGE_SHIFT,
					      .iova = UINT64_MAX - 4095,
					      .length = PAGE_BYTES,
					      .upcalls = &q},
			     &end),
			 0);
	/* no page of it can ever be known */
	assert_int_equal(reg((struct mr_attr){.addr = UINT64_MAX - 99,
					      .length = 100,
					      .upcalls = &q},
			     &beyond),
			 0);
	evict(0);
	expect(UPCALL_EVICTED, 0, PAGE_BYTES);
	none();
	evict(last);
	expect(UPCALL_EVICTED, last << PAGE_SHIFT, PAGE_BYTES);
	expect(UPCALL_EVICTED, UINT64_MAX - 4095, PAGE_BYTES);
	none();
	spt_protect_all(f.m);
	expect(UPCALL_PROTECTED, 0, UINT64_MAX);
	expect(UPCALL_PROTECTED, UINT64_MAX - 4095, PAGE_BYTES);
	expect(UPCALL_PROTECTED, 0, 100);
	none();
	assert_int_equal(mr_free(f.m, all), 0);
	assert_int_equal(mr_free(f.m, end), 0);
	assert_int_equal(mr_free(f.m, beyond), 0);
}

/* --- hosts whose table is a guess ------------------------------------------ */

static void ageing__stale_is_no_event(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	fix_sleep(&f, 10 * MS);
	map(FIRST);
	fix_sleep(&f, 1000 * MS);
	assert_false(fix_ready(&f, FIRST, true));
	none();
	/* but that it is absent is */
	spt_absent(f.m, FIRST, 2);
	expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

/* Nor is that it is asked for again, whoever asks: it may well be there. */
static void ageing__stale_ahead_is_no_event(void **state)
{
	const struct dma d = fix_dma(&f, FIRST * PAGE_BYTES, PAGE_BYTES, true);
	uint32_t key = reg_usual();

	(void)state;
	for (int absent = 0; absent < 2; absent++)
		for (int fetch = 0; fetch < 2; fetch++) {
			fix_sleep(&f, 1000 * MS);
			spt_map_ahead(f.m, FIRST, 1, true, f.now, f.fresh, key);
			fix_sleep(&f, 1000 * MS);
			waiter_init(&f.w, NULL);
			assert_int_equal(
				fetch ? dma_fetch(f.m, &d, f.now, f.fresh, &f.w)
				      : fix_run(&f, &d, &f.w),
				V_WAIT);
			none();
			if (absent) {
				spt_absent(f.m, FIRST, 1);
				expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
			}
			fix_done(&f, fix_next(&f), 1, false);
			none();
			assert_true(fix_ready(&f, FIRST, true));
			assert_int_equal(spt_unmap(f.m, FIRST, 1), 0);
			expect(UPCALL_EVICTED, IOVA, PAGE_BYTES);
		}
	assert_int_equal(mr_free(f.m, key), 0);
}

static void ageing__swept(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	fix_sleep(&f, 10 * MS);
	map(FIRST);
	for (int i = 0; i < 300; i++) {
		fix_sleep(&f, 1000 * MS);
		map(0x9999);
	}
	none();
	for (int i = 0; i < 300; i++) {
		fix_sleep(&f, 1000 * MS);
		map(0x9999);
	}
	expect(UPCALL_REPLACED, IOVA, PAGE_BYTES);
	none();
	map(FIRST);
	assert_int_equal(mr_by_key(f.m, key)->known, 1);
	/* nobody looked for so long that everything goes */
	fix_sleep(&f, UINT64_C(3000) * 1000 * MS);
	map(0x9999);
	expect(UPCALL_REPLACED, IOVA, PAGES * PAGE_BYTES);
	none();
	assert_int_equal(mr_by_key(f.m, key)->known, 0);
	assert_int_equal(mr_free(f.m, key), 0);
}

static void ageing__fork(void **state)
{
	uint32_t key = reg_usual();

	(void)state;
	spt_protect_all(f.m);
	spt_protect_all(f.m);
	expect(UPCALL_PROTECTED, IOVA, PAGES * PAGE_BYTES);
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

/* --- against a model -------------------------------------------------------- */

enum { MODEL_REGIONS = 24, MODEL_PAGES = 40 };

struct model_region {
	uint64_t start, pages;
	uint32_t key, known;
};

static struct model_region model[MODEL_REGIONS];

static void model_toggle(struct rnd *r, struct model_region *x)
{
	if (x->key) {
		assert_int_equal(mr_free(f.m, x->key), 0);
		x->key = 0;
		return;
	}
	x->start = FIRST + rnd_next(r) % MODEL_PAGES;
	x->pages = rnd_next(r) % 9 + 1;
	if (rnd_next(r) % 8 == 0) {
		x->start = 0;
		x->pages = VPN_END;
	}
	x->key = reg_min(x->start, x->pages, 0, 2);
}

static void model_watch(uint64_t vpn)
{
	unsigned want = 0, got = 0;
	uint32_t at = 0;
	const struct mr *mr;

	for (unsigned i = 0; i < MODEL_REGIONS; i++)
		want += model[i].key && vpn >= model[i].start &&
			vpn - model[i].start < model[i].pages;
	while ((mr = watch_next(&f.m->watch, vpn, &at))) {
		assert_true(vpn >= page_of(mr->row->addr));
		assert_true(vpn - page_of(mr->row->addr) <
			    pages_spanned(mr->row->addr, mr->row->length));
		got++;
	}
	assert_int_equal(got, want);
}

static void watch__finds_what_a_model_finds(void **state)
{
	struct rnd r = {1, 2, 0};

	(void)state;
	for (int i = 0; i < 3000; i++) {
		model_toggle(&r, &model[rnd_next(&r) % MODEL_REGIONS]);
		for (uint64_t p = FIRST - 2; p < FIRST + MODEL_PAGES + 12; p++)
			model_watch(p);
	}
	for (unsigned i = 0; i < MODEL_REGIONS; i++)
		if (model[i].key)
			model_toggle(&r, &model[i]);
	assert_int_equal(f.m->watch.num, 0);
}

/* The old one is watched still, and what is known of it is. */
static void mr_replace__refused(void **state)
{
	uint32_t key = reg_min(FIRST, 8, 8, 0), more = 0;
	struct mr_attr a;

	(void)state;
	map(FIRST + 1);
	map(FIRST + 2);
	assert_int_equal(mr_query(f.m, key, &a), 0);
	a.minimum = TABLE;
	a.length = PAGES * PAGE_BYTES;
	assert_int_equal(mr_replace(f.m, key, &a, &more), -ENOSPC);
	a.length = UINT64_MAX;
	assert_int_equal(mr_replace(f.m, key, &a, &more), -EINVAL);
	assert_int_equal(f.m->watch.promised, 8);
	assert_int_equal(mr_by_key(f.m, key)->known, 2);
	evict(FIRST + 1);
	expect(UPCALL_EVICTED, (FIRST + 1) * PAGE_BYTES, PAGE_BYTES);
	/* one that a peer invalidated is promised nothing */
	assert_int_equal(mr_invalidate(f.m, f.pd, key), V_OK);
	a.length = PAGES * PAGE_BYTES;
	assert_int_equal(mr_replace(f.m, key, &a, &more), -ENOSPC);
	assert_int_equal(f.m->watch.promised, 0);
	a.minimum = TABLE / 2;
	assert_int_equal(mr_replace(f.m, key, &a, &more), 0);
	assert_int_equal(mr_free(f.m, key), 0);
	assert_int_equal(f.m->watch.promised, TABLE / 2);
	assert_int_equal(mr_free(f.m, more), 0);
}

static void watch__is_bounded(void **state)
{
	static uint32_t key[MR_WATCHED_MAX];
	struct mr_attr a = {.length = PAGE_BYTES, .upcalls = &q};
	uint32_t more;

	(void)state;
	for (uint32_t i = 0; i < MR_WATCHED_MAX; i++) {
		a.addr = (uint64_t)(i * 7919 % MR_WATCHED_MAX + 1) << 13;
		assert_int_equal(reg(a, &key[i]), 0);
	}
	assert_int_equal(reg(a, &more), -ENOMEM);
	/* but one of them may be replaced */
	a.pd = f.pd;
	a.access = FIX_RIGHTS;
	assert_int_equal(mr_replace(f.m, key[7], &a, &more), 0);
	assert_int_equal(mr_free(f.m, key[7]), 0);
	key[7] = more;
	assert_int_equal(mr_replace(f.m, 0, &a, &more), -ENOMEM);
	a.upcalls = NULL;
	assert_int_equal(reg(a, &more), 0);
	assert_int_equal(mr_free(f.m, more), 0);
	evict(2 * MR_WATCHED_MAX);
	assert_int_equal(q.num, 1);
	for (uint32_t i = 0; i < MR_WATCHED_MAX; i++)
		assert_int_equal(mr_free(f.m, key[i]), 0);
	assert_int_equal(f.m->watch.num, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(upcall__of_a_replaced_page),
		EXACT(upcall__of_an_unmapped_page),
		EXACT(upcall__of_a_move_that_failed),
		EXACT(upcall__of_a_protected_page),
		EXACT(upcall__of_a_page_fetched_ahead),
		EXACT(upcall__suspension_in_order),
		EXACT(upcalls__neighbours_merge),
		EXACT(upcalls__overflow_is_one_event),
		EXACT(upcalls__as_many_as_it_holds),
		EXACT(upcalls__nothing_of_a_region_that_is_gone),
		EXACT(upcalls__bad_sizes),
		EXACT(upcall__only_bytes_of_the_region),
		EXACT(upcall__ends_of_the_address_space),
		AGEING(ageing__stale_is_no_event),
		AGEING(ageing__stale_ahead_is_no_event),
		AGEING(ageing__swept),
		AGEING(ageing__fork),
		EXACT(watch__finds_what_a_model_finds),
		EXACT(mr_replace__refused),
		EXACT(watch__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
