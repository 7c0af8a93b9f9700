/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hashes.h: what a seed did, in numbers, and a file of those of the version before: a
 * change that is to change no behaviour changes none of them.
 */
#ifndef NOPIN_TESTS_HASHES_H
#define NOPIN_TESTS_HASHES_H

#include "simhost/sim.h"

struct hashes {
	uint64_t of[SIM_HASHES];
};

/** hashes_same() - Are they? Says which are not, of @what. */
bool hashes_same(const char *scenario, uint64_t seed, const char *what,
		 const struct hashes *a, const struct hashes *b);
/** hashes_head() - What the file begins with. */
void hashes_head(void);
/** hashes_print() - A line of the file. */
void hashes_print(const char *scenario, uint64_t seed, const struct hashes *h);
/** hashes_expect() - Are they those of @file? Says so if not, or if it has none. */
bool hashes_expect(const char *file, const char *scenario, uint64_t seed,
		   const struct hashes *h);

#endif
