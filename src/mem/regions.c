/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* regions.c: which region a key names. */
#include "mem/regions.h"
#include "base/check.h"
#include "mem/key.h"
#include "mem/state.h"

/* Exists, live or revoked: what the control path may still ask about. */
struct mr *mr_find(struct mem *m, uint32_t key, uint32_t *index)
{
	struct regions *r = &m->mrs;
	uint32_t i = r->cache[key % MR_CACHE];
	struct mr *mr;

	/* Whatever the guess, the whole key decides: generation and low bits
	 * are in it, and a free index keeps key 0, which is never given out.
	 */
	if (likely(i < r->fresh) && likely(mr_at(r, i)->key == key) &&
	    likely(key != 0)) {
		*index = i;
		return mr_at(r, i);
	}
	i = key_index(&m->keys, key);
	if (i >= r->fresh || key == 0)
		return NULL;
	mr = mr_at(r, i);
	if (mr->key != key)
		return NULL;
	r->cache[key % MR_CACHE] = i;
	*index = i;
	return mr;
}

struct mr *mr_by_key(struct mem *m, uint32_t key)
{
	uint32_t i;

	return mr_find(m, key, &i);
}

struct mr *mr_lookup(struct mem *m, uint32_t key, uint32_t *index)
{
	struct mr *mr = mr_find(m, key, index);

	return mr && (mr->state == MR_LIVE || mr->state == MR_SUSPENDED) ? mr
									 : NULL;
}
