/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tickets.h: the outstanding faults. */
#ifndef NOPIN_MEM_TICKETS_H
#define NOPIN_MEM_TICKETS_H

#include "base/list.h"
#include "mem/waiter.h"

struct mem;
struct share;

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
 *	ticket_unsent(). With @answer.valid 0, what it answers is out of date; out of
 *	the hash, so nobody joins it any more.
 */
enum ticket_state { TICKET_FREE, TICKET_NEW, TICKET_SENT };

/**
 * struct ticket_answer - What the answer of its pager counts for.
 * @at:		it is about this tick; TICK_NOW: about when it comes
 * @valid:	for so many pages from the start
 * @protect:	and for reading only
 */
struct ticket_answer {
	uint64_t at;
	uint32_t valid;
	bool protect;
};

/**
 * struct ticket_line - Where a new ticket stands.
 * @queue:	in which line of its share
 * @guests:	a waiter of another share waits, or did, for it
 * @handed:	it stands at the head since another share handed it over
 */
struct ticket_line {
	uint8_t queue;
	bool guests, handed;
};

/**
 * struct ticket - One outstanding fault for a run of pages.
 * @hash:	next in the chain of the first and of the last block, see
 *		ticket.c
 * @link:	on the list of its state
 * @share:	of the peer that pays for it
 * @ahead:	sent without a waiter
 * @look:	bring nothing in where memory is plain: key of the region that asks
 *		(overwrite.c), or 0
 * @early:	its pager could not yet say what @look asks
 * @major:	its pager waited for I/O
 * @guess:	R_Key or L_Key of the region that foresaw it (pattern.c); 0: an access
 *		needed it
 */
struct ticket {
	uint64_t vpn;
	uint32_t pages, guess, look;
	uint16_t gen;
	uint8_t state;
	bool write, whole, ahead, major, early;
	struct ticket_answer answer;
	struct ticket_line line;
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
 * @short_of:	a share had to wait for that since mem_use() looked
 * @ready:	shares with new tickets, by share.turn, in the order of their turns
 * @over:	those of them that may not ask now; they come first when all look again
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

#endif
