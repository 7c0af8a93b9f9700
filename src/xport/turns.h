/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* turns.h: a peer that answers none of its QPs is asked by one for all (open.c, live.c).
 * A process without CPU cannot read, and a socket buffer that nobody raised holds 512
 * small packets, of what many QPs ask and of what they sent: the kernel drops the rest.
 */
#ifndef NOPIN_XPORT_TURNS_H
#define NOPIN_XPORT_TURNS_H

#include "base/list.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TURNS_MAX = 16, /* so many are given at once */
	TURN_NS = 16 * 1000 * 1000, /* and then one in so long */
};

/**
 * struct turns - Belongs to the holder of the engine lock.
 * @waiting:	nodes of QPs that have something to ask, the next to ask first
 * @taken:	turns that were given and are not made up for by time; @since_ns: from
 *		when on the next one is
 */
struct turns {
	struct list waiting;
	unsigned taken;
	uint64_t since_ns;
};

void turns_init(struct turns *t);

/** turn_wait() - Queue @node, if it is on no list. @first: before all others. */
void turn_wait(struct turns *t, struct list *node, bool first);

/** turn_next() - Give the next turn, if there is one.
 * Return: the node whose turn it is, on no list any more; or NULL. */
struct list *turn_next(struct turns *t, uint64_t now_ns);

/** turns_heard() - The peer answers: as if none was given. */
void turns_heard(struct turns *t);

#endif
