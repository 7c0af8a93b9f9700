/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* port.h: the UDP sockets of a NIC. */
#ifndef NOPIN_OS_PORT_H
#define NOPIN_OS_PORT_H

#include "os/os.h"

/** port_fd() - Return the socket of port @index, -1 if there is none. */
static inline int port_fd(const struct os *os, int index)
{
	/* Pairs with the release in port_install(): the rest of the port. */
	return __atomic_load_n(&os->rx.port[index].fd, __ATOMIC_ACQUIRE);
}

/** ports_open() - Count the open ports; if one, @only is that. */
static inline unsigned ports_open(const struct os *os, int *only)
{
	unsigned n = __atomic_load_n(&os->rx.nports, __ATOMIC_ACQUIRE);

	*only = __atomic_load_n(&os->rx.only, __ATOMIC_RELAXED);
	return n;
}

int port_probe(struct os *os, bool no_gso);
/** line_prepare() - Open the sockets for os_connect() that were used. */
void line_prepare(struct os *os);
void lines_close(struct os *os);

#endif
