/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key_test.c: the key permutation. */
#include "base/check.h"
#include "fixture.h"
#include "mem/key.h"
#include "mem/key_table.h"

#include <stdlib.h>

static void keys_open(struct key_secret *k, uint64_t seed)
{
	key_init(k, (const uint64_t[]){seed, ~seed});
}

static void key_make__inverts(void **state)
{
	static const uint32_t index[] = {
		0, 1, 2, 1023, 1024, 131071, KEYS_MAX - 2, KEYS_MAX - 1};
	struct key_secret k;

	(void)state;
	keys_open(&k, 7);
	for (unsigned i = 0; i < ARRAY_SIZE(index); i++)
		for (uint32_t gen = 0; gen < 200; gen++)
			assert_int_equal(
				key_index(&k, key_make(&k, index[i], gen)),
				index[i]);
}

/* No two of (index, generation) share their upper 24 bits. */
static void key_make__is_a_permutation(void **state)
{
	uint8_t *seen = calloc(1, 1 << KEY_BITS);
	struct key_secret k;

	(void)state;
	assert_non_null(seen);
	keys_open(&k, 8);
	for (uint32_t index = 0; index < 2048; index++)
		for (uint32_t gen = 0; gen < 1 << KEY_GEN_BITS; gen++) {
			uint32_t v = key_make(&k, index, gen) >> KEY_LOW_BITS;

			assert_int_equal(seen[v], 0);
			seen[v] = 1;
		}
	free(seen);
}

static void key_make__generation_wraps(void **state)
{
	struct key_secret k;

	(void)state;
	keys_open(&k, 9);
	assert_int_equal(key_make(&k, 5, 3) >> KEY_LOW_BITS,
			 key_make(&k, 5, 3 + (1 << KEY_GEN_BITS)) >>
				 KEY_LOW_BITS);
	assert_int_not_equal(key_make(&k, 5, 3) >> KEY_LOW_BITS,
			     key_make(&k, 5, 4) >> KEY_LOW_BITS);
}

/* From one key the next cannot be told: no difference is frequent, and every
 * bit of the key changes about every second time.
 */
static void key_make__neighbours_are_unrelated(void **state)
{
	uint32_t last, flips[32] = {0};
	unsigned repeats = 0;
	uint32_t diff = 0;
	struct key_secret k;

	(void)state;
	keys_open(&k, 10);
	last = key_make(&k, 0, 0);
	for (uint32_t i = 1; i <= 4096; i++) {
		uint32_t key = key_make(&k, i, 0);

		repeats += key - last == diff;
		diff = key - last;
		for (int b = 0; b < 32; b++)
			flips[b] += (key ^ last) >> b & 1;
		last = key;
	}
	assert_true(repeats < 3);
	for (int b = 0; b < 32; b++)
		assert_in_range(flips[b], 1848, 2248);
}

static void key_make__seeds_differ(void **state)
{
	struct key_secret a, b;
	unsigned same = 0;

	(void)state;
	keys_open(&a, 1);
	keys_open(&b, 2);
	for (uint32_t i = 0; i < 1000; i++)
		same += key_make(&a, i, 0) == key_make(&b, i, 0);
	assert_true(same < 3);
}

/* The place whose upper bits are all zero still never gives key 0. */
static void key_make__never_zero(void **state)
{
	bool found = false, low_one = false;
	uint32_t index, gen;
	struct key_secret k;

	(void)state;
	keys_open(&k, 11);
	index = key_index(&k, 0);
	for (gen = 0; gen < 1 << KEY_GEN_BITS && !found; gen++)
		found = key_make(&k, index, gen) >> KEY_LOW_BITS == 0;
	assert_true(found);
	for (int i = 0; i < 5000; i++) {
		uint32_t key = key_make(&k, index, gen - 1);

		assert_in_range(key, 1, 255);
		low_one |= key == 1;
	}
	assert_true(low_one);
}

static void key_index__any_key_is_in_range(void **state)
{
	struct key_secret k;

	(void)state;
	keys_open(&k, 12);
	for (uint32_t key = 0; key < 0xff000000; key += 99991)
		assert_true(key_index(&k, key) < KEYS_MAX);
	assert_true(key_index(&k, UINT32_MAX) < KEYS_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_make__inverts),
		cmocka_unit_test(key_make__is_a_permutation),
		cmocka_unit_test(key_make__generation_wraps),
		cmocka_unit_test(key_make__neighbours_are_unrelated),
		cmocka_unit_test(key_make__seeds_differ),
		cmocka_unit_test(key_make__never_zero),
		cmocka_unit_test(key_index__any_key_is_in_range),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
