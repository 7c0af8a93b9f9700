/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* key_table.c: which row a key names, and which index the next one gets.
 *
 * Indexes are reused first in, first out, and never while fewer than KEY_CHUNK are free,
 * so a key cannot come back before KEY_CHUNK * 2^KEY_GEN_BITS others were made. The last
 * KEY_CHUNK are therefore never all in use: there are at most KEYS_USED_MAX keys.
 */
#include "mem/key_table.h"
#include "base/check.h"
#include "base/heap.h"
#include "mem/key.h"

#include <errno.h>

/**
 * key_find() - Find the row of a key, also of one that is revoked: what the control path
 * may still ask about.
 * @t:		table
 * @key:	any
 * @index:	set on success
 *
 * Return: the row, or NULL.
 */
struct key_row *key_find(struct key_table *t, uint32_t key, uint32_t *index)
{
	uint32_t i = t->cache[key % KEY_CACHE];

	/* However good the guess, the whole key decides: generation and low bits
	 * are in it, and a free index keeps key 0, which is never given out.
	 */
	if (likely(i < t->fresh) && likely(key_at(t, i)->key == key) &&
	    likely(key != 0)) {
		*index = i;
		return key_at(t, i);
	}
	i = key_index(&t->secret, key);
	if (i >= t->fresh || key == 0 || key_at(t, i)->key != key)
		return NULL;
	t->cache[key % KEY_CACHE] = i;
	*index = i;
	return key_at(t, i);
}

/**
 * key_lookup() - Find the row of a key that can be accessed.
 * @t:		table
 * @key:	any
 * @index:	set with it
 *
 * Return: the row, or NULL.
 */
struct key_row *key_lookup(struct key_table *t, uint32_t key, uint32_t *index)
{
	struct key_row *row = key_find(t, key, index);

	return row && key_reachable(row) ? row : NULL;
}

/**
 * key_table_grow() - Make rows for KEY_CHUNK more indexes.
 * @t:		table, with fewer than KEYS_MAX
 *
 * Return: 0, or -ENOMEM.
 */
int key_table_grow(struct key_table *t)
{
	struct key_row *chunk = heap_array(KEY_CHUNK, sizeof(*chunk));

	if (!chunk)
		return -ENOMEM;
	t->chunk[t->made / KEY_CHUNK] = chunk;
	t->made += KEY_CHUNK;
	return 0;
}

/**
 * key_take() - Take a free index: one never used, else the one that is free for longest.
 * @t:		table
 * @index:	set on success; the caller sets its row
 *
 * Return: 0, or -ENOMEM: KEYS_USED_MAX are in use, or too few are free, and
 * key_table_grow() may make some.
 */
int key_take(struct key_table *t, uint32_t *index)
{
	if (t->num_used == KEYS_USED_MAX)
		return -ENOMEM;
	if (t->fresh < t->made) {
		*index = t->fresh++;
	} else if (t->num_free >= KEY_CHUNK) {
		*index = t->free_head - 1;
		t->free_head = key_at(t, *index)->next;
		t->num_free--;
	} else {
		return -ENOMEM;
	}
	t->num_used++;
	return 0;
}

/**
 * key_new() - Make a key for a row.
 * @t:		table
 * @index:	from key_take()
 *
 * Return: the key, for the caller to set in the row.
 */
uint32_t key_new(struct key_table *t, uint32_t index)
{
	const uint32_t key = key_make(&t->secret, index, key_at(t, index)->gen);

	t->cache[key % KEY_CACHE] = index;
	return key;
}

/**
 * key_give_back() - Return an index to the end of the free list.
 * @t:		table
 * @index:	from key_take(); nothing holds it
 */
void key_give_back(struct key_table *t, uint32_t index)
{
	struct key_row *row = key_at(t, index);

	*row = (struct key_row){.gen = (uint8_t)(row->gen + 1)};
	if (t->num_free++ == 0)
		t->free_head = index + 1;
	else
		key_at(t, t->free_tail - 1)->next = index + 1;
	t->free_tail = index + 1;
	t->num_used--;
}

/**
 * key_table_fini() - Free the rows.
 * @t:		table
 */
void key_table_fini(struct key_table *t)
{
	for (unsigned i = 0; i < KEY_CHUNKS; i++)
		heap_free(t->chunk[i]);
}
