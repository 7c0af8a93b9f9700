/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.h: what a program is told of its pages. */
#ifndef NOPIN_MEM_UPCALL_H
#define NOPIN_MEM_UPCALL_H

#include "base/list.h"

#include <stdint.h>

struct mem;
struct upcall_event;

/*
 * EVERYTHING: the queue was full: any of the others may be true of all of its regions
 * REPLACED: the entry went for another page's, or for its age
 * EVICTED: the page had gone from memory
 * PROTECTED: it is not ready for writing any more
 * SUSPENDED, MOVED, RESUMED: mr_suspend(), mr_update(), mr_resume()
 */
enum upcall_reason {
	UPCALL_EVERYTHING,
	UPCALL_REPLACED,
	UPCALL_EVICTED,
	UPCALL_PROTECTED,
	UPCALL_SUSPENDED,
	UPCALL_MOVED,
	UPCALL_RESUMED,
	UPCALL_NUM
};

/**
 * struct upcall - What became of [iova, iova + length) of a region.
 * @cookie:	of the region; NULL: EVERYTHING
 * @at_ns:	when the first of it happened, as far as mem/ was told the time
 * @below:	REPLACED: the region has its minimum no longer
 */
struct upcall {
	enum upcall_reason reason;
	bool below;
	void *cookie;
	uint64_t iova, length, at_ns;
};

enum { UPCALLS_MAX = 4096 };

/**
 * struct upcalls - A queue of them; the owner embeds it.
 * @link:	while something was queued since upcalls_next()
 * @regions:	that name it
 * @waiting:	is there something to take? For a thread that does not hold the
 *		lock, too (relaxed)
 * @lost:	since @lost_ns more was to be told than there is room for
 * @e, @cap, @head, @num: ring
 */
struct upcalls {
	struct list link;
	uint32_t regions, waiting;
	bool lost;
	uint64_t lost_ns;
	struct upcall_event *e;
	uint32_t cap, head, num;
};

/** upcalls_init() - Make an empty queue; @cap: 1..UPCALLS_MAX. Return: 0; -EINVAL;
 * -ENOMEM. */
int upcalls_init(struct upcalls *q, uint32_t cap);
/** upcalls_fini() - Free a queue that no region names; what is queued is forgotten. */
void upcalls_fini(struct upcalls *q);
/**
 * upcalls_take() - Take the next event, never one of a region that was revoked.
 * Return: false: there is none.
 */
bool upcalls_take(struct mem *m, struct upcalls *q, struct upcall *out);
/** upcalls_news() - Would upcalls_next() find one? */
bool upcalls_news(const struct mem *m);
/** upcalls_next() - Take the next queue in which something is new, or NULL. */
struct upcalls *upcalls_next(struct mem *m);

#endif
