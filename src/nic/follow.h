/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* follow.h: the addresses of the host, as they come and go. */
#ifndef NOPIN_NIC_FOLLOW_H
#define NOPIN_NIC_FOLLOW_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct nic;

/**
 * struct net_news - That the addresses of the host changed.
 * @heard:	the host said so and was not asked
 * @after_ns:	not to be asked before
 */
struct net_news {
	pthread_mutex_t lock;
	bool heard;
	uint64_t after_ns;
};

/** net_follow() - Read what the addresses are now, and tell programs. No lock held. */
int net_follow(struct nic *nic);

/**
 * net_turn() - Call net_follow(), if the host said that something changed and it is time.
 * No lock held. Context: the background thread, or the one that stands in for it.
 * Return: when to call it again at the latest; @until: when there is no reason to.
 */
uint64_t net_turn(struct nic *nic, uint64_t until);

#endif
