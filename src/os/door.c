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
#include <sys/eventfd.h>

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
	const unsigned a = (unsigned)os->door.wake.fd,
		       b = (unsigned)os->kick_fd, low = MIN(a, b),
		       high = MAX(a, b);

	if (door_sees_queue(high) ||
	    close_all(high + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0)
		return false;
	(void)close_all(low + 1, high - 1, 0);
	if (low > 0)
		(void)close_all(0, low - 1, 0);
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

	fds[n++] = (struct pollfd){os->door.wake.fd, POLLIN, 0};
	ctl = n;
	n = claim = ctl_watch(os, fds, n, now, &end);
	n = claim_watch(os, fds, n, now, &end);
	if (sys_ppoll(fds, n, until(end, now, &ts)) <= 0)
		n = 0;
	if (n > 0 && fds[0].revents)
		os_event_clear(fds[0].fd);
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
}

static int door_wake_open(int arg)
{
	(void)arg;
	return os_event_own();
}

int door_open(struct os *os)
{
	struct os_door *d = &os->door;
	int ret;

	if (d->thread)
		return 0;
	ret = fd_kept(&d->wake, true, door_wake_open, 0);
	if (ret < 0)
		return ret;
	ret = thread_start(&d->thread, "nopin-door", door_main, os, DOOR_STACK);
	if (ret < 0)
		fd_drop(&d->wake);
	return ret;
}

static void door_wake(const struct os_door *d)
{
	if (fd_is(d->wake.fd, d->wake.dev, d->wake.ino))
		os_event_set(d->wake.fd);
}

void door_close(struct os *os)
{
	struct os_door *d = &os->door;

	if (!d->thread)
		return;
	__atomic_store_n(&d->stop, true, __ATOMIC_RELEASE);
	door_wake(d);
	os_thread_join(d->thread);
	d->thread = NULL;
	fd_drop(&d->wake);
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
	door_wake(d);
	while (__atomic_load_n(&d->state, __ATOMIC_ACQUIRE) == DOOR_ASKED)
		(void)sys_call(SYS_futex, SYS_PTR(&d->state),
			       FUTEX_WAIT_PRIVATE, DOOR_ASKED, 0, 0, 0);
	ret = d->ret;
	__atomic_store_n(&d->state, DOOR_IDLE, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&d->lock);
	return ret;
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
