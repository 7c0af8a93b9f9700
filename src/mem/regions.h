/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.h: all regions and protection domains of a NIC. */
#ifndef NOPIN_MEM_REGIONS_H
#define NOPIN_MEM_REGIONS_H

#include "base/account.h"
#include "base/check.h"
#include "mem/key_table.h"
#include "mem/mr.h"

#include <stdbool.h>

struct mem;
struct pattern;

/**
 * struct suspension - The one that lasts, or the last one.
 * @met_ns:	since when a waiter has to wait for it; 0: none does
 * @pause_ns:	how long the first waiter that met the one before had to
 */
struct suspension {
	uint64_t since_ns, expected_ns, met_ns, pause_ns;
};

/**
 * struct mr - What is known of a region beyond the row of its key.
 * @row, @index: of its key
 * @account:	of its faults, or NULL: it had none
 * @pattern:	of its accesses, or NULL
 * @suspension:	or NULL: there never was one
 * @upcalls, @cookie, @minimum, @weight: as in struct mr_attr
 * @look_ns:	until when a pager is not asked again what its memory is (overwrite.c)
 * @fault_ns:	what a fault takes a pager, of those that were answered lately, 4 s
 *		at most; 0: none was
 * @promised:	of one that is watched: its minimum, but no more than it has pages
 * @known:	likewise: its pages in the table, learned since @row->since
 * @watched:	in struct watch
 */
struct mr {
	struct key_row *row;
	struct account *account;
	struct pattern *pattern;
	struct suspension *suspension;
	struct upcalls *upcalls;
	void *cookie;
	uint64_t look_ns;
	uint32_t index, minimum, weight;
	uint32_t fault_ns, promised, known;
	bool watched;
};

/** struct regions - Each at the index of the row of its key, in chunks likewise. */
struct regions {
	struct mr *chunk[KEY_CHUNKS];
};

/**
 * struct pd
 * @next:	of a free one: number of the next free one, 0: none
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

/**
 * key_region() - Return the row of the region that a key is of.
 * @row:	of a key that exists
 */
static inline struct key_row *key_region(struct key_row *row)
{
	return likely(row->kind == KEY_REGION) ? row : row->mr->row;
}

/** key_hold() - Count one hold more of a key, and of its region. */
static inline void key_hold(struct key_row *row)
{
	struct key_row *region = key_region(row);

	row->holds++;
	if (unlikely(region != row))
		region->holds++;
}

/** key_unhold() - Count one less. */
static inline void key_unhold(struct key_row *row)
{
	struct key_row *region = key_region(row);

	CHECK(row->holds > 0 && region->holds > 0);
	row->holds--;
	if (unlikely(region != row))
		region->holds--;
}

/** mr_live() - Return the region, live or suspended, that has @key, or NULL. */
struct mr *mr_live(struct mem *m, uint32_t key);
/** mr_by_key() - Return the region, also a revoked one, that has @key, or NULL. Both: NULL
 * for a key of a window. */
struct mr *mr_by_key(struct mem *m, uint32_t key);
/** mr_attr_copy() - Tell what was registered, as it was changed since. */
void mr_attr_copy(const struct mr *mr, struct mr_attr *out);
void mr_fini(struct mem *m);

#endif
