/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.h: all regions and protection domains of a NIC. */
#ifndef NOPIN_MEM_REGIONS_H
#define NOPIN_MEM_REGIONS_H

#include "base/account.h"
#include "mem/key.h"
#include "mem/mr.h"

#include <assert.h>
#include <stdbool.h>

struct mem;
struct pattern;

/*
 * MR_FREE: on the free list or never used; only @gen and @next mean something.
 * MR_LIVE: reachable by its key. Left by mr_revoke(), mr_invalidate().
 * MR_SUSPENDED: likewise, but whoever accesses it waits; left by mr_resume().
 * MR_REVOKED: unreachable; exists until mr_free() finds no hold.
 */
enum mr_state { MR_FREE, MR_LIVE, MR_SUSPENDED, MR_REVOKED, MR_STATE_NUM };

/**
 * struct suspension - The one that lasts, or the last one.
 * @met_ns:	since when somebody has to wait for it; 0: nobody does
 * @pause_ns:	how long the first who met the one before had to
 */
struct suspension {
	uint64_t since_ns, expected_ns, met_ns, pause_ns;
};

/**
 * struct mr - A region.
 * @since:	what was learned up to this tick was about whatever was mapped
 *		there before
 * @look_ns:	until when a pager is not asked again what its memory is (overwrite.c)
 * @fault_ns:	what a fault takes a pager, of those that were answered lately, 4 s
 *		at most; 0: none was
 * @next:	of a free one: index + 1 of the next free one, 0: none
 * @account:	of its faults, or NULL: it had none
 * @pattern:	of its accesses, or NULL
 * @suspension:	or NULL: there never was one
 * @known:	of one that is watched: its pages in the table, learned since @since
 * @promised:	likewise: its minimum, but no more than it has pages
 * @watched:	in struct watch
 */
struct mr {
	struct mr_attr attr;
	uint64_t look_ns;
	struct account *account;
	struct pattern *pattern;
	struct suspension *suspension;
	int64_t since;
	uint32_t key;
	uint32_t holds, fault_ns, promised;
	union {
		uint32_t next, known;
	};
	uint8_t state, gen;
	bool watched;
};

/* A power of two: each access computes where its region is. */
static_assert(sizeof(struct mr) == 128, "an index is shifted");

enum {
	MR_MAX = 1 << KEY_INDEX_BITS,
	MR_CHUNK = 1024,
	MR_CHUNKS = MR_MAX / MR_CHUNK,
	MR_CACHE = 256,
};

/**
 * struct regions - All regions, in chunks so that they never move.
 * @fresh:	indices below this have been used
 * @made:	indices below this have memory; fresh <= made
 * @cache:	index that a key with these bits had last; only a guess
 */
struct regions {
	struct mr *chunk[MR_CHUNKS];
	uint32_t fresh, made;
	uint32_t free_head, free_tail, num_free;
	uint32_t num_used;
	uint32_t cache[MR_CACHE];
};

/**
 * struct pd
 * @next:	as in struct mr
 * @tickets, @asked: out for its users, and with the pagers; outlive it
 */
struct pd {
	uint32_t users;
	uint32_t next;
	uint32_t tickets, asked;
	bool used;
};

/** struct pds - @live: in use. */
struct pds {
	struct pd *v;
	uint32_t num, cap, free, live;
};

static inline struct mr *mr_at(struct regions *r, uint32_t index)
{
	return &r->chunk[index / MR_CHUNK][index % MR_CHUNK];
}

/**
 * mr_lookup() - The live region of @key, or NULL; @index is set with it.
 */
struct mr *mr_lookup(struct mem *m, uint32_t key, uint32_t *index);
/** mr_live() - The same, where nobody needs the index. */
static inline struct mr *mr_live(struct mem *m, uint32_t key)
{
	uint32_t index;

	return mr_lookup(m, key, &index);
}
/** mr_find() - Also a revoked one, or NULL; @index is set with it. */
struct mr *mr_find(struct mem *m, uint32_t key, uint32_t *index);
/** mr_by_key() - Also a revoked one; or NULL. */
struct mr *mr_by_key(struct mem *m, uint32_t key);
void mr_fini(struct mem *m);

#endif
