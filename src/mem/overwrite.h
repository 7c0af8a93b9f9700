/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* overwrite.h: may the old content of a missing page be dropped? */
#ifndef NOPIN_MEM_OVERWRITE_H
#define NOPIN_MEM_OVERWRITE_H

#include "base/page.h"
#include "base/strategy.h"

#include <stdbool.h>

struct dma;
struct mem;
struct key_row;
struct mr;

enum over { OVER_NO, OVER_YES, OVER_LOOK };

/**
 * struct over_drop - Missing pages that a move is to drop, as all of them is written.
 * @may:	pages that may be, if they are plain
 * @unsure:	it is not known whether they are plain
 * @pages:	from the first to the last that is; @num: how many are
 */
struct over_drop {
	struct pages may, pages;
	unsigned num;
	bool unsure;
};

struct pages over_pages(const struct dma *d, uint64_t addr, uint64_t behind);
bool over_allowed(const struct key_row *row, const struct dma *d,
		  strategies_t set);
void over_looked(struct mem *m, uint32_t key, bool early, uint64_t now_ns);
enum over over_look(const struct mem *m, const struct mr *mr, uint64_t vpn,
		    uint64_t now_ns);

#endif
