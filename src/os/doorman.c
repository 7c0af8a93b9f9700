/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* doorman.c: the thread that lets others in: processes that ask a NIC something (ctl.c),
 * and those that go by its name (name.c).
 *
 * The kernel gives a new descriptor the lowest free number, and there is no other way
 * to accept a connection. So a program that closes a number, or counts on the one that
 * is free, would find ours there for a moment whenever another process comes. The
 * door has a table of descriptors of its own, as a process has: the program sees
 * none of its numbers, and can close none of them. A descriptor that is opened there is
 * of use to no other thread, so all that needs it is done there (door_call()).
 *
 * To have it, copies of the program's descriptors are closed, which the kernel takes for
 * a close by the process: a message queue forgets whom to notify, and a server of
 * files (FUSE, NFS) is asked to write back what it has, and waited for. Where there may be
 * such a one (mounts.c), or close_range(2) is denied, the table is the program's, and all
 * else is the same. A descriptor that another thread opens just then is
 * not seen.
 */
#include "os/doorman.h"
#include "base/check.h"
#include "os/clock.h"
#include "os/ctl.h"
#include "os/door.h"
#include "os/fd.h"
#include "os/kept.h"
#include "os/mounts.h"
#include "os/name.h"
#include "os/names.h"
#include "os/os.h"
#include "os/run.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/thread.h"

#include <limits.h>
#include <linux/close_range.h>
#include <sys/socket.h>

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

/* Leave the table of the process with a copy of what wakes us and of what we wake.
 * Return: false: all is as it was. */
static bool door_leave(const struct os *os)
{
	const unsigned a = (unsigned)os->door.ear.fd, b = (unsigned)os->kick_fd,
		       low = MIN(a, b), high = MAX(a, b);

	if (mounts_may_flush(high) ||
	    close_all(high + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0)
		return false;
	(void)close_all(low + 1, high - 1, 0);
	if (low > 0)
		(void)close_all(0, low - 1, 0);
	return true;
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

static void door_ends_close(struct os_door *d)
{
	fd_drop(&d->wake);
	fd_drop(&d->ear);
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
	if (!fd_keep(&d->wake, ends[0]))
		sys_close(ends[0]);
	if (!fd_keep(&d->ear, ends[1]))
		sys_close(ends[1]);
	if (d->wake.kept && d->ear.kept)
		return 0;
	door_ends_close(d);
	return -EPERM;
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

/**
 * os_claim() - See names.h.
 * @os: NULL: it is not shared
 * @name: at most 101 bytes
 * Return: also -ENAMETOOLONG.
 */
int os_claim(struct os *os, const char *name)
{
	if (os)
		(void)door_open(os); /* without a door it is not shared */
	return door_call(os, claim_make, (void *)(uintptr_t)name);
}

/** os_ctl_open() - See names.h. */
int os_ctl_open(struct os *os)
{
	const int ret = door_open(os);

	return ret < 0 ? ret : door_call(os, ctl_listen, NULL);
}
