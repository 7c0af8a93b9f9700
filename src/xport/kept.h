/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kept.h: what came and waits for its turn; window.c keeps it. */
#ifndef NOPIN_XPORT_KEPT_H
#define NOPIN_XPORT_KEPT_H

#include "base/account.h"
#include "base/list.h"
#include "ring/receive.h"
#include "wire/pkt.h"
#include "wire/psn.h"

struct peer;

/**
 * struct accepted - A packet that is safe and not yet placed.
 * @link:	on its window, by PSN
 * @slot:	or NO_SLOT: there is no payload
 * @bytes:	of payload in the slot, until they are copied
 * @source:	datagrams: how many of its sender are kept, or NULL
 * @recv:	datagrams: the receive that it takes
 */
struct accepted {
	struct list link;
	struct pkt pkt;
	int slot;
	uint32_t bytes;
	uint32_t *source;
	struct receive recv;
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
 * @bare:	places for @bares requests without payload; bit i of @bare_used:
 *		something is in the ith
 * @forgotten:	for how many fetches in turn of its page one was dropped, which it
 *		was, and when the last of them began
 * @peer:	NULL: datagrams
 * @account:	where the QP has its own
 */
struct window {
	psn_t head, next;
	struct list waiting;
	uint32_t num, data;
	bool first;
	struct accepted *bare;
	uint32_t bares, bare_used;
	uint32_t forgotten;
	psn_t forgotten_psn;
	uint64_t forgotten_ns;
	uint32_t *held;
	struct peer *peer;
	struct account **account;
};

#endif
