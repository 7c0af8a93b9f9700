/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clock.c: the host's clock without the time that the test did not have its CPU.
 *
 * These tests take two NICs step by step and look at what each step does. What it does
 * depends on the clock: a page is known for 10 ms, an ACK is owed for 20 us, a retry
 * follows a timeout. Another program that has the CPU between two steps would decide
 * such a test. So time here is the host's, but between two looks at the clock it moves
 * by LOOK_NS at most, and by as much as a call that waits was asked to wait. A test of
 * what is due in 20 us takes less than the usual LOOK_NS (meson.build).
 *
 * The definitions take the place of those in the library: by its dynamic symbols, or,
 * where the test links the archives (WRAPPED), by the linker's --wrap.
 */
#include "os/clock.h"
#include "base/check.h"
#include "base/timerq.h"
#include "os/os.h"
#include "os/run.h"
#include "os/wait.h"

#include <dlfcn.h>
#include <pthread.h>

#ifndef LOOK_NS
#define LOOK_NS 50000
#endif

#ifdef WRAPPED
#define PUT(function) __wrap_##function
#else
#define PUT(function) function
#endif

uint64_t PUT(clock_ns)(void);
uint64_t PUT(os_now)(struct os *os);
void PUT(os_wait)(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		  int extra_fd);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t virtual_ns, looked_ns;

/* Return: the clock, which moved by no more than @most. */
static uint64_t look(uint64_t most)
{
	struct timespec ts;
	uint64_t host, ret;

	pthread_mutex_lock(&lock);
	clock_gettime(CLOCK_MONOTONIC, &ts);
	host = (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec + 1;
	if (!looked_ns)
		virtual_ns = looked_ns = host;
	virtual_ns += MIN(host - looked_ns, most);
	looked_ns = host;
	ret = virtual_ns;
	pthread_mutex_unlock(&lock);
	return ret;
}

uint64_t PUT(clock_ns)(void)
{
	return look(LOOK_NS);
}

uint64_t PUT(os_now)(struct os *os)
{
	(void)os;
	return look(LOOK_NS);
}

#ifdef WRAPPED
void __real_os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd);
#define real_os_wait __real_os_wait
#else
static void real_os_wait(struct os *os, enum os_wait_for what,
			 uint64_t deadline_ns, int extra_fd)
{
	void (*wait)(struct os *, enum os_wait_for, uint64_t, int);

	*(void **)&wait = dlsym(RTLD_NEXT, "os_wait");
	wait(os, what, deadline_ns, extra_fd);
}
#endif

void PUT(os_wait)(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		  int extra_fd)
{
	uint64_t now = look(LOOK_NS);

	real_os_wait(os, what, deadline_ns, extra_fd);
	if (deadline_ns != TIME_NEVER && deadline_ns > now)
		look(deadline_ns - now);
}
