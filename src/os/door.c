/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* door.c: what the thread that lets others in (doorman.c) is asked to do for others, and
 * descriptors that are handed to it.
 */
#include "os/door.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/kept.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

enum { DOOR_IDLE, DOOR_ASKED, DOOR_DONE };

int door_ear(const struct os_door *d)
{
	const struct fd_kept *e = &d->ear;

	return d->apart || fd_is(e->fd, e->dev, e->ino) ? e->fd : -1;
}

bool door_hear(struct os_door *d)
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

void door_serve(struct os *os)
{
	struct os_door *d = &os->door;

	if (__atomic_load_n(&d->state, __ATOMIC_ACQUIRE) != DOOR_ASKED)
		return;
	d->ret = d->fn(os, d->arg);
	__atomic_store_n(&d->state, DOOR_DONE, __ATOMIC_RELEASE);
	(void)sys_call(SYS_futex, SYS_PTR(&d->state), FUTEX_WAKE_PRIVATE, 1, 0,
		       0, 0);
}

int door_send(const struct os_door *d, int fd)
{
	if (!fd_is(d->wake.fd, d->wake.dev, d->wake.ino))
		return -EBADF;
	return fd_send(d->wake.fd, fd);
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
