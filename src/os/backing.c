/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* backing.c: may a fault in this mapping be taken where it is met, because it
 * needs no I/O and cannot block? (design §4, strategy inline)
 *
 * Only smaps tells whether a mapping belongs to a userfaultfd, and reading it
 * walks the page tables of all mappings (14 ms with 4 GiB resident), holding
 * the address-space lock. So a pager reads it after it has answered, keeps what
 * it said, and reads again at the earliest after a hundred times the time that
 * it took: at most one percent of a CPU.
 *
 * A mapping may be another by then, at the same address. A program that registers it
 * says so (backing_forget()): what was known of what was there is forgotten, until
 * smaps is read again. Meanwhile it is neither plain nor anything else: questions
 * about it wait (@asked), and nothing is said that would be believed for long.
 *
 * Where there is swap, what is missing in a mapping of which nothing is swapped
 * out was never there, as long as nothing was reclaimed since that was read.
 */
#include "os/backing.h"
#include "base/check.h"
#include "base/heap.h"
#include "base/page.h"
#include "os/clock.h"
#include "os/fresh.h"
#include "os/host.h"
#include "os/mapping.h"
#include "os/pages.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	BACKING_MAX = 512, /* mappings remembered */
	BACKING_SHARE = 100, /* 1/100 of the time goes into reading smaps */
	BACKING_ASKED = 64, /* ranges with pages served before that is read */
	BACKING_GONE = 32, /* ranges; if there are more the last grows */
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

/** struct backing_table - Mappings, as smaps had them at one time. */
struct backing_table {
	unsigned num;
	struct backing_map map[BACKING_MAX];
};

/**
 * struct backing_cache
 * @lock:	held for a moment only
 * @may_scan:	when smaps may be read again at the earliest
 * @table:	@now of them is used; the other belongs to the thread that is @scanning
 * @scan:	that thread's, too
 * @gone:	ranges forgotten since smaps was begun to be read: it may be too old
 * @asked:	ranges of which it is said if they are plain when smaps was read
 */
struct backing_cache {
	pthread_mutex_t lock;
	uint64_t scanned_ns, valid_until, may_scan;
	bool scanning;
	unsigned now, num_gone, num_asked;
	struct backing_table table[2];
	struct range gone[BACKING_GONE], asked[BACKING_ASKED];
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
	while (c->num_asked > 0) { /* what asked for them is gone, too */
		c->num_asked--;
		fresh_known();
	}
	pthread_mutex_destroy(&c->lock);
	heap_free(c);
}

static struct backing_map *backing_find(struct backing_cache *c, uint64_t addr)
{
	struct backing_table *t = &c->table[c->now];

	for (unsigned i = 0; i < t->num; i++)
		if (range_has(&t->map[i].range, addr))
			return &t->map[i];
	return NULL;
}

/* The rest of a mapping remains known. */
static void backing_cut(struct backing_cache *c, struct range gone)
{
	struct backing_table *t = &c->table[c->now];

	for (unsigned i = t->num; i-- > 0;) {
		struct backing_map map = t->map[i], rest = map;

		if (map.range.start >= gone.end || map.range.end <= gone.start)
			continue;
		t->map[i] = t->map[--t->num];
		rest.range.end = gone.start;
		if (rest.range.start < rest.range.end)
			t->map[t->num++] = rest;
		map.range.start = gone.end;
		if (map.range.start < map.range.end && t->num < BACKING_MAX)
			t->map[t->num++] = map;
	}
}

void backing_forget(struct backing_cache *c, uint64_t addr, uint64_t len)
{
	struct range gone = {.start = addr & ~(PAGE_BYTES - 1)}, *last;

	gone.end = gone.start + (pages_spanned(addr, len) << PAGE_SHIFT);
	pthread_mutex_lock(&c->lock);
	backing_cut(c, gone);
	c->valid_until = MIN(c->valid_until, c->may_scan);
	last = &c->gone[MIN(c->num_gone, BACKING_GONE - 1)];
	if (c->num_gone < BACKING_GONE) {
		c->gone[c->num_gone++] = gone;
	} else {
		last->start = MIN(last->start, gone.start);
		last->end = MAX(last->end, gone.end);
	}
	pthread_mutex_unlock(&c->lock);
}

/* Of the thread that is scanning, without the lock. */
static void backing_read(struct backing_cache *c, struct backing_table *t)
{
	struct mapping map;
	bool more;

	t->num = 0;
	more = mapping_first(&c->scan, "/proc/self/smaps", &map) == 0;
	while (more) {
		if (map.anon && map.read && !map.uffd && !map.huge &&
		    !map.device && t->num < BACKING_MAX)
			t->map[t->num++] = (struct backing_map){
				.range = map.range,
				.small = map.write && !map.thp,
				.swapped = map.swapped,
			};
		more = mapping_next(&c->scan, &map);
		if (!more)
			mapping_end(&c->scan);
	}
}

/* The range forgotten around @addr since smaps was read, or NULL. */
static const struct range *backing_gone(const struct backing_cache *c,
					uint64_t addr)
{
	for (unsigned i = 0; i < c->num_gone; i++)
		if (range_has(&c->gone[i], addr))
			return &c->gone[i];
	return NULL;
}

/* The range @asked is known now: lock held. Return: is it ordinary memory? */
static bool backing_tell(struct backing_cache *c, struct range asked)
{
	const struct backing_map *map = NULL;

	do {
		map = backing_find(c, asked.start);
		asked.start = map ? map->range.end : asked.end;
	} while (asked.start < asked.end);
	if (!map)
		fresh_unsure(clock_ns());
	fresh_known();
	return map != NULL;
}

/* A range that was forgotten again meanwhile remains asked. */
static void backing_tell_all(struct backing_cache *c)
{
	for (unsigned i = c->num_asked; i-- > 0;) {
		const struct range asked = c->asked[i];

		if (backing_gone(c, asked.start))
			continue;
		c->asked[i] = c->asked[--c->num_asked];
		backing_tell(c, asked);
	}
}

/* If it is time and no other thread does: read smaps. Called and returns with the lock. */
static void backing_update(struct backing_cache *c, uint64_t now_ns)
{
	uint64_t began, cpu, took;

	if (c->scanning || now_ns < c->valid_until)
		return;
	c->scanning = true;
	c->num_gone = 0;
	pthread_mutex_unlock(&c->lock);
	fresh_check(clock_ns());
	began = clock_ns();
	cpu = clock_cpu_ns();
	backing_read(c, &c->table[!c->now]);
	took = clock_cpu_ns() - cpu;
	pthread_mutex_lock(&c->lock);
	c->scanning = false;
	c->now = !c->now;
	c->scanned_ns = began;
	c->may_scan = began + took * (uint64_t)BACKING_SHARE;
	c->valid_until = c->num_gone
				 ? c->may_scan
				 : MAX(began + backing_keep_ns, c->may_scan);
	for (unsigned i = 0; i < c->num_gone; i++)
		backing_cut(c, c->gone[i]);
	backing_tell_all(c);
}

/* Does nothing say what is at @addr, though something will? */
static bool backing_early(const struct backing_cache *c, uint64_t addr)
{
	return c->scanning || backing_gone(c, addr);
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

	pthread_mutex_lock(&c->lock);
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

struct range backing_plain(struct backing_cache *c, uint64_t addr, bool *early,
			   uint64_t now_ns)
{
	const struct backing_map *map;
	struct range out = {0, 0};

	pthread_mutex_lock(&c->lock);
	backing_update(c, now_ns);
	map = backing_find(c, addr);
	if (map && map->small)
		out = map->range;
	*early = !map && backing_early(c, addr);
	pthread_mutex_unlock(&c->lock);
	return out;
}

bool backing_doubt(struct backing_cache *c, uint64_t addr, uint64_t now_ns)
{
	bool plain;

	pthread_mutex_lock(&c->lock);
	plain = now_ns < c->valid_until && backing_find(c, addr) != NULL;
	pthread_mutex_unlock(&c->lock);
	if (!plain)
		fresh_unknown();
	return !plain;
}

/* Return: what is at @addr will be said when smaps has been read: at once, if there
 * is no place to remember it. */
static bool backing_ask(struct backing_cache *c, uint64_t addr)
{
	const struct range *gone = backing_gone(c, addr);

	for (unsigned i = 0; i < c->num_asked; i++)
		if (range_has(&c->asked[i], addr)) {
			fresh_known(); /* that one is still in doubt */
			return true;
		}
	if (c->num_asked == BACKING_ASKED)
		return false;
	c->asked[c->num_asked++] = gone ? *gone
					: (struct range){addr, addr + 1};
	return true;
}

bool backing_learn(struct backing_cache *c, uint64_t addr, uint64_t now_ns)
{
	bool plain = true;

	pthread_mutex_lock(&c->lock);
	backing_update(c, now_ns);
	if (!backing_early(c, addr) || !backing_ask(c, addr))
		plain = backing_tell(c, (struct range){addr, addr + 1});
	pthread_mutex_unlock(&c->lock);
	return plain;
}
