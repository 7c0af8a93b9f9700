/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* use.h: how much may be used. */
#ifndef NOPIN_MEM_USE_H
#define NOPIN_MEM_USE_H

#include <stdbool.h>
#include <stdint.h>

struct mem;

/** mem_inline_budget() - Allow cheap faults of @pages pages until the next call. */
void mem_inline_budget(struct mem *m, unsigned pages);

/**
 * struct mem_use - What is used of what is bounded (design D12).
 * @entries:	of the shadow page table, not free
 * @promised:	of it: the minimums of regions
 * @slots:	of the redirect pool
 * @asked:	tickets with the pagers
 * @entries_short, @pagers_short: since the last mem_use() more could have been used, or a
 *		share waits for one
 */
struct mem_use {
	uint64_t entries, promised;
	uint32_t slots, asked;
	bool entries_short, pagers_short;
};
void mem_use(struct mem *m, struct mem_use *out);

/**
 * entries_bound() - Bound how many entries there are from now on: SPT_ENTRIES_MIN to
 * mem_config.entries, whatever @num is. What is beyond goes by entries_resize().
 */
void entries_bound(struct mem *m, uint64_t num);
/**
 * entries_resize() - Resize the table by a part of that: by @sets sets of 4 entries.
 * Return: is there more to do? What is held, on exact hosts, may be in the way.
 */
bool entries_resize(struct mem *m, unsigned sets);

/** pagers_bound() - Bound the tickets that may be with the pagers at once: 1 at least,
 * mem_config.pagers at most. */
void pagers_bound(struct mem *m, uint32_t num);

/** slots_bound() - Bound the slots that slot_get() gives: mem_config.slots at most. What is
 * taken beyond stays. */
void slots_bound(struct mem *m, uint32_t num);

#endif
