/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* netlist.c: interfaces and addresses in a list: what there is, as rtnl.c or ifconf.c
 * append it.
 */
#include "os/netlist.h"
#include "base/check.h"
#include "os/net.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* Room for one more behind @n. Return: the array, NULL: no memory. */
static void *net_grow(void *array, unsigned n, size_t size)
{
	if (n & (n - 1) || (n && n < 8))
		return array;
	return realloc(array, MAX(2 * (size_t)n, 8) * size);
}

/** net_add_link() - See netlist.h. */
int net_add_link(struct os_net *net, const struct os_link *link)
{
	struct os_link *v = net_grow(net->link, net->nlinks, sizeof(*v));

	if (!v)
		return -ENOMEM;
	net->link = v;
	v[net->nlinks++] = *link;
	return 0;
}

/** net_find_link() - See netlist.h. */
const struct os_link *net_find_link(const struct os_net *net, uint32_t ifindex)
{
	for (unsigned i = 0; i < net->nlinks; i++)
		if (net->link[i].ifindex == ifindex)
			return &net->link[i];
	return NULL;
}

/* Return: is it an address of a kind that we know? */
static bool addr_convert(int family, const void *bytes, size_t len,
			 struct os_addr *a)
{
	if (family == AF_INET && len == 4) {
		a->ip.b[10] = a->ip.b[11] = 0xff;
		memcpy(&a->ip.b[12], bytes, 4);
		a->link_local = a->ip.b[12] == 169 && a->ip.b[13] == 254;
		return true;
	}
	if (family != AF_INET6 || len != sizeof(a->ip.b))
		return false;
	memcpy(a->ip.b, bytes, sizeof(a->ip.b));
	a->link_local = a->ip.b[0] == 0xfe && (a->ip.b[1] & 0xc0) == 0x80;
	return true;
}

/** net_add_addr() - See netlist.h. */
int net_add_addr(struct os_net *net, int family, const void *bytes, size_t len,
		 uint32_t ifindex)
{
	const struct os_link *link = net_find_link(net, ifindex);
	struct os_addr a = {.ifindex = ifindex}, *v;

	if (!link || !addr_convert(family, bytes, len, &a))
		return 0;
	a.mtu = link->mtu;
	a.up = link->up;
	a.loopback = link->loopback;
	memcpy(a.mac, link->mac, sizeof(a.mac));
	memcpy(a.ifname, link->ifname, sizeof(a.ifname));
	v = net_grow(net->addr, net->naddrs, sizeof(*v));
	if (!v)
		return -ENOMEM;
	net->addr = v;
	v[net->naddrs++] = a;
	return 0;
}

/** os_net_free() - See net.h. */
void os_net_free(struct os_net *net)
{
	free(net->addr);
	free(net->link);
	*net = (struct os_net){.naddrs = 0};
}
