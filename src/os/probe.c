/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.c: system calls that a filter denies (seccomp: systemd's SystemCallFilter=,
 * containers, browsers). Each that the NIC cannot do without is tried once, so that
 * the device says which it is instead of failing, or waiting for ever, at the first
 * packet. Of the others each has its own answer where it is made (sys.h, fd.c, ...).
 *
 * A call is tried with arguments that the kernel itself refuses otherwise, or that ask
 * for nothing, so it does nothing.
 */
#include "os/probe.h"
#include "base/check.h"
#include "base/log.h"
#include "os/sys.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/mman.h>

/** struct probe - @instead: does as well, with the same arguments; or 0 */
struct probe {
	const char *name;
	long nr, instead;
	long a, b, c;
};

static struct timespec at_once;
static uint32_t nobody;
/* Zeroes for all that is pointed to: they are not read, but valgrind would complain. */
static uint64_t zeroes[32];
#define NONE SYS_PTR(zeroes)

#define NEEDS(call, ...)                                                       \
	{                                                                      \
#call, SYS_##call, 0, __VA_ARGS__                              \
	}
#define EITHER(call, or_, ...)                                                 \
	{                                                                      \
#call, SYS_##call, SYS_##or_, __VA_ARGS__                      \
	}

static const struct probe probes[] = {
	NEEDS(mmap, 0, 0, 0),
	NEEDS(madvise, 0, 0, MADV_WIPEONFORK),
	NEEDS(futex, SYS_PTR(&nobody), FUTEX_WAKE_PRIVATE, 1),
	NEEDS(fcntl, -1, F_GETFD, 0),
	NEEDS(eventfd2, 0, -1, 0),
	NEEDS(epoll_create1, -1, 0, 0),
	NEEDS(epoll_ctl, -1, EPOLL_CTL_DEL, -1),
	NEEDS(epoll_pwait, -1, NONE, 1),
	NEEDS(ppoll, 0, 0, SYS_PTR(&at_once)),
	NEEDS(preadv2, -1, NONE, 1),
	NEEDS(socket, -1, 0, 0),
	NEEDS(bind, -1, NONE, 0),
	NEEDS(getsockname, -1, NONE, NONE),
	NEEDS(setsockopt, -1, 0, 0),
	NEEDS(sendmsg, -1, NONE, 0),
	NEEDS(recvmsg, -1, NONE, 0),
	EITHER(pread64, preadv, -1, NONE, 1),
	EITHER(pwritev, pwrite64, -1, NONE, 1),
	EITHER(write, writev, -1, NONE, 1),
};

int probe_calls(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(probes); i++) {
		const struct probe *p = &probes[i];
		long ret = sys_call(p->nr, p->a, p->b, p->c, 0, 0, 0);

		if (sys_denied(ret) && p->instead)
			ret = sys_call(p->instead, p->a, p->b, p->c, 0, 0, 0);
		if (!sys_denied(ret))
			continue;
		log_error("the system call %s is denied here (error %ld): %s",
			  p->name, -ret, "no RDMA without it");
		return (int)ret;
	}
	return 0;
}
