/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
#include "base/check.h"
#include "base/page.h"
#include "mem/ageing.h"
#include "mem/holds.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spt.h"
#include "mem/table.h"
#include "mem/upcall.h"
#include "watched.h"

#include <string.h>

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
	/* of which no set keeps more than two */
	assert_in_range(mr_by_key(f.m, key)->known, 2, 4);
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

/* Of a page that was there before the region was. */
static void minimum__none_is_never_missed(void **state)
{
	uint64_t p[5];
	uint32_t key;

	(void)state;
	same_set(p, 5);
	for (int i = 0; i < 4; i++)
		map(p[i]);
	key = reg_min(p[0], 1, 0, 0);
	map(p[4]);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fix_ready(&f, p[i], true), i != 0);
	assert_false(take(UPCALL_REPLACED).below);
	assert_int_equal(f.cnt.v[CNT_spt_below], 0);
	assert_int_equal(mr_free(f.m, key), 0);
}

/* The one that goes was known before the region was, and does not count. */
static void minimum__is_there_when_another_goes(void **state)
{
	uint64_t p[5];
	uint32_t key;

	(void)state;
	same_set(p, 5);
	map(p[0]);
	fix_sleep(&f, 2 * MS);
	key = reg_min(p[0], p[2] - p[0] + 1, 2, 0);
	fix_sleep(&f, 2 * MS);
	for (int i = 1; i < 5; i++)
		map(p[i]);
	assert_int_equal(mr_by_key(f.m, key)->known, 2);
	assert_false(take(UPCALL_REPLACED).below);
	none();
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

/* Page 0 has an entry that is all zeroes but for its holds. */
static void minimum__counts_what_is_held(void **state)
{
	uint32_t key = reg_min(0, 2, 2, 0);

	(void)state;
	for (uint64_t p = 0; p < 2; p++) {
		assert_true(spt_hold(f.m, p));
		assert_true(spt_hold(f.m, p));
		assert_int_equal(mr_by_key(f.m, key)->known, 1);
		spt_unhold(f.m, p);
		assert_int_equal(mr_by_key(f.m, key)->known, 1);
		spt_unhold(f.m, p);
		assert_int_equal(mr_by_key(f.m, key)->known, 0);
	}
	none();
	assert_int_equal(mr_free(f.m, key), 0);
}

/* Two pages of a set that one access needs, while all others are dear to others:
 * both come to be there. */
static void others__have_two_places(void **state)
{
	uint64_t p[6];

	(void)state;
	same_set(p, 6);
	for (int heavy = 0; heavy < 2; heavy++) {
		uint32_t key[4];

		for (int i = 0; i < 4; i++)
			key[i] = reg_min(p[i], 1, !heavy, heavy ? 1000 : 0);
		for (int i = 0; i < 4; i++)
			map(p[i]);
		for (int turn = 0; turn < 3; turn++) {
			map(p[4]);
			map(p[5]);
			assert_true(fix_ready(&f, p[4], true));
			assert_true(fix_ready(&f, p[5], true));
			if (turn == 1)
				map(p[0]);
		}
		for (int i = 0; i < 4; i++)
			assert_int_equal(mr_free(f.m, key[i]), 0);
		assert_int_equal(spt_unmap(f.m, FIRST, PAGES), 0);
	}
	none();
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

/* It stays, until one that is no lighter is as old. */
static void weight__ages(void **state)
{
	uint64_t p[6];
	uint32_t key[2];

	(void)state;
	same_set(p, 6);
	key[0] = reg_min(p[0], 1, 0, 2);
	key[1] = reg_min(p[2], 1, 0, 2);
	for (int k = 0; k < 4; k++)
		map(p[k]);
	map(p[4]);
	assert_false(fix_ready(&f, p[1], true));
	map(p[5]);
	assert_false(fix_ready(&f, p[0], true));
	assert_int_equal(f.cnt.v[CNT_spt_spared], 1);
	assert_int_equal(mr_free(f.m, key[0]), 0);
	assert_int_equal(mr_free(f.m, key[1]), 0);
}

/* It is no reason to take what a minimum needs. */
static void weight__where_a_minimum_counts(void **state)
{
	uint64_t p[5];
	uint32_t key[3];

	(void)state;
	same_set(p, 5);
	key[0] = reg_min(p[0], 1, 1, 0);
	key[1] = reg_min(p[1], 1, 1, 0);
	key[2] = reg_min(p[2], 1, 0, 9);
	for (int k = 0; k < 5; k++)
		map(p[k]);
	for (int k = 0; k < 5; k++)
		assert_int_equal(fix_ready(&f, p[k], true), k != 2);
	for (int k = 0; k < 3; k++)
		assert_int_equal(mr_free(f.m, key[k]), 0);
}

/* --- against a model ---------------------------------------------------- */

enum { MODEL_REGIONS = 24, MODEL_PAGES = 40 };

struct model_region {
	uint64_t start, pages;
	uint32_t key, known;
};

static struct model_region model[MODEL_REGIONS];

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
		v.max_age[0] = (int64_t)f.m->spt.time.tick - mr->row->since - 1;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		EXACT(minimum__is_kept),
		AGEING(minimum__is_kept),
		EXACT(minimum__and_no_more),
		AGEING(minimum__and_no_more),
		EXACT(minimum__never_refuses),
		EXACT(minimum__none_is_never_missed),
		AGEING(minimum__is_there_when_another_goes),
		EXACT(minimum__counts_what_exact_hosts_know),
		EXACT(minimum__counts_what_is_held),
		EXACT(others__have_two_places),
		EXACT(minimum__all_together),
		EXACT(weight__decides),
		EXACT(weight__ages),
		EXACT(weight__where_a_minimum_counts),
		EXACT(known__is_what_a_model_counts),
		AGEING(known__is_what_a_model_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
