/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lane.h: small memfds through which application memory is read. */
#ifndef NOPIN_OS_LANE_H
#define NOPIN_OS_LANE_H

#include <stdint.h>

struct os;

enum {
	OS_LANES_MAX = 16, /* gathers at once before the slower way is taken */
	OS_LANE_BYTES = 65536,
};

/**
 * struct os_lane - A small memfd and its mapping, used by one copy at a time.
 * @buf: NULL until it was first needed
 */
struct os_lane {
	int fd;
	uint8_t *buf;
};

/** lane_get() - Return: a lane's index; -EAGAIN: all are in use; -errno: there is none:
 * no descriptor, or the program set itself a limit of the size of files. */
int lane_get(struct os *os);

/** lane_wait() - The same, but waits while all are in use. */
int lane_wait(struct os *os);
void lane_put(struct os *os, int lane);
/** lane_prepare() - Make one more than were ever in use at once. */
void lane_prepare(struct os *os);
void lanes_close(struct os *os);

#endif
