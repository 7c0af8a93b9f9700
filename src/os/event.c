/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* event.c: events: descriptors that wake a thread that sleeps, in wait.c or in a program's
 * poll(2). Their prototypes are in wait.h.
 */
#include "os/fd.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/wait.h"

#include <sys/eventfd.h>

static int event_fd(void)
{
	return (int)sys_call(SYS_eventfd2, 0, EFD_CLOEXEC, 0, 0, 0, 0);
}

int os_event_open(void)
{
	return fd_event(event_fd());
}

int os_event_own(void)
{
	return fd_high(event_fd());
}

void os_event_set(int fd)
{
	uint64_t one = 1;

	/* Fails only if the counter is full: then it is readable anyway. */
	(void)sys_write(fd, &one, sizeof(one));
}

/* The descriptor is a blocking one, because whether a program made it
 * O_NONBLOCK is how it says what ibv_get_cq_event() should do; so say so here
 * for each read. Eventfds know RWF_NOWAIT since 5.8.
 */
bool os_event_clear(int fd)
{
	uint64_t n;
	struct iovec iov = {&n, sizeof(n)};

	return sys_call(SYS_preadv2, fd, SYS_PTR(&iov), 1, -1, -1,
			RWF_NOWAIT) == sizeof(n);
}

void os_event_close(int fd)
{
	(void)sys_close(fd);
}

bool os_event_nonblock(int fd)
{
	int flags = sys_fcntl(fd, F_GETFL, 0);

	return flags >= 0 && (flags & O_NONBLOCK);
}

void os_kick(struct os *os)
{
	os_event_set(os->kick_fd);
}
