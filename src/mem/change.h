/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.h: what changes an entry of the shadow page table, and is told of it. */
#ifndef NOPIN_MEM_CHANGE_H
#define NOPIN_MEM_CHANGE_H

#include "mem/upcall.h"

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct spt;

/**
 * entry_over() - An entry that was in set @set ends, for good or to be made again
 * (UPCALL_NUM: nobody is told).
 */
void entry_over(struct spt *s, uint64_t e, uint64_t set,
		enum upcall_reason why);

/** entry_end() - The same, of one in its place. */
void entry_end(struct spt *s, uint64_t *e, enum upcall_reason why);

/** entry_wasted() - Count a page that was fetched ahead and not used, if @e is one. */
void entry_wasted(struct spt *s, uint64_t e);

/** entry_tell() - A page that was ready, or fetched to be, is not any more. */
void entry_tell(struct spt *s, const uint64_t *e, enum upcall_reason why);

/** entry_set() - Make the entry @e of a page @new; it was @old, or 0: none. */
void entry_set(struct mem *m, uint64_t vpn, uint64_t *e, uint64_t old,
	       uint64_t new);

/** spt_replace() - An entry in set @set goes, although nothing happened to its page. */
void spt_replace(struct mem *m, uint64_t e, uint64_t set);

bool spt_was_replaced(struct spt *s, uint64_t vpn);

#endif
