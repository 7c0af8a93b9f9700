/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waiting.h: tickets that are none. */
#ifndef NOPIN_MEM_WAITING_H
#define NOPIN_MEM_WAITING_H

#include "base/base.h"
#include "mem/moving.h"
#include "mem/waiter.h"

struct mem;
struct mr;

/* waiter.ticket of who waits for a region; @vpn is its key then */
enum { TICKET_SUSPENDED = TICKET_STARVED + 1 };

/** ticket_real() - Is it a ticket, not one of those numbers? */
static inline bool ticket_real(struct ticket_id id)
{
	return id.v > TICKET_SUSPENDED;
}

void suspend_wait(struct mem *m, struct mr *mr, struct waiter *w,
		  uint64_t now_ns);
void suspend_gone(struct mem *m, const struct mr *mr);

#endif
