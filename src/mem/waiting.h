/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiting.h: tickets that are none. */
#ifndef NOPIN_MEM_WAITING_H
#define NOPIN_MEM_WAITING_H

#include "mem/waiter.h"

struct mem;
struct mr;

/* waiter.ticket of what waits for no ticket's answer; real ones have gen > 0 */
enum {
	TICKET_MOVING = 1, /* for a move */
	TICKET_STARVED = 2, /* for a ticket (claim.c) */
	TICKET_SUSPENDED = 3, /* for a region: waiter.access.vpn is its key */
};

/** ticket_real() - Is it a ticket, not one of those numbers? */
static inline bool ticket_real(struct ticket_id id)
{
	return id.v > TICKET_SUSPENDED;
}

void suspend_wait(struct mem *m, struct mr *mr, struct waiter *w,
		  uint64_t now_ns);
void suspend_gone(struct mem *m, const struct mr *mr);

#endif
