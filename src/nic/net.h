/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net.h: addresses of the host, as they come and go. */
#ifndef NOPIN_NIC_NET_H
#define NOPIN_NIC_NET_H

struct nic;
struct os_net;

/** net_open() - Find the addresses. Return: -ENODEV: there is none, ... */
int net_open(struct nic *nic);

/** net_update() - Take the addresses over from @net. Context: engine lock held, or no
 * other thread is there yet. Return: what is new (enum gids_news). */
unsigned net_update(struct nic *nic, const struct os_net *net);

/** net_tell() - Tell programs of @news (enum gids_news). Engine lock held. */
void net_tell(struct nic *nic, unsigned news);

#endif
