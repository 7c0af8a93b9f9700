/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr.h: changes of what os_net_read() found. */
#ifndef NOPIN_OS_ADDR_H
#define NOPIN_OS_ADDR_H

struct os;

/** net_heard() - Note that addresses changed: there is something to read at os_news.fd.
 * Context: any thread. */
void net_heard(struct os *os);
void net_close(struct os *os);

#endif
