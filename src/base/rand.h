/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rand.h: a keyed pseudo-random generator (SipHash-2-4 in counter mode) for
 * keys, QPNs, PSNs and nonces. Seeded by os/ from the kernel, by the simulator
 * from its seed. Not thread-safe: each owner has one and its own lock.
 */
#ifndef NOPIN_BASE_RAND_H
#define NOPIN_BASE_RAND_H

#include <stdint.h>

struct rnd {
	uint64_t k0, k1, ctr;
};

uint64_t siphash_u64(uint64_t k0, uint64_t k1, uint64_t word);

static inline uint64_t rnd_next(struct rnd *r)
{
	return siphash_u64(r->k0, r->k1, r->ctr++);
}

#endif
