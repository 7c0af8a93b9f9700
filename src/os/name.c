/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name.c: names that processes of a host find each other by (design D4):
 * abstract unix sockets, unique in a network namespace, gone with the process.
 *
 * Any process may take a name, and say over UDP that it has it. So a process that goes
 * by what the holder of a name says asks the kernel whose process that is, is told a secret
 * over the unix socket, which no other process can read, and takes the end of that
 * connection for the end of the holder. The holder has a descriptor for each of these
 * guests: half of them for other users than ours and root, of which none has more than
 * are left of that half.
 *
 * The end of the connection must come before the port that the holder speaks from can
 * be another process's: one of another user knows the secret, too. So the door holds the
 * port's socket. When the program closes all it has the port is not free, and when the
 * process is killed the kernel lets the door's descriptors go from the highest to the lowest
 * number (tests/platform/exit-order.c). But it lets go only what no other has: a copy of
 * the socket it counts off at once, and the program's table, which is closed beside that of
 * the door, may free the port before a connection has ended. So the door has no copy: the
 * socket is in flight (SCM_RIGHTS) to one of the lowest number, and let go with that
 * (tests/platform/exit-flight.c). Where the door has no descriptors of its own, processes
 * of other users are no guests.
 *
 * A name and its guests are the door's (doorman.c). A process that asks a holder looks at
 * the connection before each packet that it believes, on any thread, so that is a
 * descriptor of the process; it is one of those that the NIC opened beforehand. One
 * that was connected cannot be used again: when all are used up before a thread of the
 * program came by (os_prepare()), the next is opened where it is needed.
 */
#include "os/name.h"
#include "base/check.h"
#include "base/range.h"
#include "os/clock.h"
#include "os/cred.h"
#include "os/door.h"
#include "os/fd.h"
#include "os/fork.h"
#include "os/kept.h"
#include "os/names.h"
#include "os/os.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"
#include "os/wait.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>

#define NAME_PREFIX "nopin/"

enum { GUESTS_BACKLOG = 16, GUESTS_PERIOD_NS = 5 * 1000 * 1000 };

/* Return: the length of the address, or -ENAMETOOLONG. */
static int name_address(const char *name, struct sockaddr_un *sun)
{
	const size_t prefix = sizeof(NAME_PREFIX) - 1, len = strlen(name);

	*sun = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!range_ok(1 + prefix, len, sizeof(sun->sun_path)))
		return -ENAMETOOLONG;
	memcpy(sun->sun_path + 1, NAME_PREFIX, prefix);
	memcpy(sun->sun_path + 1 + prefix, name, len);
	return (int)(offsetof(struct sockaddr_un, sun_path) + 1 + prefix + len);
}

static int name_socket(int arg)
{
	(void)arg;
	return fd_high(sys_socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

int claim_make(struct os *os, void *arg)
{
	struct sockaddr_un sun;
	int len = name_address(arg, &sun), fd, ret;

	if (len < 0)
		return len;
	fd = name_socket(0);
	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &sun, (socklen_t)len);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	door_keep(os, fd);
	return fd;
}

static int claim_end(struct os *os, void *fd)
{
	door_drop(os, *(int *)fd);
	return 0;
}

void os_unclaim(struct os *os, int claim)
{
	(void)door_call(os, claim_end, &claim);
}

/* --- the holder ------------------------------------------------------------------ */

/** struct claim_arg - What os_claim_share() is called with. */
struct claim_arg {
	int fd;
	uint64_t secret;
};

/* Return: what holds @port, which is no descriptor any more, or -errno. */
static int port_in_flight(int port)
{
	int ends[2] = {-1, -1}, ret;

	if (port < 0)
		return port;
	ret = (int)sys_call(SYS_socketpair, AF_UNIX,
			    SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
			    SYS_PTR(ends), 0, 0);
	if (ret == 0) {
		ret = fd_send(ends[0], port);
		sys_close(ends[0]);
		if (ret < 0)
			sys_close(ends[1]);
	}
	sys_close(port);
	return ret < 0 ? ret : ends[1];
}

static int claim_share(struct os *os, void *arg)
{
	const struct claim_arg *a = arg;
	const int port = port_in_flight(door_take(os)),
		  ret = (int)sys_call(SYS_listen, a->fd, GUESTS_BACKLOG, 0, 0,
				      0, 0);

	if (ret < 0) {
		fd_close(port);
		return ret;
	}
	os->claim.port_fd = port;
	os->claim.secret = a->secret;
	os->claim.fd = a->fd;
	return 0;
}

int os_claim_share(struct os *os, int claim, int port, uint64_t secret)
{
	struct claim_arg arg = {claim, secret};

	if (!os->door.thread)
		return -EOPNOTSUPP;
	return door_hand(os, os->rx.port[port].fd, claim_share, &arg);
}

static void guest_leave(struct os *os, unsigned i)
{
	door_drop(os, os->claim.guest[i].fd);
	os->claim.guest[i] = os->claim.guest[--os->claim.guests];
}

void claim_close(struct os *os)
{
	os->claim.fd = -1;
	while (os->claim.guests)
		guest_leave(os, os->claim.guests - 1);
	fd_close(os->claim.port_fd);
	os->claim.port_fd = -1;
}

static int claim_unshare(struct os *os, void *arg)
{
	(void)arg;
	claim_close(os);
	return 0;
}

void os_claim_unshare(struct os *os)
{
	(void)door_call(os, claim_unshare, NULL);
}

static int claim_closed(struct os *os, void *fd)
{
	if (!os->door.apart)
		return 0;
	claim_close(os);
	return claim_end(os, fd);
}

void os_claim_closed(struct os *os, int claim)
{
	(void)door_call(os, claim_closed, &claim);
}

/* Has it ended, or closed its end? It never says anything. */
static bool guest_gone(int fd)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_PEEK) != -EAGAIN;
}

static void guests_look(struct os *os)
{
	for (unsigned i = os->claim.guests; i-- > 0;)
		if (guest_gone(os->claim.guest[i].fd))
			guest_leave(os, i);
}

static bool guest_place(const struct os *os, bool stranger, uid_t uid)
{
	unsigned of_user = 0, strangers = 0;

	if (os->claim.guests == OS_GUESTS_MAX)
		return false;
	if (!stranger)
		return true;
	if (os->claim.port_fd < 0)
		return false; /* the port might be another's while it believes us */
	if (sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) != 0)
		return false; /* to him we are a stranger, too */
	for (unsigned i = 0; i < os->claim.guests; i++) {
		of_user += os->claim.guest[i].uid == uid;
		strangers += os->claim.guest[i].stranger;
	}
	return of_user + strangers < OS_GUESTS_MAX / 2;
}

/* A guest may have left just now, and made room for it. */
static bool guest_welcome(struct os *os, bool stranger, uid_t uid)
{
	if (guest_place(os, stranger, uid))
		return true;
	guests_look(os);
	return guest_place(os, stranger, uid);
}

/* It has asked the kernel whose we are; what it gets is its own affair. */
static void guest_take(struct os *os, int fd)
{
	struct iovec iov = {&os->claim.secret, sizeof(os->claim.secret)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct ucred who;
	const bool stranger = cred_check(fd, os->door.apart, &who) != 0;

	if (!guest_welcome(os, stranger, who.uid) ||
	    sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		sys_close(fd);
		return;
	}
	door_keep(os, fd);
	os->claim.guest[os->claim.guests++] = (struct os_guest){fd, who.uid,
								stranger};
}

unsigned claim_watch(const struct os *os, struct pollfd *fds, unsigned n,
		     uint64_t now_ns, uint64_t *until_ns)
{
	if (os->claim.fd < 0)
		return n;
	if (now_ns < os->claim.after_ns)
		*until_ns = MIN(*until_ns, os->claim.after_ns);
	else
		fds[n++] = (struct pollfd){os->claim.fd, POLLIN, 0};
	return n;
}

void claim_heard(struct os *os)
{
	int fd;

	os->claim.after_ns = clock_ns() + GUESTS_PERIOD_NS;
	guests_look(os);
	for (int i = 0; i < GUESTS_BACKLOG; i++) {
		fd = fd_high((int)sys_call(SYS_accept4, os->claim.fd, 0, 0,
					   SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
		if (fd < 0)
			break;
		guest_take(os, fd);
	}
}

/* --- the guests -------------------------------------------------------------------- */

void name_prepare(struct os *os)
{
	spares_fill(os, os->spares.name, OS_SPARES, name_socket, 0);
}

static int name_take(struct os *os)
{
	const int fd = spares_take(os, os->spares.name, OS_SPARES);

	return fd < 0 ? name_socket(0) : fd;
}

/* @fd was not connected, so it is as good as before. */
static void name_give(struct os *os, int fd)
{
	bool kept = false;

	pthread_mutex_lock(&os->lock);
	for (unsigned i = 0; i < OS_SPARES && !kept; i++)
		kept = !os->spares.name[i].kept &&
		       fd_keep(&os->spares.name[i], fd);
	pthread_mutex_unlock(&os->lock);
	if (!kept)
		sys_close(fd);
}

void name_close(struct os *os)
{
	spares_drop(os->spares.name, OS_SPARES);
}

/* Return: @fd, which is connected, or -errno: it is closed. */
static int holder_check(struct os *os, int fd, struct os_holder *who)
{
	struct stat st;
	struct ucred cred;
	int ret = cred_check(fd, false, &cred);

	*who = (struct os_holder){cred.pid, cred.uid};
	if (ret >= 0)
		ret = sys_fstat(fd, &st);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	fork_close_in_child(fd);
	os->holder.dev = st.st_dev;
	os->holder.ino = st.st_ino;
	__atomic_store_n(&os->holder.fd, fd, __ATOMIC_RELAXED);
	os_kick(os); /* the thread that sleeps does not know it yet */
	return fd;
}

int os_holder_ask(struct os *os, const char *name, struct os_holder *who)
{
	struct sockaddr_un sun;
	int len = name_address(name, &sun), fd, ret;

	if (len < 0)
		return len;
	fd = name_take(os);
	if (fd < 0)
		return fd;
	ret = sys_connect(fd, &sun, (socklen_t)len);
	if (ret == 0)
		return holder_check(os, fd, who);
	*who = OS_HOLDER_UNKNOWN;
	name_give(os, fd);
	/* something else has it */
	return ret == -EPROTOTYPE ? -EPERM : ret;
}

/* Is it still ours? The program may have closed it. */
static bool holder_is(const struct os *os, int fd)
{
	return fd != os->holder.fd || fd_is(fd, os->holder.dev, os->holder.ino);
}

bool os_holder_spoke(struct os *os)
{
	return __atomic_exchange_n(&os->holder.spoke, false, __ATOMIC_RELAXED);
}

int os_holder_says(struct os *os, int fd, uint64_t *secret)
{
	uint64_t word;
	struct iovec iov = {&word, sizeof(word)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;

	if (!holder_is(os, fd))
		return -EPIPE;
	n = sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n != sizeof(word))
		return n == -ECONNRESET ? -ECONNRESET : -EPIPE;
	*secret = word;
	return 1;
}

void os_holder_wait(struct os *os, int fd, uint64_t until_ns)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	const uint64_t now = clock_ns();
	struct timespec ts;

	(void)os;
	if (now < until_ns)
		(void)sys_ppoll(&p, 1, until(until_ns, now, &ts));
}

void os_holder_leave(struct os *os, int fd)
{
	const bool ours = holder_is(os, fd);

	__atomic_store_n(&os->holder.fd, -1, __ATOMIC_RELAXED);
	fork_forget(fd);
	if (ours)
		sys_close(fd);
}
