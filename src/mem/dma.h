/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dma.h: from a key and an address to moves. */
#ifndef NOPIN_MEM_DMA_H
#define NOPIN_MEM_DMA_H

#include "base/account.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/strategy.h"
#include "base/verdict.h"

struct mem;
struct share;
struct waiter;

/**
 * struct hold - A resolved range: keeps the region from being freed and, on
 * exact hosts, the pages from being unmapped.
 */
struct hold {
	uint32_t row; /* internal */
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
	struct account **account;
	uint64_t cheap_ns;
	unsigned num;
	struct hold h[HOLDS_MAX];
};

/**
 * struct dma - One access to one key.
 * @pd:	of what accesses
 * @qpn:	QP that accesses by an R_Key
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
 * @account:	the accessing QP's, where there is no waiter to tell; or NULL
 * @share:	the one that pays for pages fetched ahead; NULL: the NIC's own
 */
struct dma {
	uint32_t pd;
	uint32_t key, qpn;
	uint64_t iova;
	uint64_t len;
	uint32_t need;
	strategies_t set;
	bool write, remote, ready, more;
	uint64_t ahead, follow;
	struct share *share;
	struct account **account;
};

/**
 * dma_check() - Check key, PD, rights and bounds of @d, but no page. For len == 0 every key
 * is good. Return: V_OK, V_PROT.
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
 * A waiter that finds no ticket left for its share waits for one: V_WAIT, too.
 * Return: V_OK, V_WAIT, V_PROT; V_LENGTH from 4 GiB on; V_NO_RESOURCE when the NIC
 * itself could have no ticket, or an exact host has the table full of held pages
 * (try again after a ticket_done() or dma_release()).
 */
enum verdict dma_resolve(struct mem *m, const struct dma *d, void *nic,
			 uint16_t token, uint64_t now_ns, uint64_t fresh_ns,
			 struct waiter *w, struct moves *mv,
			 struct holds *holds);

/**
 * dma_resolve_atomic() - Resolve an atomic move, of 8 bytes, as dma_resolve() does others.
 * Return: as dma_resolve(); V_INVALID if iova or address is not aligned.
 */
enum verdict dma_resolve_atomic(struct mem *m, const struct dma *d,
				enum move_kind kind, uint64_t operand,
				uint64_t compare, uint16_t token,
				uint64_t now_ns, uint64_t fresh_ns,
				struct waiter *w, struct moves *mv,
				struct holds *holds);

/** dma_ahead() - Have pages fetched that an access will need; no waiter waits for them. */
void dma_ahead(struct mem *m, const struct dma *d, uint64_t now_ns,
	       uint64_t fresh_ns);

/** dma_too() - Have all pages of @d fetched, also those that are there; no waiter waits for
 * them. */
void dma_too(struct mem *m, const struct dma *d, uint64_t now_ns,
	     uint64_t fresh_ns);

/**
 * dma_fetch() - Let @w wait until the pages of @d are there, but not to access them: they
 * are fetched ahead. Return: as dma_resolve(); V_OK: all are there, or were a moment ago.
 */
enum verdict dma_fetch(struct mem *m, const struct dma *d, uint64_t now_ns,
		       uint64_t fresh_ns, struct waiter *w);

/**
 * dma_release() - Drop the holds of moves that ended, from index @from on, and (@ok) note
 * that their pages were just touched.
 */
void dma_release(struct mem *m, struct holds *holds, unsigned from, bool ok,
		 uint64_t now_ns);

/**
 * dma_trim() - Shorten the move that the last dma_resolve() appended by its last @bytes,
 * which are not needed after all; it keeps at least one. It is no MOVE_OVERWRITE.
 */
void dma_trim(struct mem *m, uint64_t bytes, struct moves *mv,
	      struct holds *holds);

/** user_only_learn() - Note that the kernel refused there (@len > 0) what our own load
 * could. */
void user_only_learn(struct mem *m, uint64_t addr, uint64_t len);

/** user_only() - May the kernel refuse to write there (@len > 0) though it is ready? */
bool user_only(const struct mem *m, uint64_t addr, uint64_t len);

/** dma_fault() - Forget what is known of the pages of a move that got EFAULT: the table was
 * wrong about them. */
void dma_fault(struct mem *m, uint64_t addr, uint64_t len);

#endif
