/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* window.h: packets that came and wait for their turn. */
#ifndef NOPIN_XPORT_WINDOW_H
#define NOPIN_XPORT_WINDOW_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/payload.h"

struct accepted;
struct rx_run;
struct window;
struct xport;

/**
 * win_reserve() - Have places for @bares requests without payload. None is added while
 * something is kept in one, which cannot move: others take slots then.
 * Return: 0; -ENOMEM.
 */
int win_reserve(struct window *w, uint32_t bares);
void win_release(struct window *w);
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
	     struct payload payload);

/**
 * win_keep_run() - Keep the packets of @run from the @i-th on that have no slot yet.
 * Return: the first that finds none: it and all behind it are forgotten; or NULL.
 */
const struct pkt *win_keep_run(struct xport *x, struct window *w,
			       const struct rx_run *run, unsigned i);

/** win_advance() - Move @next over what is waiting contiguously. */
void win_advance(struct window *w, uint32_t mtu);

/** win_at() - Return the packet with @psn if it is waiting, else NULL. */
struct accepted *win_at(const struct window *w, psn_t psn);
void win_drop(struct xport *x, struct window *w, struct accepted *a);

/** win_payload() - Return where the payload of @a is. */
struct payload win_payload(const struct xport *x, struct accepted *a);

/**
 * win_copied() - Count the bytes that the moves of run->pkt[@i], which were made, copied
 * out of a slot.
 */
void win_copied(const struct rx_run *run, unsigned i);

/** win_placed() - Count how long @a was in a slot, then drop it: its payload is in
 * application memory. */
void win_placed(struct xport *x, struct window *w, struct accepted *a);

/** win_behind() - Does a packet wait that is behind no gap? */
bool win_behind(const struct window *w);

/** win_sack() - Return the map of packets beyond a gap; bit i: next + 1 + i is waiting. */
uint64_t win_sack(const struct window *w);

/** win_truncate() - Forget all packets from @psn on; next = psn. */
void win_truncate(struct xport *x, struct window *w, psn_t psn);

#endif
