/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.h: a NIC's memory: opened and closed.
 *
 * mem/ is protection domains, keys, regions, the shadow page table, fault tickets, the
 * redirect pool, and the one walk that turns a key and an address into moves. Pure: no
 * system call, no clock, no lock. The caller holds the engine lock for every function
 * of mem/.
 */
#ifndef NOPIN_MEM_MEM_H
#define NOPIN_MEM_MEM_H

#include "base/counters.h"

#include <stdbool.h>

struct mem;

enum {
	SLOT_BYTES = 4096, /* of the redirect pool; wire/'s MTU_MAX */
	SPT_ENTRIES_MIN = 16,
};

/*
 * What is fetched before it is needed; each leaves out more.
 * PREFETCH: also what an access is likely to need next (pattern.c)
 * QUEUE: also what messages behind one that waits need (dma_ahead())
 * MESSAGE: also the rest of the message ("touch-ahead")
 * PAGE: the pages that the access itself waits for ("touch-a-page")
 */
enum ahead {
	AHEAD_PREFETCH,
	AHEAD_QUEUE,
	AHEAD_MESSAGE,
	AHEAD_PAGE,
	AHEAD_NUM
};

/* As users write them, in the order of enum ahead. */
#define AHEAD_NAMES "prefetch queue message page"

/**
 * struct mem_config - Bounds, all > 0.
 * @entries:	entries of the shadow page table at most (design D12), at least
 *		SPT_ENTRIES_MIN; the largest power of two in it is used
 * @slots, @slot_base: redirect pool: that many slots of SLOT_BYTES in NIC
 *		memory at @slot_base (not touched until used)
 * @tickets:	outstanding at most, up to 65536
 * @pagers:	tickets that can be waited for at once, each by a thread
 * @exact:	the host makes spt_map/unmap/protect calls itself (simulator,
 *		later managed and module): entries do not age
 * @always_ready: the deliberately wrong table of the I1 tests
 */
struct mem_config {
	uint32_t entries;
	uint32_t slots;
	uint8_t *slot_base;
	uint32_t tickets, pagers;
	bool exact;
	bool always_ready;
	enum ahead ahead;
	uint64_t seed[2];
	struct counters *counters;
};

int mem_open(struct mem **out, const struct mem_config *cfg);
/** mem_close() - Free everything; its users are gone. CHECKs that no region, hold or slot
 * is left. */
void mem_close(struct mem *m);

#endif
