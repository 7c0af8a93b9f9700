/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* change.h: changes of the shadow page table's entries, which the program is told of. */
#ifndef NOPIN_MEM_CHANGE_H
#define NOPIN_MEM_CHANGE_H

#include "mem/upcall.h"

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct spt;

/**
 * entry_over() - End an entry that was in set @set, for good or to be made again, and tell
 * the program @why (UPCALL_NUM: do not tell). The caller clears its place.
 */
void entry_over(struct spt *s, uint64_t e, uint64_t set,
		enum upcall_reason why);

/** entry_end() - End the entry at @e as entry_over() does, and clear its place. */
void entry_end(struct spt *s, uint64_t *e, enum upcall_reason why);

/** entry_wasted() - Count a page that was fetched ahead and not used, if @e is one. */
void entry_wasted(struct spt *s, uint64_t e);

/**
 * entry_tell() - Tell the program that a page which was ready, or fetched to be, is not any
 * more (PROTECTED: not for writing), and @why.
 */
void entry_tell(struct spt *s, const uint64_t *e, enum upcall_reason why);

/** entry_set() - Make the entry @e of a page @new; it was @old, or 0: none. */
void entry_set(struct mem *m, uint64_t vpn, uint64_t *e, uint64_t old,
	       uint64_t new);

/**
 * spt_replace() - End an entry of set @set as entry_over() does, although nothing happened
 * to its page: spt_was_replaced() is true of that once.
 */
void spt_replace(struct mem *m, uint64_t e, uint64_t set);

bool spt_was_replaced(struct spt *s, uint64_t vpn);

#endif
