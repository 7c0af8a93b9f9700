/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sync.h: a home of semaphores and wait queues, and members of it in other
 * processes, each with a connection of its own; or an owner of memory and its users.
 */
#ifndef NOPIN_TESTS_HOST_SYNC_H
#define NOPIN_TESTS_HOST_SYNC_H

#include "host.h"

#include <nopin.h>

/** struct sync_link - One end of a connection, with the CQ that it wants. */
struct sync_link {
	struct host h;
	struct link l;
};

/** sync_link_open() - As link_open(), on the device of @h. */
void sync_link_open(struct sync_link *s, const struct host *h, int fd);
void sync_link_close(struct sync_link *s);

/** sync_join() - The member at the other end of @fd, which does member_open(). */
void sync_join(struct nopin_home *home, const struct sync_link *s, int fd);

/** member_open() - Join the home at the other end of @fd, which does sync_join(). */
struct nopin_member *member_open(const struct sync_link *s, int fd);

/** cache_join() - The user at the other end of @fd, which does cache_open(). */
void cache_join(struct nopin_owner *owner, const struct sync_link *s, int fd);

/** cache_open() - Of the owner at the other end of @fd, which does cache_join(). */
struct nopin_cache *cache_open(const struct sync_link *s, int fd,
			       uint64_t block, uint32_t blocks);

/*
 * What one process orders another to do, over a socket of host_fork():
 * order_say() when the other waits for it, order_answer() when that is done; and
 * the other order_take() and order_done().
 */
void order_say(int fd, uint64_t order);
int order_answer(int fd, uint64_t order);
uint64_t order_take(int fd);
void order_done(int fd, uint64_t order, int rc);

#endif
