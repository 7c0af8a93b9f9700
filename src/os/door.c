/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* door.c: the thread that lets others in: who asks a NIC something (ctl.c), and who
 * goes by its name (name.c).
 *
 * The kernel gives a new descriptor the lowest free number, and there is no other way
 * to accept a connection. So a program that closes a number, or counts on the one that
 * is free, would find ours there for a moment whenever another process comes. The
 * door has a table of descriptors of its own, as a process has: the program sees
 * none of its numbers, and can close none of them. What is opened there is of use to
 * nobody else, so whatever needs it is done there (door_call()).
 *
 * To have it, copies of the program's descriptors are closed, which the kernel takes for
 * a close by the process: a message queue forgets who is to be notified. Where there is
 * one, or close_range(2) is denied, the table is the program's, and all else is the same.
 */
#include "os/door.h"
#include "base/base.h"
#include "os/clock.h"
#include "os/ctl.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/kept.h"
#include "os/name.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/thread.h"
#include "os/wait.h"

#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

enum { DOOR_IDLE, DOOR_ASKED, DOOR_DONE };

/* The program may have closed what wakes it: then it looks by itself. */
enum {
	DOOR_SLEEP_MAX_NS = 1000 * 1000 * 1000,
	DOOR_WATCHED_MAX = 4,
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	DOOR_STACK = 1024 * 1024, /* a sanitizer wants some of it */
#else
	DOOR_STACK = 80 * 1024, /* what it does is shallow */
#endif
};

static int close_all(unsigned first, unsigned last, unsigned flags)
{
	if (first > last)
		return 0;
	return (int)sys_call(SYS_close_range, first, last, flags, 0, 0, 0);
}

/* Is one below @end a message queue, as far as we may know? */
static bool door_sees_queue(unsigned end)
{
	for (unsigned fd = 0; fd < end; fd++) {
		const long ret = sys_call(SYS_mq_getsetattr, fd, 0, 0, 0, 0, 0);

		if (ret == -ENOSYS)
			return false;
		if (ret != -EBADF)
			return true;
	}
	return false;
}

/* Leave the table of the process with a copy of what wakes us and of what we wake.
 * Return: false: all is as it was. */
static bool door_leave(const struct os *os)
{
	const unsigned a = (unsigned)os->door.ear.fd, b = (unsigned)os->kick_fd,
		       low = MIN(a, b), high = MAX(a, b);

	if (door_sees_queue(high) ||
	    close_all(high + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0)
		return false;
	(void)close_all(low + 1, high - 1, 0);
	if (low > 0)
		(void)close_all(0, low - 1, 0);
	return true;
}

/* Return: where it hears; -1: the program has closed that. */
static int door_ear(const struct os_door *d)
{
	const struct fd_kept *e = &d->ear;

	return d->apart || fd_is(e->fd, e->dev, e->ino) ? e->fd : -1;
}

/* Read what came, with the descriptor that came with it: no number of the program's is
 * taken for that, so without a table of its own the kernel closes it again. */
static bool door_hear(struct os_door *d)
{
	union scm_rights control;
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = d->apart ? sizeof(control) : 0};
	const struct cmsghdr *c;

	if (sys_recvmsg(door_ear(d), &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		fd_close(d->handed);
		memcpy(&d->handed, CMSG_DATA(c), sizeof(d->handed));
	}
	return true;
}

static void door_serve(struct os *os)
{
	struct os_door *d = &os->door;

	if (__atomic_load_n(&d->state, __ATOMIC_ACQUIRE) != DOOR_ASKED)
		return;
	d->ret = d->fn(os, d->arg);
	__atomic_store_n(&d->state, DOOR_DONE, __ATOMIC_RELEASE);
	(void)sys_call(SYS_futex, SYS_PTR(&d->state), FUTEX_WAKE_PRIVATE, 1, 0,
		       0, 0);
}

static void door_wait(struct os *os)
{
	const uint64_t now = clock_ns();
	uint64_t end = now + DOOR_SLEEP_MAX_NS;
	struct pollfd fds[DOOR_WATCHED_MAX];
	unsigned n = 0, ctl, claim;
	struct timespec ts;

	fds[n++] = (struct pollfd){door_ear(&os->door), POLLIN, 0};
	ctl = n;
	n = claim = ctl_watch(os, fds, n, now, &end);
	n = claim_watch(os, fds, n, now, &end);
	if (sys_ppoll(fds, n, until(end, now, &ts)) <= 0)
		n = 0;
	if (n > 0 && fds[0].revents)
		while (door_hear(&os->door))
			;
	for (unsigned i = ctl; i < n; i++) {
		if (!fds[i].revents)
			continue;
		if (i < claim)
			ctl_heard(os);
		else
			claim_heard(os);
	}
}

static void door_main(void *arg)
{
	struct os *os = arg;

	os->door.apart = door_leave(os);
	while (!__atomic_load_n(&os->door.stop, __ATOMIC_ACQUIRE)) {
		door_serve(os);
		door_wait(os);
	}
	claim_close(os);
	ctl_close(os);
	fd_close(os->door.handed);
}

/* Of datagrams: one end does not hear of it when the program closes the other. */
static int door_ends_open(struct os_door *d)
{
	int ends[2], ret;

	ret = (int)sys_call(SYS_socketpair, AF_UNIX,
			    SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			    SYS_PTR(ends), 0, 0);
	if (ret < 0)
		return ret;
	ends[0] = fd_high(ends[0]);
	ends[1] = fd_high(ends[1]);
	if (fd_keep(&d->wake, ends[0]) && fd_keep(&d->ear, ends[1]))
		return 0;
	sys_close(ends[0]);
	sys_close(ends[1]);
	return -EPERM;
}

static void door_ends_close(struct os_door *d)
{
	fd_drop(&d->wake);
	fd_drop(&d->ear);
}

int door_open(struct os *os)
{
	struct os_door *d = &os->door;
	int ret;

	if (d->thread)
		return 0;
	ret = door_ends_open(d);
	if (ret < 0)
		return ret;
	d->handed = -1;
	ret = thread_start(&d->thread, "nopin-door", door_main, os, DOOR_STACK);
	if (ret < 0)
		door_ends_close(d);
	return ret;
}

/* A message with @fd, or -1. One that finds no room is not missed: the door has others
 * to read. */
static int door_send(const struct os_door *d, int fd)
{
	union scm_rights control = {0};
	char byte = 0;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	if (!fd_is(d->wake.fd, d->wake.dev, d->wake.ino))
		return -EBADF;
	if (fd >= 0)
		scm_rights_add(&m, &control, fd);
	return (int)sys_sendmsg(d->wake.fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

void door_close(struct os *os)
{
	struct os_door *d = &os->door;

	if (!d->thread)
		return;
	__atomic_store_n(&d->stop, true, __ATOMIC_RELEASE);
	(void)door_send(d, -1);
	os_thread_join(d->thread);
	d->thread = NULL;
	door_ends_close(d);
}

int door_call(struct os *os, int (*fn)(struct os *os, void *arg), void *arg)
{
	struct os_door *d;
	int ret;

	if (!os || !os->door.thread)
		return fn(os, arg);
	d = &os->door;
	pthread_mutex_lock(&d->lock);
	d->fn = fn;
	d->arg = arg;
	__atomic_store_n(&d->state, DOOR_ASKED, __ATOMIC_RELEASE);
	(void)door_send(d, -1);
	while (__atomic_load_n(&d->state, __ATOMIC_ACQUIRE) == DOOR_ASKED)
		(void)sys_call(SYS_futex, SYS_PTR(&d->state),
			       FUTEX_WAIT_PRIVATE, DOOR_ASKED, 0, 0, 0);
	ret = d->ret;
	__atomic_store_n(&d->state, DOOR_IDLE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	return ret;
}

int door_hand(struct os *os, int fd, int (*fn)(struct os *os, void *arg),
	      void *arg)
{
	if (os->door.thread)
		(void)door_send(&os->door, fd);
	return door_call(os, fn, arg);
}

int door_take(struct os *os)
{
	struct os_door *d = &os->door;
	int fd;

	if (!d->thread)
		return -EOPNOTSUPP;
	while (door_hear(d))
		;
	fd = d->handed;
	d->handed = -1;
	return fd < 0 ? -EOPNOTSUPP : fd;
}

void door_keep(const struct os *os, int fd)
{
	if (!os || !os->door.apart)
		fork_close_in_child(fd);
}

void door_drop(const struct os *os, int fd)
{
	if (!os || !os->door.apart)
		fork_forget(fd);
	sys_close(fd);
}
