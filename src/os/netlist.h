/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlist.h: the list of what os_net_read() found. */
#ifndef NOPIN_OS_NETLIST_H
#define NOPIN_OS_NETLIST_H

#include <stddef.h>
#include <stdint.h>

struct os_link;
struct os_net;

/** net_add_link() - Append an interface. Return: 0; -ENOMEM. */
int net_add_link(struct os_net *net, const struct os_link *link);
/**
 * net_add_addr() - Append an address of an interface that was added; without that, or
 * of another family, it is left out.
 * @bytes:	@len of them, as the family has them
 * Return: 0; -ENOMEM.
 */
int net_add_addr(struct os_net *net, int family, const void *bytes, size_t len,
		 uint32_t ifindex);
/** net_find_link() - Find the interface @ifindex. Return: it, or NULL. */
const struct os_link *net_find_link(const struct os_net *net, uint32_t ifindex);

enum { NET_MTU_UNKNOWN = 1280 };

#endif
