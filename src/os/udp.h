/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* udp.h: receiving from them, and the errors that come back. */
#ifndef NOPIN_OS_UDP_H
#define NOPIN_OS_UDP_H

struct os;

enum { UDP_VAIN = 8 }; /* looks at one port in vain while others may wait */

/** udp_error_note() - Note that os_recv_error() has something to read at port @index. */
void udp_error_note(struct os *os, int index);

#endif
