/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.c: the clock of the host. */
#include "os/clock.h"
#include "base/timerq.h"

uint64_t clock_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	/* + 1: never 0, also in the first nanosecond after boot. */
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1;
}

uint64_t clock_cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

struct timespec *until(uint64_t deadline_ns, uint64_t now_ns,
		       struct timespec *ts)
{
	uint64_t ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;

	if (deadline_ns == TIME_NEVER)
		return NULL;
	ts->tv_sec = (time_t)(ns / 1000000000u);
	ts->tv_nsec = (long)(ns % 1000000000u);
	return ts;
}
