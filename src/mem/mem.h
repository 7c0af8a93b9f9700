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

/**
 * struct mem_config - Bounds, all > 0.
 * @entries:	entries of the shadow page table at most (design D12), at least
 *		SPT_ENTRIES_MIN; the largest power of two in it is used
 * @slots, @slot_base: redirect pool: that many slots of SLOT_BYTES in NIC
 *		memory at @slot_base (not touched until used)
 * @tickets:	outstanding at most, up to 65536
 * @exact:	the host makes spt_map/unmap/protect calls itself (simulator,
 *		later managed and module): entries do not age
 * @always_ready: the deliberately wrong table of the I1 tests
 */
struct mem_config {
	uint32_t entries;
	uint32_t slots;
	uint8_t *slot_base;
	uint32_t tickets;
	bool exact;
	bool always_ready;
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

/** struct mr_attr - A region: [addr, addr + length) reachable at @iova. */
struct mr_attr {
	uint32_t pd;
	uint64_t addr, iova, length;
	uint32_t access;
};

/**
 * mr_register() - O(1); touches and checks no page. addr NULL and length
 * UINT64_MAX is the implicit region (iova == address, everything).
 * Return: 0 with @key (L_Key == R_Key); -EINVAL: the range wraps, remote write
 * or atomic without local write, unknown access bits; -ENOMEM: no key left.
 */
int mr_register(struct mem *m, const struct mr_attr *attr, uint32_t *key);

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
 * @vpn, @pages: mem/'s own: pages of the access that waits
 */
struct waiter {
	struct list link;
	struct ticket_id ticket;
	void *owner;
	uint64_t bad_page;
	bool bad;
	bool bad_write;
	uint64_t since_ns;
	uint64_t vpn, pages;
};

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
};

enum { HOLDS_MAX = 96 };

/**
 * struct holds - Of the moves of one plan. While @num > 0 it stays where it is,
 * and @num changes only by dma_ functions.
 */
struct holds {
	struct list link; /* mem/'s own */
	unsigned num;
	struct hold h[HOLDS_MAX];
};

/**
 * struct dma - One access to one key.
 * @need:	ACCESS_* rights required; 0: local read
 * @write:	the moves will write application memory
 * @remote:	@key is an R_Key (remote rights apply), else an L_Key
 * @ready:	no page may be missing, not even a cheap one
 * @ahead:	bytes behind the access that the same message will need; on a
 *		miss tickets are opened for them too (touch-ahead)
 */
struct dma {
	uint32_t pd;
	uint32_t key;
	uint64_t iova;
	uint64_t len;
	uint32_t need;
	bool write, remote, ready;
	uint64_t ahead;
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
 * Pages that are missing but known to be cheap count as ready, up to the
 * budget that mem_inline_budget() set.
 * A page that a ticket is out for is busy: later accesses wait behind it. So is
 * one that moves of another struct holds write, until their dma_release().
 * Return: V_OK, V_WAIT, V_PROT; V_LENGTH from 4 GiB on; V_NO_RESOURCE when no
 * ticket could be had, or an exact host has the table full of held pages (try
 * again after a ticket_done() or dma_release()).
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
 * moved_take() - Waiters whose page was busy by a move that was released; as
 * from ticket_done().
 */
void moved_take(struct mem *m, struct list *woken);

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
 */
struct ticket_req {
	struct ticket_id id;
	uint64_t vpn, pages;
	bool write, whole;
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

unsigned tickets_out(const struct mem *m);

/* --- redirect pool --------------------------------------------------------- */

/** slot_get() - Return: slot number, or -EAGAIN when the pool is used up. */
int slot_get(struct mem *m);
void slot_put(struct mem *m, int slot);
uint8_t *slot_data(struct mem *m, int slot);
unsigned slots_free(const struct mem *m);

#endif
