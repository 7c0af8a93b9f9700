/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* l_cached.c: records of a large table to a peer. Pieces of the table are registered
 * when they are needed and stay so as long as there is room: a pin-down cache.
 * Where a piece cannot be locked, others that no WRITE uses make room.
 */
#include "l_table.h"

#include <errno.h>
#include <string.h>

enum { PIECE_BYTES = 16 * RECORD, PIECES = 256, BUCKETS = 512, NONE = -1 };

/**
 * struct piece - A registered piece of the table. In one chain of the hash table,
 * and in the list by last use, or in the list of those not in use at all.
 * @writes: under way, which need it
 */
struct piece {
	uint8_t *base;
	struct ibv_mr *mr;
	unsigned writes;
	int next_in_bucket;
	int newer, older;
};

static struct piece pieces[PIECES];
static int buckets[BUCKETS];
static int newest, oldest, unused;
static int busy[RECORDS_AT_ONCE]; /* pieces, in the order of their WRITEs */
static uint64_t first, next;
static uint64_t hits, misses;

static void cache_open(void)
{
	for (int i = 0; i < BUCKETS; i++)
		buckets[i] = NONE;
	for (int i = 0; i < PIECES; i++)
		pieces[i].older = i + 1 < PIECES ? i + 1 : NONE;
	unused = 0;
	newest = oldest = NONE;
}

static int *bucket_of(const uint8_t *base)
{
	return &buckets[(uintptr_t)base / PIECE_BYTES % BUCKETS];
}

static int cache_find(const uint8_t *base)
{
	int i = *bucket_of(base);

	while (i != NONE && pieces[i].base != base)
		i = pieces[i].next_in_bucket;
	return i;
}

static void lru_remove(int i)
{
	struct piece *p = &pieces[i];

	if (p->newer == NONE)
		newest = p->older;
	else
		pieces[p->newer].older = p->older;
	if (p->older == NONE)
		oldest = p->newer;
	else
		pieces[p->older].newer = p->newer;
}

static void lru_add(int i)
{
	pieces[i].newer = NONE;
	pieces[i].older = newest;
	if (newest == NONE)
		oldest = i;
	else
		pieces[newest].newer = i;
	newest = i;
}

static void bucket_remove(int i)
{
	int *at = bucket_of(pieces[i].base);

	while (*at != i)
		at = &pieces[*at].next_in_bucket;
	*at = pieces[i].next_in_bucket;
}

static void cache_evict(int i)
{
	lru_remove(i);
	bucket_remove(i);
	host_dereg(pieces[i].mr);
	pieces[i].base = NULL;
	pieces[i].older = unused;
	unused = i;
}

/* A WRITE has ended: its piece may go. They end in order. */
static void cache_reap(struct host *h)
{
	host_wait(h, 1);
	pieces[busy[first++ % RECORDS_AT_ONCE]].writes--;
}

/* Evict the piece that was used longest ago and is not in use; if all are, wait
 * for one. Return: false if there is none. */
static bool cache_make_room(struct host *h)
{
	for (;;) {
		for (int i = oldest; i != NONE; i = pieces[i].newer)
			if (!pieces[i].writes) {
				cache_evict(i);
				return true;
			}
		if (first == next)
			return false;
		cache_reap(h);
	}
}

static int cache_add(struct host *h, uint8_t *base)
{
	struct ibv_mr *mr;
	int i;

	if (unused == NONE && !cache_make_room(h))
		host_skip("no room in the cache");
	while (!(mr = ibv_reg_mr(h->pd, base, PIECE_BYTES,
				 IBV_ACCESS_LOCAL_WRITE))) {
		if (errno != ENOMEM && errno != EAGAIN)
			host_skip(strerror(errno));
		if (!cache_make_room(h))
			host_skip("not one piece may be locked");
	}
	i = unused;
	unused = pieces[i].older;
	pieces[i].base = base;
	pieces[i].mr = mr;
	pieces[i].writes = 0;
	pieces[i].next_in_bucket = *bucket_of(base);
	*bucket_of(base) = i;
	lru_add(i);
	return i;
}

/* The piece where @p is, registered and held until its WRITE has ended. */
static struct ibv_mr *cache_get(struct table *t, uint8_t *p)
{
	uint8_t *base = p - (size_t)(p - t->base) % PIECE_BYTES;
	int i = cache_find(base);

	if (i != NONE) {
		hits++;
		lru_remove(i);
		lru_add(i);
	} else {
		misses++;
		i = cache_add(&t->h, base);
	}
	pieces[i].writes++;
	busy[next++ % RECORDS_AT_ONCE] = i;
	return pieces[i].mr;
}

static void cache_close(struct host *h)
{
	while (first < next)
		cache_reap(h);
	while (oldest != NONE)
		cache_evict(oldest);
}

int main(int argc, char **argv)
{
	const uint64_t ops = argc == 2 ? number(argv[1]) : 0;
	struct table t;
	uint64_t began;

	table_open(&t);
	cache_open();
	began = host_now();
	for (uint64_t i = 0; i < ops; i++) {
		uint8_t *record = table_record(&t, i);

		if (next - first == RECORDS_AT_ONCE)
			cache_reap(&t.h);
		table_write(&t, i, cache_get(&t, record), record);
	}
	while (first < next)
		cache_reap(&t.h);
	out_row("hits", "%.4f", (double)hits / (double)(hits + misses));
	table_close(&t, ops, began);
	cache_close(&t.h);
	return 0;
}
