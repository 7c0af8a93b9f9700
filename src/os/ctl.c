/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.c: the control socket, by which nopin(1) asks a NIC: an abstract unix
 * socket named by process id. A connection is one request, a message, and one
 * answer: a message that begins with "ok" or "error", and with "ok" the descriptor
 * of a file in memory. So an answer fits into the socket whatever the client does,
 * and is gone when the client closes it. What may be asked is not known here.
 *
 * One at a time is let in, by the background thread. It may ask when it likes: a
 * thread of it that lost its CPU is no reason to hang up. But nobody waits for it for
 * long: after CTL_PERIOD_NS the next one is let in instead, and it is told to come
 * "again". That, an answer, or "error" is what everybody hears who was let in.
 */
#include "os/impl.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
	CTL_PERIOD_NS = 50 * 1000 * 1000,
	CTL_BACKLOG = 4,
	CTL_ERROR_MAX = 256,
};

/**
 * os_ctl_open() - See os.h.
 * Context: before the background thread starts.
 */
int os_ctl_open(struct os *os)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, ret, n;

	n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1, "nopin/ctl/%d",
		     os->pid);
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

/* What it said and nobody read would reset the connection: it would not hear what
 * it was told last. */
static void ctl_part(int fd)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	(void)sys_call(SYS_shutdown, fd, SHUT_RD, 0, 0, 0, 0);
	while (sys_recvmsg(fd, &m, MSG_DONTWAIT) > 0)
		;
	sys_close(fd);
}

/* Whoever asks has been answered, or never will be. */
static void ctl_hang_up(struct os *os)
{
	int fd = os->ctl_client;

	if (fd < 0)
		return;
	__atomic_store_n(&os->ctl_client, -1, __ATOMIC_RELAXED);
	fork_forget(fd);
	ctl_part(fd);
}

void ctl_close(struct os *os)
{
	ctl_hang_up(os);
	if (os->ctl_fd < 0)
		return;
	fork_forget(os->ctl_fd);
	sys_close(os->ctl_fd);
	os->ctl_fd = -1;
}

/* @file: a descriptor to go with it, or -1. */
static int ctl_send(int fd, const char *text, int file)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;
	ssize_t n;

	if (file >= 0) {
		m.msg_control = control.space;
		m.msg_controllen = sizeof(control.space);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &file, sizeof(file));
	}
	n = sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? (int)n : 0;
}

/* Let the next one in. */
static int ctl_accept(struct os *os, uint64_t now)
{
	struct ucred who;
	int fd, err;

	__atomic_store_n(&os->ctl_after_ns, now + CTL_PERIOD_NS,
			 __ATOMIC_RELAXED);
	fd = fd_high((int)sys_call(SYS_accept4, os->ctl_fd, 0, 0,
				   SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
	if (fd < 0)
		return fd;
	err = cred_check(fd, &who);
	if (err) {
		(void)ctl_send(fd, "error this process is another user's", -1);
		ctl_part(fd);
		return err;
	}
	fork_close_in_child(fd);
	__atomic_store_n(&os->ctl_client, fd, __ATOMIC_RELAXED);
	return 0;
}

/* Whoever has asked and gone (it has waited long enough, or was ended) does not
 * know what becomes of it, so nothing does. */
static bool ctl_gone(const struct os *os)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sys_recvmsg(os->ctl_client, &m, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* Is there another one? */
static bool ctl_next_waits(const struct os *os, uint64_t now)
{
	struct pollfd next = {.fd = os->ctl_fd, .events = POLLIN};
	struct timespec at_once = {0};

	return now >= __atomic_load_n(&os->ctl_after_ns, __ATOMIC_RELAXED) &&
	       sys_ppoll(&next, 1, &at_once) > 0;
}

/* Return: the same as os_ctl_take(). */
static int ctl_receive(struct os *os, char *buf, size_t size)
{
	struct iovec iov = {buf, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	/* descriptors that come with it are the kernel's to close */
	const ssize_t n = sys_recvmsg(os->ctl_client, &m,
				      MSG_DONTWAIT | MSG_TRUNC);

	if (n == -EAGAIN)
		return -EAGAIN;
	if (n > (ssize_t)size) {
		(void)os_ctl_answer(os, "the request is too long", NULL, 0);
		return -EMSGSIZE;
	}
	if (n > 0 && !ctl_gone(os))
		return (int)n;
	ctl_hang_up(os);
	return -EAGAIN;
}

int os_ctl_take(struct os *os, char *buf, size_t size)
{
	bool asked = __atomic_exchange_n(&os->ctl_asked, false,
					 __ATOMIC_RELAXED);
	uint64_t now = clock_ns();
	int ret;

	if (!asked)
		return -EAGAIN;
	if (os->ctl_client >= 0) {
		ret = ctl_receive(os, buf, size);
		if (os->ctl_client < 0 || ret != -EAGAIN ||
		    !ctl_next_waits(os, now))
			return ret;
		(void)ctl_send(os->ctl_client, "again", -1);
		ctl_hang_up(os);
	}
	ret = ctl_accept(os, now);
	return ret ? ret : ctl_receive(os, buf, size);
}

static int ctl_write(int file, const char *text, size_t len)
{
	for (size_t at = 0; at < len;) {
		ssize_t n = sys_write(file, text + at, len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n != -EINTR)
			return n < 0 ? (int)n : -EIO;
	}
	return 0;
}

int os_ctl_answer(struct os *os, const char *error, const char *text,
		  size_t len)
{
	char line[CTL_ERROR_MAX];
	int file, ret;

	if (error) {
		snprintf(line, sizeof(line), "error %s", error);
		ret = ctl_send(os->ctl_client, line, -1);
		ctl_hang_up(os);
		return ret;
	}
	file = fd_memory("nopin-ctl", 0);
	ret = file < 0 ? file : ctl_write(file, text, len);
	if (ret == 0) {
		ret = ctl_send(os->ctl_client, "ok", file);
	} else {
		snprintf(line, sizeof(line),
			 "error it has no room for the answer (error %d)",
			 -ret);
		(void)ctl_send(os->ctl_client, line, -1);
	}
	fd_close(file);
	ctl_hang_up(os);
	return ret;
}
