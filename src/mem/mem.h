/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mem.h: façade of mem/: protection domains, keys, regions, the shadow page
 * table, fault tickets, the redirect pool, and the one walk that turns a key
 * and an address into moves. Pure: no system call, no clock, no lock; the
 * caller holds the engine lock for every function here.
 */
#ifndef NOPIN_MEM_MEM_H
#define NOPIN_MEM_MEM_H

#include "base/base.h"

/* Access rights; the numbers are those of enum ibv_access_flags. */
enum access {
	ACCESS_LOCAL_WRITE = 1 << 0,
	ACCESS_REMOTE_WRITE = 1 << 1,
	ACCESS_REMOTE_READ = 1 << 2,
	ACCESS_REMOTE_ATOMIC = 1 << 3,
	ACCESS_MW_BIND = 1 << 4,
	ACCESS_ZERO_BASED = 1 << 5,
	ACCESS_ON_DEMAND = 1 << 6,
	ACCESS_RELAXED_ORDERING = 1 << 20,
};

enum {
	SLOT_BYTES = 4096, /* of the redirect pool; wire/'s MTU_MAX */
	SPT_ENTRIES_MIN = 16,
};

/*
 * What is fetched before it is needed; each leaves out more.
 * PREFETCH: also what an access is likely to need next (pattern.c)
 * QUEUE: also what messages behind one that waits need (dma_ahead())
 * MESSAGE: also the rest of the message ("touch-ahead")
 * PAGE: the pages that the access itself waits for ("touch-a-page")
 */
enum ahead {
	AHEAD_PREFETCH,
	AHEAD_QUEUE,
	AHEAD_MESSAGE,
	AHEAD_PAGE,
	AHEAD_NUM
};

/* As users write them, in the order of enum ahead. */
#define AHEAD_NAMES "prefetch queue message page"

/**
 * struct mem_config - Bounds, all > 0.
 * @entries:	entries of the shadow page table at most (design D12), at least
 *		SPT_ENTRIES_MIN; the largest power of two in it is used
 * @slots, @slot_base: redirect pool: that many slots of SLOT_BYTES in NIC
 *		memory at @slot_base (not touched until used)
 * @tickets:	outstanding at most, up to 65536
 * @pagers:	tickets that can be waited for at once, each by a thread
 * @exact:	the host makes spt_map/unmap/protect calls itself (simulator,
 *		later managed and module): entries do not age
 * @always_ready: the deliberately wrong table of the I1 tests
 */
struct mem_config {
	uint32_t entries;
	uint32_t slots;
	uint8_t *slot_base;
	uint32_t tickets, pagers;
	bool exact;
	bool always_ready;
	enum ahead ahead;
	uint64_t seed[2];
	struct counters *counters;
};

struct mem;

int mem_open(struct mem **out, const struct mem_config *cfg);
/** mem_close() - CHECKs that no region, hold or slot is left. */
void mem_close(struct mem *m);

/* --- protection domains and regions ------------------------------------- */

/** pd_alloc() - Return: a PD number > 0, or -ENOMEM. */
int pd_alloc(struct mem *m);
/** pd_get()/pd_put() - Users: regions, windows, QPs. */
void pd_get(struct mem *m, uint32_t pd);
void pd_put(struct mem *m, uint32_t pd);
/** pd_dealloc() - Return: 0, or -EBUSY while it has users. */
int pd_dealloc(struct mem *m, uint32_t pd);

struct upcalls;

enum { MR_WEIGHT_MAX = 1000, MR_WATCHED_MAX = 4096 };

/**
 * struct mr_attr - A region: [addr, addr + length) reachable at @iova.
 * @fault:	what answers its missing pages; NONE: as the QP or the NIC says
 * @minimum:	entries of the shadow page table that are not replaced if that is
 *		possible, while it has no more of them
 * @weight:	between two old entries the one of less goes, 1..MR_WEIGHT_MAX; 0: 1
 * @upcalls:	who is told what becomes of its pages, or NULL
 * @cookie:	comes back with what is told
 */
struct mr_attr {
	uint32_t pd;
	uint64_t addr, iova, length;
	uint32_t access;
	enum strategy fault;
	uint32_t minimum, weight;
	struct upcalls *upcalls;
	void *cookie;
};

/**
 * mr_register() - O(1); touches and checks no page. addr NULL and length
 * UINT64_MAX is the implicit region (iova == address, everything).
 * Return: 0 with @key (L_Key == R_Key); -EINVAL: the range wraps, remote write
 * or atomic without local write, unknown access bits, a weight above its limit;
 * -ENOMEM: no key left, or with minimum, weight or upcalls: MR_WATCHED_MAX such
 * regions; -ENOSPC: all minimums together would be more than half of the table.
 */
int mr_register(struct mem *m, const struct mr_attr *attr, uint32_t *key);

/**
 * mr_replace() - The same, in place of @old (any; 0: of none), which is about to be
 * freed: its minimum, weight and upcalls are no more, and make room for the new
 * one's. If it is refused, @old is as it was.
 */
int mr_replace(struct mem *m, uint32_t old, const struct mr_attr *attr,
	       uint32_t *key);

/**
 * mr_change() - Give a region that can be accessed another PD and other rights. Its
 * keys stay; what it is of @attr otherwise, too. Accesses from now on are checked
 * by these.
 * Return: 0; -ENOENT: there is none; -EINVAL: rights that make no sense; -EBUSY
 * while moves hold it, which were let in by the old ones.
 */
int mr_change(struct mem *m, uint32_t key, uint32_t pd, uint32_t access);

/** mr_set_fault() - Of accesses from now on. Return: 0, or -ENOENT. */
int mr_set_fault(struct mem *m, uint32_t key, enum strategy fault);

/** mr_query() - Also of a revoked region. Return: 0, or -ENOENT. */
int mr_query(struct mem *m, uint32_t key, struct mr_attr *attr);

/**
 * mr_revoke() - Unreachable from now on, for local and remote users.
 * Return: 0, or -ENOENT. The region still exists while it is held.
 */
int mr_revoke(struct mem *m, uint32_t key);

/**
 * mr_free() - Revokes the region if need be.
 * Return: 0; -ENOENT; or -EBUSY while moves hold the revoked region.
 */
int mr_free(struct mem *m, uint32_t key);

/** mr_invalidate() - SEND_WITH_INV and LOCAL_INV by @pd: V_OK or V_PROT. */
enum verdict mr_invalidate(struct mem *m, uint32_t pd, uint32_t key);

/**
 * mr_idle() - No move holds the region of @key; also true if there is none (any
 * more). Of a revoked or invalidated region it stays true.
 */
bool mr_idle(struct mem *m, uint32_t key);

/* --- event counters ---------------------------------------------------------- */

/**
 * struct eventcount - A counter that peers raise.
 * @link:	on the list that eventcount_raise() was given, until it is taken off
 */
struct eventcount {
	struct list link;
	uint32_t id, pd;
	uint64_t value;
	uint64_t *word;
};

/** eventcount_init() - @word: where the program reads it. Return: 0, -ENOMEM. */
int eventcount_init(struct mem *m, struct eventcount *e, uint32_t pd,
		    uint64_t *word);
/** eventcount_fini() - Nobody can raise it any more. */
void eventcount_fini(struct mem *m, struct eventcount *e);
/** eventcount_find() - Find what a peer names. Return: NULL: none, or another PD's. */
struct eventcount *eventcount_find(const struct mem *m, uint32_t pd,
				   uint32_t id);
/** eventcount_raise() - By one; it is on @raised then. */
void eventcount_raise(struct eventcount *e, struct list *raised);

/* --- suspension ------------------------------------------------------------- */

/**
 * mr_suspend() - From now on whoever would access the region waits; its keys are
 * as good as before. It is suspended when mr_idle() says that no move is in it.
 * Return: 0; -ENOENT: no such region, or revoked; -EINVAL: it is suspended;
 * -EOPNOTSUPP: it is the whole address space; -ENOMEM.
 */
int mr_suspend(struct mem *m, uint32_t key, uint64_t expected_ns,
	       uint64_t now_ns);

/**
 * mr_update() - Its memory is at @addr now. That this is mapped is the caller's
 * business.
 * Return: 0; -ENOENT; -EINVAL: not suspended, another length, the range wraps, or
 * atomics would be aligned otherwise; -EBUSY: moves are in it still.
 */
int mr_update(struct mem *m, uint32_t key, uint64_t addr, uint64_t length);

/**
 * mr_resume() - Waiters come from moved_take(), in the order in which they met
 * the suspension; nothing that was known of the pages counts.
 * Return: 0; -ENOENT; -EINVAL: it is not suspended.
 */
int mr_resume(struct mem *m, uint32_t key, uint64_t now_ns);

/**
 * struct mr_suspension
 * @moving:	moves are still in it
 * @since_ns, @expected_ns: of this suspension, or the last
 * @pause_ns:	how long the first who met the last one waited; 0: nobody did
 */
struct mr_suspension {
	bool suspended, moving;
	uint64_t since_ns, expected_ns, pause_ns;
};
/** mr_suspension() - Return: 0, or -ENOENT. */
int mr_suspension(struct mem *m, uint32_t key, struct mr_suspension *out);

struct waiter;
/** waiter_suspended() - Does @w wait for a region to be resumed? Its key, or 0. */
uint32_t waiter_suspended(struct mem *m, const struct waiter *w,
			  uint64_t *expected_ns);

/* --- upcalls ------------------------------------------------------------------ */

/*
 * EVERYTHING: the queue was full: whatever was told of its regions may be true of
 *	all of them
 * REPLACED: the entry went for another page's, or for its age
 * EVICTED: the page had gone from memory
 * PROTECTED: it is not ready for writing any more
 * SUSPENDED, MOVED, RESUMED: mr_suspend(), mr_update(), mr_resume()
 */
enum upcall_reason {
	UPCALL_EVERYTHING,
	UPCALL_REPLACED,
	UPCALL_EVICTED,
	UPCALL_PROTECTED,
	UPCALL_SUSPENDED,
	UPCALL_MOVED,
	UPCALL_RESUMED,
	UPCALL_NUM
};

/**
 * struct upcall - What became of [iova, iova + length) of a region.
 * @cookie:	of the region; NULL: EVERYTHING
 * @at_ns:	when the first of it happened, as far as mem/ was told the time
 * @below:	REPLACED: the region has its minimum no longer
 */
struct upcall {
	enum upcall_reason reason;
	bool below;
	void *cookie;
	uint64_t iova, length, at_ns;
};

enum { UPCALLS_MAX = 4096 };

/**
 * struct upcalls - A queue of them; the owner embeds it.
 * @link:	while something was queued since upcalls_next()
 * @regions:	that name it
 * @waiting:	is there something to take? For who does not hold the lock, too
 *		(relaxed)
 * @lost:	since @lost_ns more was to be told than there is room for
 * @e, @cap, @head, @num: ring
 */
struct upcalls {
	struct list link;
	uint32_t regions, waiting;
	bool lost;
	uint64_t lost_ns;
	struct upcall_event *e;
	uint32_t cap, head, num;
};

/** upcalls_init() - @cap: 1..UPCALLS_MAX. Return: 0; -EINVAL; -ENOMEM. */
int upcalls_init(struct upcalls *q, uint32_t cap);
/** upcalls_fini() - No region names it; what is queued is forgotten. */
void upcalls_fini(struct upcalls *q);
/**
 * upcalls_take() - The next event. Never one of a region that was revoked.
 * Return: false: there is none.
 */
bool upcalls_take(struct mem *m, struct upcalls *q, struct upcall *out);
/** upcalls_news() - Would upcalls_next() find one? */
bool upcalls_news(const struct mem *m);
/** upcalls_next() - A queue in which something is new, or NULL. */
struct upcalls *upcalls_next(struct mem *m);

/* --- resolving ----------------------------------------------------------- */

/** struct ticket_id - Index and generation; {0} is none. */
struct ticket_id {
	uint32_t v;
};

/**
 * struct waiter - What a QP half keeps while it waits for a page. Zero when
 * idle. The owner embeds it and never frees it while @ticket is set.
 * @owner:	handed back by ticket_done() and moved_take(); the caller's
 * @bad_page, @bad: the ticket failed: the next resolve that needs this page
 *		through this waiter gets V_PROT instead of a new ticket
 * @bad_write:	it was a ticket for writing: reading may still be legal
 * @since_ns:	when the wait began
 * @begun_ns:	mem/'s own: when the access, of all its parts, first missed a page
 * @set:	what may answer the page that it waits for, or waited for last
 * @account:	the owner's, or NULL; set it after waiter_init()
 * @share:	of whose tickets it takes (share_get()), or NULL: the NIC's own,
 *		without bound but the NIC's
 * @turn:	a ticket is kept for it
 * @key:	region of the last fault
 * @met:	faults that are over, until waiter_met()
 * @fault, @fault_ns: mem/'s own: the fault that is not over, and since when
 * @vpn, @pages: mem/'s own: pages of the access that waits
 * @advice:	mem/'s own: it is none (dma_fetch())
 * @asks:	how often pages were asked for, for the access, of all its parts
 */
struct waiter {
	struct list link;
	struct ticket_id ticket;
	void *owner;
	uint64_t bad_page;
	bool bad;
	bool bad_write;
	bool advice;
	uint8_t fault; /* enum fault_state */
	uint32_t asks;
	strategies_t set;
	uint64_t since_ns, begun_ns;
	uint64_t vpn, pages;
	struct account *account;
	struct share *share;
	bool turn;
	uint32_t key;
	struct met met;
	uint64_t fault_ns;
};

/**
 * share_get() - The share of a peer in @pd, for one QP more. @of: the list of the
 * peer's shares. Return: NULL: no memory.
 */
struct share *share_get(struct list *of, uint32_t pd);

/** share_put() - For one QP less; no waiter of it names @s. */
void share_put(struct share *s);

void waiter_init(struct waiter *w, void *owner);

/** waiter_cancel() - Stop waiting and forget the verdict. */
void waiter_cancel(struct mem *m, struct waiter *w);

/**
 * struct hold - A resolved range: keeps the region from being freed and, on
 * exact hosts, the pages from being unmapped.
 */
struct hold {
	uint32_t mr; /* internal */
	uint32_t pages;
	uint64_t vpn;
	uint32_t touched; /* internal: all of them, in this tick */
	uint32_t cheap; /* internal: of them, missing */
};

enum { HOLDS_MAX = 96, ATOMIC_BYTES = 8 };

/**
 * struct holds - Of the moves of one plan. While @num > 0 it stays where it is,
 * and @num changes only by dma_ functions.
 * @link:	mem/'s own, as are @account and @cheap_ns: whose moves met missing
 *		pages last, planned when
 */
struct holds {
	struct list link;
	struct account *account;
	uint64_t cheap_ns;
	unsigned num;
	struct hold h[HOLDS_MAX];
};

/**
 * struct dma - One access to one key.
 * @need:	ACCESS_* rights required; 0: local read
 * @write:	the moves will write application memory
 * @remote:	@key is an R_Key (remote rights apply), else an L_Key
 * @set:	what may answer a missing page, unless the region says otherwise
 * @ready:	no page may be missing, not even a cheap one
 * @more:	another dma of the same access follows, with the same waiter
 * @ahead:	bytes behind the access that the same message will need; on a
 *		miss tickets are opened for them too (touch-ahead)
 * @follow:	for writing: bytes behind the access that the same message is known
 *		to write
 * @account:	of whom it is, where there is no waiter to tell; or NULL
 * @share:	who pays for what is fetched ahead; NULL: the NIC itself
 */
struct dma {
	uint32_t pd;
	uint32_t key;
	uint64_t iova;
	uint64_t len;
	uint32_t need;
	strategies_t set;
	bool write, remote, ready, more;
	uint64_t ahead, follow;
	struct share *share;
	struct account *account;
};

/**
 * dma_check() - Key, PD, rights and bounds only, no page: V_OK or V_PROT.
 * For len == 0 every key is good.
 */
enum verdict dma_check(struct mem *m, const struct dma *d);

/**
 * dma_resolve() - Check @d and see that all its pages are ready; then append
 * one move (kind from @write) with NIC side @nic and a hold.
 * @fresh_ns:	entries learned before this do not count (os_fresh_after())
 * @w:		waiter to use on a miss, or NULL: only say V_WAIT
 * Missing pages: a ticket for as much of the rest as is missing in one run is
 * opened or joined; more are opened for what is missing ahead. On V_WAIT nothing
 * was appended.
 * With len == 0: V_OK and nothing appended.
 * With STRATEGY_INLINE pages that are missing but known to be cheap count as
 * ready, up to the budget that mem_inline_budget() set. With STRATEGY_OVERWRITE so
 * do missing pages whose content is of no use (overwrite.c); the move says so.
 * A page that a ticket is out for is busy: later accesses wait behind it. So is
 * one that moves of another struct holds write, until their dma_release().
 * Whoever finds no ticket left for his share waits for one: V_WAIT, too.
 * Return: V_OK, V_WAIT, V_PROT; V_LENGTH from 4 GiB on; V_NO_RESOURCE when the NIC
 * itself could have no ticket, or an exact host has the table full of held pages
 * (try again after a ticket_done() or dma_release()).
 */
enum verdict dma_resolve(struct mem *m, const struct dma *d, void *nic,
			 uint16_t token, uint64_t now_ns, uint64_t fresh_ns,
			 struct waiter *w, struct moves *mv,
			 struct holds *holds);

/**
 * dma_resolve_atomic() - The same for 8 bytes and an atomic move.
 * Return: as dma_resolve(); V_INVALID if iova or address is not aligned.
 */
enum verdict dma_resolve_atomic(struct mem *m, const struct dma *d,
				enum move_kind kind, uint64_t operand,
				uint64_t compare, uint16_t token,
				uint64_t now_ns, uint64_t fresh_ns,
				struct waiter *w, struct moves *mv,
				struct holds *holds);

/** dma_ahead() - Have pages fetched that an access will need; nobody waits. */
void dma_ahead(struct mem *m, const struct dma *d, uint64_t now_ns,
	       uint64_t fresh_ns);

/** dma_too() - Have all pages of @d fetched, those that are there, too; nobody waits. */
void dma_too(struct mem *m, const struct dma *d, uint64_t now_ns,
	     uint64_t fresh_ns);

/**
 * dma_fetch() - Somebody waits until the pages of @d are there, but not to access
 * them: they are fetched ahead. Return: as dma_resolve().
 */
enum verdict dma_fetch(struct mem *m, const struct dma *d, uint64_t now_ns,
		       uint64_t fresh_ns, struct waiter *w);

/**
 * dma_release() - The moves ended: drop holds from index @from on, and (@ok)
 * note that the pages were just touched.
 */
void dma_release(struct mem *m, struct holds *holds, unsigned from, bool ok,
		 uint64_t now_ns);

/**
 * dma_trim() - The last @bytes of what the last dma_resolve() appended are not
 * needed after all; it keeps at least one.
 */
void dma_trim(struct mem *m, uint64_t bytes, struct moves *mv,
	      struct holds *holds);

/** moved_waiters() - Would moved_take() find some? */
bool moved_waiters(const struct mem *m);

/**
 * moved_take() - Waiters whose page was busy by a move that was released, or for
 * whom there is a ticket now; as from ticket_done().
 */
void moved_take(struct mem *m, struct list *woken);

/** user_only_learn() - There (@len > 0) the kernel refused what our own load could. */
void user_only_learn(struct mem *m, uint64_t addr, uint64_t len);

/** user_only() - May the kernel refuse to write there (@len > 0) though it is ready? */
bool user_only(const struct mem *m, uint64_t addr, uint64_t len);

/** dma_fault() - A move got EFAULT: the page is not what the table says. */
void dma_fault(struct mem *m, uint64_t addr, uint64_t len);

/** mem_inline_budget() - Cheap faults allowed until the next call. */
void mem_inline_budget(struct mem *m, unsigned pages);

/* --- shadow page table: what the host tells ------------------------------ */

/**
 * spt_map() - Pages are present (and writable). Never takes a right away.
 */
void spt_map(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
	     uint64_t now_ns);

/**
 * spt_map_ahead() - The same of pages that were fetched for the region of @key and
 * that nobody needs yet. What was known since @fresh_ns is nothing new.
 */
void spt_map_ahead(struct mem *m, uint64_t vpn, uint64_t pages, bool writable,
		   uint64_t now_ns, uint64_t fresh_ns, uint32_t key);

/**
 * spt_unmap() - Pages are going away. Answers about them that are
 * still to come do not count.
 * Return: 0, or -EBUSY when some are held (an exact host waits and repeats).
 */
int spt_unmap(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_protect() - Pages become readable only (mprotect); tickets out for them
 * make them readable, no more. Return: as spt_unmap().
 */
int spt_protect(struct mem *m, uint64_t vpn, uint64_t pages);

/**
 * spt_absent() - Some of these pages were found absent: who was told that they are
 * known is told. For hosts that are not exact; others say so at once.
 */
void spt_absent(struct mem *m, uint64_t vpn, uint64_t pages);

/** spt_protect_all() - fork(): every page readable only. */
void spt_protect_all(struct mem *m);

/**
 * spt_held() - Is any of these pages under a hold? Only exact hosts hold pages;
 * false on others.
 */
bool spt_held(struct mem *m, uint64_t vpn, uint64_t pages);

/* --- tickets -------------------------------------------------------------- */

/**
 * struct ticket_req - A ticket on its way to the pagers.
 * @whole:	of no use before all pages are there; else an answer about the
 *		first is wanted when they turn out to be slow
 * @look:	bring nothing in, only say whether memory is plain
 */
struct ticket_req {
	struct ticket_id id;
	uint64_t vpn, pages;
	bool write, whole, look;
};

/** ticket_new() - Would ticket_next() find one? */
bool ticket_new(const struct mem *m);

/** ticket_next() - Take the next new ticket to hand to os/. false: none. */
bool ticket_next(struct mem *m, struct ticket_req *req);

/**
 * ticket_unsent() - os/ was full: @id comes again from ticket_next(), unless
 * nobody waits for it any more: it is gone then.
 */
void ticket_unsent(struct mem *m, struct ticket_id id);

/**
 * ticket_done() - The pager's answer. Entries are installed if nothing was
 * unmapped meanwhile; waiters are moved to @woken (linked by waiter.link),
 * with waiter.ticket cleared.
 * @pages_ready: from the start; less than asked means the page behind failed
 * @cheap_start, @cheap_end: address range in which misses are cheap, or equal
 */
void ticket_done(struct mem *m, struct ticket_id id, uint64_t pages_ready,
		 bool failed, bool writable, uint64_t cheap_start,
		 uint64_t cheap_end, uint64_t service_ns, uint64_t now_ns,
		 struct list *woken);

/** ticket_plain() - Before ticket_done(): [start, end) is plain memory. */
void ticket_plain(struct mem *m, struct ticket_id id, uint64_t start,
		  uint64_t end, bool early, uint64_t now_ns);

unsigned tickets_out(const struct mem *m);

/** ticket_major() - Before ticket_done(): the pager waited for I/O. */
void ticket_major(struct mem *m, struct ticket_id id);

/* --- accounts (I6) --------------------------------------------------------- */

/**
 * mem_account() - Count @n of @i for the NIC, for @owner (may be NULL), and for
 * the region of @key (0: none).
 */
void mem_account(struct mem *m, struct account *owner, uint32_t key,
		 enum account_item i, uint64_t n);

/** mem_account_answer() - @s answered the fault that @w waits for. */
void mem_account_answer(struct mem *m, const struct waiter *w, enum strategy s);

/**
 * waiter_fault_ns() - Estimate how long the fault that @w waits for takes: as others
 * of its region did, or as long as it has taken already. 0: nobody knows.
 */
uint64_t waiter_fault_ns(struct mem *m, const struct waiter *w,
			 uint64_t now_ns);

/** waiter_met() - The faults that are over since this was called last. */
struct met waiter_met(struct waiter *w);

/** mem_account_gone() - An owner ceases to exist; no waiter names it. */
void mem_account_gone(struct mem *m, const struct account *a);

/**
 * mem_account_copy() - Of the NIC; and what of it no owner, or no region, that
 * exists answers for.
 */
void mem_account_copy(const struct mem *m, struct account *all,
		      struct account *no_owner, struct account *no_mr);

/**
 * mr_account_next() - A region with its account. Bounded work.
 * @at:		0 to begin with; moves on
 * @key:	0: none was found yet; go on
 * Return: false: there are no more.
 */
bool mr_account_next(const struct mem *m, uint32_t *at, uint32_t *key,
		     struct mr_attr *attr, struct account *out);

/* --- what of it may be used ------------------------------------------------ */

/**
 * struct mem_use - What is used of what is bounded (design D12).
 * @entries:	of the shadow page table, not free
 * @promised:	of it: the minimums of regions
 * @slots:	of the redirect pool
 * @asked:	tickets with the pagers
 * @entries_short, @pagers_short: since the last mem_use() somebody could have done
 *		with more, or waits for one
 */
struct mem_use {
	uint64_t entries, promised;
	uint32_t slots, asked;
	bool entries_short, pagers_short;
};
void mem_use(struct mem *m, struct mem_use *out);

/**
 * entries_bound() - Bound how many entries there are from now on: SPT_ENTRIES_MIN to
 * mem_config.entries, whatever @num is. What is beyond goes by entries_resize().
 */
void entries_bound(struct mem *m, uint64_t num);
/**
 * entries_resize() - A part of that: of @sets sets of 4 entries.
 * Return: is there more to do? What is held, on exact hosts, may be in the way.
 */
bool entries_resize(struct mem *m, unsigned sets);

/** pagers_bound() - Tickets that may be with the pagers at once: 1 at least. */
void pagers_bound(struct mem *m, uint32_t num);

/** slots_bound() - slot_get() gives so many, mem_config.slots at most; what is taken
 * beyond stays. */
void slots_bound(struct mem *m, uint32_t num);

/* --- redirect pool --------------------------------------------------------- */

/** slot_get() - Return: slot number, or -EAGAIN when the pool is used up. */
int slot_get(struct mem *m);
void slot_put(struct mem *m, int slot);
uint8_t *slot_data(struct mem *m, int slot);
/** slot_has() - Does the memory of a slot begin at or before @p, and end behind it? */
bool slot_has(const struct mem *m, int slot, const void *p);
unsigned slots_free(const struct mem *m);
/** slots_used() - Count those that were taken and not put back. */
unsigned slots_used(const struct mem *m);

#endif
