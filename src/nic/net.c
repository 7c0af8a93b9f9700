/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net.c: the addresses of the device and the state of its port, which follow the
 * host's while the device is open (follow.c). What follows from what is gids.c's.
 *
 * A QP or address handle whose address is gone keeps it and goes on trying, as with
 * cards: what it sends is lost until the address is back, or its retries are over.
 */
#include "nic/net.h"
#include "base/addr.h"
#include "base/log.h"
#include "nic/async.h"
#include "nic/config.h"
#include "nic/device.h"
#include "nic/events.h"
#include "nic/gids.h"
#include "nic/nic.h"
#include "os/net.h"
#include "ring/wqe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static uint64_t eui64(const uint8_t *m)
{
	return (uint64_t)(m[0] ^ 2) << 56 | (uint64_t)m[1] << 48 |
	       (uint64_t)m[2] << 40 | UINT64_C(0xfffe) << 24 |
	       (uint64_t)m[3] << 16 | (uint64_t)m[4] << 8 | m[5];
}

unsigned net_update(struct nic *nic, const struct os_net *net)
{
	const bool full = nic->gids.full;
	unsigned news;

	pthread_mutex_lock(&nic->gids_lock);
	news = gids_update(&nic->gids, net);
	pthread_mutex_unlock(&nic->gids_lock);
	__atomic_store_n(&nic->iface.mtu,
			 nic->cfg.mtu ? nic->cfg.mtu : nic->gids.mtu,
			 __ATOMIC_RELAXED);
	if (nic->gids.full && !full)
		log_warn("more than %u addresses: the others are not offered",
			 NIC_GIDS_MAX - 1);
	return news;
}

int net_open(struct nic *nic)
{
	const struct os_addr *first;
	struct os_net net;
	int err = config_check(&nic->cfg, nic->os);

	if (err)
		return err;
	err = os_net_watch(nic->os);
	if (err)
		log_info("addresses and links stay as they are now: %s, error "
			 "%d",
			 "the host does not tell of changes", -err);
	err = os_net_read(nic->os, &net);
	if (err)
		return err;
	net_update(nic, &net);
	os_net_free(&net);
	if (gids_at(&nic->gids, 0, &first))
		return -ENODEV;
	nic->iface.guid = eui64(first->mac);
	memcpy(nic->iface.name, first->ifname, sizeof(nic->iface.name));
	return 0;
}

void net_tell(struct nic *nic, unsigned news)
{
	if (news & GIDS_TABLE)
		events_raise(nic, NIC_EVENT_GID_CHANGE);
	if (news & GIDS_STATE)
		events_raise(nic, nic->gids.active ? NIC_EVENT_PORT_ACTIVE
						   : NIC_EVENT_PORT_ERR);
	if (news)
		log_debug("the network of this host changed:%s%s%s",
			  news & GIDS_TABLE ? " addresses" : "",
			  news & GIDS_STATE ? " links" : "",
			  news & GIDS_MTU ? " MTU" : "");
}

int nic_query(struct nic *nic, struct nic_attr *out)
{
	*out = (struct nic_attr){.gids = 0};
	if (nic_child(nic))
		return -ENODEV;
	out->gids = NIC_GIDS_MAX;
	out->guid = nic->iface.guid;
	memcpy(out->netdev, nic->iface.name, sizeof(out->netdev));
	pthread_mutex_lock(&nic->gids_lock);
	out->active_mtu = __atomic_load_n(&nic->iface.mtu, __ATOMIC_RELAXED);
	out->active = nic->gids.active;
	pthread_mutex_unlock(&nic->gids_lock);
	return 0;
}

int nic_gid(struct nic *nic, unsigned index, struct nic_gid *out)
{
	const struct os_addr *a;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	pthread_mutex_lock(&nic->gids_lock);
	err = gids_at(&nic->gids, index, &a);
	if (!err) {
		*out = (struct nic_gid){.ip = a->ip, .ifindex = a->ifindex};
		memcpy(out->mac, a->mac, sizeof(out->mac));
		memcpy(out->ifname, a->ifname, sizeof(out->ifname));
	}
	pthread_mutex_unlock(&nic->gids_lock);
	return err;
}

int nic_path(struct nic *nic, unsigned sgid_index, const struct ipaddr *dgid,
	     struct wqe_to *to)
{
	const struct os_addr *a;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	pthread_mutex_lock(&nic->gids_lock);
	err = gids_path(&nic->gids, sgid_index, dgid, &a);
	if (!err)
		*to = (struct wqe_to){.dgid = *dgid,
				      .local = a->ip,
				      .scope = a->link_local ? a->ifindex : 0};
	pthread_mutex_unlock(&nic->gids_lock);
	return err;
}
