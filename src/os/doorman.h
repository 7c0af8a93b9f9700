/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorman.h: the thread at the door. */
#ifndef NOPIN_OS_DOORMAN_H
#define NOPIN_OS_DOORMAN_H

struct os;

/** door_open() - Start the thread, if there is none. Return: 0 or -errno. Context:
 * a thread of the program's, which sees its lowest free number taken for a moment. */
int door_open(struct os *os);

/** door_close() - End it. Its descriptors are closed when this returns. */
void door_close(struct os *os);

#endif
