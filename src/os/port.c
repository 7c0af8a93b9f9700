/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.c: the UDP sockets of a NIC: opening them, and finding out what this
 * kernel can do (design D3, D4, D14).
 *
 * One socket per port serves both families: IPv6 with IPv4 as ::ffff:a.b.c.d,
 * or plain IPv4 where there is no IPv6. It is never connected: a connected
 * socket writes a counter into the IPv4 identification, which ICRC covers. Where
 * that does not matter a send by a connected one of the address's own family
 * saves 0.5 us of 3 (no route to look up): such sockets only send, else they
 * would receive what the port's own is waited on for.
 */
#include "os/port.h"
#include "base/addr.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/kept.h"
#include "os/net.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef UDP_NO_CHECK6_RX
#define UDP_NO_CHECK6_RX 102
#endif

enum {
	PORT_FIRST = 49152, /* QPN bits 23..10 count from here */
	PORT_COUNT = 65536 - PORT_FIRST,
	PORT_BUFFER = 4 << 20,
};

/* As root beyond the limits; else as far as they let us. */
static void port_buffers(int fd)
{
	if (sys_setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, PORT_BUFFER) < 0)
		(void)sys_setsockopt(fd, SOL_SOCKET, SO_RCVBUF, PORT_BUFFER);
	if (sys_setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, PORT_BUFFER) < 0)
		(void)sys_setsockopt(fd, SOL_SOCKET, SO_SNDBUF, PORT_BUFFER);
}

/* Without these a packet would be wrong or its addresses unknown. */
static int port_must(const struct os *os, int fd)
{
	int ret = sys_setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER,
				 IP_PMTUDISC_DO);

	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_IP, IP_RECVERR, 1);
	if (os->family == AF_INET)
		return ret < 0 ? ret
			       : sys_setsockopt(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER,
				     IPV6_PMTUDISC_DO);
	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_RECVERR, 1);
	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	if (ret == 0)
		ret = sys_setsockopt(fd, IPPROTO_UDP, UDP_NO_CHECK6_RX, 1);
	return ret;
}

/* Return: an unbound socket with its options set, or -errno. */
static int port_socket(struct os *os)
{
	int fd, ret;

	fd = fd_high(sys_socket(os->family,
				SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return fd;
	ret = port_must(os, fd);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	port_buffers(fd);
	(void)sys_setsockopt(fd, SOL_SOCKET, SO_RXQ_OVFL, 1);
	os->offload.gro = !os->offload.no_gro &&
			  sys_setsockopt(fd, IPPROTO_UDP, UDP_GRO, 1) == 0;
	return fd;
}

static int port_bind(const struct os *os, int fd, uint16_t port)
{
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6,
				    .sin6_port = htons(port)};
	struct sockaddr_in sin = {.sin_family = AF_INET,
				  .sin_port = htons(port)};

	if (os->family == AF_INET6)
		return sys_bind(fd, &sin6, sizeof(sin6));
	return sys_bind(fd, &sin, sizeof(sin));
}

/* Return: the port number, or -EADDRINUSE when all are taken. */
static int port_bind_any(struct os *os, int fd)
{
	int ret = -EADDRINUSE;
	uint16_t at;

	os_random(os, &at, sizeof(at));
	for (unsigned i = 0; i < PORT_COUNT; i++, at++) {
		uint16_t port = (uint16_t)(PORT_FIRST + at % PORT_COUNT);

		ret = port_bind(os, fd, port);
		if (ret == 0)
			return port;
		if (ret != -EADDRINUSE)
			break;
	}
	return ret;
}

/**
 * port_probe() - Find out, by trying, which family, receive buffer and
 * segmentation this host gives.
 */
int port_probe(struct os *os, bool no_gso)
{
	int fd, value = 0;

	os->family = AF_INET6;
	fd = port_socket(os);
	if (fd >= 0 && port_bind(os, fd, 0) < 0) {
		/* disable_ipv6 leaves sockets but no address to bind */
		sys_close(fd);
		fd = -EAFNOSUPPORT;
	}
	if (fd < 0) {
		os->family = AF_INET;
		fd = port_socket(os);
	}
	if (fd < 0)
		return fd;
	os->offload.gso = !no_gso &&
			  sys_setsockopt(fd, IPPROTO_UDP, UDP_SEGMENT, 0) == 0;
	if (sys_getsockopt(fd, SOL_SOCKET, SO_RCVBUF, &value) == 0)
		os->rcvbuf = (size_t)value;
	sys_close(fd);
	fd = fd_spare() ? port_socket(os) : -1;
	if (fd >= 0 && !fd_keep(&os->spares.port, fd))
		sys_close(fd);
	return 0;
}

bool os_gso(struct os *os)
{
	return os->offload.gso;
}

bool os_gro(struct os *os)
{
	return os->offload.gro;
}

size_t os_rcvbuf(struct os *os)
{
	return os->rcvbuf;
}

/* A receiver that sees the new count sees a port that fits it: with one port
 * left or none yet, any that is open.
 */
static void port_count(struct os *os)
{
	unsigned n = 0;
	int only = 0;

	for (int i = OS_PORTS_MAX - 1; i >= 0; i--) {
		if (os->rx.port[i].fd < 0)
			continue;
		only = i;
		n++;
	}
	__atomic_store_n(&os->rx.only, only, __ATOMIC_RELAXED);
	__atomic_store_n(&os->rx.nports, n, __ATOMIC_RELEASE);
}

/* Return: the index that @fd got, or -EMFILE. */
static int port_install(struct os *os, int fd, uint16_t port)
{
	struct epoll_event ev = {.events = EPOLLIN};
	int i = 0, ret;

	while (i < OS_PORTS_MAX && os->rx.port[i].fd >= 0)
		i++;
	if (i == OS_PORTS_MAX)
		return -EMFILE;
	ev.data.u32 = (uint32_t)i;
	ret = (int)sys_call(SYS_epoll_ctl, os->ports_ep, EPOLL_CTL_ADD, fd,
			    SYS_PTR(&ev), 0, 0);
	if (ret < 0)
		return ret;
	os->rx.port[i].port = port;
	os->rx.port[i].ovfl = 0;
	__atomic_fetch_and(&os->rx.errors, ~(UINT64_C(1) << i),
			   __ATOMIC_RELAXED);
	__atomic_store_n(&os->rx.port[i].fd, fd, __ATOMIC_RELEASE);
	port_count(os);
	return i;
}

/* Return: a socket bound to any port, or -errno. */
static int port_any(struct os *os, uint16_t *port)
{
	int fd = port_socket(os), ret;

	if (fd < 0)
		return fd;
	ret = port_bind_any(os, fd);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	*port = (uint16_t)ret;
	return fd;
}

/* Return: a socket bound to @port, which another process may have given up just
 * now; or -errno. */
static int port_known(struct os *os, uint16_t port)
{
	int fd, ret;

	pthread_mutex_lock(&os->lock);
	fd = fd_take(&os->spares.port);
	pthread_mutex_unlock(&os->lock);
	if (fd < 0)
		fd = port_socket(os);
	if (fd < 0)
		return fd;
	ret = port_bind(os, fd, port);
	if (ret == 0)
		return fd;
	/* It is as good as before. */
	pthread_mutex_lock(&os->lock);
	if (os->spares.port.kept || !fd_keep(&os->spares.port, fd))
		sys_close(fd);
	pthread_mutex_unlock(&os->lock);
	return ret;
}

/**
 * os_port_open() - See net.h.
 * @port: set only on success
 * Context: others may use the other ports; kick them, so that they wait on the
 * new one too.
 */
int os_port_open(struct os *os, uint16_t want, uint16_t *port)
{
	int fd = want ? port_known(os, want) : port_any(os, &want), index;

	if (fd < 0)
		return fd;
	pthread_mutex_lock(&os->lock);
	index = port_install(os, fd, want);
	pthread_mutex_unlock(&os->lock);
	if (index < 0) {
		sys_close(fd);
		return index;
	}
	fork_close_in_child(fd);
	*port = want;
	return index;
}

/**
 * os_port_close() - See net.h.
 * Context: not while another thread is in os_recv() or os_wait(), nor in
 * os_send() from this port.
 */
void os_port_close(struct os *os, int index)
{
	int fd = os->rx.port[index].fd;

	pthread_mutex_lock(&os->lock);
	/* Explicitly: a forked child may keep the socket for a moment. */
	(void)sys_call(SYS_epoll_ctl, os->ports_ep, EPOLL_CTL_DEL, fd, 0, 0, 0);
	__atomic_store_n(&os->rx.port[index].fd, -1, __ATOMIC_RELAXED);
	__atomic_fetch_and(&os->rx.ready, ~(UINT64_C(1) << index),
			   __ATOMIC_RELAXED);
	port_count(os);
	pthread_mutex_unlock(&os->lock);
	fork_forget(fd);
	sys_close(fd);
}

/** os_port_marks() - See net.h. Where it is refused nothing is known, as before. */
void os_port_marks(struct os *os, int index)
{
	const int fd = port_fd(os, index);

	(void)sys_setsockopt(fd, IPPROTO_IP, IP_RECVTOS, 1);
	(void)sys_setsockopt(fd, IPPROTO_IP, IP_RECVTTL, 1);
	if (os->family == AF_INET)
		return;
	(void)sys_setsockopt(fd, IPPROTO_IPV6, IPV6_RECVTCLASS, 1);
	(void)sys_setsockopt(fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, 1);
}

static int line_connect(int fd, int family, const struct ipaddr *src,
			const struct endpoint *dst)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6,
				   .sin6_scope_id = dst->scope};
	int ret;

	if (family == AF_INET) {
		memcpy(&in.sin_addr, &src->b[12], 4);
		ret = sys_bind(fd, &in, sizeof(in));
		memcpy(&in.sin_addr, &dst->ip.b[12], 4);
		in.sin_port = htons(dst->port);
		return ret < 0 ? ret : sys_connect(fd, &in, sizeof(in));
	}
	memcpy(&in6.sin6_addr, src->b, sizeof(src->b));
	ret = sys_bind(fd, &in6, sizeof(in6));
	memcpy(&in6.sin6_addr, dst->ip.b, sizeof(dst->ip.b));
	in6.sin6_port = htons(dst->port);
	return ret < 0 ? ret : sys_connect(fd, &in6, sizeof(in6));
}

static int line_options(int fd, bool v4, struct ip_mark mark)
{
	const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	int ret = v4 ? sys_setsockopt(fd, level, IP_MTU_DISCOVER,
				      IP_PMTUDISC_DO)
		     : sys_setsockopt(fd, level, IPV6_MTU_DISCOVER,
				      IPV6_PMTUDISC_DO);

	if (ret == 0 && mark.tclass)
		ret = sys_setsockopt(fd, level, v4 ? IP_TOS : IPV6_TCLASS,
				     mark.tclass);
	if (ret == 0 && mark.hops)
		ret = sys_setsockopt(fd, level, v4 ? IP_TTL : IPV6_UNICAST_HOPS,
				     mark.hops);
	return ret;
}

static int line_socket(int family)
{
	return fd_high(sys_socket(
		family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

void line_prepare(struct os *os)
{
	spares_fill(os, os->spares.line[0], OS_LINE_SPARES, line_socket,
		    AF_INET);
	if (os->family == AF_INET6)
		spares_fill(os, os->spares.line[1], OS_LINE_SPARES, line_socket,
			    AF_INET6);
}

/* One that was prepared, if there is one: it is a peer that says when. */
static int line_take(struct os *os, int family)
{
	const int fd = spares_take(os, os->spares.line[family == AF_INET6],
				   OS_LINE_SPARES);

	return fd < 0 ? line_socket(family) : fd;
}

void lines_close(struct os *os)
{
	spares_drop(os->spares.line[0], OS_LINE_SPARES);
	spares_drop(os->spares.line[1], OS_LINE_SPARES);
}

/** os_connect() - See net.h. */
int os_connect(struct os *os, const struct ipaddr *src,
	       const struct endpoint *dst, struct ip_mark mark)
{
	const int family = ipaddr_is_v4(&dst->ip) ? AF_INET : AF_INET6;
	int fd;

	if (ipaddr_is_any(src) || (family == AF_INET6 && os->family == AF_INET))
		return 0;
	fd = line_take(os, family);
	if (fd < 0)
		return 0;
	if (line_options(fd, family == AF_INET, mark) < 0 ||
	    line_connect(fd, family, src, dst) < 0) {
		sys_close(fd);
		return 0;
	}
	port_buffers(fd);
	fork_close_in_child(fd);
	return fd;
}

/** os_disconnect() - See net.h. Context: no thread sends by it any more. */
void os_disconnect(struct os *os, int line)
{
	(void)os;
	fork_forget(line);
	sys_close(line);
}
