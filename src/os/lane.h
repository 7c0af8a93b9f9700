/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lane.h: small memfds through which application memory is read. */
#ifndef NOPIN_OS_LANE_H
#define NOPIN_OS_LANE_H

#include <pthread.h>
#include <stdint.h>

struct os;

enum {
	OS_LANES_MAX = 16, /* gathers at once before the slower way is taken */
	OS_LANE_BYTES = 65536,
	OS_STRIPES = 64, /* locks of the atomics, power of two */
};

/**
 * struct os_lane - A small memfd and its mapping, used by one copy at a time.
 * @buf: NULL until it was first needed
 */
struct os_lane {
	int fd;
	uint8_t *buf;
};

/**
 * struct os_lanes - What movers use; atomic, but for what a lane is to the thread that
 * is busy with it.
 * @busy:	bit per lane in use
 * @most:	that were busy at once
 * @bin:	it is never read; movers write it at once
 */
struct os_lanes {
	uint32_t busy;
	unsigned most;
	struct os_lane lane[OS_LANES_MAX];
	pthread_mutex_t stripe[OS_STRIPES];
	uint8_t bin[512];
};

/** lane_get() - Take a lane. Return: its index; -EAGAIN: all are in use; -errno: there is
 * none: no descriptor, or the program set itself a limit of the size of files. */
int lane_get(struct os *os);

/** lane_wait() - Take a lane as lane_get() does, but wait while all are in use. */
int lane_wait(struct os *os);
void lane_put(struct os *os, int lane);
/** lane_prepare() - Make one more than were ever in use at once. */
void lane_prepare(struct os *os);
void lanes_close(struct os *os);

#endif
