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
	OS_STRIPES = 64, /* locks of the atomics, power of two */
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

/**
 * struct os - One NIC's host.
 * @alive:	a page of its own, 1 here and wiped to 0 in a forked child
 * @family:	AF_INET6 (both families) or AF_INET
 * @ready:	bit per port that had packets when last looked
 * @errors:	bit per port that reported an error os_recv_error() has not read
 * @lanes_busy:	bit per lane in use
 */
struct os {
	/* written by os_open() only */
	char *addr_filter;
	bool no_gro, gro, gso;
	int family;
	int pid;
	uint64_t *alive;
	uint64_t forks_at_open;
	int memfd;
	int kick_fd, ports_ep;
	int libc_fd; /* signals_libc_open(), or -1 */
	struct pagers *pagers;
	struct board *board; /* or NULL */

	/* control path, under @lock; regions are published by @nregions */
	pthread_mutex_t lock;
	struct os_region region[OS_REGIONS_MAX];
	unsigned nregions;
	uint64_t mem_bytes;
	size_t rcvbuf;

	/* receivers and senders; ports come under @lock while others use
	 * those that are there
	 */
	struct os_port port[OS_PORTS_MAX];
	unsigned nports;
	int only; /* the index in use if nports == 1 */
	unsigned next; /* where the next look begins */
	unsigned streak; /* receives since the last look at all ports */
	unsigned vain; /* looks at @hot alone since then */
	int hot; /* the port that spoke last */
	uint64_t ready, errors;
	uint64_t drops;

	/* whoever reads addresses, under @ask_lock */
	pthread_mutex_t ask_lock;
	bool ask_again; /* so what is asked by stays open */
	struct fd_kept ask_rtnl, ask_v4, ask_v6;

	/* background and standby thread; atomic */
	bool closed; /* the program closed descriptors of ours */
	int net_fd; /* or -1: nobody tells of changes */
	bool net_changed; /* says @net_fd, since os_net_changed() */
	uint64_t net_dev, net_ino; /* what @net_fd is; written before it */

	/* the thread of the door, and whoever calls it; descriptors are numbers of
	 * its own */
	struct os_door door;
	int ctl_fd; /* or -1 */
	int ctl_client; /* who was let in, or -1 */
	uint64_t ctl_after_ns; /* nobody is let in before */
	bool ctl_asked; /* atomic */
	int claim_fd; /* the name that we hold and share, or -1 */
	int claim_port_fd; /* the port that goes with it, or less than 0 */
	uint64_t claim_secret;
	uint64_t claim_after_ns; /* nobody is told before */
	unsigned guests;
	struct os_guest guest[OS_GUESTS_MAX];

	/* under @lock: sockets that wait to be used, as whoever opens one later
	 * takes the program's lowest number */
	struct fd_kept port_spare, name_spare[OS_SPARES];
	struct fd_kept line_spare[2][OS_LINE_SPARES]; /* IPv4, IPv6 */
	bool spare_used; /* since os_prepare_due(); atomic */

	/* whoever has the engine lock; @holder_fd is atomic */
	int holder_fd; /* to that of a name that we do not hold, or -1 */
	uint64_t holder_dev, holder_ino; /* what it is */
	bool holder_spoke; /* atomic */

	/* movers; atomic, but for what a lane is to that which is busy with it */
	uint32_t lanes_busy;
	unsigned lanes_most; /* that were busy at once */
	struct os_lane lane[OS_LANES_MAX];
	pthread_mutex_t stripe[OS_STRIPES];
	uint8_t bin[512]; /* nobody reads it; movers write it at once */
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
