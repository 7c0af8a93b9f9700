/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "fixture.h"

#include <stdlib.h>

enum { TABLE = 16, FIRST = 0x1000, PAGES = 64, CAP = 8, IOVA = 0x700000 };

static struct fix f;
static struct upcalls q;

static int open_exact(void **state)
{
	(void)state;
	fix_open_exact(&f, TABLE);
	assert_int_equal(upcalls_init(&q, CAP), 0);
	return 0;
}

static int open_ageing(void **state)
{
	(void)state;
	fix_open_ageing(&f, TABLE);
	assert_int_equal(upcalls_init(&q, CAP), 0);
	return 0;
}

/* After a test that failed its regions are there. */
static int teardown(void **state)
{
	(void)state;
	assert_int_equal(q.regions, 0);
	upcalls_fini(&q);
	fix_close(&f);
	return 0;
}

static int reg(struct mr_attr a, uint32_t *key)
{
	a.pd = f.pd;
	a.access = FIX_RIGHTS;
	return mr_register(f.m, &a, key);
}

/* PAGES whole pages with upcalls. */
static uint32_t reg_usual(void)
{
	uint32_t key = 0;

	assert_int_equal(reg((struct mr_attr){.addr = FIRST * PAGE_BYTES,
					      .iova = IOVA,
					      .length = PAGES * PAGE_BYTES,
					      .upcalls = &q,
					      .cookie = &q},
			     &key),
			 0);
	return key;
}

static void map(uint64_t vpn)
{
	spt_map(f.m, vpn, 1, true, f.now);
}

static void none(void)
{
	struct upcall u;

	assert_false(upcalls_take(f.m, &q, &u));
	assert_false(q.waiting);
}

static struct upcall take(enum upcall_reason reason)
{
	struct upcall u;

	assert_true(q.waiting);
	assert_true(upcalls_take(f.m, &q, &u));
	assert_int_equal(u.reason, reason);
	return u;
}

static void expect(enum upcall_reason reason, uint64_t iova, uint64_t length)
{
	struct upcall u = take(reason);

	assert_int_equal(u.iova, iova);
	assert_int_equal(u.length, length);
}

/* Pages [FIRST, FIRST + PAGES) that share a set with the first: at least 5. */
static unsigned same_set(uint64_t *out, unsigned max)
{
	uint64_t set[PAGES];
	unsigned n = 0;

	for (uint64_t i = 0; i < PAGES; i++) {
		map(FIRST + i);
		for (uint64_t k = 0; k < TABLE; k++)
			if (f.m->spt.e[k])
				set[i] = k / SPT_WAYS;
		assert_int_equal(spt_unmap(f.m, FIRST + i, 1), 0);
		if (set[i] == set[0] && n < max)
			out[n++] = FIRST + i;
	}
	assert_int_equal(n, max);
	return n;
}

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

/* --- minimum and weight ---------------------------------------------------- */

static uint32_t reg_min(uint64_t vpn, uint64_t pages, uint32_t minimum,
			uint32_t weight)
{
	uint32_t key = 0;

	assert_int_equal(reg((struct mr_attr){.addr = vpn * PAGE_BYTES,
					      .iova = vpn * PAGE_BYTES,
					      .length = pages * PAGE_BYTES,
					      .minimum = minimum,
					      .weight = weight,
					      .upcalls = &q},
			     &key),
			 0);
	return key;
}

static void minimum__is_kept(void **state)
{
	uint32_t key = reg_min(FIRST, 8, 8, 0);

	(void)state;
	for (uint64_t i = 0; i < 8; i++)
		map(FIRST + i);
	for (uint64_t i = 0; i < 1000; i++)
		map(0x5000 + i * 7);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(fix_ready(&f, FIRST + i, true));
	none();
	assert_true(f.cnt.v[CNT_spt_spared] > 0);
	assert_int_equal(f.cnt.v[CNT_spt_below], 0);
	assert_int_equal(mr_free(f.m, key), 0);
	/* and then it is nobody's */
	for (uint64_t i = 0; i < 1000; i++)
		map(0x5000 + i * 7);
	for (uint64_t i = 0; i < 8; i++)
		assert_false(fix_ready(&f, FIRST + i, true));
}

/* Beyond its minimum a region has what others have. */
static void minimum__and_no_more(void **state)
{
	uint32_t key = reg_min(FIRST, PAGES, 4, 0);

	(void)state;
	for (uint64_t i = 0; i < TABLE; i++)
		map(FIRST + i);
	for (uint64_t i = 0; i < 1000; i++)
		map(0x5000 + i * 7);
	assert_int_equal(mr_by_key(f.m, key)->known, 4);
	take(UPCALL_REPLACED);
	assert_int_equal(mr_free(f.m, key), 0);
}

static void minimum__never_refuses(void **state)
{
	uint64_t p[5];
	uint32_t key;
	struct upcall u;

	(void)state;
	same_set(p, 5);
	key = reg_min(FIRST, PAGES, 8, 0);
	for (int i = 0; i < 5; i++)
		map(p[i]);
	assert_false(fix_ready(&f, p[0], true));
	assert_true(fix_ready(&f, p[4], true));
	u = take(UPCALL_REPLACED);
	assert_true(u.below);
	assert_int_equal(u.iova, p[0] * PAGE_BYTES);
	none();
	assert_int_equal(f.cnt.v[CNT_spt_below], 1);
	assert_int_equal(mr_free(f.m, key), 0);
}

/* What the table has of its pages when it is made. */
static void minimum__counts_what_exact_hosts_know(void **state)
{
	uint32_t key;

	(void)state;
	spt_map(f.m, FIRST, 3, true, f.now);
	key = reg_min(FIRST, 8, 2, 0);
	assert_int_equal(mr_by_key(f.m, key)->known, 3);
	assert_int_equal(spt_unmap(f.m, FIRST, 8), 0);
	assert_int_equal(mr_by_key(f.m, key)->known, 0);
	assert_int_equal(mr_free(f.m, key), 0);
}

static void minimum__all_together(void **state)
{
	uint32_t a, b = 0;
	struct mr_attr want = {
		.addr = 0x100000, .length = 5 * PAGE_BYTES, .minimum = 5};

	(void)state;
	/* more than there are pages is no more than there are pages */
	a = reg_min(FIRST, 4, 1000, 0);
	assert_int_equal(reg(want, &b), -ENOSPC);
	want.minimum = 4;
	assert_int_equal(reg(want, &b), 0);
	assert_int_equal(mr_free(f.m, a), 0);
	assert_int_equal(mr_free(f.m, b), 0);
	want.minimum = TABLE / 2 + 1;
	want.length = PAGES * PAGE_BYTES;
	assert_int_equal(reg(want, &b), -ENOSPC);
	want.minimum--;
	assert_int_equal(reg(want, &b), 0);
	assert_int_equal(mr_free(f.m, b), 0);
	want.weight = MR_WEIGHT_MAX + 1;
	assert_int_equal(reg(want, &b), -EINVAL);
}

/* Among the four of a set, all of weight 1 but the oldest. */
static void weight__decides(void **state)
{
	static const struct {
		uint32_t weight;
		int goes;
	} t[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 1}, {1000, 1}};
	uint64_t p[5];

	(void)state;
	same_set(p, 5);
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		uint32_t key = reg_min(p[0], 1, 0, t[i].weight);

		for (int k = 0; k < 5; k++)
			map(p[k]);
		for (int k = 0; k < 5; k++)
			assert_int_equal(fix_ready(&f, p[k], true),
					 k != t[i].goes);
		assert_int_equal(mr_free(f.m, key), 0);
		assert_int_equal(spt_unmap(f.m, FIRST, PAGES), 0);
	}
	while (q.waiting)
		none();
}

/* A weight of 2 lasts twice as long, not for ever. */
static void weight__ages(void **state)
{
	uint64_t p[6];
	uint32_t key;

	(void)state;
	same_set(p, 6);
	key = reg_min(p[0], 1, 0, 2);
	for (int k = 0; k < 4; k++)
		map(p[k]);
	map(p[4]); /* p[1] goes: 3rd against 4th / 2 */
	assert_true(fix_ready(&f, p[0], true));
	map(p[4]);
	map(p[2]);
	map(p[3]);
	assert_int_equal(f.cnt.v[CNT_spt_spared], 1);
	assert_int_equal(mr_free(f.m, key), 0);
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
		assert_true(vpn >= page_of(mr->attr.addr));
		assert_true(vpn - page_of(mr->attr.addr) <
			    pages_spanned(mr->attr.addr, mr->attr.length));
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

/* mr.known of each region, by looking at all of the table. */
static void known_is_right(void)
{
	for (unsigned i = 0; i < MODEL_REGIONS; i++) {
		struct model_region *x = &model[i];
		struct spt_view v = {{1 << 17, 1 << 17}};
		const struct mr *mr;
		uint32_t n = 0;

		if (!x->key)
			continue;
		mr = mr_by_key(f.m, x->key);
		v.max_age[0] = (int64_t)f.m->spt.tick - mr->since - 1;
		for (uint64_t p = x->start; p < x->start + x->pages; p++)
			n += spt_age(&f.m->spt, &v, p, false) >= 0 ||
			     spt_ahead(&f.m->spt, &v, p, false);
		assert_int_equal(mr->known, n);
	}
}

static void known_step(struct rnd *r)
{
	const uint64_t vpn = FIRST + rnd_next(r) % MODEL_PAGES;
	struct model_region *x = &model[rnd_next(r) % MODEL_REGIONS];

	fix_sleep(&f, rnd_next(r) % 3 * 3 * MS + 2 * MS);
	switch (rnd_next(r) % 8) {
	case 0:
		if (x->key)
			assert_int_equal(mr_free(f.m, x->key), 0);
		x->start = vpn;
		x->pages = rnd_next(r) % 9 + 1;
		x->key = x->key ? 0 : reg_min(vpn, x->pages, 1, 0);
		break;
	case 1:
		(void)spt_unmap(f.m, vpn, rnd_next(r) % 5);
		break;
	case 2:
		spt_map_ahead(f.m, vpn, 2, rnd_next(r) % 2, f.now, f.fresh, 0);
		break;
	case 3:
		(void)spt_use(f.m, vpn);
		break;
	case 4:
		spt_protect_all(f.m);
		break;
	default:
		spt_map(f.m, vpn, rnd_next(r) % 4, rnd_next(r) % 2, f.now);
	}
}

static void known__is_what_a_model_counts(void **state)
{
	struct rnd r = {5, 6, 0};

	(void)state;
	memset(model, 0, sizeof(model));
	for (int i = 0; i < 20000; i++) {
		/* half of the table is promised at most */
		if (f.m->watch.promised + 2 > TABLE / 2)
			for (unsigned k = 0; k < MODEL_REGIONS; k++) {
				if (model[k].key)
					(void)mr_free(f.m, model[k].key);
				model[k].key = 0;
			}
		known_step(&r);
		known_is_right();
	}
	for (unsigned k = 0; k < MODEL_REGIONS; k++)
		if (model[k].key)
			(void)mr_free(f.m, model[k].key);
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
#define T(name) cmocka_unit_test_setup_teardown(name, open_exact, teardown)
#define A(name) cmocka_unit_test_setup_teardown(name, open_ageing, teardown)
		T(upcall__of_a_replaced_page),
		T(upcall__of_an_unmapped_page),
		T(upcall__of_a_move_that_failed),
		T(upcall__of_a_protected_page),
		T(upcall__of_a_page_fetched_ahead),
		T(upcall__suspension_in_order),
		T(upcalls__neighbours_merge),
		T(upcalls__overflow_is_one_event),
		T(upcalls__as_many_as_it_holds),
		T(upcalls__nothing_of_a_region_that_is_gone),
		T(upcalls__bad_sizes),
		T(upcall__only_bytes_of_the_region),
		T(upcall__ends_of_the_address_space),
		T(minimum__is_kept),
		A(minimum__is_kept),
		T(minimum__and_no_more),
		A(minimum__and_no_more),
		T(minimum__never_refuses),
		T(minimum__counts_what_exact_hosts_know),
		T(minimum__all_together),
		T(weight__decides),
		T(weight__ages),
		A(ageing__stale_is_no_event),
		A(ageing__swept),
		A(ageing__fork),
		T(watch__finds_what_a_model_finds),
		T(known__is_what_a_model_counts),
		A(known__is_what_a_model_counts),
		T(watch__is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
