/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.h: packets that came and wait for their turn. */
#ifndef NOPIN_XPORT_WINDOW_H
#define NOPIN_XPORT_WINDOW_H

#include "base/base.h"
#include "wire/wire.h"

struct peer;
struct rx_run;
struct xport;

/**
 * struct accepted - A packet that is safe and not yet placed.
 * @link:	on its window, by PSN
 * @slot:	or NO_SLOT: there is no payload
 * @bytes:	of payload in the slot, until they are copied
 * @source:	datagrams: how many of its sender are kept, or NULL
 */
struct accepted {
	struct list link;
	struct pkt pkt;
	int slot;
	uint32_t bytes;
	uint32_t *source;
	uint64_t at_ns;
};

enum {
	NO_SLOT = -1,
	RD_ATOMIC_MAX = 16, /* what a program may ask for */
};

/**
 * struct window - Accepted and placed (design §3). A responder's window counts
 * requests, a requester's counts READ and atomic responses.
 * @head:	first PSN not placed
 * @next:	first PSN not accepted; head <= next
 * @waiting:	struct accepted in PSN order: [head, next) whole, and beyond
 *		@next what came ahead of a gap
 * @num:	how many are waiting
 * @held:	slots of all windows towards the same peer; set with the peer
 * @data:	how many are requests with payload: all but one are @peer's to fill
 * @first:	and that one's is of those that are for such (credit_first())
 * @bare:	places for RD_ATOMIC_MAX requests without payload, or NULL; bit i
 *		of @bare_used: something is in the ith
 * @forgotten:	for how many fetches in turn of its page one was dropped, which it
 *		was, and when the last of them began
 * @peer:	NULL: datagrams
 * @account:	the QP's
 */
struct window {
	psn_t head, next;
	struct list waiting;
	uint32_t num, data;
	bool first;
	struct accepted *bare;
	uint32_t bare_used;
	uint32_t forgotten;
	psn_t forgotten_psn;
	uint64_t forgotten_ns;
	uint32_t *held;
	struct peer *peer;
	struct account *account;
};

void win_reset(struct xport *x, struct window *w, psn_t psn);
bool win_has(const struct window *w, psn_t psn);

/** win_has_all() - Are all of [@from, @to) kept, of one PSN each? */
bool win_has_all(const struct window *w, psn_t from, psn_t to);

/** win_slots() - Count the slots more that a peer may take, of those that are lent to
 * nobody, that holds @held of them (I4). */
uint32_t win_slots(const struct xport *x, uint32_t held);

/** win_room() - Count the packets more that could be kept in @w. */
uint32_t win_room(const struct xport *x, const struct window *w);

/** win_spare() - Count the slots more that what can be asked for again may take. Requests
 * that were not lent one are to find some. */
uint32_t win_spare(const struct xport *x, const struct window *w);

/** win_keep() - Keep a packet, its payload in a slot. Return: 0, -EAGAIN: no slot. */
int win_keep(struct xport *x, struct window *w, const struct pkt *pkt,
	     const uint8_t *payload, uint64_t now_ns);

/**
 * win_keep_run() - Keep the packets of @run from the @i-th on that have no slot yet.
 * Return: the first that finds none: it and all behind it are forgotten; or NULL.
 */
const struct pkt *win_keep_run(struct xport *x, struct window *w,
			       const struct rx_run *run, unsigned i,
			       uint64_t now_ns);

/** win_advance() - Move @next over what is waiting contiguously. */
void win_advance(struct window *w, uint32_t mtu);

/** win_at() - The packet with @psn if it is waiting, else NULL. */
struct accepted *win_at(const struct window *w, psn_t psn);
void win_drop(struct xport *x, struct window *w, struct accepted *a);

/** win_data() - Its payload; NULL: it has none. */
const uint8_t *win_data(const struct xport *x, const struct accepted *a);

/**
 * win_copied() - The moves of run->pkt[@i] were made: count what they copied out of
 * a slot.
 */
void win_copied(const struct rx_run *run, unsigned i);

/** win_placed() - Its payload is in application memory: count, then drop. */
void win_placed(struct xport *x, struct window *w, struct accepted *a,
		uint64_t now_ns);

/** win_behind() - Does a packet wait that is behind no gap? */
bool win_behind(const struct window *w);

/** win_sack() - Bit i: next + 1 + i is waiting. */
uint64_t win_sack(const struct window *w);

/** win_truncate() - Forget all packets from @psn on; next = psn. */
void win_truncate(struct xport *x, struct window *w, psn_t psn);

#endif
