/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* eventcount.h: counters in application memory, by key. */
#ifndef NOPIN_MEM_EVENTCOUNT_H
#define NOPIN_MEM_EVENTCOUNT_H

#include "base/list.h"

#include <stdint.h>

struct mem;

/**
 * struct eventcount - A counter that peers raise.
 * @link:	on the list that eventcount_raise() was given, until it is taken off
 */
struct eventcount {
	struct list link;
	uint32_t id, pd;
	uint64_t value;
	uint64_t *word;
};

/** eventcount_init() - Make a counter, 0, that peers may raise from now on; @word: where
 * the program reads it. Return: 0, -ENOMEM. */
int eventcount_init(struct mem *m, struct eventcount *e, uint32_t pd,
		    uint64_t *word);
/** eventcount_fini() - End a counter: no peer can raise it any more. */
void eventcount_fini(struct mem *m, struct eventcount *e);
/** eventcount_find() - Find the counter that a peer names. Return: NULL: there is none, or
 * it is another PD's. */
struct eventcount *eventcount_find(const struct mem *m, uint32_t pd,
				   uint32_t id);
/** eventcount_raise() - Raise a counter by one; it is on @raised then. */
void eventcount_raise(struct eventcount *e, struct list *raised);

#endif
