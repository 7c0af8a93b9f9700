/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doubts.h: pages that are said to be always ready, and were not. */
#ifndef NOPIN_MEM_DOUBTS_H
#define NOPIN_MEM_DOUBTS_H

#include "base/page.h"

#include <stdbool.h>
#include <stdint.h>

enum { DOUBTS = 8 };

/** struct doubts - The last DOUBTS of them; @num: how many there ever were. */
struct doubts {
	struct pages v[DOUBTS];
	unsigned num;
};

/** doubts_note() - Note that @pages gave EFAULT: a pager is to be asked for them. */
static inline void doubts_note(struct doubts *d, struct pages pages)
{
	d->v[d->num++ % DOUBTS] = pages;
}

/** doubts_cover() - Is @vpn among them? */
static inline bool doubts_cover(const struct doubts *d, uint64_t vpn)
{
	for (unsigned i = 0; i < DOUBTS; i++)
		if (vpn >= d->v[i].start && vpn < d->v[i].end)
			return true;
	return false;
}

#endif
