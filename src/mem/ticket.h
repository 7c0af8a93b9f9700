/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ticket.h: questions to the pagers, and their answers. */
#ifndef NOPIN_MEM_TICKET_H
#define NOPIN_MEM_TICKET_H

#include "base/list.h"
#include "mem/waiter.h"

struct mem;

/**
 * struct ticket_req - A ticket on its way to the pagers.
 * @whole:	of no use before all pages are there; else an answer about the
 *		first is wanted when they turn out to be slow
 * @look:	bring nothing in, only say whether memory is plain
 */
struct ticket_req {
	struct ticket_id id;
	uint64_t vpn, pages;
	bool write, whole, look;
};

/** ticket_new() - Would ticket_next() find one? */
bool ticket_new(const struct mem *m);

/** ticket_next() - Take the next new ticket to hand to os/. false: none. */
bool ticket_next(struct mem *m, struct ticket_req *req);

/**
 * ticket_unsent() - Take @id back, as os/ was full: it comes again from ticket_next(),
 * before all others. If no waiter waits for it (any more) it is gone instead.
 */
void ticket_unsent(struct mem *m, struct ticket_id id);

/**
 * ticket_done() - Take the pager's answer: install entries as far as it still counts, and
 * wake the waiters in the order they came. They are moved to @woken (linked by
 * waiter.link), with waiter.ticket cleared.
 * @pages_ready: from the start; @failed: the page behind them gave an error
 * @cheap_start, @cheap_end: address range in which misses are cheap, or equal
 */
void ticket_done(struct mem *m, struct ticket_id id, uint64_t pages_ready,
		 bool failed, bool writable, uint64_t cheap_start,
		 uint64_t cheap_end, uint64_t service_ns, uint64_t now_ns,
		 struct list *woken);

/** ticket_plain() - Note before ticket_done() that the pager found [start, end) to be plain
 * memory. */
void ticket_plain(struct mem *m, struct ticket_id id, uint64_t start,
		  uint64_t end, bool early, uint64_t now_ns);

unsigned tickets_out(const struct mem *m);

/** ticket_major() - Note before ticket_done() that the pager waited for I/O. */
void ticket_major(struct mem *m, struct ticket_id id);

#endif
