/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* os.h: one NIC's host. */
#ifndef NOPIN_OS_OS_H
#define NOPIN_OS_OS_H

#include "os/door.h"
#include "os/kept.h"
#include "os/lane.h"
#include "os/name.h"
#include "os/net.h"

#include <pthread.h>

struct board;
struct pagers;

enum {
	OS_REGIONS_MAX = 64, /* os_memory() calls of one NIC */
	OS_LINE_SPARES = 4, /* sockets to connect, of either family */
};

/**
 * struct os_port - One receive socket.
 * @fd:		-1 when the index is free
 * @ovfl:	last SO_RXQ_OVFL value
 */
struct os_port {
	int fd;
	uint16_t port;
	uint32_t ovfl;
};

/**
 * struct os_region - What one os_memory() call made.
 * @file:	it is part of the memfd, from @off on
 */
struct os_region {
	uint8_t *base;
	uint64_t bytes, off;
	bool file;
};

/** struct os_memory - What os_memory() made; published by @nregions. */
struct os_memory {
	int fd;
	struct os_region region[OS_REGIONS_MAX];
	unsigned nregions;
	uint64_t bytes;
};

/**
 * struct os_rx_ports - Ports, and in which order they are looked at.
 * @only:	the index in use if nports == 1
 * @next:	where the next look begins
 * @streak:	receives since the last look at all ports
 * @vain:	looks at @hot alone since then
 * @hot:	the port that spoke last
 * @ready:	bit per port that had packets when last looked
 * @errors:	bit per port that reported an error os_recv_error() has not read
 */
struct os_rx_ports {
	struct os_port port[OS_PORTS_MAX];
	unsigned nports, next, streak, vain;
	int only, hot;
	uint64_t ready, errors, drops;
};

/** struct os_ask - What addresses are read by; @again: it stays open. */
struct os_ask {
	pthread_mutex_t lock;
	bool again;
	struct fd_kept rtnl, v4, v6;
};

/**
 * struct os_news - The descriptor that says that addresses changed; atomic.
 * @fd:		or -1: the host does not tell of changes
 * @changed:	says @fd, since os_net_changed()
 * @dev, @ino:	what @fd is; written before it
 */
struct os_news {
	int fd;
	bool changed;
	uint64_t dev, ino;
};

/**
 * struct os_ctl - The control socket.
 * @fd:		or -1; @client: the process that was let in, or -1
 * @after_ns:	no process is let in before
 * @asked:	atomic
 */
struct os_ctl {
	int fd, client;
	uint64_t after_ns;
	bool asked;
};

/**
 * struct os_claim - The name that we hold and share.
 * @fd:		or -1; @port_fd: what holds the port that goes with it, or less than 0
 * @after_ns:	no process is told before
 */
struct os_claim {
	int fd, port_fd;
	uint64_t secret, after_ns;
	unsigned guests;
	struct os_guest guest[OS_GUESTS_MAX];
};

/**
 * struct os_spares - Sockets that wait to be used: one that is opened later takes the
 * program's lowest number.
 * @line:	IPv4, IPv6
 * @used:	since os_prepare_due(); atomic
 */
struct os_spares {
	struct fd_kept port, name[OS_SPARES], line[2][OS_LINE_SPARES];
	bool used;
};

/**
 * struct os_held - The connection to the holder of a name that is not ours.
 * @fd:		or -1; atomic, as @spoke is
 * @dev, @ino:	what it is
 */
struct os_held {
	int fd;
	uint64_t dev, ino;
	bool spoke;
};

/**
 * struct os_offload - Several packets a system call (port.c, udp.c).
 * @gro, @gso:	received so, sent so
 * @no_gro:	not to be received so
 */
struct os_offload {
	bool no_gro, gro, gso;
};

/**
 * struct os - One NIC's host. What is not in a group is written by os_open() only.
 * @alive:	a page of its own, 1 here and wiped to 0 in a forked child
 * @family:	AF_INET6 (both families) or AF_INET
 * @libc_fd:	signals_libc_open(), or -1
 * @board:	or NULL
 * @lock:	of @memory and @spares, and for the control path of @rx, of which others
 *		use what is there
 * @door, @ctl, @claim: the thread of the door's, and of those that call it; descriptors are
 *		numbers of its own
 * @closed:	the program closed descriptors of ours; atomic, as @news is: background and
 *		standby thread
 * @holder:	of the thread that has the engine lock
 */
struct os {
	char *addr_filter;
	struct os_offload offload;
	bool closed;
	int family, pid;
	uint64_t *alive;
	uint64_t forks_at_open;
	int kick_fd, ports_ep, libc_fd;
	struct pagers *pagers;
	struct board *board;
	size_t rcvbuf;
	pthread_mutex_t lock;
	struct os_memory memory;
	struct os_rx_ports rx;
	struct os_spares spares;
	struct os_ask ask;
	struct os_news news;
	struct os_door door;
	struct os_ctl ctl;
	struct os_claim claim;
	struct os_held holder;
	struct os_lanes lanes;
};

/** spares_fill() - Open what is not kept of @spare[@n], each by @open(@arg). Context: as
 * os_prepare(). */
void spares_fill(struct os *os, struct fd_kept *spare, unsigned n,
		 int (*open)(int arg), int arg);

/** spares_take() - Return: one of @spare[@n], the caller's now; -1: none is left.
 * Then, too, os_prepare() is due. */
int spares_take(struct os *os, struct fd_kept *spare, unsigned n);

/** spares_drop() - Close what is kept of @spare[@n]. */
void spares_drop(struct fd_kept *spare, unsigned n);

#endif
