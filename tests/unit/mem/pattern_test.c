/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pattern_test.c: what is foreseen of accesses. A small model of a host whose pages
 * leave again after a while counts what is fetched and of what use that is.
 */
#include "fixture.h"
#include "mem/limits.h"
#include "mem/overwrite.h"
#include "mem/pattern.h"

#include <stdlib.h>
#include <string.h>

enum { REGION = 4096, KEEP = 64 };

/**
 * struct host - @there: page was fetched ahead and not used; @at: at which access
 * @fetched, @hits: pages; @most: at one access
 */
struct host {
	struct pattern p;
	struct pages all;
	uint8_t there[REGION];
	unsigned at[REGION];
	unsigned accesses, fetched, hits, most;
	uint64_t last; /* page asked for */
};

static void host_open(struct host *h, uint64_t start, uint64_t pages)
{
	*h = (struct host){.all = {start, start + pages}};
	assert_true(pages <= REGION);
	pattern_init(&h->p);
}

/* A page that is not used in good time is gone. */
static bool take(struct host *h, uint64_t i)
{
	bool hit = h->there[i] && h->accesses - h->at[i] <= KEEP;

	h->there[i] = false;
	return hit;
}

static void access_pages(struct host *h, uint64_t vpn, uint64_t pages)
{
	unsigned before = h->fetched;
	bool hit = true, first = true;
	struct pages next;
	struct stream *s;

	h->accesses++;
	for (uint64_t i = 0; i < pages; i++) {
		bool there = take(h, vpn + i - h->all.start);

		hit = first ? there : hit;
		first = false;
		h->hits += there;
	}
	s = pattern_note(&h->p, vpn, pages, hit);
	while (s && pattern_next(&h->p, s, &h->all, &next)) {
		assert_true(next.start < next.end);
		assert_true(next.start >= h->all.start);
		assert_true(next.end <= h->all.end);
		for (uint64_t p = next.start; p < next.end; p++) {
			h->there[p - h->all.start] = true;
			h->at[p - h->all.start] = h->accesses;
			h->fetched++;
			h->last = p;
		}
	}
	h->most = MAX(h->most, h->fetched - before);
}

static void access_one(struct host *h, uint64_t vpn)
{
	access_pages(h, vpn, 1);
}

/* Whole region at each stride, from either end: nearly all is foreseen. */
static void pattern__strides(void **state)
{
	static const int64_t strides[] = {1, 2, 3, 7, 64, -1, -2, -3, -64};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(strides); i++) {
		const int64_t d = strides[i];
		uint64_t num = REGION / (uint64_t)llabs(d);
		struct host h;

		host_open(&h, 1000, REGION);
		for (uint64_t k = 0; k < num; k++)
			access_one(&h, (d > 0 ? 1000 : 999 + REGION) +
					       k * (uint64_t)d);
		assert_int_equal(h.hits, num - 3);
		assert_true(h.fetched - h.hits <= 1); /* one would fit */
		assert_true(h.most <= 16);
	}
}

/* Messages of several pages: the first tells of the others. */
static void pattern__messages(void **state)
{
	struct host h;

	(void)state;
	host_open(&h, 0, REGION);
	for (uint64_t k = 0; k < 100; k++) {
		access_pages(&h, k * 8, 4);
		for (uint64_t i = 1; i < 4; i++)
			assert_null(pattern_note(&h.p, k * 8 + i, 4 - i, true));
	}
	assert_int_equal(h.hits, 97 * 4);
	assert_true(h.fetched <= h.hits + 16);
	assert_true(h.most <= 16);
}

static void pattern__interleaved(void **state)
{
	struct rnd rnd = {.k0 = 7};
	uint64_t at[2];
	struct host h;

	(void)state;
	/* one after the other */
	host_open(&h, 0, REGION);
	for (uint64_t k = 0; k < 300; k++) {
		access_one(&h, k);
		access_one(&h, 4000 - 3 * k);
	}
	assert_in_range(h.hits, 2 * 297, 600);
	assert_true(h.fetched - h.hits <= 2 * 16);
	/* as it happens */
	host_open(&h, 0, REGION);
	at[0] = 0;
	at[1] = 2000;
	for (int k = 0; k < 600; k++) {
		unsigned i = rnd_next(&rnd) % 2;

		access_one(&h, at[i]);
		at[i] += i ? 3 : 1;
	}
	assert_in_range(h.hits, 580, 600);
	/* four are known at a time */
	host_open(&h, 0, REGION);
	for (uint64_t k = 0; k < 200; k++)
		for (uint64_t i = 0; i < STREAMS; i++)
			access_one(&h, i * 1000 + k);
	assert_in_range(h.hits, STREAMS * 190, STREAMS * 200);
}

/* At most two pages an access, its own included, however small the region. */
static void pattern__random(void **state)
{
	static const uint64_t pages[] = {2, 3, 8, 16, 64, 256, REGION};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(pages); i++)
		for (uint64_t seed = 1; seed <= 20; seed++) {
			struct rnd rnd = {.k0 = seed};
			unsigned missed = 0;
			struct host h;

			host_open(&h, 5, pages[i]);
			for (int k = 0; k < 5000; k++) {
				unsigned hits = h.hits;

				access_one(&h, 5 + rnd_next(&rnd) % pages[i]);
				missed += hits == h.hits;
			}
			assert_true(missed + h.fetched <= 2 * h.accesses);
			if (pages[i] == REGION)
				assert_true(h.fetched <= h.accesses / 50);
		}
}

/* What is fetched in vain is paid for by what was of use. */
static void pattern__short_runs(void **state)
{
	struct rnd rnd = {.k0 = 3};
	struct host h;

	(void)state;
	host_open(&h, 0, REGION);
	for (int run = 0; run < 2000; run++) {
		uint64_t at = rnd_next(&rnd) % (REGION - 64);

		for (uint64_t k = 0; k < 4 + (uint64_t)run % 9; k++)
			access_one(&h, at + 3 * k);
	}
	assert_true(h.hits > 1000);
	assert_true(h.hits * 10 >= (h.fetched - 8) * 7);
}

/* Pages that never stay are not fetched over and over. */
static void pattern__in_vain(void **state)
{
	struct host h;

	(void)state;
	host_open(&h, 0, REGION);
	for (uint64_t k = 0; k < 1000; k++) {
		access_one(&h, k);
		memset(h.there, 0, sizeof(h.there));
	}
	assert_int_equal(h.hits, 0);
	assert_true(h.fetched <= 8 + 1000 / 4);
	/* when they do again, they are */
	for (uint64_t k = 1000; k < 2000; k++)
		access_one(&h, k);
	assert_in_range(h.hits, 900, 1000);
}

/* Nothing beyond the region, and nothing around the ends of all addresses. */
static void pattern__ends(void **state)
{
	const uint64_t starts[] = {0, 1, VPN_END - 40};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++)
		for (int64_t d = -5; d <= 5; d++) {
			uint64_t at = starts[i] + (d > 0 ? 0 : 39);
			struct host h;

			host_open(&h, starts[i], 40);
			while (at - starts[i] < 40 && d) {
				access_one(&h, at);
				at += (uint64_t)d;
			}
			if (d)
				assert_int_equal(h.fetched, h.hits);
		}
}

/* Regions too small to go on in, the same page again, and backwards and forwards. */
static void pattern__nothing_to_see(void **state)
{
	struct host h;

	(void)state;
	for (uint64_t pages = 1; pages <= 3; pages++) {
		host_open(&h, 10, pages);
		for (uint64_t k = 0; k < pages; k++)
			access_one(&h, 10 + k);
		assert_int_equal(h.fetched, 0);
	}
	host_open(&h, 10, 100);
	for (int k = 0; k < 100; k++)
		access_one(&h, 50);
	assert_int_equal(h.fetched, 0);
	for (uint64_t k = 0; k < 100; k++)
		access_one(&h, k % 2 ? 20 : 90);
	assert_int_equal(h.fetched, 0);
	/* farther apart than anything that belongs together */
	host_open(&h, 0, REGION);
	h.all.end = UINT64_C(1) << 40;
	for (uint64_t k = 0; k < 100; k++)
		assert_null(pattern_note(&h.p, k << 20, 1, false));
}

/* Pages between that were there already are not noted. */
static void pattern__gaps(void **state)
{
	unsigned late = 0;
	struct host h;

	(void)state;
	host_open(&h, 0, REGION);
	for (uint64_t k = 0; k < 1000; k++)
		if (k < 20 || k % 7 != 3)
			access_one(&h, k);
		else
			late++;
	assert_true(h.hits >= 1000 - late - 3);
}

/* Every page that is out is named, and no other. */
static void pattern_asked__what_is_out(void **state)
{
	struct pages asked;
	unsigned n = 0;
	struct host h;

	(void)state;
	host_open(&h, 0, REGION);
	assert_false(pattern_asked(&h.p, 0, &asked));
	for (uint64_t k = 0; k < 300; k++) {
		access_one(&h, 3 * k);
		access_one(&h, 4000 - k);
	}
	for (unsigned i = 0; pattern_asked(&h.p, i, &asked); i++)
		for (uint64_t p = asked.start; p < asked.end; p++, n++)
			assert_true(h.there[p]);
	assert_int_equal(n, h.fetched - h.hits);
	assert_true(n > 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pattern__strides),
		cmocka_unit_test(pattern__messages),
		cmocka_unit_test(pattern__interleaved),
		cmocka_unit_test(pattern__random),
		cmocka_unit_test(pattern__short_runs),
		cmocka_unit_test(pattern__in_vain),
		cmocka_unit_test(pattern__ends),
		cmocka_unit_test(pattern__nothing_to_see),
		cmocka_unit_test(pattern__gaps),
		cmocka_unit_test(pattern_asked__what_is_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
