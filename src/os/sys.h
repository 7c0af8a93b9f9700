/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys.h: the system calls os/ makes, raw. glibc's own wrappers of most of them
 * are cancellation points and all of them change errno; syscall(2) is neither
 * a cancellation point nor, with errno put back, visible in errno (design D9,
 * D13). Every function returns what the kernel did: a result or -errno.
 *
 * Everything goes through syscall(), so a test can replace that one symbol to
 * refuse a feature or to let the n-th call fail.
 */
#ifndef NOPIN_OS_SYS_H
#define NOPIN_OS_SYS_H

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

struct epoll_event;
struct rusage;

static_assert(sizeof(long) == 8, "preadv and ppoll are called as on 64 bits");

/** sys_call() - Make any system call; errno is left alone. Where it succeeds nothing is
 * written to thread-local storage, which a fork() has made copy-on-write.
 */
static inline long sys_call(long nr, long a, long b, long c, long d, long e,
			    long f)
{
	int keep = errno;
	long ret = syscall(nr, a, b, c, d, e, f);

	if (ret >= 0)
		return ret;
	ret = -errno;
	errno = keep;
	return ret;
}

#define SYS_PTR(p) ((long)(uintptr_t)(p))

/** sys_denied() - Did a filter of system calls (seccomp) answer, or an old kernel? */
static inline bool sys_denied(long ret)
{
	return ret == -EPERM || ret == -ENOSYS || ret == -EACCES;
}

static inline int sys_ppoll(struct pollfd *fds, unsigned n,
			    struct timespec *timeout)
{
	return (int)sys_call(SYS_ppoll, SYS_PTR(fds), n, SYS_PTR(timeout), 0, 8,
			     0);
}

static inline int sys_epoll_ready(int ep, struct epoll_event *ev, int max)
{
	return (int)sys_call(SYS_epoll_pwait, ep, SYS_PTR(ev), max, 0, 0, 8);
}

static inline int sys_getrusage(int who, struct rusage *ru)
{
	return (int)sys_call(SYS_getrusage, who, SYS_PTR(ru), 0, 0, 0, 0);
}

/** sys_futex_wait() - Sleep while *@word == @seen, at most @rel (or NULL). */
static inline int sys_futex_wait(uint32_t *word, uint32_t seen,
				 const struct timespec *rel)
{
	return (int)sys_call(SYS_futex, SYS_PTR(word), 0x80, seen, SYS_PTR(rel),
			     0, 0);
}

static inline int sys_futex_wake(uint32_t *word, int num)
{
	return (int)sys_call(SYS_futex, SYS_PTR(word), 0x81, num, 0, 0, 0);
}

#endif
