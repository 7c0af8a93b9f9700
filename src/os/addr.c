/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr.c: which local addresses a NIC offers, in which order (design D4), and how it
 * hears that they are others. Where they are read from: rtnl.c, ifconf.c; the list
 * that they are in: netlist.c.
 */
#include "os/addr.h"
#include "base/addr.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/ifconf.h"
#include "os/kept.h"
#include "os/net.h"
#include "os/os.h"
#include "os/rtnl.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* --- what of it is offered -------------------------------------------------- */

static int addr_socket(int family)
{
	return fd_high(sys_socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
}

/* The address a packet to somewhere far away would carry: the kernel's own
 * choice by its routes. Connecting a datagram socket sends nothing.
 * @fd: of @family, not connected before and after; or -errno
 */
static void addr_default(int fd, int family, struct ipaddr *out)
{
	struct sockaddr_in6 far6 = {.sin6_family = AF_INET6, .sin6_port = 9};
	struct sockaddr_in far4 = {.sin_family = AF_INET, .sin_port = 9};
	struct sockaddr_in6 me6 = {.sin6_family = AF_INET6};
	socklen_t len = sizeof(me6);
	const struct sockaddr none = {.sa_family = AF_UNSPEC};
	struct sockaddr_in me4;
	int ret;

	memset(out, 0, sizeof(*out));
	inet_pton(AF_INET, "198.41.0.4", &far4.sin_addr);
	inet_pton(AF_INET6, "2001:503:ba3e::2:30", &far6.sin6_addr);
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
	(void)sys_connect(fd, &none, sizeof(none));
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

/* Lower comes first; within a rank the kernel's order is kept. */
static unsigned addr_rank(const struct os_addr *a)
{
	if (!a->up)
		return 8;
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

/* All there are, as the kernel tells them, and those that it would choose. */
static int addr_ask(struct os *os, struct os_net *net, struct ipaddr *def4,
		    struct ipaddr *def6)
{
	int rtnl, v4, v6, ret;

	pthread_mutex_lock(&os->ask.lock);
	rtnl = fd_kept(&os->ask.rtnl, os->ask.again, rtnl_open, 0);
	v4 = fd_kept(&os->ask.v4, os->ask.again, addr_socket, AF_INET);
	v6 = fd_kept(&os->ask.v6, os->ask.again, addr_socket, AF_INET6);
	ret = rtnl_read(rtnl, net);
	if (ret < 0 && os->news.fd < 0)
		ret = ifconf_read(v4, net);
	addr_default(v4, AF_INET, def4);
	addr_default(v6, AF_INET6, def6);
	fd_unkept(&os->ask.rtnl, rtnl);
	fd_unkept(&os->ask.v4, v4);
	fd_unkept(&os->ask.v6, v6);
	pthread_mutex_unlock(&os->ask.lock);
	return ret;
}

/* All there are, in order. */
static int addr_all(struct os *os, struct os_net *net)
{
	struct ipaddr def4, def6;
	unsigned n = 0;
	int ret;

	*net = (struct os_net){.naddrs = 0};
	ret = addr_ask(os, net, &def4, &def6);
	if (ret < 0)
		return ret;
	for (unsigned i = 0; i < net->naddrs; i++) {
		struct os_addr a = net->addr[i];

		if (os->family == AF_INET && !ipaddr_is_v4(&a.ip))
			continue;
		a.default_route = !a.loopback && (ipaddr_eq(&a.ip, &def4) ||
						  ipaddr_eq(&a.ip, &def6));
		net->addr[n++] = a;
	}
	net->naddrs = n;
	addr_sort(net->addr, n);
	return 0;
}

/** os_net_read() - See net.h. */
int os_net_read(struct os *os, struct os_net *net)
{
	int keep = errno, ret = addr_all(os, net);
	unsigned n = 0;

	for (unsigned i = 0; ret == 0 && i < net->naddrs; i++)
		if (addr_allowed(&net->addr[i], os->addr_filter))
			net->addr[n++] = net->addr[i];
	net->naddrs = n;
	errno = keep;
	return ret;
}

static void addr_add(char *list, size_t size, const char *name)
{
	size_t len = strlen(list);

	snprintf(list + len, size - len, "%s%s", len ? " " : "", name);
}

static void addr_list(const struct os_net *net, char *list, size_t size)
{
	const struct os_addr *v = net->addr;

	list[0] = 0;
	for (unsigned i = 0; i < net->naddrs; i++) {
		const uint8_t *b = v[i].ip.b;
		char text[INET6_ADDRSTRLEN];
		bool v4 = ipaddr_is_v4(&v[i].ip);
		unsigned k = 0;

		if (!v[i].up)
			continue;
		while (strcmp(v[k].ifname, v[i].ifname) != 0)
			k++;
		if (k == i)
			addr_add(list, size, v[i].ifname);
		inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? b + 12 : b, text,
			  sizeof(text));
		addr_add(list, size, text);
	}
}

/** os_addr_check() - See net.h. */
int os_addr_check(struct os *os, char *valid, size_t size)
{
	const char *item = os->addr_filter;
	int keep = errno;
	bool known;
	struct os_net net;
	int ret;

	if (!item)
		return 0;
	ret = addr_all(os, &net);
	errno = keep;
	if (ret < 0)
		return ret;
	known = item[strspn(item, ",")]; /* nothing is no address */
	while (known && *item) {
		size_t len = strcspn(item, ",");

		known = !len;
		for (unsigned i = 0; i < net.naddrs && !known; i++)
			known = net.addr[i].up &&
				addr_item(&net.addr[i], item, len);
		item += len;
		item += *item == ',';
	}
	if (!known)
		addr_list(&net, valid, size);
	os_net_free(&net);
	errno = keep;
	return known ? 0 : -EINVAL;
}

/* --- what becomes of it ------------------------------------------------------- */

/** os_net_watch() - See net.h. */
int os_net_watch(struct os *os)
{
	struct stat st;
	int fd = rtnl_watch(), ret;

	pthread_mutex_lock(&os->ask.lock);
	os->ask.again = true;
	pthread_mutex_unlock(&os->ask.lock);
	if (fd < 0)
		return fd;
	ret = sys_fstat(fd, &st);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	os->news.dev = st.st_dev;
	os->news.ino = st.st_ino;
	fork_close_in_child(fd);
	__atomic_store_n(&os->news.fd, fd, __ATOMIC_RELAXED);
	return 0;
}

/** os_net_changed() - See net.h. */
bool os_net_changed(struct os *os)
{
	return __atomic_load_n(&os->news.changed, __ATOMIC_RELAXED) &&
	       __atomic_exchange_n(&os->news.changed, false, __ATOMIC_RELAXED);
}

/** net_heard() - See addr.h. */
void net_heard(struct os *os)
{
	const int fd = __atomic_load_n(&os->news.fd, __ATOMIC_RELAXED);

	if (fd < 0)
		return;
	/* The program closed it: its own by now, maybe. */
	if (!fd_is(fd, os->news.dev, os->news.ino) || rtnl_drain(fd) < 0)
		__atomic_store_n(&os->news.fd, -1, __ATOMIC_RELAXED);
	__atomic_store_n(&os->news.changed, true, __ATOMIC_RELAXED);
}

/** net_close() - See addr.h. */
void net_close(struct os *os)
{
	fd_drop(&os->ask.rtnl);
	fd_drop(&os->ask.v4);
	fd_drop(&os->ask.v6);
	if (os->news.fd < 0)
		return;
	fork_forget(os->news.fd);
	if (fd_is(os->news.fd, os->news.dev, os->news.ino))
		sys_close(os->news.fd);
}
