/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ifconf.h: interfaces and addresses without netlink. */
#ifndef NOPIN_OS_IFCONF_H
#define NOPIN_OS_IFCONF_H

struct os_net;

/** ifconf_read() - Read as rtnl_read() does, without netlink.
 * @fd: an IPv4 socket, or -errno */
int ifconf_read(int fd, struct os_net *net);

#endif
