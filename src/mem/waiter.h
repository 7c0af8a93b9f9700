/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiter.h: what waits for a page, and of whose share. */
#ifndef NOPIN_MEM_WAITER_H
#define NOPIN_MEM_WAITER_H

#include "base/account.h"
#include "base/list.h"
#include "base/strategy.h"

struct mem;
struct share;

/** struct ticket_id - Index and generation; {0} is none. */
struct ticket_id {
	uint32_t v;
};

/**
 * struct waiter_bad - The ticket failed: the next resolve that needs this page through
 * this waiter gets V_PROT instead of a new ticket (ticket.c).
 * @write:	it was a ticket for writing: reading may still be legal
 */
struct waiter_bad {
	uint64_t vpn;
	bool any, write;
};

/**
 * struct waiter_access - mem/'s own: the access that waits.
 * @vpn, @pages: its pages; while a suspended region is waited for: the key of that, and 0
 * @begun_ns:	when the access, of all its parts, first missed a page
 * @asks:	how often pages were asked for, for all its parts
 */
struct waiter_access {
	uint64_t vpn, pages, begun_ns;
	uint32_t asks;
};

/**
 * struct waiter - What a QP half keeps while it waits for a page. Zero when
 * idle. The owner embeds it and never frees it while @ticket is set.
 * @owner:	handed back by ticket_done() and moved_take(); the caller's
 * @since_ns:	when the wait began
 * @set:	what may answer the page that it waits for, or waited for last
 * @account:	where the owner has its own (mem_account()), or NULL; set it after
 *		waiter_init()
 * @share:	of whose tickets it takes (share_get()), or NULL: the NIC's own,
 *		without bound but the NIC's
 * @turn:	a ticket is kept for it
 * @key:	region of the last fault
 * @met:	faults that are over, until waiter_met()
 * @fault, @fault_ns: mem/'s own: the fault that is not over, and since when
 * @advice:	mem/'s own: it is none (dma_fetch())
 */
struct waiter {
	struct list link;
	struct ticket_id ticket;
	void *owner;
	struct waiter_bad bad;
	struct waiter_access access;
	strategies_t set;
	uint64_t since_ns;
	struct account **account;
	struct share *share;
	bool turn, advice;
	uint8_t fault; /* enum fault_state */
	uint64_t fault_ns;
	uint32_t key;
	struct met met;
};

/**
 * share_get() - Take the share of a peer in @pd, which may be new, for one QP more. @of:
 * the list of the peer's shares. Return: NULL: no memory.
 */
struct share *share_get(struct list *of, uint32_t pd);

/** share_put() - Give back a share, for one QP less; no waiter of that names @s. */
void share_put(struct share *s);

/**
 * waiter_ns() - Return how long @w waits at @now_ns: 0 also for one that began after
 * that, as timers run as of the time when all was heard.
 */
static inline uint64_t waiter_ns(const struct waiter *w, uint64_t now_ns)
{
	return now_ns > w->since_ns ? now_ns - w->since_ns : 0;
}

void waiter_init(struct waiter *w, void *owner);

/** waiter_cancel() - Stop waiting and forget the verdict. */
void waiter_cancel(struct mem *m, struct waiter *w);

/** moved_waiters() - Would moved_take() find some? */
bool moved_waiters(const struct mem *m);

/**
 * moved_take() - Take the waiters whose page was busy by a move that was released, those
 * for which there is a ticket now, and those whose region was resumed or revoked; as from
 * ticket_done().
 */
void moved_take(struct mem *m, struct list *woken);

#endif
