/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* watched.h: a fixture with a small table and a queue of upcalls. */
#ifndef NOPIN_TESTS_MEM_WATCHED_H
#define NOPIN_TESTS_MEM_WATCHED_H

#include "base/page.h"
#include "fixture.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/table.h"
#include "mem/upcall.h"

#include <stdlib.h>

enum { TABLE = 16, FIRST = 0x1000, PAGES = 64, CAP = 8, IOVA = 0x700000 };

static struct fix f;
static struct upcalls q;

static inline int open_exact(void **state)
{
	(void)state;
	fix_open_exact(&f, TABLE);
	assert_int_equal(upcalls_init(&q, CAP), 0);
	return 0;
}

static inline int open_ageing(void **state)
{
	(void)state;
	fix_open_ageing(&f, TABLE);
	assert_int_equal(upcalls_init(&q, CAP), 0);
	return 0;
}

/* After a test that failed its regions are there. */
static inline int teardown(void **state)
{
	(void)state;
	assert_int_equal(q.regions, 0);
	upcalls_fini(&q);
	fix_close(&f);
	return 0;
}

static inline int reg(struct mr_attr a, uint32_t *key)
{
	a.pd = f.pd;
	a.access = FIX_RIGHTS;
	return mr_register(f.m, &a, key);
}

/* PAGES whole pages with upcalls. */
static inline uint32_t reg_usual(void)
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

static inline void map(uint64_t vpn)
{
	spt_map(f.m, vpn, 1, true, f.now);
}

static inline void none(void)
{
	struct upcall u;

	assert_false(upcalls_take(f.m, &q, &u));
	assert_false(q.waiting);
}

static inline struct upcall take(enum upcall_reason reason)
{
	struct upcall u;

	assert_true(q.waiting);
	assert_true(upcalls_take(f.m, &q, &u));
	assert_int_equal(u.reason, reason);
	return u;
}

static inline void expect(enum upcall_reason reason, uint64_t iova,
			  uint64_t length)
{
	struct upcall u = take(reason);

	assert_int_equal(u.iova, iova);
	assert_int_equal(u.length, length);
}

/* Pages [FIRST, FIRST + PAGES) that share a set with the first: at least 5. */
static inline unsigned same_set(uint64_t *out, unsigned max)
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

/* Whole pages, with upcalls. */
static inline uint32_t reg_min(uint64_t vpn, uint64_t pages, uint32_t minimum,
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

#define EXACT(name) cmocka_unit_test_setup_teardown(name, open_exact, teardown)
#define AGEING(name)                                                           \
	cmocka_unit_test_setup_teardown(name, open_ageing, teardown)

#endif
