/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key.h: keys: an index, a generation and a secret. */
#ifndef NOPIN_MEM_KEY_H
#define NOPIN_MEM_KEY_H

#include "base/rand.h"

enum {
	KEY_INDEX_BITS = 18,
	KEY_GEN_BITS = 6,
	KEY_LOW_BITS = 8,
	KEY_BITS = KEY_INDEX_BITS + KEY_GEN_BITS,
};

/** struct key_secret - What makes the keys of one NIC. */
struct key_secret {
	uint64_t k0, k1;
	struct rnd rnd;
};

void key_init(struct key_secret *k, const uint64_t seed[2]);
uint32_t key_make(struct key_secret *k, uint32_t index, uint32_t gen);
uint32_t key_index(const struct key_secret *k, uint32_t key);

#endif
