/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resize_test.c: a table that may be larger or smaller than it was (entries_bound(),
 * entries_resize()). What is in it is compared with what was put in, however often it
 * changes; model_test.c does so with everything else going on.
 */
#include "fixture.h"
#include "mem/ageing.h"
#include "mem/change.h"
#include "mem/dma.h"
#include "mem/limits.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spt.h"
#include "mem/table.h"
#include "mem/use.h"
#include "mem/watch.h"

#include <string.h>

#define TICK (UINT64_C(1) << 20)

static unsigned looks; /* for the regions that have a page */

struct mr *__real_watch_next(const struct watch *w, uint64_t vpn, uint32_t *at);
struct mr *__wrap_watch_next(const struct watch *w, uint64_t vpn, uint32_t *at);

struct mr *__wrap_watch_next(const struct watch *w, uint64_t vpn, uint32_t *at)
{
	looks += *at == 0;
	return __real_watch_next(w, vpn, at);
}

/* The entries that are not free are in the sets in use, and counted. Return: how
 * many there are. */
static uint64_t check_table(const struct fix *f)
{
	const struct spt *s = &f->m->spt;
	uint64_t n = 0;

	for (uint64_t i = 0; i < (s->sets.mask + 1) * SPT_WAYS; i++) {
		n += s->e[i] != 0;
		if (i >= s->sets.used * SPT_WAYS)
			assert_true(s->e[i] == 0);
	}
	assert_int_equal(n, s->live);
	return n;
}

static void resize(struct fix *f, uint64_t entries)
{
	entries_bound(f->m, entries);
	while (entries_resize(f->m, 3))
		;
	assert_int_equal(f->m->spt.sets.used * SPT_WAYS, entries);
}

static void entries_bound__empty_at_once(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 1024);
	entries_bound(f.m, 100);
	assert_int_equal(f.m->spt.sets.used, 25);
	assert_false(entries_resize(f.m, 1));
	entries_bound(f.m, 0);
	assert_int_equal(f.m->spt.sets.used * SPT_WAYS, SPT_ENTRIES_MIN);
	entries_bound(f.m, UINT64_MAX);
	assert_int_equal(f.m->spt.sets.used * SPT_WAYS, 1024);
	fix_close(&f);
}

/* Pages all over the address space, of which as many are there as are counted, and
 * those with the right they had; ranges are found from the entries as well. */
static void entries_resize__loses_nothing_else(void **state)
{
	enum { NUM = 500 };
	uint64_t page[NUM];
	struct rnd r = {7, 8, 0};
	struct fix f;

	(void)state;
	for (int round = 0; round < 60; round++) {
		const uint64_t edge = rnd_next(&r) % VPN_END;
		uint64_t there = 0, entries = 4096;

		fix_open(&f, (struct mem_config){.entries = 4096,
						 .exact = round % 2});
		for (unsigned i = 0; i < NUM; i++) {
			page[i] = i % 2 ? rnd_next(&r) % VPN_END
					: (page[0] + i) % VPN_END;
			if (i == 0)
				page[0] = rnd_next(&r) % VPN_END;
			spt_map(f.m, page[i], 1, i % 3, f.now);
		}
		for (int i = 0; i < 10; i++) {
			entries = 16 + rnd_next(&r) % 1020 * 4;
			resize(&f, entries);
			there = check_table(&f);
			assert_true(there <= entries);
			for (unsigned k = 0; k < NUM; k++)
				there -= fix_ready(&f, page[k], false) &&
					 fix_ready(&f, page[k], k % 3);
			assert_int_equal(there, 0);
		}
		assert_int_equal(f.cnt.v[CNT_spt_evictions] + f.m->spt.live,
				 NUM);
		assert_int_equal(spt_unmap(f.m, edge, VPN_END), 0);
		for (unsigned k = 0; k < NUM; k++)
			there += fix_ready(&f, page[k], false);
		assert_int_equal(there, check_table(&f));
		for (unsigned k = 0; k < NUM; k++)
			if (page[k] >= edge)
				assert_false(fix_ready(&f, page[k], false));
		assert_int_equal(spt_unmap(f.m, 0, VPN_END), 0);
		assert_int_equal(check_table(&f), 0);
		fix_close(&f);
	}
}

/* The table that may be smaller is as good as one that was made so small. */
static void entries_resize__a_stretch_fits(void **state)
{
	struct fix f;

	(void)state;
	for (uint64_t base = 0; base < 4000; base += 37) {
		fix_open_exact(&f, 4096);
		entries_bound(f.m, 64);
		spt_map(f.m, base, 32, true, f.now);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
		resize(&f, 4096);
		spt_map(f.m, base + 32, 2000, true, f.now);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
		for (uint64_t p = base; p < base + 2032; p++)
			assert_true(fix_ready(&f, p, true));
		fix_close(&f);
	}
}

static void entries_resize__oldest_go(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 256);
	spt_map(f.m, 0, 128, true, f.now);
	fix_sleep(&f, 2 * TICK);
	spt_map(f.m, 64, 32, true, f.now);
	resize(&f, 64);
	assert_int_equal(check_table(&f), 64);
	assert_int_equal(f.cnt.v[CNT_spt_evictions], 64);
	for (uint64_t p = 64; p < 96; p++)
		assert_true(fix_ready(&f, p, true));
	/* which were replaced is known */
	assert_true(spt_was_replaced(&f.m->spt, 0) +
			    spt_was_replaced(&f.m->spt, 32) +
			    spt_was_replaced(&f.m->spt, 96) >
		    1);
	fix_close(&f);
}

static void entries_resize__holds_stay(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 1024);
	spt_map(f.m, 0, 1000, true, f.now);
	assert_int_equal(fix_access(&f, 100, 40, true, NULL), V_OK);
	entries_bound(f.m, 16);
	/* until a set would have to take more of what is held than it can */
	assert_true(entries_resize(f.m, 1000));
	assert_in_range(f.m->spt.sets.used, 10, 16);
	check_table(&f);
	for (uint64_t p = 100; p < 140; p++) {
		assert_true(spt_held(f.m, p, 1));
		assert_true(fix_ready(&f, p, true));
	}
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_false(entries_resize(f.m, 1000));
	assert_int_equal(check_table(&f), 16);
	assert_false(spt_held(f.m, 0, VPN_END));
	fix_close(&f);
}

/* What a region needs of a table that shrinks, others lose. */
static void entries_resize__minimum_stays(void **state)
{
	enum { OTHERS = 0x100000, NEEDED = 500 };
	struct mr_attr a = {.addr = 0x5000 * PAGE_BYTES,
			    .length = (NEEDED + 50) * PAGE_BYTES,
			    .access = FIX_RIGHTS,
			    .minimum = NEEDED};
	uint64_t there = 0;
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 4096);
	a.pd = f.pd;
	assert_int_equal(mr_register(f.m, &a, &key), 0);
	spt_map(f.m, 0x5000, NEEDED, true, f.now);
	fix_sleep(&f, 2 * TICK);
	spt_map(f.m, OTHERS, 4096 - NEEDED - 100, true, f.now);
	resize(&f, 2048);
	resize(&f, 1024);
	for (uint64_t p = 0; p < NEEDED; p++)
		assert_true(fix_ready(&f, 0x5000 + p, true));
	assert_int_equal(f.cnt.v[CNT_spt_below], 0);
	/* Half of the table is for minimums, the rest for whoever is newer. */
	resize(&f, 256);
	for (uint64_t p = 0; p < NEEDED; p++)
		there += fix_ready(&f, 0x5000 + p, true);
	assert_in_range(there, 100, 128);
	assert_true(f.cnt.v[CNT_spt_below] > 0);
	check_table(&f);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* Where the only entry of a table is. */
static uint64_t set_of_one(const struct fix *f)
{
	uint64_t i = 0;

	while (!f->m->spt.e[i])
		i++;
	return i / SPT_WAYS;
}

/* Eight pages of two sets of @f that are one in half of its table: first to last. */
static void two_sets(struct fix *f, uint64_t *out)
{
	const uint64_t half = f->m->spt.sets.used / 2;
	unsigned num[2] = {0}, n = 0;

	for (uint64_t p = 0x1000; n < 2 * SPT_WAYS; p++) {
		uint64_t set;

		spt_map(f->m, p, 1, true, f->now);
		set = set_of_one(f);
		assert_int_equal(spt_unmap(f->m, p, 1), 0);
		if (set % half == 0 && num[set / half]++ < SPT_WAYS)
			out[n++] = p;
	}
}

/* A region has one more than its minimum, all old: that goes, then none of them. */
static void entries_resize__minimum_is_reached_within_a_set(void **state)
{
	enum { OLD = 3 };
	struct mr_attr a = {.access = FIX_RIGHTS, .minimum = OLD - 1};
	uint64_t p[2 * SPT_WAYS];
	struct fix f;
	uint32_t key;

	(void)state;
	fix_open_ageing(&f, 32);
	two_sets(&f, p);
	a.pd = f.pd;
	a.addr = p[0] * PAGE_BYTES;
	a.length = (p[OLD - 1] - p[0] + 1) * PAGE_BYTES;
	assert_int_equal(mr_register(f.m, &a, &key), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++) {
		fix_sleep(&f, 2 * MS);
		spt_map(f.m, p[i], 1, true, f.now);
	}
	f.fresh = 0;
	resize(&f, 16);
	assert_int_equal(check_table(&f), SPT_WAYS);
	for (unsigned i = 0; i < ARRAY_SIZE(p); i++)
		assert_int_equal(fix_ready(&f, p[i], true),
				 i == 1 || i == 2 || i >= 6);
	assert_int_equal(f.cnt.v[CNT_spt_below], 0);
	assert_int_equal(mr_free(f.m, key), 0);
	fix_close(&f);
}

/* Whose the entries of a set are is looked up once for each, and twice for each that goes,
 * to count it off and to tell of it; where no region is watched, never. The engine waits
 * meanwhile. */
static void entries_resize__looks_once(void **state)
{
	enum { FULL = 256, SETS = FULL / 2 / SPT_WAYS };
	struct mr_attr a = {.addr = 0x5000 * PAGE_BYTES,
			    .length = FULL * PAGE_BYTES,
			    .access = FIX_RIGHTS,
			    .weight = 2};
	struct fix f;
	uint32_t key;

	(void)state;
	for (int watched = 0; watched < 2; watched++) {
		fix_open_exact(&f, FULL);
		a.pd = f.pd;
		if (watched)
			assert_int_equal(mr_register(f.m, &a, &key), 0);
		spt_map(f.m, 0x5000, FULL, true, f.now);
		assert_int_equal(f.m->spt.live, FULL);
		looks = 0;
		resize(&f, FULL / 2);
		assert_int_equal(f.cnt.v[CNT_spt_evictions], FULL / 2);
		assert_int_equal(looks, watched * SETS * (2 + 2) * SPT_WAYS);
		if (watched)
			assert_int_equal(mr_free(f.m, key), 0);
		fix_close(&f);
	}
}

/* Entries that move under the sweep's feet are seen in time. */
static void entries_resize__wrapped_stamps_are_gone(void **state)
{
	struct rnd r = {1, 9, 0};
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 4096);
	for (int round = 0; round < 8; round++) {
		spt_map(f.m, 10, 1000, true, f.now);
		for (uint64_t t = 0; t < (1 << 20) + 20; t += 1 << 12) {
			entries_bound(f.m, 2048 + rnd_next(&r) % 2049);
			(void)entries_resize(f.m, 1000);
			fix_sleep(&f, (1 << 12) * TICK);
			spt_tick(&f.m->spt, f.now);
			for (uint64_t p = 10; p < 1010; p += 111)
				assert_false(fix_ready(&f, p, false));
		}
		assert_int_equal(check_table(&f), 0);
	}
	fix_close(&f);
}

/* The sweep has not come to all that is too old, but whoever moves is looked at. */
static void entries_resize__sweeps_who_moves(void **state)
{
	struct fix f;

	(void)state;
	fix_open_ageing(&f, 4096);
	spt_map(f.m, 0, 4000, true, f.now);
	for (uint64_t t = 0; t < 3 << 17; t += 1 << 12) {
		fix_sleep(&f, (1 << 12) * TICK);
		spt_tick(&f.m->spt, f.now);
	}
	assert_in_range(check_table(&f), 1000, 3000);
	resize(&f, 2048);
	assert_int_equal(check_table(&f), 0);
	assert_int_equal(f.cnt.v[CNT_spt_evictions], 0);
	fix_close(&f);
}

/* Only what was replaced for want of room says that more is wanted. */
static void spt_place__says_that_it_is_short(void **state)
{
	struct fix f;

	(void)state;
	fix_open_exact(&f, 64);
	spt_map(f.m, 0, 32, true, f.now);
	assert_false(f.m->spt.short_of);
	resize(&f, 16);
	assert_false(f.m->spt.short_of);
	spt_map(f.m, 100, 32, true, f.now);
	assert_true(f.m->spt.short_of);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_bound__empty_at_once),
		cmocka_unit_test(entries_resize__loses_nothing_else),
		cmocka_unit_test(entries_resize__a_stretch_fits),
		cmocka_unit_test(entries_resize__oldest_go),
		cmocka_unit_test(entries_resize__holds_stay),
		cmocka_unit_test(entries_resize__minimum_stays),
		cmocka_unit_test(
			entries_resize__minimum_is_reached_within_a_set),
		cmocka_unit_test(entries_resize__looks_once),
		cmocka_unit_test(entries_resize__wrapped_stamps_are_gone),
		cmocka_unit_test(entries_resize__sweeps_who_moves),
		cmocka_unit_test(spt_place__says_that_it_is_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
