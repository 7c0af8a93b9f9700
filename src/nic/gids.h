/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gids.h: the GID table and the state of the port, as they follow from what the host
 * says of its network. Pure: follow.c asks the host, net.c tells programs.
 */
#ifndef NOPIN_NIC_GIDS_H
#define NOPIN_NIC_GIDS_H

#include "nic/nic.h"
#include "os/net.h"

/**
 * struct gids
 * @used:	bit per slot that has an address; the others show which they had last,
 *		if any
 * @mtu:	of the smallest interface that is offered, payload bytes
 * @links:	ifindex of interfaces that are no loopback, were offered and did run
 * @active:	packets can go out
 * @full:	an address found no slot
 */
struct gids {
	uint64_t used;
	struct os_addr slot[NIC_GIDS_MAX];
	uint32_t mtu;
	uint32_t links[NIC_GIDS_MAX];
	unsigned nlinks;
	bool active, full;
};

/* What gids_update() found to be different. */
enum gids_news { GIDS_TABLE = 1 << 0, GIDS_STATE = 1 << 1, GIDS_MTU = 1 << 2 };

/**
 * gids_update() - Follow the host.
 * @g: all zero at first
 * Return: bits of enum gids_news.
 */
unsigned gids_update(struct gids *g, const struct os_net *net);

/** gids_at() - Find the address at @index.
 * Return: 0; -ENODATA: an empty slot; -EINVAL: beyond the table. */
int gids_at(const struct gids *g, unsigned index, const struct os_addr **out);

/** gids_has() - Is @ip one of ours? */
bool gids_has(const struct gids *g, const struct ipaddr *ip);

/**
 * gids_path() - Find the address at @index, if a packet for @dgid may come from it.
 * Return: 0; as gids_at(); -EINVAL: it may not, or there is no such destination.
 */
int gids_path(const struct gids *g, unsigned index, const struct ipaddr *dgid,
	      const struct os_addr **out);

#endif
