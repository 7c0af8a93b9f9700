/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rtnl.h: interfaces and addresses by rtnetlink(7). */
#ifndef NOPIN_OS_RTNL_H
#define NOPIN_OS_RTNL_H

#include <stddef.h>
#include <stdint.h>

struct os_net;

/** rtnl_open() - Return: a socket that hears of @groups, 0: only answers; -errno. */
int rtnl_open(int groups);
/**
 * rtnl_read() - Read all interfaces and addresses.
 * @fd:	of rtnl_open(0), or -errno
 * Return: 0; -errno, @net is empty then.
 */
int rtnl_read(int fd, struct os_net *net);
/**
 * rtnl_parse() - Append what an answer to the dump @seq says.
 * Return: 0: there is more to come; 1: that was all; -EINTR: something changed
 * meanwhile, ask again; -EBADMSG: cut short; what the kernel answered.
 */
int rtnl_parse(struct os_net *net, const void *buf, size_t len, uint32_t seq);
/** rtnl_watch() - Return: a socket that becomes readable with each change; -errno. */
int rtnl_watch(void);
/** rtnl_drain() - Throw away what was told. Return: how many times; -errno. */
int rtnl_drain(int fd);

#endif
