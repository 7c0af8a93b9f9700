/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* spare.h: entries that regions were promised. */
#ifndef NOPIN_MEM_SPARE_H
#define NOPIN_MEM_SPARE_H

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct mr;
struct spt;

void watch_count(struct mem *m, uint64_t vpn, uint64_t old, uint64_t new);

/**
 * struct worth - Of an entry, to the regions that have its page.
 * @spare:	so many others of some region may go until that would have its
 *		minimum no longer, if this one went, too; 0: it is needed
 * @regions:	some region has its page
 */
struct worth {
	uint32_t spare, weight;
	bool regions;
};

/** spare_worth() - Return what @e of @set is worth. */
struct worth spare_worth(struct mem *m, uint64_t e, uint64_t set);

/** spare_oldest() - Return the oldest of @n entries, newest first, that may go and is not
 * in @but; -1: there is none. */
int spare_oldest(const struct spt *s, const uint64_t *e, unsigned n,
		 unsigned but);

/** spare_among() - Return which of @n entries, newest first and worth @w, is to go; -1: all
 * are held. */
int spare_among(struct mem *m, const uint64_t *e, const struct worth *w,
		unsigned n);

bool spare_below(const struct mem *m, const struct mr *mr, uint64_t e);
int spare_pick(struct mem *m, const uint64_t *e, uint64_t set);

#endif
