/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.c: receiving, sending, and the errors that come back (design D3, D8,
 * D14). The sockets are made in port.c.
 *
 * Errors: an ICMP message for one thing we sent makes the *next* system call
 * on that socket fail, whatever that call is for. Such a call is repeated;
 * what really happened, and to whom, is in the socket's error queue, which
 * os_recv_error() reads when a call said that there is something in it.
 */
#include "os/udp.h"
#include "base/addr.h"
#include "base/check.h"
#include "os/net.h"
#include "os/os.h"
#include "os/port.h"
#include "os/sys.h"
#include "os/sys_socket.h"

#include <linux/errqueue.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/epoll.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

enum {
	UDP_RETRIES = 4, /* pending errors met by one call */
	UDP_STREAK = 16, /* receives from one port while others may wait */
};

union udp_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

/* Room for what a receive brings: destination, class, hops, segment size, drops. */
union udp_ctl {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
		 CMSG_SPACE(sizeof(struct in_pktinfo)) +
		 3 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
};

/* And for an error: extended error, offender, its address. */
union udp_err_ctl {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(struct sock_extended_err) +
			    sizeof(struct sockaddr_in6)) +
		 CMSG_SPACE(sizeof(struct in6_pktinfo)) +
		 CMSG_SPACE(sizeof(uint32_t))];
};

static struct ipaddr ip_from_v4(const struct in_addr *in)
{
	struct ipaddr ip = {.b = {[10] = 0xff, [11] = 0xff}};

	memcpy(&ip.b[12], in, 4);
	return ip;
}

static struct endpoint endpoint_from(const union udp_addr *a)
{
	struct endpoint ep = {.port = 0};

	if (a->sa.sa_family == AF_INET) {
		ep.ip = ip_from_v4(&a->in.sin_addr);
		ep.port = ntohs(a->in.sin_port);
		return ep;
	}
	memcpy(ep.ip.b, &a->in6.sin6_addr, sizeof(ep.ip.b));
	ep.port = ntohs(a->in6.sin6_port);
	ep.scope = a->in6.sin6_scope_id;
	return ep;
}

/* Return: size of the socket address, 0 if this socket cannot reach it. */
static socklen_t endpoint_to(const struct os *os, const struct endpoint *ep,
			     union udp_addr *a)
{
	memset(a, 0, sizeof(*a));
	if (os->family == AF_INET) {
		if (!ipaddr_is_v4(&ep->ip))
			return 0;
		a->in.sin_family = AF_INET;
		a->in.sin_port = htons(ep->port);
		memcpy(&a->in.sin_addr, &ep->ip.b[12], 4);
		return sizeof(a->in);
	}
	a->in6.sin6_family = AF_INET6;
	a->in6.sin6_port = htons(ep->port);
	a->in6.sin6_scope_id = ep->scope;
	memcpy(&a->in6.sin6_addr, ep->ip.b, sizeof(ep->ip.b));
	return sizeof(a->in6);
}

/* --- receiving ----------------------------------------------------------- */

/* The kernel counts 32 bits per socket; several threads may see a value. */
static void udp_drops(struct os *os, struct os_port *p, uint32_t now)
{
	uint32_t before = __atomic_exchange_n(&p->ovfl, now, __ATOMIC_RELAXED);
	int32_t more = (int32_t)(now - before);

	if (more > 0)
		__atomic_fetch_add(&os->rx.drops, (uint64_t)more,
				   __ATOMIC_RELAXED);
}

/* Take what the headers of IP said, of either kind. Return: false: it is none of these. */
static bool udp_control_ip(const struct cmsghdr *c, struct os_rx *rx)
{
	const bool v6 = c->cmsg_level == IPPROTO_IPV6;
	struct in6_pktinfo pi6;
	struct in_pktinfo pi4;
	int value;

	if (!v6 && c->cmsg_level != IPPROTO_IP)
		return false;
	if (v6 && c->cmsg_type == IPV6_PKTINFO) {
		memcpy(&pi6, CMSG_DATA(c), sizeof(pi6));
		memcpy(rx->dst.b, &pi6.ipi6_addr, sizeof(rx->dst.b));
	} else if (!v6 && c->cmsg_type == IP_PKTINFO) {
		memcpy(&pi4, CMSG_DATA(c), sizeof(pi4));
		rx->dst = ip_from_v4(&pi4.ipi_addr);
	} else if (!v6 && c->cmsg_type == IP_TOS) { /* of one byte */
		memcpy(&rx->mark.tclass, CMSG_DATA(c), 1);
	} else if (c->cmsg_type == (v6 ? IPV6_TCLASS : IP_TTL)) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		*(v6 ? &rx->mark.tclass : &rx->mark.hops) = (uint8_t)value;
	} else if (v6 && c->cmsg_type == IPV6_HOPLIMIT) {
		memcpy(&value, CMSG_DATA(c), sizeof(value));
		rx->mark.hops = (uint8_t)value;
	}
	return true;
}

static void udp_control(struct os *os, struct os_port *p, struct msghdr *m,
			struct os_rx *rx)
{
	struct cmsghdr *c;
	uint32_t drops;
	int seg;

	rx->mark = (struct ip_mark){0};
	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (udp_control_ip(c, rx))
			continue;
		if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
			memcpy(&seg, CMSG_DATA(c), sizeof(seg));
			if (seg > 0 && (uint32_t)seg < rx->len)
				rx->seg = (uint32_t)seg;
		} else if (c->cmsg_level == SOL_SOCKET &&
			   c->cmsg_type == SO_RXQ_OVFL) {
			memcpy(&drops, CMSG_DATA(c), sizeof(drops));
			udp_drops(os, p, drops);
		}
	}
}

void udp_error_note(struct os *os, int index)
{
	__atomic_fetch_or(&os->rx.errors, UINT64_C(1) << index,
			  __ATOMIC_RELAXED);
}

/* Return: bytes, or -EAGAIN, -EFAULT, -EBADF. */
static ssize_t udp_recvmsg(struct os *os, int index, int fd, struct msghdr *m,
			   int flags)
{
	const struct msghdr ask = *m;
	ssize_t n = -EAGAIN;

	for (int i = 0; i < UDP_RETRIES; i++) {
		*m = ask;
		n = sys_recvmsg(fd, m, flags);
		if (n >= 0 || n == -EAGAIN || n == -EFAULT || n == -EBADF)
			return n;
		if (n == -ENOTSOCK) /* closed by the program, number reused */
			return -EBADF;
		if (n != -EINTR)
			udp_error_note(os, index);
	}
	return -EAGAIN;
}

/* Return: 1, 0, -EFAULT, -EBADF. */
static int udp_recv_port(struct os *os, int index, struct iovec *iov,
			 unsigned n, struct os_rx *rx, enum os_recv_mode mode)
{
	int flags = mode == OS_PEEK ? MSG_DONTWAIT | MSG_PEEK | MSG_TRUNC
				    : MSG_DONTWAIT;
	struct os_port *p = &os->rx.port[index];
	const int fd = port_fd(os, index);
	union udp_addr from;
	union udp_ctl ctl;
	struct msghdr m = {
		.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_iov = iov,
		.msg_iovlen = n,
		.msg_control = &ctl,
		.msg_controllen = sizeof(ctl),
	};
	ssize_t len;

	if (fd < 0)
		return 0;
	len = udp_recvmsg(os, index, fd, &m, flags);
	if (len < 0)
		return len == -EAGAIN ? 0 : (int)len;
	rx->src = endpoint_from(&from);
	rx->dport = p->port;
	rx->port = index;
	rx->len = rx->seg = (uint32_t)len;
	udp_control(os, p, &m, rx);
	rx->kernel_drops = __atomic_load_n(&os->rx.drops, __ATOMIC_RELAXED);
	return 1;
}

/* Which ports have something? One system call for all of them. */
static uint64_t udp_look(struct os *os)
{
	struct epoll_event ev[OS_PORTS_MAX];
	uint64_t ready = 0;
	int n;

	n = sys_epoll_ready(os->ports_ep, ev, OS_PORTS_MAX);
	for (int i = 0; i < n; i++)
		ready |= UINT64_C(1) << (ev[i].data.u32 % OS_PORTS_MAX);
	__atomic_store_n(&os->rx.ready, ready, __ATOMIC_RELAXED);
	return ready;
}

/* Several ports: take from those that were seen ready, in turn. */
static int udp_recv_ready(struct os *os, struct iovec *iov, unsigned n,
			  struct os_rx *rx, enum os_recv_mode mode)
{
	uint64_t ready = __atomic_load_n(&os->rx.ready, __ATOMIC_RELAXED);

	while (ready != 0) {
		unsigned at = __atomic_load_n(&os->rx.next, __ATOMIC_RELAXED) %
			      OS_PORTS_MAX;
		int index, ret;

		/* the first ready port from @at on, around the end */
		ready = ready >> at | ready << (-at % OS_PORTS_MAX);
		index = (__builtin_ctzll(ready) + (int)at) % OS_PORTS_MAX;
		ready = ready << at | ready >> (-at % OS_PORTS_MAX);
		ret = udp_recv_port(os, index, iov, n, rx, mode);
		if (ret != 0) {
			__atomic_store_n(&os->rx.next,
					 (unsigned)index + (mode == OS_TAKE),
					 __ATOMIC_RELAXED);
			__atomic_store_n(&os->rx.hot, index, __ATOMIC_RELAXED);
			return ret;
		}
		ready &= ~(UINT64_C(1) << index);
		__atomic_store_n(&os->rx.ready, ready, __ATOMIC_RELAXED);
	}
	return 0;
}

/* Most times one port speaks: look there, which is one system call, and at all
 * of them, which is two, only now and then, so that none waits behind it. */
static int udp_recv_any(struct os *os, struct iovec *iov, unsigned n,
			struct os_rx *rx, enum os_recv_mode mode)
{
	unsigned streak = __atomic_load_n(&os->rx.streak, __ATOMIC_RELAXED);
	unsigned vain = __atomic_load_n(&os->rx.vain, __ATOMIC_RELAXED);
	int ret;

	if (streak >= UDP_STREAK || vain >= UDP_VAIN) {
		__atomic_store_n(&os->rx.streak, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&os->rx.vain, 0, __ATOMIC_RELAXED);
		return udp_look(os) ? udp_recv_ready(os, iov, n, rx, mode) : 0;
	}
	rx->all = false;
	if (__atomic_load_n(&os->rx.ready, __ATOMIC_RELAXED))
		ret = udp_recv_ready(os, iov, n, rx, mode);
	else
		ret = udp_recv_port(
			os, __atomic_load_n(&os->rx.hot, __ATOMIC_RELAXED), iov,
			n, rx, mode);
	if (ret != 0)
		__atomic_store_n(&os->rx.streak, streak + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&os->rx.vain, ret != 0 ? 0 : vain + 1,
			 __ATOMIC_RELAXED);
	return ret;
}

/**
 * os_recv() - See net.h.
 * @n: at most OS_IOV_MAX
 */
int os_recv(struct os *os, struct iovec *iov, unsigned n, struct os_rx *rx,
	    enum os_recv_mode mode)
{
	unsigned ports;
	int only;

	rx->all = true;
	if (rx->port >= 0)
		return udp_recv_port(os, rx->port, iov, n, rx, mode);
	ports = ports_open(os, &only);
	if (ports == 0)
		return 0;
	if (ports == 1)
		return udp_recv_port(os, only, iov, n, rx, mode);
	return udp_recv_any(os, iov, n, rx, mode);
}

/* --- errors -------------------------------------------------------------- */

static bool udp_error_parse(struct msghdr *m, int *err, uint32_t *mtu)
{
	struct sock_extended_err ee;
	struct cmsghdr *c;

	for (c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if ((c->cmsg_level != IPPROTO_IP ||
		     c->cmsg_type != IP_RECVERR) &&
		    (c->cmsg_level != IPPROTO_IPV6 ||
		     c->cmsg_type != IPV6_RECVERR))
			continue;
		memcpy(&ee, CMSG_DATA(c), sizeof(ee));
		*err = (int)ee.ee_errno;
		*mtu = ee.ee_errno == EMSGSIZE ? ee.ee_info : 0;
		return ee.ee_origin != SO_EE_ORIGIN_TIMESTAMPING;
	}
	return false;
}

/* Return: 1, or 0 when this socket's queue is empty. */
static int udp_error_port(struct os *os, int index, struct endpoint *dst,
			  int *err, uint32_t *mtu)
{
	const int fd = port_fd(os, index);
	union udp_err_ctl ctl;
	union udp_addr to;

	/* Before reading: what arrives meanwhile raises it again. */
	__atomic_fetch_and(&os->rx.errors, ~(UINT64_C(1) << index),
			   __ATOMIC_RELAXED);
	for (;;) {
		struct msghdr m = {.msg_name = &to,
				   .msg_namelen = sizeof(to),
				   .msg_control = &ctl,
				   .msg_controllen = sizeof(ctl)};

		if (sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_ERRQUEUE) < 0)
			return 0;
		if (m.msg_namelen == 0 || !udp_error_parse(&m, err, mtu))
			continue;
		*dst = endpoint_from(&to);
		udp_error_note(os, index);
		return 1;
	}
}

/**
 * os_recv_error() - See net.h.
 * @mtu: with EMSGSIZE the path's IP MTU, else 0
 */
int os_recv_error(struct os *os, struct endpoint *dst, int *err, uint32_t *mtu)
{
	uint64_t errors = __atomic_load_n(&os->rx.errors, __ATOMIC_RELAXED);

	for (; errors != 0; errors &= errors - 1) {
		int i = __builtin_ctzll(errors);

		if (port_fd(os, i) >= 0 &&
		    udp_error_port(os, i, dst, err, mtu) == 1)
			return 1;
	}
	return 0;
}

/* --- sending ------------------------------------------------------------- */

/* What a send says of itself: source address, class, hops, segment size. */
union udp_tx_ctl {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
		 2 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint16_t))];
};

static size_t udp_put(char *at, int level, int type, const void *data,
		      size_t len)
{
	struct cmsghdr *c = (struct cmsghdr *)at;

	memset(at, 0, CMSG_SPACE(len));
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), data, len);
	return CMSG_SPACE(len);
}

static size_t udp_put_source(const struct os_tx *tx, char *at)
{
	struct in6_pktinfo pi6 = {.ipi6_ifindex = 0};
	struct in_pktinfo pi4 = {.ipi_ifindex = 0};

	if (ipaddr_is_any(&tx->src))
		return 0;
	/* Also on an IPv6 socket: 100 ns less than as a mapped address. */
	if (ipaddr_is_v4(&tx->dst.ip)) {
		memcpy(&pi4.ipi_spec_dst, &tx->src.b[12], 4);
		return udp_put(at, IPPROTO_IP, IP_PKTINFO, &pi4, sizeof(pi4));
	}
	memcpy(&pi6.ipi6_addr, tx->src.b, sizeof(tx->src.b));
	pi6.ipi6_ifindex = tx->dst.scope;
	return udp_put(at, IPPROTO_IPV6, IPV6_PKTINFO, &pi6, sizeof(pi6));
}

/* Nothing where the socket's own is meant, which is 0 and what the host has. */
static size_t udp_put_mark(const struct os_tx *tx, char *at)
{
	const bool v4 = ipaddr_is_v4(&tx->dst.ip);
	const int tclass = tx->mark.tclass, hops = tx->mark.hops;
	const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	size_t n = 0;

	if (tclass)
		n += udp_put(at, level, v4 ? IP_TOS : IPV6_TCLASS, &tclass,
			     sizeof(tclass));
	if (hops)
		n += udp_put(at + n, level, v4 ? IP_TTL : IPV6_HOPLIMIT, &hops,
			     sizeof(hops));
	return n;
}

/* Return: 0 or -errno of this very send. */
static int udp_sendmsg(struct os *os, int index, const struct msghdr *m)
{
	ssize_t n = -EAGAIN;

	for (int i = 0; i < UDP_RETRIES; i++) {
		n = sys_sendmsg(os->rx.port[index].fd, m, MSG_DONTWAIT);
		if (n >= 0)
			return 0;
		if (n == -EAGAIN || n == -EFAULT || n == -EBADF ||
		    n == -EINVAL || n == -EIO || n == -ENOBUFS)
			break;
		if (n != -EINTR)
			udp_error_note(os, index);
	}
	if (n == -ENOTSOCK) /* closed by the program, number reused */
		return -EBADF;
	return n == -ENOBUFS ? -EAGAIN : (int)n;
}

/* A cursor over the pieces of a send. */
struct udp_cut {
	const struct iovec *iov;
	unsigned niov, at;
	size_t off;
};

/* Collect the next @seg bytes. Return: how many pieces. */
static unsigned udp_cut_next(struct udp_cut *c, size_t seg, struct iovec *out,
			     unsigned max)
{
	unsigned n = 0;

	while (seg > 0 && c->at < c->niov && n < max) {
		const struct iovec *v = &c->iov[c->at];
		size_t len = MIN(v->iov_len - c->off, seg);

		out[n].iov_base = (char *)v->iov_base + c->off;
		out[n].iov_len = len;
		n += len > 0;
		seg -= len;
		c->off += len;
		if (c->off == v->iov_len) {
			c->at++;
			c->off = 0;
		}
	}
	return n;
}

/* One by one, where the kernel does not cut. If one fails and those before it have gone
 * out, the rest is like lost: nothing that left may be taken for unsent.
 */
static int udp_send_cut(struct os *os, int index, const struct msghdr *m,
			const struct os_tx *tx, size_t total)
{
	struct udp_cut cut = {.iov = tx->iov, .niov = tx->niov};
	struct iovec piece[64];
	struct msghdr one = *m;
	size_t sent = 0;
	int ret = 0;

	one.msg_iov = piece;
	while (sent < total) {
		one.msg_iovlen = udp_cut_next(&cut, tx->seg, piece,
					      ARRAY_SIZE(piece));
		ret = udp_sendmsg(os, index, &one);
		if (ret != 0)
			break;
		sent += tx->seg;
	}
	return sent ? 0 : ret;
}

static size_t udp_total(const struct os_tx *tx)
{
	size_t total = 0;

	for (unsigned i = 0; i < tx->niov; i++)
		total += tx->iov[i].iov_len;
	return total;
}

/* By the connected socket. false: it cannot, or something is wrong with it or
 * the peer, and the other one finds out what. */
static bool udp_send_line(const struct os *os, const struct os_tx *tx,
			  size_t total, int *ret)
{
	uint16_t seg = (uint16_t)tx->seg;
	union udp_tx_ctl ctl;
	struct msghdr m = {.msg_iov = tx->iov, .msg_iovlen = tx->niov};
	ssize_t n;

	if (total > tx->seg && !os->offload.gso)
		return false;
	if (total > tx->seg) {
		m.msg_control = &ctl;
		m.msg_controllen = udp_put(ctl.buf, IPPROTO_UDP, UDP_SEGMENT,
					   &seg, sizeof(seg));
	}
	n = sys_sendmsg(tx->line, &m, MSG_DONTWAIT);
	*ret = n >= 0 ? 0 : (int)n;
	return n >= 0 || n == -EAGAIN || n == -EFAULT;
}

/**
 * os_send() - See net.h.
 * One segment may consist of at most 64 pieces.
 * Return: also -EHOSTUNREACH, -EPERM (a filter), -EBADF (the program closed our
 * descriptors). Where segments go out one by one, 0 if the first has.
 */
int os_send(struct os *os, const struct os_tx *tx)
{
	uint16_t seg = (uint16_t)tx->seg;
	size_t source, total = 0;
	union udp_tx_ctl ctl;
	union udp_addr to;
	struct msghdr m = {.msg_name = &to,
			   .msg_control = &ctl,
			   .msg_iov = tx->iov,
			   .msg_iovlen = tx->niov};
	int ret;

	if (tx->seg > 0)
		total = udp_total(tx);
	if (tx->line > 0 && udp_send_line(os, tx, total, &ret))
		return ret;
	m.msg_namelen = endpoint_to(os, &tx->dst, &to);
	if (m.msg_namelen == 0)
		return -ENETUNREACH;
	source = udp_put_source(tx, ctl.buf);
	source += udp_put_mark(tx, ctl.buf + source);
	m.msg_controllen = source;
	if (total <= tx->seg)
		return udp_sendmsg(os, tx->port, &m);
	if (os->offload.gso) {
		m.msg_controllen += udp_put(ctl.buf + source, IPPROTO_UDP,
					    UDP_SEGMENT, &seg, sizeof(seg));
		ret = udp_sendmsg(os, tx->port, &m);
		/* A device that cannot checksum: EIO. A path MTU that shrank:
		 * EINVAL; single packets then say EMSGSIZE.
		 */
		if (ret != -EIO && ret != -EINVAL)
			return ret;
		m.msg_controllen = source;
	}
	return udp_send_cut(os, tx->port, &m, tx, total);
}
