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
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct epoll_event;
struct rusage;
struct stat;

static_assert(sizeof(long) == 8, "preadv and ppoll are called as on 64 bits");

/** sys_call() - Any system call; errno is left alone. Where it succeeds nothing is
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

static inline int sys_socket(int family, int type, int proto)
{
	return (int)sys_call(SYS_socket, family, type, proto, 0, 0, 0);
}

static inline int sys_bind(int fd, const void *sa, socklen_t len)
{
	return (int)sys_call(SYS_bind, fd, SYS_PTR(sa), (long)len, 0, 0, 0);
}

static inline int sys_connect(int fd, const void *sa, socklen_t len)
{
	return (int)sys_call(SYS_connect, fd, SYS_PTR(sa), (long)len, 0, 0, 0);
}

static inline int sys_getsockname(int fd, void *sa, socklen_t *len)
{
	return (int)sys_call(SYS_getsockname, fd, SYS_PTR(sa), SYS_PTR(len), 0,
			     0, 0);
}

static inline int sys_setsockopt(int fd, int level, int opt, int value)
{
	return (int)sys_call(SYS_setsockopt, fd, level, opt, SYS_PTR(&value),
			     sizeof(value), 0);
}

static inline int sys_getsockopt(int fd, int level, int opt, int *value)
{
	socklen_t len = sizeof(*value);

	return (int)sys_call(SYS_getsockopt, fd, level, opt, SYS_PTR(value),
			     SYS_PTR(&len), 0);
}

static inline ssize_t sys_recvmsg(int fd, struct msghdr *m, int flags)
{
	return sys_call(SYS_recvmsg, fd, SYS_PTR(m), flags, 0, 0, 0);
}

static inline ssize_t sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return sys_call(SYS_sendmsg, fd, SYS_PTR(m), flags, 0, 0, 0);
}

static inline int sys_open(const char *path, int flags)
{
	return (int)sys_call(SYS_openat, AT_FDCWD, SYS_PTR(path),
			     flags | O_CLOEXEC, 0600, 0, 0);
}

static inline int sys_close(int fd)
{
	return (int)sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

static inline int sys_fstat(int fd, struct stat *st)
{
	return (int)sys_call(SYS_fstat, fd, SYS_PTR(st), 0, 0, 0, 0);
}

static inline int sys_stat(const char *path, struct stat *st)
{
	return (int)sys_call(SYS_newfstatat, AT_FDCWD, SYS_PTR(path),
			     SYS_PTR(st), 0, 0, 0);
}

static inline int sys_fcntl(int fd, int cmd, long arg)
{
	return (int)sys_call(SYS_fcntl, fd, cmd, arg, 0, 0, 0);
}

/* Of each two of the following one does what the other does if that is denied, as
 * far as one piece goes: less than was asked for, as ever. */

static inline ssize_t sys_read(int fd, void *buf, size_t len)
{
	const struct iovec v = {buf, len};
	ssize_t n = sys_call(SYS_read, fd, SYS_PTR(buf), (long)len, 0, 0, 0);

	return sys_denied(n) ? sys_call(SYS_readv, fd, SYS_PTR(&v), 1, 0, 0, 0)
			     : n;
}

static inline ssize_t sys_write(int fd, const void *buf, size_t len)
{
	const struct iovec v = {(void *)(uintptr_t)buf, len};
	ssize_t n = sys_call(SYS_write, fd, SYS_PTR(buf), (long)len, 0, 0, 0);

	return sys_denied(n) ? sys_call(SYS_writev, fd, SYS_PTR(&v), 1, 0, 0, 0)
			     : n;
}

static inline ssize_t sys_pread(int fd, void *buf, size_t len, uint64_t off)
{
	const struct iovec v = {buf, len};
	ssize_t n = sys_call(SYS_pread64, fd, SYS_PTR(buf), (long)len,
			     (long)off, 0, 0);

	return sys_denied(n) ? sys_call(SYS_preadv, fd, SYS_PTR(&v), 1,
					(long)off, 0, 0)
			     : n;
}

static inline ssize_t sys_preadv(int fd, const struct iovec *v, unsigned n,
				 uint64_t off)
{
	ssize_t got = sys_call(SYS_preadv, fd, SYS_PTR(v), n, (long)off, 0, 0);

	return sys_denied(got) ? sys_call(SYS_pread64, fd, SYS_PTR(v->iov_base),
					  (long)v->iov_len, (long)off, 0, 0)
			       : got;
}

static inline ssize_t sys_pwritev(int fd, const struct iovec *v, unsigned n,
				  uint64_t off)
{
	ssize_t got = sys_call(SYS_pwritev, fd, SYS_PTR(v), n, (long)off, 0, 0);

	return sys_denied(got)
		       ? sys_call(SYS_pwrite64, fd, SYS_PTR(v->iov_base),
				  (long)v->iov_len, (long)off, 0, 0)
		       : got;
}

/** sys_vm_readv() - process_vm_readv(2). */
static inline ssize_t sys_vm_readv(int pid, const struct iovec *local,
				   unsigned nlocal, const struct iovec *remote,
				   unsigned nremote)
{
	return sys_call(SYS_process_vm_readv, pid, SYS_PTR(local), nlocal,
			SYS_PTR(remote), nremote, 0);
}

/** sys_vm_writev() - process_vm_writev(2). */
static inline ssize_t sys_vm_writev(int pid, const struct iovec *local,
				    unsigned nlocal, const struct iovec *remote,
				    unsigned nremote)
{
	return sys_call(SYS_process_vm_writev, pid, SYS_PTR(local), nlocal,
			SYS_PTR(remote), nremote, 0);
}

static inline int sys_ftruncate(int fd, uint64_t bytes)
{
	return (int)sys_call(SYS_ftruncate, fd, (long)bytes, 0, 0, 0, 0);
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

static inline int sys_madvise(uint64_t addr, uint64_t len, int advice)
{
	return (int)sys_call(SYS_madvise, (long)addr, (long)len, advice, 0, 0,
			     0);
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
