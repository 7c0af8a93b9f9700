/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ctl.c: the control socket, by which nopin(1) asks a NIC: an abstract unix
 * socket named by process id. A connection is one request, a message, and one
 * answer: a message that begins with "ok" or "error", and with "ok" the descriptor
 * of a file in memory. So an answer fits into the socket whatever the client does,
 * and is gone when the client closes it. The requests are not known here.
 *
 * The sockets are the door's (doorman.c), where all of this is done; the background
 * thread has the request and the answer. One client at a time is let in. It may ask
 * when it likes: a thread of it that lost its CPU is no reason to hang up. But no other
 * waits for it for long: after CTL_PERIOD_NS the next one is let in instead, and it is
 * told to come "again". Every client that was let in hears that, an answer, or "error".
 */
#include "os/ctl.h"
#include "base/check.h"
#include "os/clock.h"
#include "os/cred.h"
#include "os/door.h"
#include "os/fd.h"
#include "os/names.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"
#include "os/wait.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>

enum {
	CTL_PERIOD_NS = 50 * 1000 * 1000,
	CTL_AGAIN_NS = 50 * 1000 * 1000, /* another thread may hear a kick */
	CTL_BACKLOG = 4,
	CTL_ERROR_MAX = 256,
};

int ctl_listen(struct os *os, void *arg)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, ret, n;

	(void)arg;
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
	door_keep(os, fd);
	os->ctl.fd = fd;
	return 0;
}

/* As long as a client is to be heard there is nothing else to wait for. */
unsigned ctl_watch(const struct os *os, struct pollfd *fds, unsigned n,
		   uint64_t now_ns, uint64_t *until_ns)
{
	if (os->ctl.fd < 0)
		return n;
	if (__atomic_load_n(&os->ctl.asked, __ATOMIC_RELAXED)) {
		*until_ns = MIN(*until_ns, now_ns + CTL_AGAIN_NS);
		return n;
	}
	if (os->ctl.client >= 0)
		fds[n++] = (struct pollfd){os->ctl.client, POLLIN, 0};
	if (now_ns < os->ctl.after_ns)
		*until_ns = MIN(*until_ns, os->ctl.after_ns);
	else
		fds[n++] = (struct pollfd){os->ctl.fd, POLLIN, 0};
	return n;
}

void ctl_heard(struct os *os)
{
	__atomic_store_n(&os->ctl.asked, true, __ATOMIC_RELAXED);
	os_kick(os);
}

/* A message of its that was not read would reset the connection: it would not hear
 * what it was told last. */
static void ctl_part(int fd)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	(void)sys_call(SYS_shutdown, fd, SHUT_RD, 0, 0, 0, 0);
	while (sys_recvmsg(fd, &m, MSG_DONTWAIT) > 0)
		;
}

/* The client has been answered, or never will be. */
static void ctl_hang_up(struct os *os)
{
	int fd = os->ctl.client;

	if (fd < 0)
		return;
	os->ctl.client = -1;
	ctl_part(fd);
	door_drop(os, fd);
}

void ctl_close(struct os *os)
{
	ctl_hang_up(os);
	if (os->ctl.fd < 0)
		return;
	door_drop(os, os->ctl.fd);
	os->ctl.fd = -1;
}

/* @file: a descriptor to go with it, or -1. */
static int ctl_send(int fd, const char *text, int file)
{
	union scm_rights control = {0};
	struct iovec iov = {(void *)(uintptr_t)text, strlen(text)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (file >= 0)
		scm_rights_add(&m, &control, file);
	n = sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return n < 0 ? (int)n : 0;
}

/* Let the next one in. */
static int ctl_accept(struct os *os, uint64_t now)
{
	struct ucred who;
	int fd, err;

	os->ctl.after_ns = now + CTL_PERIOD_NS;
	fd = fd_high((int)sys_call(SYS_accept4, os->ctl.fd, 0, 0,
				   SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
	if (fd < 0)
		return fd;
	err = cred_check(fd, os->door.apart, &who);
	if (err) {
		(void)ctl_send(fd, "error this process is another user's", -1);
		ctl_part(fd);
		sys_close(fd);
		return err;
	}
	door_keep(os, fd);
	os->ctl.client = fd;
	return 0;
}

/* A client that has asked and gone (it has waited long enough, or was ended) does not
 * know what becomes of its request, so nothing does. */
static bool ctl_gone(const struct os *os)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sys_recvmsg(os->ctl.client, &m, MSG_DONTWAIT | MSG_PEEK) == 0;
}

/* Is there another one? */
static bool ctl_next_waits(const struct os *os, uint64_t now)
{
	struct pollfd next = {.fd = os->ctl.fd, .events = POLLIN};
	struct timespec at_once = {0};

	return now >= os->ctl.after_ns && sys_ppoll(&next, 1, &at_once) > 0;
}

static int ctl_say(struct os *os, const char *error)
{
	char line[CTL_ERROR_MAX];
	int ret;

	snprintf(line, sizeof(line), "error %s", error);
	ret = ctl_send(os->ctl.client, line, -1);
	ctl_hang_up(os);
	return ret;
}

/* Return: the same as os_ctl_take(). */
static int ctl_receive(struct os *os, char *buf, size_t size)
{
	struct iovec iov = {buf, size};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	/* descriptors that come with it are the kernel's to close */
	const ssize_t n = sys_recvmsg(os->ctl.client, &m,
				      MSG_DONTWAIT | MSG_TRUNC);

	if (n == -EAGAIN)
		return -EAGAIN;
	if (n > (ssize_t)size) {
		(void)ctl_say(os, "the request is too long");
		return -EMSGSIZE;
	}
	if (n > 0 && !ctl_gone(os))
		return (int)n;
	ctl_hang_up(os);
	return -EAGAIN;
}

/** struct ctl_buf - Of a request. */
struct ctl_buf {
	char *bytes;
	size_t size;
};

static int ctl_take(struct os *os, void *arg)
{
	const struct ctl_buf *buf = arg;
	uint64_t now = clock_ns();
	int ret;

	if (os->ctl.client >= 0) {
		ret = ctl_receive(os, buf->bytes, buf->size);
		if (os->ctl.client < 0 || ret != -EAGAIN ||
		    !ctl_next_waits(os, now))
			return ret;
		(void)ctl_send(os->ctl.client, "again", -1);
		ctl_hang_up(os);
	}
	ret = ctl_accept(os, now);
	return ret ? ret : ctl_receive(os, buf->bytes, buf->size);
}

int os_ctl_take(struct os *os, char *buf, size_t size)
{
	struct ctl_buf arg = {buf, size};

	/* A request that comes from here on is heard again. */
	if (!__atomic_exchange_n(&os->ctl.asked, false, __ATOMIC_RELAXED))
		return -EAGAIN;
	return door_call(os, ctl_take, &arg);
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

/** struct ctl_answer_arg - What os_ctl_answer() is called with. */
struct ctl_answer_arg {
	const char *error, *text;
	size_t len;
};

static int ctl_answer_here(struct os *os, void *arg)
{
	const struct ctl_answer_arg *a = arg;
	char line[CTL_ERROR_MAX];
	int file, ret;

	if (a->error)
		return ctl_say(os, a->error);
	file = fd_memory("nopin-ctl", 0);
	ret = file < 0 ? file : ctl_write(file, a->text, a->len);
	if (ret == 0) {
		ret = ctl_send(os->ctl.client, "ok", file);
	} else {
		snprintf(line, sizeof(line),
			 "error it has no room for the answer (error %d)",
			 -ret);
		(void)ctl_send(os->ctl.client, line, -1);
	}
	fd_close(file);
	ctl_hang_up(os);
	return ret;
}

int os_ctl_answer(struct os *os, const char *error, const char *text,
		  size_t len)
{
	struct ctl_answer_arg arg = {error, text, len};

	return door_call(os, ctl_answer_here, &arg);
}
