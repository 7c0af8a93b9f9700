/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* impl.h: what the files of mem/ share. Everything here runs under the engine
 * lock of the NIC that owns the struct mem.
 */
#ifndef NOPIN_MEM_IMPL_H
#define NOPIN_MEM_IMPL_H

#include "mem/mem.h"

enum {
	/* Application addresses end here: 57-bit x86 user space. */
	ADDR_BITS = 56,
	VPN_BITS = ADDR_BITS - PAGE_SHIFT,
};

#define ADDR_END (UINT64_C(1) << ADDR_BITS)
#define VPN_END	 (UINT64_C(1) << VPN_BITS)

/* --- key.c --------------------------------------------------------------- */

enum {
	KEY_INDEX_BITS = 18,
	KEY_GEN_BITS = 6,
	KEY_LOW_BITS = 8,
	KEY_BITS = KEY_INDEX_BITS + KEY_GEN_BITS,
};

/** struct keys - The secrets of one NIC's keys. */
struct keys {
	uint64_t k0, k1;
	struct rnd rnd;
};

void key_init(struct keys *k, const uint64_t seed[2]);
uint32_t key_make(struct keys *k, uint32_t index, uint32_t gen);
uint32_t key_index(const struct keys *k, uint32_t key);

/* --- mr.c ---------------------------------------------------------------- */

/*
 * MR_FREE: on the free list or never used; only @gen and @next mean something.
 * MR_LIVE: reachable by its key. Left by mr_revoke(), mr_invalidate().
 * MR_REVOKED: unreachable; exists until mr_free() finds no hold.
 */
enum mr_state { MR_FREE, MR_LIVE, MR_REVOKED, MR_STATE_NUM };

/**
 * struct mr - A region.
 * @since:	what was learned up to this tick was about whatever was mapped
 *		there before
 * @next:	index + 1 of the next free one, 0: none
 */
struct mr {
	struct mr_attr attr;
	int64_t since;
	uint32_t key;
	uint32_t holds;
	uint32_t next;
	uint8_t state, gen;
};

enum {
	MR_MAX = 1 << KEY_INDEX_BITS,
	MR_CHUNK = 1024,
	MR_CHUNKS = MR_MAX / MR_CHUNK,
	MR_CACHE = 256,
};

/**
 * struct regions - All regions, in chunks so that they never move.
 * @fresh:	indices below this have been used
 * @made:	indices below this have memory; fresh <= made
 * @cache:	index that a key with these bits had last; only a guess
 */
struct regions {
	struct mr *chunk[MR_CHUNKS];
	uint32_t fresh, made;
	uint32_t free_head, free_tail, num_free;
	uint32_t num_used;
	uint32_t cache[MR_CACHE];
};

/** struct pd - @next: as in struct mr. */
struct pd {
	uint32_t users;
	uint32_t next;
	bool used;
};

struct pds {
	struct pd *v;
	uint32_t num, cap, free;
};

static inline struct mr *mr_at(struct regions *r, uint32_t index)
{
	return &r->chunk[index / MR_CHUNK][index % MR_CHUNK];
}

/**
 * mr_lookup() - The live region of @key, or NULL; @index is set with it.
 */
struct mr *mr_lookup(struct mem *m, uint32_t key, uint32_t *index);
void mr_fini(struct mem *m);

/* --- spt.c --------------------------------------------------------------- */

enum spt_state { SPT_ABSENT, SPT_READABLE, SPT_WRITABLE, SPT_STATE_NUM };

enum { SPT_WAYS = 4, SPT_VICTIMS = 4096 };

/**
 * struct spt - The shadow page table; see the head of spt.c.
 * @tick:	newest time seen, in ticks; new stamps are this
 * @now_tick:	the same, but for what spt_protect_all() added
 * @protect:	entries stamped up to this tick are readable only; or -1
 * @stamped:	newest stamp that was given
 * @renewed:	newest mr.since
 * @gen:	counts whatever takes rights away; a hold remembers it
 * @sweep, @sweep_rest: next set to be swept; fraction of a set left over
 */
struct spt {
	uint64_t *e;
	uint64_t set_mask;
	unsigned set_bits;
	bool exact;
	uint64_t tick, now_tick;
	int64_t protect, renewed;
	uint64_t stamped;
	uint32_t gen;
	uint64_t sweep, sweep_rest;
	uint16_t victim[SPT_VICTIMS];
};

/**
 * struct spt_view - What counts as fresh in one resolve.
 * @max_age:	in ticks, for reading and for writing; negative: nothing
 */
struct spt_view {
	int64_t max_age[2];
};

int spt_init(struct mem *m);
void spt_fini(struct mem *m);
void spt_tick(struct spt *s, uint64_t now_ns);
struct spt_view spt_view(struct spt *s, uint64_t now_ns, uint64_t fresh_ns,
			 int64_t since);
int64_t spt_age(const struct spt *s, const struct spt_view *v, uint64_t vpn,
		bool write);
static inline bool spt_ready(const struct spt *s, const struct spt_view *v,
			     uint64_t vpn, bool write)
{
	return spt_age(s, v, vpn, write) >= 0;
}
bool spt_room(const struct spt *s, uint64_t vpn);
void spt_install(struct mem *m, uint64_t vpn, bool writable, int64_t since,
		 uint64_t at);
int64_t spt_renew(struct mem *m, uint64_t vpn, uint64_t pages);
bool spt_hold(struct mem *m, uint64_t vpn);
void spt_unhold(struct mem *m, uint64_t vpn);
void spt_forget(struct mem *m, uint64_t vpn, uint64_t pages);
bool spt_was_replaced(struct spt *s, uint64_t vpn);

/* --- cheap.c ------------------------------------------------------------- */

enum { CHEAP_MAX = 64 };

/** struct cheap_range - Pages [start, end) whose misses are cheap. */
struct cheap_range {
	uint64_t start, end;
	uint64_t learned_ns;
};

/** struct cheap - Sorted by start, disjoint. */
struct cheap {
	unsigned num;
	struct cheap_range r[CHEAP_MAX];
};

void cheap_learn(struct cheap *c, uint64_t start, uint64_t end,
		 uint64_t now_ns);
void cheap_forget(struct cheap *c, uint64_t start, uint64_t end);
bool cheap_covers(const struct cheap *c, uint64_t vpn, uint64_t fresh_ns);

/* --- ticket.c ------------------------------------------------------------ */

enum {
	TICKET_PAGES = 256,
	TICKET_BLOCK_SHIFT = 8, /* a ticket's pages lie in at most two blocks */
	TICKETS_MAX = 1 << 16,
	AHEAD_PAGES = 16, /* in a ticket that nobody waits for yet */
	AHEAD_OUT = 4, /* of those with the pagers */
};

#define TICK_NOW UINT64_MAX

/*
 * TICKET_FREE: on the free list.
 * TICKET_NEW: nobody was asked yet; freed when its last waiter goes, but not
 *	when it never had one. An unmap leaves it alone, as the question is
 *	still to be asked.
 * TICKET_SENT: a pager has it; left only by ticket_done() and
 *	ticket_unsent(). With @valid 0, what it answers is out of date; out of
 *	the hash, so nobody joins it any more.
 */
enum ticket_state { TICKET_FREE, TICKET_NEW, TICKET_SENT, TICKET_STATE_NUM };

/**
 * struct ticket - One outstanding fault for a run of pages.
 * @hash:	next in the chain of the first and of the last block, see
 *		ticket.c
 * @link:	on the list of its state
 * @valid:	the answer counts for so many pages from the start
 * @protect:	and for reading only
 * @ahead:	sent without a waiter
 * @at:		the answer is about this tick; TICK_NOW: about when it comes
 */
struct ticket {
	uint64_t vpn, at;
	uint32_t pages, valid;
	uint16_t gen;
	uint8_t state;
	bool write, whole, protect, ahead;
	uint32_t hash[2];
	struct list link, waiters;
};

/**
 * struct tickets - @fresh: TICKET_NEW with waiters, @ahead: without;
 * @ahead_sent: of these, how many pagers have.
 */
struct tickets {
	struct ticket *v;
	uint32_t *bucket;
	uint32_t bucket_mask;
	uint32_t num, out, hashed, ahead_sent;
	struct list free, fresh, ahead, sent;
};

int ticket_init(struct mem *m);
void ticket_fini(struct mem *m);
struct ticket *ticket_find(struct tickets *t, uint64_t vpn, bool write);
struct ticket *ticket_of(struct tickets *t, struct ticket_id id);
uint64_t ticket_room(struct tickets *t, uint64_t vpn, uint64_t end);
struct ticket *ticket_open(struct mem *m, uint64_t vpn, uint64_t pages,
			   bool write, bool whole);
void ticket_wait(struct mem *m, struct ticket *t, struct waiter *w);
void ticket_leave(struct mem *m, struct waiter *w);
void ticket_outdate(struct mem *m, uint64_t vpn, uint64_t pages);
void ticket_protect(struct mem *m, uint64_t vpn, uint64_t pages);
void ticket_renew(struct mem *m, uint64_t vpn, uint64_t pages, uint64_t at);

/* --- moving.c ------------------------------------------------------------ */

enum {
	/* struct hold.mr: region, was it a write, spt.gen at resolve */
	HOLD_WRITE = 1 << KEY_INDEX_BITS,
	HOLD_GEN_SHIFT = KEY_INDEX_BITS + 1,
	/* waiter.ticket of who waits for a move; real ones have gen > 0 */
	TICKET_MOVING = 1,
};

void moving_init(struct mem *m);
void moving_add(struct mem *m, struct holds *h);
void moving_remove(struct holds *h);
bool moving_page(const struct mem *m, const struct holds *own, uint64_t vpn,
		 uint64_t pages, uint64_t *page);
void moving_wait(struct mem *m, struct waiter *w, uint64_t page,
		 uint64_t now_ns);
void moving_wake(struct mem *m, const struct hold *h);

/* --- pool.c -------------------------------------------------------------- */

/** struct pool - @free: stack of free slots; @used: a flag per slot. */
struct pool {
	uint32_t *free;
	uint8_t *used;
	uint32_t num_free;
};

int pool_init(struct mem *m);
void pool_fini(struct mem *m);

/* --- mem.c --------------------------------------------------------------- */

enum { DOUBTS = 8 };

/**
 * struct mem - @holds: not yet released, all regions together.
 * @moving:	struct holds with holds
 * @moving_wait, @moved: waiters for such; for some that ended since
 * @doubt, @doubts: with always_ready: pages that lately gave EFAULT, so ask a
 *	pager; how many ever did
 */
struct mem {
	struct mem_config cfg;
	struct counters *cnt;
	struct keys keys;
	struct regions mrs;
	struct pds pds;
	struct spt spt;
	struct cheap cheap;
	struct tickets tickets;
	struct pool pool;
	unsigned inline_budget;
	uint64_t holds;
	struct list moving, moving_wait, moved;
	struct {
		uint64_t start, end;
	} doubt[DOUBTS];
	unsigned doubts;
};

/** pages_clip() - @pages, but not beyond the last page there can be. */
static inline uint64_t pages_clip(uint64_t vpn, uint64_t pages)
{
	return vpn >= VPN_END ? 0 : MIN(pages, VPN_END - vpn);
}

#endif
