/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.h: the clock of the host. */
#ifndef NOPIN_OS_CLOCK_H
#define NOPIN_OS_CLOCK_H

#include <stdint.h>
#include <time.h>

struct timespec;

uint64_t clock_ns(void);

/** clock_cpu_ns() - Return the CPU time that the calling thread has used. */
uint64_t clock_cpu_ns(void);

/** until() - Compute the time from now to @deadline_ns. Return: @ts, NULL for never. */
struct timespec *until(uint64_t deadline_ns, uint64_t now_ns,
		       struct timespec *ts);

enum { WAIT_CLOSED_NS = 50 * 1000 * 1000 }; /* do not spin on what is closed */

#endif
