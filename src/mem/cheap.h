/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cheap.h: ranges where misses are cheap. */
#ifndef NOPIN_MEM_CHEAP_H
#define NOPIN_MEM_CHEAP_H

#include <stdbool.h>
#include <stdint.h>

enum { CHEAP_MAX = 64 };

/** struct cheap_range - Pages [start, end) whose misses are cheap. */
struct cheap_range {
	uint64_t start, end;
	uint64_t learned_ns;
};

/** struct cheap - Sorted by start, disjoint. */
struct cheap {
	unsigned num;
	struct cheap_range r[CHEAP_MAX];
};

void cheap_learn(struct cheap *c, uint64_t start, uint64_t end,
		 uint64_t now_ns);
void cheap_forget(struct cheap *c, uint64_t start, uint64_t end);
bool cheap_covers(const struct cheap *c, uint64_t vpn, uint64_t fresh_ns);

#endif
