/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key_table_test.c: which row a key names, and what an access by each kind may do. Nothing binds
 * a memory window yet: the row of one is made here. */
#include "base/check.h"
#include "fixture.h"
#include "mem/account.h"
#include "mem/cheap.h"
#include "mem/dma.h"
#include "mem/key_table.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/regions.h"
#include "mem/spt.h"
#include "mem/state.h"
#include "mem/suspend.h"
#include "mem/use.h"

enum { REGION = 0x100000, LENGTH = 4 * PAGE_BYTES, QPN = 0x1234 };

/* A window of 100 bytes in the middle of the region, zero-based. */
enum { WINDOW_AT = PAGE_BYTES + 50, WINDOW_BYTES = 100 };

static struct fix f;
static uint32_t region, window, at;

static struct key_row *row(void)
{
	return key_at(&f.m->keys, at);
}

static void bind(enum key_kind kind)
{
	struct key_row *w;

	assert_int_equal(key_take(&f.m->keys, &at), 0);
	w = row();
	*w = (struct key_row){.addr = WINDOW_AT,
			      .length = WINDOW_BYTES,
			      .mr = mr_live(f.m, region),
			      .key = key_new(&f.m->keys, at),
			      .pd = f.pd,
			      .access = ACCESS_REMOTE_WRITE,
			      .qpn = kind == KEY_QP_WINDOW ? QPN : 0,
			      .state = KEY_LIVE,
			      .gen = w->gen,
			      .kind = (uint8_t)kind};
	window = w->key;
}

static int setup(void **state)
{
	(void)state;
	fix_open(&f, (struct mem_config){.entries = 64});
	region = fix_mr(&f, REGION, REGION, LENGTH, FIX_RIGHTS);
	spt_map(f.m, page_of(REGION), 4, true, f.now);
	bind(KEY_WINDOW);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	dma_release(f.m, &f.holds, 0, false, f.now);
	key_give_back(&f.m->keys, at);
	(void)mr_free(f.m, region);
	fix_close(&f);
	return 0;
}

/* A WRITE through the window, by the QP that bound it. */
static struct dma write_to(uint64_t iova, uint64_t len)
{
	struct dma d = fix_dma(&f, iova, len, true);

	d.key = window;
	d.qpn = QPN;
	return d;
}

static enum verdict run(const struct dma *d)
{
	return fix_run(&f, d, &f.w);
}

/* Access one byte at 0x1000. */
static enum verdict try_key(struct fix *x, uint32_t pd, uint32_t key)
{
	struct dma d = {.pd = pd, .key = key, .iova = 0x1000, .len = 1};

	return dma_check(x->m, &d);
}

static void key_lookup__every_bit_of_the_key_counts(void **state)
{
	const struct key_row *row;
	uint32_t key, i;

	(void)state;
	key = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
	for (int b = 0; b < 32; b++)
		assert_int_equal(try_key(&f, f.pd, key ^ 1U << b), V_PROT);
	assert_int_equal(try_key(&f, f.pd, 0), V_PROT);
	assert_int_equal(try_key(&f, f.pd, UINT32_MAX), V_PROT);
	assert_int_equal(try_key(&f, f.pd, key), V_OK);
	row = key_lookup(&f.m->keys, key, &i);
	assert_ptr_equal(row, key_at(&f.m->keys, i));
	assert_ptr_equal(row->mr, mr_live(f.m, key));
	assert_ptr_equal(row->mr->row, row);
	assert_int_equal(mr_free(f.m, key), 0);
}

/* Neither a guess nor the cache of guesses finds a region that is gone. */
static void key_lookup__stale_keys(void **state)
{
	uint32_t old[3000];

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(old); i++) {
		old[i] = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
		assert_int_equal(try_key(&f, f.pd, old[i]), V_OK);
		assert_int_equal(mr_free(f.m, old[i]), 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(old); i++) {
		assert_int_equal(try_key(&f, f.pd, old[i]), V_PROT);
		assert_int_equal(mr_free(f.m, old[i]), -ENOENT);
	}
}

/* Same index, same low bits, only the generation differs. */
static void key_lookup__stale_generation(void **state)
{
	uint32_t key, index, other;

	(void)state;
	key = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
	assert_non_null(key_lookup(&f.m->keys, key, &index));
	for (uint32_t gen = 1; gen < 1 << KEY_GEN_BITS; gen++) {
		other = key_make(&f.m->keys.secret, index, gen);
		other = (other & ~0xffU) | (key & 0xff);
		assert_int_equal(key_index(&f.m->keys.secret, other), index);
		assert_int_equal(try_key(&f, f.pd, other), V_PROT);
	}
	assert_int_equal(mr_free(f.m, key), 0);
}

static void key_lookup__other_pd(void **state)
{
	uint32_t key, pd;

	(void)state;
	pd = (uint32_t)pd_alloc(f.m);
	key = fix_mr(&f, 0x1000, 0x1000, 4096, 0);
	assert_int_equal(try_key(&f, pd, key), V_PROT);
	assert_int_equal(try_key(&f, 0, key), V_PROT);
	assert_int_equal(mr_free(f.m, key), 0);
}

static void key_window__its_bytes_and_rights_only(void **state)
{
	static const struct {
		uint64_t iova, len;
		enum verdict v;
	} cases[] = {
		{0, 1, V_OK},
		{0, WINDOW_BYTES, V_OK},
		{WINDOW_BYTES - 1, 1, V_OK},
		{0, WINDOW_BYTES + 1, V_PROT},
		{WINDOW_BYTES, 1, V_PROT},
		{1, WINDOW_BYTES, V_PROT},
		{UINT64_MAX, 1, V_PROT},
		{REGION + WINDOW_AT, 1, V_PROT},
	};
	struct dma d;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
		d = write_to(cases[i].iova, cases[i].len);
		if (dma_check(f.m, &d) != cases[i].v)
			print_error("case %u\n", i);
		assert_int_equal(dma_check(f.m, &d), cases[i].v);
	}
	d = write_to(0, 1);
	d.need = ACCESS_REMOTE_READ;
	d.write = false;
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	d = write_to(0, 1);
	d.pd = (uint32_t)pd_alloc(f.m);
	assert_int_equal(dma_check(f.m, &d), V_PROT);
}

static void key_window__moves_to_its_region(void **state)
{
	struct dma d;

	(void)state;
	d = write_to(7, 10);
	assert_int_equal(run(&d), V_OK);
	assert_int_equal(f.mv.num, 1);
	assert_int_equal(f.mv.m[0].addr, REGION + WINDOW_AT + 7);
	assert_int_equal(f.mv.m[0].len, 10);
}

/* It has no L_Key. */
static void key_window__is_no_lkey(void **state)
{
	struct dma d;

	(void)state;
	d = write_to(0, 1);
	d.remote = false;
	d.need = ACCESS_LOCAL_WRITE;
	row()->access |= ACCESS_LOCAL_WRITE;
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	d.key = region;
	d.iova = REGION;
	assert_int_equal(dma_check(f.m, &d), V_OK);
}

/* Type 1 is for all QPs of the PD, type 2 for one. */
static void key_window__for_the_qp_that_bound_it(void **state)
{
	const uint32_t first = at;
	struct dma d;

	(void)state;
	d = write_to(0, 1);
	d.qpn = QPN + 1;
	assert_int_equal(dma_check(f.m, &d), V_OK);
	bind(KEY_QP_WINDOW);
	d.key = window;
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	d.qpn = 0;
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	d.qpn = QPN;
	assert_int_equal(dma_check(f.m, &d), V_OK);
	key_give_back(&f.m->keys, first);
}

/* ibv_inc_rkey(): another low byte is another key of the same row. */
static void key_window__low_byte_is_the_programs(void **state)
{
	const uint32_t old = window;
	struct dma d;

	(void)state;
	row()->key = (old & ~0xffU) | ((old + 1) & 0xff);
	d = write_to(0, 1);
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	d.key = row()->key;
	assert_int_equal(dma_check(f.m, &d), V_OK);
}

/* Moves through a window are moves in its region. */
static void key_window__holds_its_region(void **state)
{
	struct dma d;

	(void)state;
	d = write_to(0, 1);
	assert_int_equal(run(&d), V_OK);
	assert_int_equal(row()->holds, 1);
	assert_false(mr_idle(f.m, region));
	assert_int_equal(mr_change(f.m, region, f.pd, FIX_RIGHTS), -EBUSY);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_int_equal(row()->holds, 0);
	assert_true(mr_idle(f.m, region));
	assert_int_equal(mr_change(f.m, region, f.pd, FIX_RIGHTS), 0);
}

/* What a suspension, its end, and age mean for a region holds for its windows. */
static void key_window__waits_with_its_region(void **state)
{
	struct dma d;

	(void)state;
	d = write_to(0, 1);
	assert_int_equal(mr_suspend(f.m, region, MS, f.now), 0);
	assert_int_equal(run(&d), V_WAIT);
	f.now += 10 * MS;
	assert_int_equal(mr_resume(f.m, region, f.now), 0);
	moved_take(f.m, &f.woken);
	assert_int_equal(run(&d), V_WAIT); /* for its page: all are forgotten */
	waiter_cancel(f.m, &f.w);
}

/* What is at the old place is not the region's any more. */
static void key_window__moves_with_its_region(void **state)
{
	enum { OTHER = 0x900000 };
	struct dma d;

	(void)state;
	assert_int_equal(mr_suspend(f.m, region, MS, f.now), 0);
	assert_int_equal(mr_update(f.m, region, OTHER, LENGTH), 0);
	f.now += 10 * MS;
	assert_int_equal(mr_resume(f.m, region, f.now), 0);
	spt_map(f.m, page_of(OTHER), 4, true, f.now);
	d = write_to(7, 10);
	assert_int_equal(run(&d), V_OK);
	assert_int_equal(f.mv.m[0].addr, OTHER + WINDOW_AT + 7);
}

/* However often a peer accesses it: the region is free when what was let in ended. */
static void key_window__ends_with_its_region(void **state)
{
	struct dma d;

	(void)state;
	d = write_to(0, 1);
	assert_int_equal(run(&d), V_OK);
	assert_int_equal(mr_revoke(f.m, region), 0);
	assert_int_equal(dma_check(f.m, &d), V_PROT);
	assert_int_equal(mr_free(f.m, region), -EBUSY);
	dma_release(f.m, &f.holds, 0, true, f.now);
	assert_true(mr_idle(f.m, region));
}

static void key_window__is_invalid_with_its_region(void **state)
{
	struct dma d;

	(void)state;
	assert_int_equal(mr_invalidate(f.m, f.pd, region), V_OK);
	d = write_to(0, 1);
	assert_int_equal(dma_check(f.m, &d), V_PROT);
}

/* A read by the window tells of the pages that the region has now: that writes were
 * possible before does not come back. */
static void key_window__is_as_new_as_its_region(void **state)
{
	struct dma d = fix_dma(&f, REGION, 8, true);
	uint32_t again;

	(void)state;
	again = fix_mr(&f, REGION, REGION, LENGTH, FIX_RIGHTS);
	row()->mr = mr_live(f.m, again);
	row()->access = ACCESS_REMOTE_READ;
	cheap_learn(&f.m->cheap, page_of(REGION), page_of(REGION) + 1, f.now);
	mem_inline_budget(f.m, 4);
	d.key = window;
	d.iova = 0;
	d.need = ACCESS_REMOTE_READ;
	d.write = false;
	row()->addr = 0;
	assert_int_equal(run(&d), V_OK);
	assert_int_equal(f.holds.h[0].cheap, 1);
	f.now += 2 * MS;
	dma_release(f.m, &f.holds, 0, true, f.now);
	f.m->cheap.num = 0;
	d = fix_dma(&f, REGION, 8, true);
	d.key = again;
	assert_int_equal(run(&d), V_WAIT);
	waiter_cancel(f.m, &f.w);
	assert_int_equal(mr_free(f.m, again), 0);
}

/* For the calls that take the key of a region there is none. */
static void key_window__is_no_region(void **state)
{
	struct account account;
	struct mr_attr attr;
	uint32_t next = 0, key;
	unsigned found = 0;

	(void)state;
	assert_null(mr_by_key(f.m, window));
	assert_null(mr_live(f.m, window));
	assert_int_equal(mr_query(f.m, window, &attr), -ENOENT);
	assert_int_equal(mr_revoke(f.m, window), -ENOENT);
	assert_int_equal(mr_free(f.m, window), -ENOENT);
	assert_int_equal(mr_change(f.m, window, f.pd, FIX_RIGHTS), -ENOENT);
	assert_int_equal(mr_suspend(f.m, window, MS, f.now), -ENOENT);
	while (mr_account_next(f.m, &next, &key, &attr, &account))
		found += key == window;
	assert_int_equal(found, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(key_lookup__every_bit_of_the_key_counts),
		T(key_lookup__stale_keys),
		T(key_lookup__stale_generation),
		T(key_lookup__other_pd),
		T(key_window__its_bytes_and_rights_only),
		T(key_window__moves_to_its_region),
		T(key_window__is_no_lkey),
		T(key_window__for_the_qp_that_bound_it),
		T(key_window__low_byte_is_the_programs),
		T(key_window__holds_its_region),
		T(key_window__waits_with_its_region),
		T(key_window__is_no_region),
		T(key_window__moves_with_its_region),
		T(key_window__ends_with_its_region),
		T(key_window__is_invalid_with_its_region),
		T(key_window__is_as_new_as_its_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
