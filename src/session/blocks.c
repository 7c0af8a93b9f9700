/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* blocks.c: a bounded set of numbers of blocks, of which those that were used least
 * recently go first. Chains of a hash table, and a list in the order of use.
 */
#include "session/blocks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { NOTHING = UINT32_MAX };

static uint32_t *blocks_bucket_of(const struct blocks *b, uint64_t number)
{
	/* the fraction of the golden ratio: neighbours are far from each other */
	return &b->bucket[number * UINT64_C(0x9e3779b97f4a7c15) >>
			  (64 - b->bits)];
}

int blocks_init(struct blocks *b, uint32_t cap)
{
	size_t buckets;

	if (cap == 0 || cap > BLOCKS_MAX)
		return -EINVAL;
	*b = (struct blocks){
		.cap = cap, .newest = NOTHING, .oldest = NOTHING, .bits = 1};
	while (UINT32_C(1) << b->bits < cap)
		b->bits++;
	buckets = (size_t)1 << b->bits;
	b->block = calloc(cap, sizeof(*b->block));
	b->bucket = calloc(buckets, sizeof(*b->bucket));
	if (!b->block || !b->bucket) {
		blocks_fini(b);
		return -ENOMEM;
	}
	memset(b->bucket, 0xff, buckets * sizeof(*b->bucket));
	for (uint32_t i = 0; i < cap; i++)
		b->block[i].next = i + 1 < cap ? i + 1 : NOTHING;
	return 0;
}

void blocks_fini(struct blocks *b)
{
	free(b->block);
	free(b->bucket);
	*b = (struct blocks){.cap = 0};
}

/* --- the order of use ------------------------------------------------------------ */

static void order_del(struct blocks *b, const struct block *e)
{
	*(e->newer == NOTHING ? &b->newest
			      : &b->block[e->newer].older) = e->older;
	*(e->older == NOTHING ? &b->oldest
			      : &b->block[e->older].newer) = e->newer;
}

static void order_add(struct blocks *b, uint32_t i)
{
	b->block[i].newer = NOTHING;
	b->block[i].older = b->newest;
	*(b->newest == NOTHING ? &b->oldest : &b->block[b->newest].newer) = i;
	b->newest = i;
}

/* --- the set --------------------------------------------------------------------- */

static uint32_t blocks_find(const struct blocks *b, uint64_t number)
{
	uint32_t i = *blocks_bucket_of(b, number);

	while (i != NOTHING && b->block[i].number != number)
		i = b->block[i].next;
	return i;
}

bool blocks_use(struct blocks *b, uint64_t number)
{
	const uint32_t i = blocks_find(b, number);

	if (i == NOTHING)
		return false;
	if (i != b->newest) {
		order_del(b, &b->block[i]);
		order_add(b, i);
	}
	return true;
}

static void blocks_take_out(struct blocks *b, uint32_t i)
{
	struct block *e = &b->block[i];
	uint32_t *at = blocks_bucket_of(b, e->number);

	while (*at != i)
		at = &b->block[*at].next;
	*at = e->next;
	order_del(b, e);
	e->next = b->spare;
	b->spare = i;
	b->num--;
}

bool blocks_add(struct blocks *b, uint64_t number)
{
	const bool full = b->num == b->cap;
	uint32_t i, *bucket;

	if (blocks_use(b, number))
		return false;
	if (full)
		blocks_take_out(b, b->oldest);
	i = b->spare;
	bucket = blocks_bucket_of(b, number);
	b->spare = b->block[i].next;
	b->block[i].number = number;
	b->block[i].next = *bucket;
	*bucket = i;
	order_add(b, i);
	b->num++;
	return full;
}

/* Of a range of more numbers than there are blocks. */
static void drop_wide(struct blocks *b, uint64_t first, uint64_t last)
{
	uint32_t older;

	for (uint32_t i = b->newest; i != NOTHING; i = older) {
		older = b->block[i].older;
		if (b->block[i].number - first <= last - first)
			blocks_take_out(b, i);
	}
}

uint32_t blocks_drop(struct blocks *b, uint64_t first, uint64_t last)
{
	const uint32_t was = b->num;

	if (first > last)
		return 0;
	if (last - first >= b->num) {
		drop_wide(b, first, last);
		return was - b->num;
	}
	for (uint64_t n = first; n - first <= last - first; n++) {
		const uint32_t i = blocks_find(b, n);

		if (i != NOTHING)
			blocks_take_out(b, i);
		if (n == UINT64_MAX)
			break;
	}
	return was - b->num;
}
