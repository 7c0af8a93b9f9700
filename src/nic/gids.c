/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* gids.c: which address is at which index of the GID table, and is the port active.
 *
 * Theory of operation. An address keeps its slot for as long as the host has it, also
 * while its interface is down; what is new gets one while its interface is up. One
 * that comes back gets the slot that it had, if that is free; else the lowest free
 * one, the first only if it is no loopback and no link-local address, for programs
 * that do not choose take that. The slot behind the first repeats it, as scripts for
 * soft-RoCE say -g 1 (design D4).
 *
 * The port is what its links are: interfaces other than loopback that had an address
 * in the table and could send. It is down when it has links and none of them runs.
 * Where there never was one (an empty container, a machine off the network) loopback
 * will do.
 */
#include "nic/gids.h"
#include "base/addr.h"
#include "base/check.h"
#include "nic/nic.h"
#include "os/net.h"
#include "wire/roce.h"

#include <errno.h>
#include <string.h>

static_assert(NIC_GIDS_MAX <= 64, "a bit for each slot");

enum { FIRST, TWIN, NONE = NIC_GIDS_MAX };

static bool slot_used(const struct gids *g, unsigned i)
{
	return g->used >> i & 1;
}

static void slot_fill(struct gids *g, unsigned i, const struct os_addr *a)
{
	g->slot[i] = *a;
	g->used |= UINT64_C(1) << i;
	if (i != FIRST)
		return;
	g->slot[TWIN] = *a;
	g->used |= UINT64_C(1) << TWIN;
}

static void slot_empty(struct gids *g, unsigned i)
{
	g->used &= ~(UINT64_C(1) << i);
	if (i == FIRST)
		g->used &= ~(UINT64_C(1) << TWIN);
}

/* A link-local address may be that of several interfaces. */
static bool addr_same(const struct os_addr *a, const struct os_addr *b)
{
	return a->ifindex == b->ifindex && ipaddr_eq(&a->ip, &b->ip);
}

static const struct os_addr *addr_listed(const struct os_net *net,
					 const struct os_addr *a)
{
	for (unsigned i = 0; i < net->naddrs; i++)
		if (addr_same(&net->addr[i], a))
			return &net->addr[i];
	return NULL;
}

static bool addr_present(const struct gids *g, const struct os_addr *a)
{
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (slot_used(g, i) && addr_same(&g->slot[i], a))
			return true;
	return false;
}

/* A slot for what is not there: NONE if all have an address. */
static unsigned slot_choose(const struct gids *g, const struct os_addr *a)
{
	const bool first = !a->loopback && !a->link_local;

	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (!slot_used(g, i) && i != TWIN &&
		    ipaddr_eq(&g->slot[i].ip, &a->ip))
			return i;
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (!slot_used(g, i) && i != TWIN &&
		    (i != FIRST || first || ipaddr_is_any(&g->slot[i].ip)))
			return i;
	return NONE;
}

static bool table_update(struct gids *g, const struct os_net *net)
{
	bool news = false;

	for (unsigned i = 0; i < NIC_GIDS_MAX; i++) {
		const struct os_addr *now = slot_used(g, i) && i != TWIN
						    ? addr_listed(net,
								  &g->slot[i])
						    : NULL;

		if (now)
			slot_fill(g, i, now); /* its MTU may be another */
		else if (slot_used(g, i) && i != TWIN) {
			slot_empty(g, i);
			news = true;
		}
	}
	g->full = false;
	for (unsigned i = 0; i < net->naddrs; i++) {
		const struct os_addr *a = &net->addr[i];
		unsigned slot;

		if (!a->up || addr_present(g, a))
			continue;
		slot = slot_choose(g, a);
		if (slot == NONE) {
			g->full = true;
			continue;
		}
		slot_fill(g, slot, a);
		news = true;
	}
	return news;
}

static uint32_t mtu_for(uint32_t ip_mtu)
{
	/* IPv6, UDP, our headers of a packet with payload, and the trailer:
	 * those of atomics are longer, and these have none. */
	uint32_t room = ip_mtu - MIN(ip_mtu, 40 + 8 + XDATA_HDR + ICRC_BYTES);
	uint32_t mtu = MTU_MAX;

	while (mtu > MTU_MIN && mtu > room)
		mtu /= 2;
	return mtu;
}

static uint32_t mtu_smallest(const struct gids *g)
{
	uint32_t mtu = MTU_MAX;

	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (slot_used(g, i) && !g->slot[i].loopback)
			mtu = MIN(mtu, mtu_for(g->slot[i].mtu));
	return mtu;
}

static bool link_known(const struct gids *g, uint32_t ifindex)
{
	for (unsigned i = 0; i < g->nlinks; i++)
		if (g->links[i] == ifindex)
			return true;
	return false;
}

static bool link_offered(const struct gids *g, uint32_t ifindex)
{
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (slot_used(g, i) && g->slot[i].ifindex == ifindex)
			return true;
	return false;
}

static bool port_active(struct gids *g, const struct os_net *net)
{
	bool running = false;

	for (unsigned i = 0; i < net->nlinks; i++) {
		const struct os_link *l = &net->link[i];

		if (l->loopback || !l->running)
			continue;
		if (!link_known(g, l->ifindex) && link_offered(g, l->ifindex) &&
		    g->nlinks < NIC_GIDS_MAX)
			g->links[g->nlinks++] = l->ifindex;
		running |= link_known(g, l->ifindex);
	}
	return running || !g->nlinks;
}

unsigned gids_update(struct gids *g, const struct os_net *net)
{
	const uint32_t mtu = g->mtu;
	const bool active = g->active;
	unsigned news = table_update(g, net) ? GIDS_TABLE : 0;

	/* While nothing is left the last one stands. */
	if (g->used || !mtu)
		g->mtu = mtu_smallest(g);
	g->active = port_active(g, net);
	news |= g->mtu != mtu ? GIDS_MTU : 0;
	return news | (g->active != active ? GIDS_STATE : 0);
}

int gids_at(const struct gids *g, unsigned index, const struct os_addr **out)
{
	if (index >= NIC_GIDS_MAX)
		return -EINVAL;
	if (!slot_used(g, index))
		return -ENODATA;
	*out = &g->slot[index];
	return 0;
}

bool gids_has(const struct gids *g, const struct ipaddr *ip)
{
	for (unsigned i = 0; i < NIC_GIDS_MAX; i++)
		if (slot_used(g, i) && ipaddr_eq(&g->slot[i].ip, ip))
			return true;
	return false;
}

int gids_path(const struct gids *g, unsigned index, const struct ipaddr *dgid,
	      const struct os_addr **out)
{
	const struct os_addr *a;
	int err = gids_at(g, index, &a);

	if (err)
		return err;
	if (ipaddr_is_any(dgid) || ipaddr_is_v4(dgid) != ipaddr_is_v4(&a->ip))
		return -EINVAL;
	*out = a;
	return 0;
}
