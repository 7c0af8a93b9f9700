/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* table.h: the shadow page table. */
#ifndef NOPIN_MEM_TABLE_H
#define NOPIN_MEM_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct mem;
struct mr;

/*
 * SPT_AHEAD: fetched ahead and not used yet. Entered by spt_install_ahead(); left
 * for what the pager said by spt_use() or, as a waste, by spt_miss_ahead(); else for
 * good, as a waste. In order: what has to be looked at again is below what is ready.
 */
enum spt_state { SPT_ABSENT, SPT_AHEAD, SPT_READABLE, SPT_WRITABLE };

/* SPT_SPARED: entries of a set that minimums of regions may keep (spare.c). */
enum { SPT_WAYS = 4, SPT_SPARED = 2, SPT_VICTIMS = 4096 };

/**
 * struct spt_time - Ticks, by which entries age (ageing.c).
 * @tick:	newest time seen; new stamps are this
 * @now_tick:	the same, but for what spt_protect_all() added
 * @stamped:	newest stamp that was given
 * @now_ns:	newest time heard of
 * @protect:	entries stamped up to this tick are readable only; or -1
 * @renewed:	newest key_row.since
 */
struct spt_time {
	uint64_t tick, now_tick, stamped, now_ns;
	int64_t protect, renewed;
};

/**
 * struct spt_sets - How many sets there are (spt_size.c).
 * @mask, @bits: of all there could be
 * @used, @used_mask: those in use; the smallest mask of all their numbers
 * @wanted:	so many are to be
 */
struct spt_sets {
	uint64_t mask, used, used_mask, wanted;
	unsigned bits;
};

/** struct spt_sweep - @next: set to be swept; @rest: fraction of a set left over */
struct spt_sweep {
	uint64_t next, rest;
};

/**
 * struct spt - The shadow page table; see the head of spt.c.
 * @live:	entries that are not free
 * @short_of:	since mem_use() looked, one was replaced for another, or found no
 *		place
 * @gen:	counts events that take rights away; a hold remembers it
 */
struct spt {
	uint64_t *e;
	struct spt_sets sets;
	struct spt_time time;
	struct spt_sweep sweep;
	uint64_t live;
	uint32_t gen;
	bool exact, short_of;
	uint16_t victim[SPT_VICTIMS];
};

int spt_init(struct mem *m);
void spt_fini(struct mem *m);
/** spt_place() - Move the entry @e of a page to the front of its set; if it has none
 * (NULL), make one. Return: it, or NULL: everything else in the set is held. */
uint64_t *spt_place(struct mem *m, uint64_t vpn, const uint64_t *e);
bool spt_room(const struct spt *s, uint64_t vpn);
void spt_install(struct mem *m, uint64_t vpn, bool writable, int64_t since,
		 uint64_t at);
void spt_install_ahead(struct mem *m, uint64_t vpn, bool writable, uint64_t at,
		       uint32_t key);
bool spt_use(struct mem *m, uint64_t vpn);
void spt_miss_ahead(struct mem *m, uint64_t vpn);
void spt_drop_ahead(struct mem *m, uint64_t vpn);
int64_t spt_renew(struct mem *m, uint64_t vpn, uint64_t pages);
void spt_forget(struct mem *m, uint64_t vpn, uint64_t pages);
uint32_t spt_known(struct mem *m, uint64_t vpn, uint64_t pages);
void watch_know(struct mem *m, struct mr *mr);

#endif
