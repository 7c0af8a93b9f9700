/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys_file.h: system calls on descriptors and files; as sys.h says. */
#ifndef NOPIN_OS_SYS_FILE_H
#define NOPIN_OS_SYS_FILE_H

#include "os/sys.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

struct stat;

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

static inline int sys_ftruncate(int fd, uint64_t bytes)
{
	return (int)sys_call(SYS_ftruncate, fd, (long)bytes, 0, 0, 0, 0);
}

#endif
