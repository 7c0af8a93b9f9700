/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait.c: sleeping (design D9). The events that wake a thread that sleeps: event.c.
 *
 * Any number of threads may wait at once. All of them wake for a packet (if
 * they asked) and for a page answer; both stay readable until a thread takes
 * them, so nothing gets lost if the first to wake takes it all. A kick is for
 * the background thread: only waiters without an extra_fd see it, and the
 * first of them consumes it.
 */
#include "os/wait.h"
#include "base/check.h"
#include "os/addr.h"
#include "os/clock.h"
#include "os/os.h"
#include "os/pager.h"
#include "os/port.h"
#include "os/run.h"
#include "os/signal.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/udp.h"

enum { LET_IN_NS = 1000 * 1000 };

static void wait_add(struct pollfd *fds, unsigned *n, int fd)
{
	fds[(*n)++] = (struct pollfd){.fd = fd, .events = POLLIN};
}

/* The program closed our descriptors (closefrom() in a daemon): do not spin. */
static void wait_closed(uint64_t deadline_ns)
{
	uint64_t now = clock_ns();
	struct timespec ts;

	(void)sys_ppoll(
		NULL, 0,
		until(MIN(deadline_ns, now + WAIT_CLOSED_NS), now, &ts));
}

/* One socket to wait on for all. Return: -1 when there is none. */
static int wait_socket(const struct os *os)
{
	unsigned n;
	int only;

	n = ports_open(os, &only);
	if (n == 0)
		return -1;
	return n == 1 ? port_fd(os, only) : os->ports_ep;
}

/* One port: say where the error is. Several: the receive will meet it. */
static void wait_note_error(struct os *os)
{
	int only;

	if (ports_open(os, &only) == 1)
		udp_error_note(os, only);
}

/* ppoll(2) lets signals in if it sleeps, or has nothing to say. A thread that always finds
 * a packet, that is none for it, would never see one: so they are let in that often. */
static bool signals_kept_out(struct os_signals *s, uint64_t now_ns)
{
	const bool first = !s->let_in_ns;

	if (!first && now_ns - s->let_in_ns < LET_IN_NS)
		return false;
	s->let_in_ns = now_ns;
	return !first;
}

/* A thread of the program that waits in a verb must be cancellable there, as it
 * is in read(2) of rdma-core: that is what libc's ppoll() is for. A raw system
 * call would not even be interrupted.
 */
static int poll_in_verb(const struct os *os, struct pollfd *fds, unsigned n,
			uint64_t deadline_ns, uint64_t now_ns,
			struct os_signals *s)
{
	uint64_t again;
	const struct caught before = caught_before(s, now_ns, &again);
	const sigset_t mask = signals_mask(s, before, os->libc_fd);
	const struct timespec none = {0};
	int keep = errno, ret;
	struct timespec ts;

	ret = ppoll(fds, n, until(MIN(deadline_ns, again), now_ns, &ts), &mask);
	if (ret > 0 && !fds[1].revents && signals_kept_out(s, now_ns) &&
	    ppoll(NULL, 0, &none, &mask) < 0)
		ret = -1;
	if (ret < 0)
		ret = errno == EINTR && caught_ends(s, before) ? -EINTR : 0;
	errno = keep;
	return ret;
}

/* Add the connection to the holder of a name, and the socket that says that addresses
 * changed. */
static void wait_callers(const struct os *os, struct pollfd *fds, unsigned *n)
{
	const int holder = __atomic_load_n(&os->holder.fd, __ATOMIC_RELAXED);
	const int net = __atomic_load_n(&os->news.fd, __ATOMIC_RELAXED);

	if (holder >= 0)
		wait_add(fds, n, holder);
	if (net >= 0)
		wait_add(fds, n, net);
}

/* The callers are fds[@first] and what follows. One that the program closed is found
 * out by the function that looks: the number may be another descriptor's by now. */
static void wait_note_callers(struct os *os, const struct pollfd *fds,
			      unsigned first, unsigned n)
{
	const int net = __atomic_load_n(&os->news.fd, __ATOMIC_RELAXED);

	for (unsigned i = first; i < n; i++) {
		if (!fds[i].revents)
			continue;
		if (fds[i].fd == net)
			net_heard(os);
		else
			__atomic_store_n(&os->holder.spoke, true,
					 __ATOMIC_RELAXED);
	}
}

/* Act on what the kernel said of @fds. Return: one of the first @n is closed. */
static bool wait_ended(struct os *os, const struct pollfd *fds, unsigned n,
		       unsigned sock, bool in_verb)
{
	bool closed = false;

	if ((fds[0].revents & POLLIN) != 0)
		pagers_quiet(os->pagers);
	if (!in_verb && (fds[1].revents & POLLIN) != 0)
		os_event_clear(os->kick_fd);
	if (sock && fds[sock].revents) /* at any port */
		__atomic_store_n(&os->rx.vain, UDP_VAIN, __ATOMIC_RELAXED);
	if (sock && (fds[sock].revents & POLLERR) != 0)
		wait_note_error(os);
	for (unsigned i = 0; i < n; i++)
		closed |= (fds[i].revents & POLLNVAL) != 0;
	/* the event is the program's: that alone means nothing to others */
	if (closed && sys_fcntl(os->kick_fd, F_GETFD, 0) < 0)
		__atomic_store_n(&os->closed, true, __ATOMIC_RELAXED);
	return closed;
}

/* @s: NULL: a thread of ours. Return: 0; -EINTR. */
static int wait_for(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int extra_fd, struct os_signals *s)
{
	const int socket = what == OS_WAIT_PACKETS ? wait_socket(os) : -1;
	unsigned n = 0, sock = 0, callers;
	uint64_t now = clock_ns();
	struct pollfd fds[5];
	struct timespec ts;
	int ret;

	if (!s && deadline_ns <= now)
		return 0;
	/* one that is -1 is ignored */
	wait_add(fds, &n, what == OS_WAIT_EVENT ? -1 : pagers_fd(os->pagers));
	wait_add(fds, &n, extra_fd >= 0 ? extra_fd : os->kick_fd);
	if (socket >= 0) {
		sock = n;
		wait_add(fds, &n, socket);
	}
	if (s)
		wait_add(fds, &n, os->libc_fd);
	callers = n;
	if (extra_fd < 0)
		wait_callers(os, fds, &n);
	if (s)
		ret = poll_in_verb(os, fds, n, deadline_ns, now, s);
	else
		ret = sys_ppoll(fds, n, until(deadline_ns, now, &ts));
	if (ret <= 0)
		return s ? ret : 0;
	wait_note_callers(os, fds, callers, n);
	if (wait_ended(os, fds, callers, sock, extra_fd >= 0))
		wait_closed(deadline_ns);
	return 0;
}

/**
 * os_wait() - See wait.h.
 * @deadline_ns: os_now() time, TIME_NEVER for none; one in the past: return
 * Context: returns early without a reason now and then (signals).
 */
void os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
	     int extra_fd)
{
	(void)wait_for(os, what, deadline_ns, extra_fd, NULL);
}

int os_wait_in_verb(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int fd, struct os_signals *s)
{
	return wait_for(os, what, deadline_ns, fd, s);
}

bool os_has_packet(const struct os *os)
{
	struct pollfd fd = {.fd = wait_socket(os), .events = POLLIN};
	struct timespec none = {0};

	return sys_ppoll(&fd, 1, &none) > 0;
}

/** os_closed() - See wait.h. */
bool os_closed(const struct os *os)
{
	return __atomic_load_n(&os->closed, __ATOMIC_RELAXED);
}

void os_doze(struct os *os, int event_fd, uint64_t deadline_ns)
{
	struct pollfd fd = {.fd = event_fd, .events = POLLIN};
	uint64_t now = clock_ns();
	struct timespec ts;

	(void)os;
	if (deadline_ns <= now ||
	    sys_ppoll(&fd, 1, until(deadline_ns, now, &ts)) <= 0)
		return;
	if (fd.revents & POLLNVAL)
		wait_closed(deadline_ns);
	else
		os_event_clear(event_fd);
}

void os_log(const char *line, size_t len)
{
	struct pollfd fd = {.fd = STDERR_FILENO, .events = POLLOUT};
	struct timespec now = {0};
	int ready;

	/* A reader of a pipe that is stopped, or gone, holds nothing up and ends no
	 * program; a terminal has room for some lines. A host that does not let us ask
	 * is trusted. */
	do
		ready = sys_ppoll(&fd, 1, &now);
	while (ready == -EINTR);
	if (ready < 0 || (ready == 1 && fd.revents == POLLOUT))
		(void)sys_write(STDERR_FILENO, line, len);
}
