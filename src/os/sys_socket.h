/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sys_socket.h: system calls on sockets; as sys.h says. */
#ifndef NOPIN_OS_SYS_SOCKET_H
#define NOPIN_OS_SYS_SOCKET_H

#include "os/sys.h"

#include <stdint.h>
#include <sys/socket.h>

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

#endif
