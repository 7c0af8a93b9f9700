/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eventcounts.h: all event counters of a NIC. */
#ifndef NOPIN_MEM_EVENTCOUNTS_H
#define NOPIN_MEM_EVENTCOUNTS_H

#include "mem/key.h"

struct eventcount;
struct mem;

/** struct count_slot - @next: in the order of becoming free. */
struct count_slot {
	struct eventcount *count; /* NULL: free */
	uint32_t next;
	uint8_t gen;
};

/** struct eventcounts - All counters; @num: indices that have been used. */
struct eventcounts {
	struct key_secret keys;
	struct count_slot *v;
	uint32_t num, cap;
	uint32_t free_head, free_tail, num_free;
};

void counts_init(struct mem *m);
/** counts_fini() - Free the table of counters; CHECKs that none is left. */
void counts_fini(struct mem *m);

#endif
