/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* net.h: addresses of the host, and datagrams. The rules are in run.h.
 */
#ifndef NOPIN_OS_NET_H
#define NOPIN_OS_NET_H

#include "base/addr.h"

#include <sys/uio.h>

struct os;

/**
 * struct os_addr - A local address that can be a GID.
 * @mtu:	of the interface, IP bytes
 * @up:		so is the interface
 */
struct os_addr {
	struct ipaddr ip;
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool up, loopback, link_local, default_route;
	char ifname[16];
};

/**
 * struct os_link - An interface.
 * @running:	packets can go out
 */
struct os_link {
	uint32_t ifindex;
	uint32_t mtu;
	uint8_t mac[6];
	bool up, running, loopback;
	char ifname[16];
};

/**
 * struct os_net - Interfaces, and those of their addresses that os_config.addr
 * allows, in the order of design D4: the default route's IPv4 address, other global
 * ones, link-local, loopback last; interfaces that are down last of all.
 */
struct os_net {
	unsigned naddrs, nlinks;
	struct os_addr *addr;
	struct os_link *link;
};

/**
 * os_net_read() - Read what there is now. To be freed, if nothing failed.
 * Return: 0; -errno, @net is empty then. Context: takes some 100 us.
 */
int os_net_read(struct os *os, struct os_net *net);
void os_net_free(struct os_net *net);

/**
 * os_net_watch() - Let os_wait() of the background thread hear of changes from now on.
 * Return: 0; -errno: the host does not tell us.
 */
int os_net_watch(struct os *os);
/** os_net_changed() - Did it, since the last call? Any thread. */
bool os_net_changed(struct os *os);

/**
 * os_addr_check() - Check that everything in os_config.addr names an address or an
 * interface that is up.
 * @valid: if not, set to what could be named, with blanks between; cut if need
 *	be
 * Return: 0; -EINVAL: it does not; -errno: they cannot be read, @valid is not set.
 */
int os_addr_check(struct os *os, char *valid, size_t size);

/* --- datagrams ---------------------------------------------------------- */

enum {
	OS_PORTS_MAX = 64, /* receive ports of one NIC */
	OS_SEGS_MAX = 64, /* segments of one send, Linux < 6.9 */
	OS_SEND_MAX = 65000, /* bytes of one send */
	OS_IOV_MAX = 256, /* pieces of one send or receive */
};

/**
 * os_port_open() - Bind one more UDP port, on all addresses, IPv4 and IPv6.
 * @want:	port number, or 0 for a random free one in 49152..65535
 * Return: index of the port in [0, OS_PORTS_MAX), or -EADDRINUSE, -EMFILE, ...
 */
int os_port_open(struct os *os, uint16_t want, uint16_t *port);
void os_port_close(struct os *os, int index);

/** os_port_marks() - Let os_recv() set os_rx.mark of what comes to that port from now
 * on. */
void os_port_marks(struct os *os, int index);

/** os_rcvbuf() - Return the bytes that the kernel lets one port hold (real SO_RCVBUF). */
size_t os_rcvbuf(struct os *os);

/**
 * struct os_rx - One receive: @len bytes, cut every @seg bytes (the last
 * segment may be shorter); @seg == @len for a single datagram.
 * @mark:	of the IP header; all zero: not known
 * @kernel_drops: what SO_RXQ_OVFL said, ever, all ports together
 * @all: nothing there means: at no port; else only at the one that spoke last
 */
struct os_rx {
	struct endpoint src;
	struct ipaddr dst;
	struct ip_mark mark;
	uint16_t dport;
	uint32_t len, seg;
	uint64_t kernel_drops;
	int port; /* index, in: try this one only (-1: all); out: which */
	bool all;
};

enum os_recv_mode { OS_TAKE, OS_PEEK };

/**
 * os_recv() - Take, or look at, what came in; never blocks.
 * OS_PEEK fills @iov, tells the whole length, and leaves the packet; a
 * following OS_TAKE with rx->port as it was returned gets the same packet. What
 * does not fit into the @iov of an OS_TAKE is lost and not in rx->len.
 * Of several ports that which spoke last is looked at most often, the others
 * after a few times in vain.
 * Return: 1; 0 when there is nothing; -EFAULT when a piece of @iov could not
 * be written (the whole burst is lost then); -EBADF: the program closed our
 * descriptors.
 * Context: one thread at a time (the receive token).
 */
int os_recv(struct os *os, struct iovec *iov, unsigned n, struct os_rx *rx,
	    enum os_recv_mode mode);

/**
 * os_recv_error() - Read the next ICMP error that came for something we sent.
 * Return: 1: @dst was unreachable (@err: ECONNREFUSED, EMSGSIZE with @mtu, ..);
 * 0: none. Context: costs nothing unless a call met an error; call it as often
 * as os_recv(), since unread errors take up receive buffer and wake os_wait().
 */
int os_recv_error(struct os *os, struct endpoint *dst, int *err, uint32_t *mtu);

/**
 * struct os_tx - One send: pieces that are cut every @seg bytes (0: do not).
 * @src:	source address, one of ours
 * @port:	index of the port to send from
 * @line:	from os_connect() to @dst, with this @mark; or 0
 */
struct os_tx {
	struct endpoint dst;
	struct ipaddr src;
	struct ip_mark mark;
	int port, line;
	struct iovec *iov;
	unsigned niov;
	uint32_t seg;
};

/**
 * os_connect() - Open a quicker way from @src to @dst, for sending only. Packets
 * that go that way have another source port, and the kernel numbers IPv4 packets as
 * it likes: not for standard peers.
 * Return: for os_tx.line, or 0: none. Context: any; does not block.
 */
int os_connect(struct os *os, const struct ipaddr *src,
	       const struct endpoint *dst, struct ip_mark mark);
void os_disconnect(struct os *os, int line);

/**
 * os_send() - Send; pieces may point to application memory.
 * Where GSO is refused the segments are sent one by one.
 * Return: 0; -EFAULT: nothing was sent; -EAGAIN: socket full, nothing sent;
 * -EMSGSIZE: larger than the path MTU; -ECONNREFUSED, -ENETUNREACH, ...
 */
int os_send(struct os *os, const struct os_tx *tx);

/** os_gso() - Does one send make several packets here (as probed)? */
bool os_gso(struct os *os);

/** os_gro() - Are bursts received whole here (as probed)? */
bool os_gro(struct os *os);

#endif
