// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* pattern.c: bytes that are different in each message and at each position. */
#include "verify.h"

#include <string.h>

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

void pattern_fill(void *to, uint64_t seed, size_t length)
{
	uint8_t *out = to;
	uint64_t word;

	for (; length >= sizeof(word); length -= sizeof(word)) {
		word = mix(seed += 0x9e3779b97f4a7c15u);
		memcpy(out, &word, sizeof(word));
		out += sizeof(word);
	}
	word = mix(seed + 0x9e3779b97f4a7c15u);
	memcpy(out, &word, length);
}

uint64_t pattern_sum(const void *of, size_t length)
{
	const uint8_t *in = of;
	uint64_t sum = length, word;

	for (; length >= sizeof(word); length -= sizeof(word)) {
		memcpy(&word, in, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 32;
		in += sizeof(word);
	}
	word = 0;
	memcpy(&word, in, length);
	return mix(sum ^ word);
}

uint64_t pattern_seed(const char *role, uint32_t qpn, uint64_t number)
{
	return mix((uint64_t)role[0] << 56 ^ (uint64_t)qpn << 24) ^ mix(number);
}
