/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* backing.c: may a fault in this mapping be taken where it is met, because it
 * needs no I/O and cannot block? (design §4, strategy inline)
 *
 * Only smaps tells whether a mapping belongs to a userfaultfd, and reading it
 * walks the page tables of all mappings (14 ms with 4 GiB resident), holding
 * the address-space lock. So a pager reads it after it has answered, keeps what
 * it said, and reads again at the earliest after a hundred times the time that
 * it took: at most one percent.
 *
 * Where there is swap, what is missing in a mapping of which nothing is swapped
 * out was never there, as long as nothing was reclaimed since that was read.
 */
#include "os/mapping.h"

#include <stdlib.h>
#include <string.h>

enum {
	BACKING_MAX = 512, /* mappings remembered */
	BACKING_SHARE = 100, /* 1/100 of the time goes into reading smaps */
};

static const uint64_t backing_keep_ns = 1000000000; /* at least */
static const uint64_t backing_revoke_ns = 1000000000;

/**
 * struct backing_map - A private anonymous mapping of ordinary memory.
 * @small: writable, and faults bring in single pages
 * @swapped: some of it is swapped out
 * @revoked_until: a fault took too long
 */
struct backing_map {
	struct range range;
	bool small, swapped;
	uint64_t revoked_until;
};

struct backing_cache {
	pthread_mutex_t lock;
	uint64_t scanned_ns, valid_until;
	unsigned num;
	struct backing_map map[BACKING_MAX];
	struct mapping_scan scan;
};

struct backing_cache *backing_open(void)
{
	struct backing_cache *c = heap_alloc(sizeof(*c));

	if (c)
		pthread_mutex_init(&c->lock, NULL);
	return c;
}

void backing_close(struct backing_cache *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->lock);
	heap_free(c);
}

static struct backing_map *backing_find(struct backing_cache *c, uint64_t addr)
{
	for (unsigned i = 0; i < c->num; i++)
		if (addr >= c->map[i].range.start && addr < c->map[i].range.end)
			return &c->map[i];
	return NULL;
}

static void backing_scan(struct backing_cache *c)
{
	uint64_t began, took;
	struct mapping map;
	bool more;

	fresh_check(clock_ns());
	began = c->scanned_ns = clock_ns();
	c->num = 0;
	more = mapping_first(&c->scan, "/proc/self/smaps", &map) == 0;
	while (more) {
		if (map.anon && map.read && !map.uffd && !map.huge &&
		    !map.device && c->num < BACKING_MAX)
			c->map[c->num++] = (struct backing_map){
				.range = map.range,
				.small = map.write && !map.thp,
				.swapped = map.swapped,
			};
		more = mapping_next(&c->scan, &map);
		if (!more)
			mapping_end(&c->scan);
	}
	took = clock_ns() - began;
	c->valid_until = began +
			 MAX(backing_keep_ns, took * (uint64_t)BACKING_SHARE);
}

/* Is nothing of it on disk? */
static bool backing_here(const struct backing_cache *c,
			 const struct backing_map *map, uint64_t now_ns)
{
	if (!host_has_swap())
		return true;
	return !map->swapped && fresh_still(c->scanned_ns, now_ns);
}

struct backing backing_of(struct backing_cache *c, uint64_t addr, bool slow,
			  uint64_t now_ns)
{
	struct backing out = {.kind = BACKING_UNKNOWN};
	struct backing_map *map;

	/* Another pager is reading smaps: nobody waits for that. */
	if (pthread_mutex_trylock(&c->lock) != 0)
		return out;
	map = now_ns < c->valid_until ? backing_find(c, addr) : NULL;
	if (map && slow)
		map->revoked_until = now_ns + backing_revoke_ns;
	if (map && map->small && now_ns >= map->revoked_until &&
	    !host_is_short() && backing_here(c, map, now_ns)) {
		out.kind = BACKING_CHEAP;
		out.cheap = map->range;
	} else if (map) {
		out.kind = BACKING_SLOW;
	}
	pthread_mutex_unlock(&c->lock);
	return out;
}

struct range backing_plain(struct backing_cache *c, uint64_t addr,
			   uint64_t now_ns)
{
	const struct backing_map *map;
	struct range out = {0, 0};

	if (pthread_mutex_trylock(&c->lock) != 0)
		return out;
	if (now_ns >= c->valid_until)
		backing_scan(c);
	map = backing_find(c, addr);
	if (map && map->small)
		out = map->range;
	pthread_mutex_unlock(&c->lock);
	return out;
}

bool backing_learn(struct backing_cache *c, uint64_t addr, uint64_t now_ns)
{
	bool plain;

	if (pthread_mutex_trylock(&c->lock) != 0)
		return true; /* whoever holds it will see */
	host_look(now_ns);
	if (now_ns >= c->valid_until)
		backing_scan(c);
	plain = backing_find(c, addr) != NULL;
	pthread_mutex_unlock(&c->lock);
	return plain;
}
