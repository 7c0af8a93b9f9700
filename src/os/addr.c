/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr.c: which local addresses a NIC offers, in which order (design D4). */
#include "os/impl.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { ADDR_MAX = 256 };

/* The address a packet to somewhere far away would carry: the kernel's own
 * choice by its routes. Connecting a datagram socket sends nothing.
 */
static void addr_default(int family, struct ipaddr *out)
{
	struct sockaddr_in6 far6 = {.sin6_family = AF_INET6, .sin6_port = 9};
	struct sockaddr_in far4 = {.sin_family = AF_INET, .sin_port = 9};
	struct sockaddr_in6 me6 = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(me6);
	struct sockaddr_in me4;
	int fd, ret;

	memset(out, 0, sizeof(*out));
	inet_pton(AF_INET, "198.41.0.4", &far4.sin_addr);
	inet_pton(AF_INET6, "2001:503:ba3e::2:30", &far6.sin6_addr);
	fd = sys_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (family == AF_INET)
		ret = sys_connect(fd, &far4, sizeof(far4));
	else
		ret = sys_connect(fd, &far6, sizeof(far6));
	if (ret == 0 && sys_getsockname(fd, &me6, &len) == 0) {
		memcpy(&me4, &me6, sizeof(me4));
		if (family == AF_INET) {
			out->b[10] = out->b[11] = 0xff;
			memcpy(&out->b[12], &me4.sin_addr, 4);
		} else {
			memcpy(out->b, &me6.sin6_addr, sizeof(out->b));
		}
	}
	sys_close(fd);
}

/* One item of the filter: an interface name, or an address in text form. */
static bool addr_item(const struct os_addr *a, const char *item, size_t len)
{
	struct ipaddr ip = {.b = {[10] = 0xff, [11] = 0xff}};
	char text[INET6_ADDRSTRLEN];

	if (len >= sizeof(text))
		return false;
	memcpy(text, item, len);
	text[len] = 0;
	if (strcmp(text, a->ifname) == 0)
		return true;
	if (inet_pton(AF_INET, text, &ip.b[12]) == 1)
		return ipaddr_eq(&ip, &a->ip);
	return inet_pton(AF_INET6, text, ip.b) == 1 && ipaddr_eq(&ip, &a->ip);
}

static bool addr_allowed(const struct os_addr *a, const char *filter)
{
	if (!filter || !*filter)
		return true;
	while (*filter) {
		size_t len = strcspn(filter, ",");

		if (addr_item(a, filter, len))
			return true;
		filter += len;
		filter += *filter == ',';
	}
	return false;
}

static bool addr_convert(const struct sockaddr *sa, struct os_addr *a)
{
	const struct sockaddr_in6 *in6 = (const void *)sa;
	const struct sockaddr_in *in = (const void *)sa;

	if (sa->sa_family == AF_INET) {
		a->ip.b[10] = a->ip.b[11] = 0xff;
		memcpy(&a->ip.b[12], &in->sin_addr, 4);
		a->link_local = a->ip.b[12] == 169 && a->ip.b[13] == 254;
		return true;
	}
	if (sa->sa_family != AF_INET6)
		return false;
	memcpy(a->ip.b, &in6->sin6_addr, sizeof(a->ip.b));
	a->link_local = IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
	return true;
}

static void addr_mac(const struct ifaddrs *list, struct os_addr *a)
{
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		const struct sockaddr_ll *ll = (const void *)i->ifa_addr;

		if (!ll || ll->sll_family != AF_PACKET ||
		    strncmp(i->ifa_name, a->ifname, sizeof(a->ifname)) != 0)
			continue;
		a->ifindex = (uint32_t)ll->sll_ifindex;
		if (ll->sll_halen == sizeof(a->mac))
			memcpy(a->mac, ll->sll_addr, sizeof(a->mac));
	}
}

static uint32_t addr_mtu(int fd, const char *ifname)
{
	struct ifreq ifr = {.ifr_mtu = 0};

	memcpy(ifr.ifr_name, ifname, strnlen(ifname, IFNAMSIZ - 1));
	if (sys_call(SYS_ioctl, fd, SIOCGIFMTU, SYS_PTR(&ifr), 0, 0, 0) < 0)
		return 1280;
	return (uint32_t)ifr.ifr_mtu;
}

/* Lower comes first; within a rank the kernel's order is kept. */
static unsigned addr_rank(const struct os_addr *a)
{
	if (a->loopback)
		return ipaddr_is_v4(&a->ip) ? 6 : 7;
	if (a->link_local)
		return ipaddr_is_v4(&a->ip) ? 4 : 5;
	if (ipaddr_is_v4(&a->ip))
		return a->default_route ? 0 : 1;
	return a->default_route ? 2 : 3;
}

static void addr_sort(struct os_addr *v, unsigned n)
{
	for (unsigned i = 1; i < n; i++) {
		struct os_addr a = v[i];
		unsigned j = i;

		for (; j > 0 && addr_rank(&v[j - 1]) > addr_rank(&a); j--)
			v[j] = v[j - 1];
		v[j] = a;
	}
}

static unsigned addr_collect(struct os *os, const struct ifaddrs *list,
			     struct os_addr *v, int fd)
{
	struct ipaddr def4, def6;
	unsigned n = 0;

	addr_default(AF_INET, &def4);
	addr_default(AF_INET6, &def6);
	for (const struct ifaddrs *i = list; i && n < ADDR_MAX;
	     i = i->ifa_next) {
		struct os_addr a = {.mtu = 0};

		if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
		    !addr_convert(i->ifa_addr, &a))
			continue;
		if (os->family == AF_INET && !ipaddr_is_v4(&a.ip))
			continue;
		memcpy(a.ifname, i->ifa_name,
		       strnlen(i->ifa_name, sizeof(a.ifname) - 1));
		a.loopback = (i->ifa_flags & IFF_LOOPBACK) != 0;
		a.default_route = !a.loopback && (ipaddr_eq(&a.ip, &def4) ||
						  ipaddr_eq(&a.ip, &def6));
		addr_mac(list, &a);
		a.mtu = addr_mtu(fd, a.ifname);
		v[n++] = a;
	}
	addr_sort(v, n);
	return n;
}

/* All there are, in order. The caller frees @*out. Return: how many, or -errno. */
static int addr_all(struct os *os, struct os_addr **out)
{
	struct ifaddrs *list = NULL;
	int keep = errno, fd, state, n = 0;

	*out = NULL;
	/* getifaddrs() reads from a socket: a cancellation point. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	fd = sys_socket(os->family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	errno = fd < 0 ? -fd : 0;
	if (fd >= 0 && getifaddrs(&list) == 0)
		*out = calloc(ADDR_MAX, sizeof(**out));
	n = *out ? (int)addr_collect(os, list, *out, fd) : -errno;
	freeifaddrs(list);
	fd_close(fd);
	pthread_setcancelstate(state, NULL);
	errno = keep;
	return n;
}

/**
 * os_addresses() - See os.h.
 * Return: also -ENODEV: the filter leaves nothing, or there is nothing.
 */
int os_addresses(struct os *os, struct os_addr *out, unsigned max)
{
	struct os_addr *v;
	const int all = addr_all(os, &v);
	unsigned n = 0;

	for (int i = 0; i < all && n < max; i++)
		if (addr_allowed(&v[i], os->addr_filter))
			out[n++] = v[i];
	free(v);
	if (n > 0)
		return (int)n;
	return all < 0 ? all : -ENODEV;
}

static void addr_add(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? " " : "", name);
}

static void addr_list(const struct os_addr *v, unsigned n, char *list,
		      size_t size)
{
	list[0] = 0;
	for (unsigned i = 0; i < n; i++) {
		const uint8_t *b = v[i].ip.b;
		char text[INET6_ADDRSTRLEN];
		bool v4 = ipaddr_is_v4(&v[i].ip);
		unsigned k = 0;

		while (strcmp(v[k].ifname, v[i].ifname) != 0)
			k++;
		if (k == i)
			addr_add(list, size, v[i].ifname);
		inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? b + 12 : b, text,
			  sizeof(text));
		addr_add(list, size, text);
	}
}

int os_addr_check(struct os *os, char *valid, size_t size)
{
	const char *item = os->addr_filter;
	bool known;
	struct os_addr *v;
	unsigned n;
	int all;

	if (!item)
		return 0;
	all = addr_all(os, &v);
	if (all < 0)
		return all;
	n = (unsigned)all;
	known = item[strspn(item, ",")]; /* nothing is no address */
	while (known && *item) {
		size_t len = strcspn(item, ",");

		known = !len;
		for (unsigned i = 0; i < n && !known; i++)
			known = addr_item(&v[i], item, len);
		item += len;
		item += *item == ',';
	}
	if (!known)
		addr_list(v, n, valid, size);
	free(v);
	return known ? 0 : -EINVAL;
}
