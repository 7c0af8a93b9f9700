/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eventcount.c: counters that a peer raises by naming them in a WRITE, and that
 * the program waits for: control beside data, as in NetVM; the primitive is that
 * of Reed and Kanodia (Synchronization with eventcounts and sequencers, 1979).
 *
 * The value is the engine's; the word that the program reads is a copy. A program
 * that writes to it deceives itself only.
 * A counter's identifier is made like a key of a region (key.c), by a secret of
 * its own. Indices are reused first in, first out, and never while fewer than
 * COUNT_SPARE are free.
 */
#include "mem/eventcount.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/list.h"
#include "mem/eventcounts.h"
#include "mem/key.h"
#include "mem/mr.h"
#include "mem/state.h"

#include <errno.h>

enum { COUNTS_MAX = 1 << 16, COUNT_SPARE = 256 };

static int counts_grow(struct eventcounts *t)
{
	const uint32_t cap = MAX(2 * t->cap, COUNT_SPARE);
	struct count_slot *v;

	if (t->num < t->cap)
		return 0;
	if (cap > COUNTS_MAX)
		return -ENOMEM;
	v = heap_grow(t->v, cap * sizeof(*v));
	if (!v)
		return -ENOMEM;
	t->v = v;
	t->cap = cap;
	return 0;
}

/* Return: 0 or -ENOMEM. */
static int count_take(struct eventcounts *t, uint32_t *index)
{
	if (t->num_free < COUNT_SPARE && counts_grow(t) == 0) {
		*index = t->num++;
		t->v[*index] = (struct count_slot){.count = NULL};
		return 0;
	}
	if (!t->num_free)
		return -ENOMEM;
	*index = t->free_head;
	t->free_head = t->v[*index].next;
	t->num_free--;
	return 0;
}

static void count_give(struct eventcounts *t, uint32_t index)
{
	t->v[index].count = NULL;
	t->v[index].gen++;
	if (t->num_free++)
		t->v[t->free_tail].next = index;
	else
		t->free_head = index;
	t->free_tail = index;
}

static struct eventcount *count_at(const struct mem *m, uint32_t id,
				   uint32_t *index)
{
	const struct eventcounts *t = &m->counts;

	*index = key_index(&t->keys, id);
	if (*index >= t->num || !t->v[*index].count ||
	    t->v[*index].count->id != id)
		return NULL;
	return t->v[*index].count;
}

/**
 * eventcount_init() - See eventcount.h.
 * @m:		the NIC's memory
 * @e:		the caller's; stays where it is until eventcount_fini()
 * @pd:		whose QPs may raise it; gets one more user
 * @word:	where the program reads the value; 0 now
 *
 * Return: 0, e->id is its identifier then, never 0; or -ENOMEM.
 */
int eventcount_init(struct mem *m, struct eventcount *e, uint32_t pd,
		    uint64_t *word)
{
	uint32_t i;
	int err = count_take(&m->counts, &i);

	if (err)
		return err;
	*e = (struct eventcount){
		.id = key_make(&m->counts.keys, i, m->counts.v[i].gen),
		.pd = pd,
		.word = word};
	list_init(&e->link);
	m->counts.v[i].count = e;
	pd_get(m, pd);
	return 0;
}

/**
 * eventcount_fini() - See eventcount.h. Its PD loses a user.
 * @m:		the NIC's memory
 * @e:		from eventcount_init()
 */
void eventcount_fini(struct mem *m, struct eventcount *e)
{
	uint32_t i;

	CHECK(count_at(m, e->id, &i) == e);
	list_del(&e->link);
	count_give(&m->counts, i);
	pd_put(m, e->pd);
}

/**
 * eventcount_find() - See eventcount.h.
 * @m:		the NIC's memory
 * @pd:		of the QP that was told the name
 * @id:		anything at all
 */
struct eventcount *eventcount_find(const struct mem *m, uint32_t pd,
				   uint32_t id)
{
	uint32_t i;
	struct eventcount *e = count_at(m, id, &i);

	return e && e->pd == pd ? e : NULL;
}

/**
 * eventcount_raise() - See eventcount.h. What was placed before is seen by any reader that
 * sees the new value.
 * @e:		from eventcount_find()
 * @raised:	it is put there, unless it is there
 */
void eventcount_raise(struct eventcount *e, struct list *raised)
{
	__atomic_store_n(e->word, ++e->value, __ATOMIC_RELEASE);
	if (list_empty(&e->link))
		list_add_tail(raised, &e->link);
}

void counts_init(struct mem *m)
{
	const uint64_t seed[2] = {~m->cfg.seed[0], m->cfg.seed[1]};

	key_init(&m->counts.keys, seed);
}

void counts_fini(struct mem *m)
{
	CHECK(m->counts.num == m->counts.num_free);
	heap_free(m->counts.v);
}
