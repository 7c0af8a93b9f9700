/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ext.h: façade of ext/, the edge of nopin.h: it turns the program's verbs objects
 * into the NIC's and checks nothing that nic/ checks. The contract of each
 * function is in nopin.h and its manual page.
 */
#ifndef NOPIN_EXT_EXT_H
#define NOPIN_EXT_EXT_H

#include "verbs/object.h"

#include "ext/nopin.h"

struct nopin_upcalls {
	struct vupcalls v;
};

/** ext_now() - Read the clock that all timeouts of @context go by, in nanoseconds. */
uint64_t ext_now(struct ibv_context *context);

/**
 * ext_counter_reserve() - Reserve a descriptor for @c: from now on one thread at a time can
 * wait for it, however scarce descriptors become. No thread waits for it yet.
 * Return: 0; EMFILE; ENODEV.
 */
int ext_counter_reserve(struct nopin_counter *c);

/** ext_counter_raise() - Raise @c by one, as a peer does. Context: any thread. */
void ext_counter_raise(struct nopin_counter *c);

/**
 * ext_upcalls_try() - Take the next event of @queue, if there is one. It makes no
 * progress and does not wait.
 */
bool ext_upcalls_try(struct nopin_upcalls *queue, struct nopin_upcall *out);

/** ext_upcalls_count() - Raise @c, from now on, with each event of @queue. @c lives as
 * long as @queue. */
void ext_upcalls_count(struct nopin_upcalls *queue, struct nopin_counter *c);

#endif
