/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.c: the control socket, by which `nopin trace` finds a NIC: an abstract unix
 * socket named by process id. A question is a connection. The answer is one
 * message with the descriptor of a file in memory: it fits into the socket
 * whatever the client does, and is gone when the client closes it.
 */
#include "os/impl.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum { CTL_PERIOD_NS = 50 * 1000 * 1000, CTL_BACKLOG = 4 };

/**
 * os_ctl_open() - See os.h.
 * Context: before the background thread starts.
 */
int os_ctl_open(struct os *os)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, ret, n;

	n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
		     "nopin/trace/%d", os->pid);
	fd = fd_high(sys_socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &sun,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				   (size_t)n));
	if (ret == 0)
		ret = (int)sys_call(SYS_listen, fd, CTL_BACKLOG, 0, 0, 0, 0);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	fork_close_in_child(fd);
	os->ctl_fd = fd;
	return 0;
}

void ctl_close(struct os *os)
{
	if (os->ctl_fd < 0)
		return;
	fork_forget(os->ctl_fd);
	sys_close(os->ctl_fd);
	os->ctl_fd = -1;
}

static bool ctl_may_ask(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	if (sys_call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED, SYS_PTR(&who),
		     SYS_PTR(&len), 0) < 0)
		return false;
	return who.uid == 0 ||
	       who.uid == (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0);
}

int os_ctl_accept(struct os *os)
{
	int fd;

	if (!__atomic_exchange_n(&os->ctl_asked, false, __ATOMIC_RELAXED))
		return -EAGAIN;
	__atomic_store_n(&os->ctl_after_ns, clock_ns() + CTL_PERIOD_NS,
			 __ATOMIC_RELAXED);
	fd = fd_high((int)sys_call(SYS_accept4, os->ctl_fd, 0, 0,
				   SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
	if (fd < 0 || ctl_may_ask(fd))
		return fd;
	sys_close(fd);
	return -EPERM;
}

static int ctl_send(int fd, int file)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {"", 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.space,
			   .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	ssize_t n;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &file, sizeof(file));
	n = sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? (int)n : 0;
}

int os_ctl_answer(struct os *os, int fd, const char *text, size_t len)
{
	int file = fd_memory("nopin-trace", 0), ret = MIN(file, 0);

	(void)os;
	for (size_t at = 0; ret == 0 && at < len;) {
		ssize_t n = sys_write(file, text + at, len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n != -EINTR)
			ret = n < 0 ? (int)n : -EIO;
	}
	if (ret == 0)
		ret = ctl_send(fd, file);
	fd_close(file);
	sys_close(fd);
	return ret;
}
