/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* share.h: what a peer has of tickets and pagers. */
#ifndef NOPIN_MEM_SHARE_H
#define NOPIN_MEM_SHARE_H

#include "base/list.h"
#include "mem/tickets.h"

struct mem;
struct waiter;

/**
 * struct share - What a peer has of a PD's tickets and pagers.
 * @link:	on the peer's list
 * @refs:	QPs; it also stays while it has tickets
 * @tickets, @promised: that are out for it, and kept for waiters of it
 * @asked, @ahead_asked: as in struct tickets
 * @queue:	its new tickets; @guests: those of them with ticket.line.guests
 * @turn:	while they are some: on tickets.ready or .over
 * @starved:	waiters that found no ticket, in the order they came
 */
struct share {
	struct list link;
	uint32_t pd, refs;
	uint32_t tickets, promised, asked, ahead_asked, guests;
	struct list queue[QUEUE_NUM], turn[QUEUE_NUM];
	struct list starved, starved_link;
};

void shares_init(struct mem *m);
void share_unref(struct share *s);
bool share_ahead(struct mem *m, struct share *s);
bool share_too(struct mem *m, const struct share *s);
void share_starved_leave(struct waiter *w);
void share_turn_over(struct mem *m, struct waiter *w);
void share_opened(struct mem *m, struct share *s);
void share_closed(struct mem *m, struct share *s);
void share_forget(struct share *s);
void share_takes_over(struct mem *m, struct ticket *t, const struct waiter *w);
void share_enqueue(struct mem *m, struct ticket *t, enum queue q);
void share_enqueue_first(struct mem *m, struct ticket *t);
void share_dequeue(struct ticket *t);
struct ticket *share_next(struct mem *m, enum queue q);
void share_asked(struct mem *m, struct share *s, bool ahead);
uint32_t ahead_max(const struct mem *m);
void share_answered(struct mem *m, struct share *s, bool ahead);
void share_pd_gone(struct mem *m);

/** share_of() - Return the share whose tickets @w takes. */
struct share *share_of(struct mem *m, const struct waiter *w);
/** share_room() - True if @s may have one more ticket. */
bool share_room(struct mem *m, const struct share *s);

#endif
