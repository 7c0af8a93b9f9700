/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* errors.c: ICMP errors: nobody is at a port; packets are too large for an interface. */
#include "nic/errors.h"
#include "base/addr.h"
#include "base/counters.h"
#include "base/list.h"
#include "base/log.h"
#include "base/timerq.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/peers.h"
#include "nic/progress.h"
#include "os/net.h"
#include "xport/peer.h"

#include <errno.h>

/* Deny those of @peers that are being asked at @dst: no process has that port. Return: was
 * there one? */
static bool deny_asked(struct nic *nic, const struct list *peers,
		       const struct endpoint *dst)
{
	bool any = false;

	list_for_each(l, peers) {
		struct peer *p = list_entry(l, struct peer, link);

		if (p->hello.timer.at_ns == TIME_NEVER ||
		    p->kind == PEER_NOPIN || !endpoint_eq(&p->asked, dst))
			continue;
		peer_deny(nic, p);
		any = true;
	}
	return any;
}

/* Any host can say so. It is not believed of a peer that has answered. */
static void unreachable(struct nic *nic, const struct endpoint *dst)
{
	const bool peer = deny_asked(nic, &nic->peers.all, dst);

	if (!deny_asked(nic, &nic->peers.dests, dst) && !peer)
		count(&nic->cnt, CNT_drop_unreachable);
}

static const struct os_addr *addr_find(const struct os_net *net,
				       const struct ipaddr *ip)
{
	for (unsigned i = 0; i < net->naddrs; i++)
		if (ipaddr_eq(&net->addr[i].ip, ip))
			return &net->addr[i];
	return NULL;
}

/* The requests end as those to a silent peer do, and this is why. */
static void say_too_large(struct peer *p, const struct os_addr *via)
{
	if (!p->path.too_large || !via || p->path.told_mtu == via->mtu)
		return;
	p->path.told_mtu = via->mtu;
	log_warn("packets of %u bytes to port %u do not leave by %s: its MTU "
		 "is %u%s",
		 p->path.too_large, p->ep.port, via->ifname, via->mtu,
		 p->path.too_large <= via->mtu ? ", that of the way is less"
					       : "");
}

/* What MTUs are now. They are asked for without the lock. */
static void look_at_mtus(struct nic *nic)
{
	struct os_net net;

	if (!__atomic_load_n(&nic->peers.too_large, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(&nic->peers.too_large, false,
				 __ATOMIC_RELAXED) ||
	    os_net_read(nic->os, &net))
		return;
	nic_lock(nic);
	list_for_each(l, &nic->peers.all) {
		struct peer *p = list_entry(l, struct peer, link);

		say_too_large(p, addr_find(&net, &p->local));
		p->path.too_large = 0;
	}
	nic_unlock(nic);
	os_net_free(&net);
}

void errors_take(struct nic *nic)
{
	struct endpoint dst;
	uint32_t mtu;
	int err;

	look_at_mtus(nic);
	while (os_recv_error(nic->os, &dst, &err, &mtu) > 0) {
		if (err != ECONNREFUSED)
			continue;
		nic_lock(nic);
		unreachable(nic, &dst);
		nic_unlock(nic);
	}
}
