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
 * struct spt - The shadow page table; see the head of spt.c.
 * @set_mask, @set_bits: of all sets there could be
 * @sets, @used_mask: those in use; the smallest mask of all their numbers
 * @sets_wanted: so many are to be
 * @live:	entries that are not free
 * @short_of:	since somebody looked, one was replaced for another, or found no
 *		place
 * @tick:	newest time seen, in ticks; new stamps are this
 * @now_tick:	the same, but for what spt_protect_all() added
 * @protect:	entries stamped up to this tick are readable only; or -1
 * @stamped:	newest stamp that was given
 * @renewed:	newest key_row.since
 * @gen:	counts whatever takes rights away; a hold remembers it
 * @now_ns:	newest time heard of
 * @sweep, @sweep_rest: next set to be swept; fraction of a set left over
 */
struct spt {
	uint64_t *e;
	uint64_t set_mask;
	unsigned set_bits;
	bool exact, short_of;
	uint64_t sets, used_mask, sets_wanted, live;
	uint64_t tick, now_tick;
	int64_t protect, renewed;
	uint64_t stamped;
	uint32_t gen;
	uint64_t now_ns;
	uint64_t sweep, sweep_rest;
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
