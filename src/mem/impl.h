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

/* --- eventcount.c --------------------------------------------------------- */

/** struct count_slot - @next: in the order of becoming free. */
struct count_slot {
	struct eventcount *count; /* NULL: free */
	uint32_t next;
	uint8_t gen;
};

/** struct eventcounts - All counters; @num: indices that have been used. */
struct eventcounts {
	struct keys keys;
	struct count_slot *v;
	uint32_t num, cap;
	uint32_t free_head, free_tail, num_free;
};

void counts_init(struct mem *m);
/** counts_fini() - CHECKs that none is left. */
void counts_fini(struct mem *m);

/* --- mr.c ---------------------------------------------------------------- */

/*
 * MR_FREE: on the free list or never used; only @gen and @next mean something.
 * MR_LIVE: reachable by its key. Left by mr_revoke(), mr_invalidate().
 * MR_SUSPENDED: likewise, but whoever accesses it waits; left by mr_resume().
 * MR_REVOKED: unreachable; exists until mr_free() finds no hold.
 */
enum mr_state { MR_FREE, MR_LIVE, MR_SUSPENDED, MR_REVOKED, MR_STATE_NUM };

/**
 * struct suspension - The one that lasts, or the last one.
 * @met_ns:	since when somebody has to wait for it; 0: nobody does
 * @pause_ns:	how long the first who met the one before had to
 */
struct suspension {
	uint64_t since_ns, expected_ns, met_ns, pause_ns;
};

/**
 * struct mr - A region.
 * @since:	what was learned up to this tick was about whatever was mapped
 *		there before
 * @look_ns:	until when a pager is not asked again what its memory is (overwrite.c)
 * @fault_ns:	what a fault takes a pager, of those that were answered lately, 4 s
 *		at most; 0: none was
 * @next:	of a free one: index + 1 of the next free one, 0: none
 * @account:	of its faults, or NULL: it had none
 * @pattern:	of its accesses, or NULL
 * @suspension:	or NULL: there never was one
 * @known:	of one that is watched: its pages in the table, learned since @since
 * @promised:	likewise: its minimum, but no more than it has pages
 * @watched:	in struct watch
 */
struct mr {
	struct mr_attr attr;
	uint64_t look_ns;
	struct account *account;
	struct pattern *pattern;
	struct suspension *suspension;
	int64_t since;
	uint32_t key;
	uint32_t holds, fault_ns, promised;
	union {
		uint32_t next, known;
	};
	uint8_t state, gen;
	bool watched;
};

/* A power of two: each access computes where its region is. */
static_assert(sizeof(struct mr) == 128, "an index is shifted");

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

/**
 * struct pd
 * @next:	as in struct mr
 * @tickets, @asked: out for its users, and with the pagers; outlive it
 */
struct pd {
	uint32_t users;
	uint32_t next;
	uint32_t tickets, asked;
	bool used;
};

/** struct pds - @live: in use. */
struct pds {
	struct pd *v;
	uint32_t num, cap, free, live;
};

static inline struct mr *mr_at(struct regions *r, uint32_t index)
{
	return &r->chunk[index / MR_CHUNK][index % MR_CHUNK];
}

/**
 * mr_lookup() - The live region of @key, or NULL; @index is set with it.
 */
struct mr *mr_lookup(struct mem *m, uint32_t key, uint32_t *index);
/** mr_live() - The same, where nobody needs the index. */
static inline struct mr *mr_live(struct mem *m, uint32_t key)
{
	uint32_t index;

	return mr_lookup(m, key, &index);
}
/** mr_by_key() - Also a revoked one; or NULL. */
struct mr *mr_by_key(struct mem *m, uint32_t key);
void mr_fini(struct mem *m);

/* --- spt.c --------------------------------------------------------------- */

/*
 * SPT_AHEAD: fetched ahead and not used yet. Entered by spt_install_ahead(); left
 * for what the pager said by spt_use(), else for good: then it was a waste. In
 * order: what has to be looked at again is below what is ready.
 */
enum spt_state {
	SPT_ABSENT,
	SPT_AHEAD,
	SPT_READABLE,
	SPT_WRITABLE,
	SPT_STATE_NUM
};

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
 * @renewed:	newest mr.since
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

enum { TICK_SHIFT = 20 }; /* stamps of the table: about a millisecond */

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
bool spt_ahead(const struct spt *s, const struct spt_view *v, uint64_t vpn,
	       bool write);
static inline bool spt_ready(const struct spt *s, const struct spt_view *v,
			     uint64_t vpn, bool write)
{
	return spt_age(s, v, vpn, write) >= 0 || spt_ahead(s, v, vpn, write);
}
bool spt_room(const struct spt *s, uint64_t vpn);
void spt_install(struct mem *m, uint64_t vpn, bool writable, int64_t since,
		 uint64_t at);
void spt_install_ahead(struct mem *m, uint64_t vpn, bool writable, uint64_t at,
		       uint32_t key);
bool spt_use(struct mem *m, uint64_t vpn);
void spt_drop_ahead(struct mem *m, uint64_t vpn);
int64_t spt_renew(struct mem *m, uint64_t vpn, uint64_t pages);
bool spt_hold(struct mem *m, uint64_t vpn);
void spt_unhold(struct mem *m, uint64_t vpn);
void spt_forget(struct mem *m, uint64_t vpn, uint64_t pages);
bool spt_was_replaced(struct spt *s, uint64_t vpn);
uint32_t spt_known(struct mem *m, uint64_t vpn, uint64_t pages);

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

/* --- overwrite.c --------------------------------------------------------- */

/** struct pages - Page numbers [start, end). */
struct pages {
	uint64_t start, end;
};

enum over { OVER_NO, OVER_YES, OVER_LOOK, OVER_NUM };

struct pages over_pages(const struct dma *d, uint64_t addr, uint64_t behind);
bool over_allowed(const struct mr *mr, const struct dma *d, strategies_t set);
void over_looked(struct mem *m, uint32_t key, bool early, uint64_t now_ns);
enum over over_look(const struct mem *m, const struct mr *mr, uint64_t vpn,
		    uint64_t now_ns);

/* --- pattern.c ----------------------------------------------------------- */

enum { STREAMS = 4, SEEN = 8 };

/** struct seen - An access: its first page that was missing, and how many more. */
struct seen {
	uint64_t vpn, pages;
};

/**
 * struct stream - Accesses a stride apart.
 * @at, @pages:	the last one
 * @stride:	pages; 0: there is no stream
 * @hits:	of what was fetched; halved when that was in vain
 * @used:	pattern.clock then
 * @depth:	how many accesses ahead it may be, as things go
 * @asked:	how many were asked for; @want: are to be
 */
struct stream {
	uint64_t at, pages;
	int64_t stride;
	uint32_t hits, used;
	uint8_t depth, asked, want;
};

/**
 * struct pattern - What accesses to a region are like.
 * @seen:	a ring: those that are in no stream; @next: where the next goes
 */
struct pattern {
	struct stream s[STREAMS];
	struct seen seen[SEEN];
	uint32_t clock;
	uint16_t credit;
	uint8_t num, next;
};

void pattern_init(struct pattern *p);
struct stream *pattern_note(struct pattern *p, uint64_t vpn, uint64_t pages,
			    bool hit);
bool pattern_next(struct pattern *p, struct stream *s,
		  const struct pages *limit, struct pages *out);
bool pattern_asked(const struct pattern *p, unsigned i, struct pages *out);

/* --- ticket.c ------------------------------------------------------------ */

enum {
	TICKET_PAGES = 256,
	TICKET_BLOCK_SHIFT = 8, /* a ticket's pages lie in at most two blocks */
	TICKETS_MAX = 1 << 16,
	AHEAD_PAGES = 16, /* in a ticket that nobody waits for yet */
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
 * @share:	who pays for it
 * @queue:	NEW: which line of its share it stands in
 * @ahead:	sent without a waiter
 * @look:	bring nothing in where memory is plain: key of the region that asks
 *		(overwrite.c), or 0
 * @early:	its pager could not yet say what @look asks
 * @major:	its pager waited for I/O
 * @guess:	R_Key or L_Key of the region that foresaw it (pattern.c); 0: whoever
 *		needs it said so
 * @at:		the answer is about this tick; TICK_NOW: about when it comes
 */
struct ticket {
	uint64_t vpn, at;
	uint32_t pages, valid, guess, look;
	uint16_t gen;
	uint8_t state, queue;
	bool write, whole, protect, ahead, major, early;
	uint32_t hash[2];
	struct share *share;
	struct list link, waiters;
};

/** enum queue - New tickets with waiters, and without. */
enum queue { QUEUE_FRESH, QUEUE_AHEAD, QUEUE_NUM };

/**
 * struct tickets
 * @out:	not free == sum of share.tickets
 * @promised:	free ones that are kept for waiters == sum of share.promised
 * @asked, @ahead_asked: with the pagers; of these, sent without a waiter
 * @pagers:	so many may be
 * @short_of:	somebody had to wait for that since somebody looked
 * @ready:	shares with new tickets, by share.turn: who is next
 * @over:	those of them that may not ask before the next answer
 * @starved:	shares with waiters for a ticket, by share.starved_link
 */
struct tickets {
	struct ticket *v;
	uint32_t *bucket;
	uint32_t bucket_mask;
	uint32_t num, out, promised, hashed, asked, ahead_asked, pagers;
	bool short_of;
	struct list free, sent, starved;
	struct list ready[QUEUE_NUM], over[QUEUE_NUM];
};

int ticket_init(struct mem *m);
void ticket_fini(struct mem *m);
struct ticket *ticket_find(struct tickets *t, uint64_t vpn, bool write);
struct ticket *ticket_of(struct tickets *t, struct ticket_id id);
uint64_t ticket_room(struct tickets *t, uint64_t vpn, uint64_t end);
struct ticket *ticket_open(struct mem *m, struct share *s, uint64_t vpn,
			   uint64_t pages, bool write, bool whole);
void ticket_give_up(struct mem *m, struct share *s);
void ticket_hurry(struct mem *m, struct ticket *t);
void ticket_wait(struct mem *m, struct ticket *t, struct waiter *w);
void waiter_idle(struct mem *m, struct waiter *w);
void ticket_leave(struct mem *m, struct waiter *w);
void ticket_outdate(struct mem *m, uint64_t vpn, uint64_t pages);
void ticket_protect(struct mem *m, uint64_t vpn, uint64_t pages);
void ticket_unguess(struct mem *m, uint32_t key);
void ticket_renew(struct mem *m, uint64_t vpn, uint64_t pages, uint64_t at);

/* --- share.c ------------------------------------------------------------- */

/**
 * struct share - What a peer has of a PD's tickets and pagers.
 * @link:	on the peer's list
 * @refs:	QPs; it also stays while it has tickets
 * @tickets, @promised: that are out for it, and kept for waiters of it
 * @asked, @ahead_asked: as in struct tickets
 * @queue:	its new tickets
 * @turn:	while they are some: on tickets.ready or .over
 * @starved:	waiters that found no ticket, in the order they came
 */
struct share {
	struct list link;
	uint32_t pd, refs;
	uint32_t tickets, promised, asked, ahead_asked;
	struct list queue[QUEUE_NUM], turn[QUEUE_NUM];
	struct list starved, starved_link;
};

void shares_init(struct mem *m);
void share_unref(struct share *s);
bool share_ahead(struct mem *m, struct share *s);
bool share_too(struct mem *m, const struct share *s);
bool share_claim(struct mem *m, struct waiter *w, uint64_t now_ns);
void share_starved_leave(struct waiter *w);
void share_wake(struct mem *m);
void share_turn_over(struct mem *m, struct waiter *w);
void share_opened(struct mem *m, struct share *s);
void share_closed(struct mem *m, struct share *s);
void share_forget(struct share *s);
void share_takes_over(struct mem *m, struct ticket *t, const struct waiter *w);
void share_enqueue(struct mem *m, struct ticket *t, enum queue q);
void share_enqueue_first(struct mem *m, struct ticket *t);
void share_dequeue(struct ticket *t);
struct ticket *share_next(struct mem *m, enum queue q);
void share_asked(struct mem *m, struct share *s, bool ahead);
uint32_t ahead_max(const struct mem *m);
void share_answered(struct mem *m, struct share *s, bool ahead);

/* --- account.c ----------------------------------------------------------- */

/*
 * waiter.fault. OPEN: begun, no pager has answered; left by fault_answered().
 * Both end in NO, by fault_end() or fault_give_up().
 */
enum fault_state { FAULT_NO, FAULT_OPEN, FAULT_ANSWERED, FAULT_STATE_NUM };

void fault_begin(struct mem *m, struct waiter *w, uint32_t key, bool merged,
		 bool replaced, uint64_t now_ns);
void fault_answered(struct mem *m, struct waiter *w, enum account_item what,
		    uint64_t service_ns);
void fault_end(struct mem *m, struct waiter *w, uint64_t now_ns);
void fault_give_up(struct mem *m, struct waiter *w);
void fault_cheap(struct mem *m, struct waiter *w, const struct mr *mr,
		 unsigned inlined, unsigned dropped);
void fault_cheap_end(struct mem *m, struct account *owner, const struct mr *mr,
		     uint64_t ns);
void mr_account_gone(struct mem *m, struct mr *mr);

/* --- moving.c ------------------------------------------------------------ */

enum {
	/* struct hold.mr: region, was it a write, spt.gen at resolve */
	HOLD_WRITE = 1 << KEY_INDEX_BITS,
	HOLD_GEN_SHIFT = KEY_INDEX_BITS + 1,
	/* waiter.ticket of who waits for a move; real ones have gen > 0 */
	TICKET_MOVING = 1,
	TICKET_STARVED = 2, /* and of who waits for a ticket (share.c) */
};

void moving_init(struct mem *m);
void moving_add(struct mem *m, struct holds *h);
void moving_remove(struct holds *h);
bool moving_page(const struct mem *m, const struct holds *own, uint64_t vpn,
		 uint64_t pages, uint64_t *page);
void moving_wait(struct mem *m, struct waiter *w, uint64_t page,
		 uint64_t now_ns);
void moving_wake(struct mem *m, const struct hold *h);

/* --- suspend.c ----------------------------------------------------------- */

/* waiter.ticket of who waits for a region; @vpn is its key then */
enum { TICKET_SUSPENDED = TICKET_STARVED + 1 };

/** ticket_real() - Is it a ticket, not one of those numbers? */
static inline bool ticket_real(struct ticket_id id)
{
	return id.v > TICKET_SUSPENDED;
}

void suspend_wait(struct mem *m, struct mr *mr, struct waiter *w,
		  uint64_t now_ns);
void suspend_gone(struct mem *m, const struct mr *mr);

/* --- spare.c ------------------------------------------------------------- */

void watch_count(struct mem *m, uint64_t vpn, uint64_t old, uint64_t new);
bool spare_below(const struct mem *m, const struct mr *mr, uint64_t e);
int spare_pick(struct mem *m, const uint64_t *e, uint64_t set);
unsigned spare_shrink(struct mem *m, uint64_t *e, unsigned n, uint64_t set);

/* --- upcall.c ------------------------------------------------------------ */

/** struct upcall_event - Queued: [off, off + len) of the region of @key. */
struct upcall_event {
	uint64_t off, len, at_ns;
	uint32_t key;
	uint8_t reason; /* enum upcall_reason */
	bool below;
};

/**
 * struct watch - The live regions that have a minimum, a weight or upcalls.
 * @mr, @start:	by first page
 * @end:	a tree: of region i, the page behind it is at @cap + i; of the inner
 *		nodes, n is the larger one of 2n and 2n + 1. 0: no region
 * @num, @cap:	@cap is 0 or a power of two
 * @promised:	all that they are promised
 * @counted:	spt_known()'s own
 * @news:	struct upcalls
 */
struct watch {
	struct mr **mr;
	uint64_t *start, *end;
	uint32_t num, cap;
	uint32_t promised, counted;
	struct list news;
};

int watch_room(struct mem *m, const struct mr_attr *attr);
void watch_fini(struct mem *m);
void watch_add(struct mem *m, struct mr *mr);
void watch_remove(struct mem *m, struct mr *mr);
void watch_put_back(struct mem *m, struct mr *mr);
void watch_renew(struct mem *m, struct mr *mr);
void watch_forget(struct mem *m);
struct mr *watch_next(const struct watch *w, uint64_t vpn, uint32_t *at);
void upcall_page(struct mem *m, uint64_t vpn, uint64_t e,
		 enum upcall_reason reason);
void upcall_region(struct mem *m, const struct mr *mr,
		   enum upcall_reason reason);
void upcall_all(struct mem *m, enum upcall_reason reason);
void mr_let_go(struct mr *mr);

/* --- pool.c -------------------------------------------------------------- */

/** struct pool - @free: stack of free slots; @used: a flag per slot; @bound: so many
 * may be used */
struct pool {
	uint32_t *free;
	uint8_t *used;
	uint32_t num_free, bound;
};

int pool_init(struct mem *m);
void pool_fini(struct mem *m);

/* --- mem.c --------------------------------------------------------------- */

enum { DOUBTS = 8 };

/**
 * struct mem - @holds: not yet released, all regions together.
 * @moving:	struct holds with holds
 * @moving_wait, @moved: waiters for such; for some that ended since
 * @suspend_wait: waiters for regions to be resumed; then they are @moved
 * @doubt, @doubts: with always_ready: pages that lately gave EFAULT, so ask a
 *	pager; how many ever did
 * @user_only:	a bit for each hash of a stretch of memory (user_only.c)
 */
struct mem {
	struct mem_config cfg;
	struct counters *cnt;
	struct keys keys;
	struct eventcounts counts;
	struct regions mrs;
	struct pds pds;
	struct spt spt;
	struct watch watch;
	struct cheap cheap, plain;
	struct tickets tickets;
	struct share own; /* of the NIC itself */
	struct pool pool;
	unsigned inline_budget;
	uint64_t holds;
	struct list moving, moving_wait, moved, suspend_wait;
	struct {
		struct account all, no_owner, no_mr;
	} account;
	struct {
		uint64_t start, end;
	} doubt[DOUBTS];
	unsigned doubts;
	uint64_t user_only[16];
};

/** pages_clip() - @pages, but not beyond the last page there can be. */
static inline uint64_t pages_clip(uint64_t vpn, uint64_t pages)
{
	return vpn >= VPN_END ? 0 : MIN(pages, VPN_END - vpn);
}

#endif
