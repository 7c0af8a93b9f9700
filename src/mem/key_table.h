/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key_table.h: a row for each key: all that the check of an access reads. */
#ifndef NOPIN_MEM_KEY_TABLE_H
#define NOPIN_MEM_KEY_TABLE_H

#include "base/check.h"
#include "mem/key.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

struct mr;

/*
 * KEY_FREE: on the free list or never used; only @gen and @next mean something.
 * KEY_LIVE: can be accessed. Left by mr_revoke(), mr_invalidate().
 * KEY_SUSPENDED: likewise, but an access waits; left by mr_resume().
 * KEY_REVOKED: cannot be accessed; exists until mr_free() finds no hold.
 */
enum key_state { KEY_FREE, KEY_LIVE, KEY_SUSPENDED, KEY_REVOKED };

/*
 * KEY_REGION: of a region, L_Key and R_Key. KEY_WINDOW: of a memory window of type 1, the
 * R_Key of a part of a region. KEY_QP_WINDOW: of type 2, for one QP. Windows are not made
 * yet; an access by such a key is ready for them. What becomes of a region (its address,
 * its state, what is known of its pages) holds for its windows, as an access by their keys
 * looks at the region's row, too. It has to outlive them.
 */
enum key_kind { KEY_REGION, KEY_WINDOW, KEY_QP_WINDOW };

/**
 * struct key_row - A key: the bytes [iova, iova + length) that it names are at @addr.
 * @addr:	an address; of a window: so many bytes behind the region's
 * @since:	of a region: what was learned of its pages up to this tick was about what
 *		was mapped there before
 * @mr:		the region, or the one that a window is of; the check of an access to a
 *		region does not touch it
 * @key:	all 32 bits; 0: none
 * @access:	rights, enum access
 * @qpn:	of a KEY_QP_WINDOW: the QP that bound it
 * @holds:	not yet released; of a region also those of its windows
 * @next:	of a free one: index + 1 of the next free one, 0: none
 * @state:	enum key_state
 * @gen:	how often the index was used before
 * @fault:	of a region: what answers its missing pages, enum strategy
 * @kind:	enum key_kind
 */
struct key_row {
	uint64_t addr, iova, length;
	int64_t since;
	struct mr *mr;
	uint32_t key, pd, access, qpn;
	union {
		uint32_t holds, next;
	};
	uint8_t state, gen, fault, kind;
};

static_assert(sizeof(struct key_row) == 64, "an access reads one cache line");

enum {
	KEYS_MAX = 1 << KEY_INDEX_BITS,
	KEY_CHUNK = 1024,
	KEY_CHUNKS = KEYS_MAX / KEY_CHUNK,
	KEYS_USED_MAX = KEYS_MAX - KEY_CHUNK,
	KEY_CACHE = 256,
};

/**
 * struct key_table - All rows of a NIC, in chunks so that they never move.
 * @fresh:	indexes below this have been used
 * @made:	indexes below this have memory; fresh <= made
 * @cache:	index that a key with these bits had last; only a guess
 */
struct key_table {
	struct key_secret secret;
	struct key_row *chunk[KEY_CHUNKS];
	uint32_t fresh, made;
	uint32_t free_head, free_tail, num_free;
	uint32_t num_used;
	uint32_t cache[KEY_CACHE];
};

/**
 * key_at() - Return the row of an index.
 * @t:		table
 * @index:	< t->made
 */
static inline struct key_row *key_at(const struct key_table *t, uint32_t index)
{
	return &t->chunk[index / KEY_CHUNK][index % KEY_CHUNK];
}

/**
 * key_reachable() - Return true if a key can be accessed, now or once it is resumed.
 * @row:	any
 */
static inline bool key_reachable(const struct key_row *row)
{
	return row->state == KEY_LIVE || row->state == KEY_SUSPENDED;
}

struct key_row *key_find(struct key_table *t, uint32_t key, uint32_t *index);
struct key_row *key_lookup(struct key_table *t, uint32_t key, uint32_t *index);
int key_table_grow(struct key_table *t);
int key_take(struct key_table *t, uint32_t *index);
uint32_t key_new(struct key_table *t, uint32_t index);
void key_give_back(struct key_table *t, uint32_t index);
void key_table_fini(struct key_table *t);

#endif
