/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key.c: L_Keys and R_Keys (design D11). The upper 24 bits of a key are a
 * secret permutation of (generation, index); the lower 8 are random and are
 * compared too. Which key is whose is decided in key_table.c, by
 * comparing the whole key; this file only says where to look.
 *
 * The permutation is a balanced Feistel network of four rounds with SipHash
 * as the round function (Luby and Rackoff: four rounds of a pseudo-random
 * function make a pseudo-random permutation, its inverse included), so keys a
 * peer was given do not help it to guess others.
 */
#include "mem/key.h"
#include "base/rand.h"

#include <assert.h>

enum { ROUNDS = 4, HALF_BITS = KEY_BITS / 2, HALF_MASK = (1 << HALF_BITS) - 1 };

static_assert(HALF_BITS * 2 == KEY_BITS, "halves must be equal");

static uint32_t key_round(const struct key_secret *k, unsigned round,
			  uint32_t half)
{
	/* The top bit keeps these inputs apart from those of k->rnd. */
	uint64_t in = UINT64_C(1) << 63 | (uint64_t)round << 32 | half;

	return (uint32_t)siphash_u64(k->k0, k->k1, in) & HALF_MASK;
}

/**
 * key_init() - Derive everything from the NIC's seed.
 * @k:		out
 * @seed:	128 random bits
 */
void key_init(struct key_secret *k, const uint64_t seed[2])
{
	k->k0 = seed[0];
	k->k1 = seed[1];
	k->rnd = (struct rnd){.k0 = seed[0], .k1 = seed[1]};
}

/**
 * key_make() - Make a key for (index, gen) with fresh low bits; never 0, the key of
 * programs that forgot to set one.
 * @k:		secrets
 * @index:	of the row, < KEYS_MAX (key_table.h)
 * @gen:	how often the index was used before, taken modulo 2^KEY_GEN_BITS
 *
 * Return: the key.
 */
uint32_t key_make(struct key_secret *k, uint32_t index, uint32_t gen)
{
	uint32_t v = (gen << KEY_INDEX_BITS | index) & ((1 << KEY_BITS) - 1);
	uint32_t l = v >> HALF_BITS, r = v & HALF_MASK, key;

	for (unsigned i = 0; i < ROUNDS; i++) {
		uint32_t t = l ^ key_round(k, i, r);

		l = r;
		r = t;
	}
	key = (l << HALF_BITS | r) << KEY_LOW_BITS;
	key |= (uint32_t)rnd_next(&k->rnd) & ((1 << KEY_LOW_BITS) - 1);
	return key ? key : 1;
}

/**
 * key_index() - Return the index of the row of @key, if there is one.
 * @k:		secrets
 * @key:	anything at all
 *
 * Return: an index < KEYS_MAX; the caller compares the key that is kept there.
 */
uint32_t key_index(const struct key_secret *k, uint32_t key)
{
	uint32_t v = key >> KEY_LOW_BITS;
	uint32_t l = v >> HALF_BITS, r = v & HALF_MASK;

	for (unsigned i = ROUNDS; i-- > 0;) {
		uint32_t t = r ^ key_round(k, i, l);

		r = l;
		l = t;
	}
	return (l << HALF_BITS | r) & ((1U << KEY_INDEX_BITS) - 1);
}
