/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rand.c: SipHash-2-4 of one 8-byte word (Aumasson and Bernstein, 2012). */
#include "base/rand.h"

static uint64_t rotl(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

static void sip_absorb(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	sip_round(v);
	sip_round(v);
	v[0] ^= m;
}

uint64_t siphash_u64(uint64_t k0, uint64_t k1, uint64_t word)
{
	uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575),
			 k1 ^ UINT64_C(0x646f72616e646f6d),
			 k0 ^ UINT64_C(0x6c7967656e657261),
			 k1 ^ UINT64_C(0x7465646279746573)};

	sip_absorb(v, word);
	sip_absorb(v, UINT64_C(8) << 56);
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
