/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name.c: names that processes of a host find each other by (design D4):
 * abstract unix sockets, unique in a network namespace, gone with the process.
 *
 * Anybody may take a name, and say over UDP that he has it. So whoever goes by what
 * the holder of a name says asks the kernel whose process that is, is told a secret
 * over the unix socket, which no other process can read, and takes the end of that
 * connection for the end of the holder. The holder has a descriptor for each of these
 * guests: no user but ours and root has more of them than are left.
 */
#include "os/impl.h"

#include <stddef.h>
#include <string.h>
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

static int name_socket(void)
{
	return fd_high(sys_socket(
		AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

/**
 * os_claim() - Become the holder of @name.
 * @name: at most 100 bytes
 * Return: a descriptor; -EADDRINUSE while another holds it; -ENAMETOOLONG.
 */
int os_claim(struct os *os, const char *name)
{
	struct sockaddr_un sun;
	int len = name_address(name, &sun), fd, ret;

	(void)os;
	if (len < 0)
		return len;
	fd = name_socket();
	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &sun, (socklen_t)len);
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	fork_close_in_child(fd);
	return fd;
}

void os_unclaim(int fd)
{
	fork_forget(fd);
	sys_close(fd);
}

/* --- the holder ------------------------------------------------------------------ */

int os_claim_share(struct os *os, int fd, uint64_t secret)
{
	int ret = (int)sys_call(SYS_listen, fd, GUESTS_BACKLOG, 0, 0, 0, 0);

	if (ret < 0)
		return ret;
	os->claim_secret = secret;
	__atomic_store_n(&os->claim_fd, fd, __ATOMIC_RELEASE);
	return 0;
}

static void guest_leave(struct os *os, unsigned i)
{
	fork_forget(os->guest[i].fd);
	sys_close(os->guest[i].fd);
	os->guest[i] = os->guest[--os->guests];
}

void os_claim_unshare(struct os *os)
{
	__atomic_store_n(&os->claim_fd, -1, __ATOMIC_RELAXED);
	while (os->guests)
		guest_leave(os, os->guests - 1);
}

/* Has it ended, or closed its end? It never says anything. */
static bool guest_gone(int fd)
{
	char byte;
	struct iovec iov = {&byte, sizeof(byte)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};

	return sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_PEEK) != -EAGAIN;
}

static bool guest_welcome(const struct os *os, bool stranger, uid_t uid)
{
	unsigned of_user = 0;

	if (!stranger)
		return os->guests < OS_GUESTS_MAX;
	if (sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) != 0)
		return false; /* to him we are a stranger, too */
	for (unsigned i = 0; i < os->guests; i++)
		of_user += os->guest[i].uid == uid;
	return of_user < OS_GUESTS_MAX - os->guests;
}

/* It has asked the kernel whose we are; what it gets is its own affair. */
static void guest_take(struct os *os, int fd)
{
	struct iovec iov = {&os->claim_secret, sizeof(os->claim_secret)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct ucred who;
	const bool stranger = cred_check(fd, &who) != 0;

	if (!guest_welcome(os, stranger, who.uid) ||
	    sys_sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		sys_close(fd);
		return;
	}
	fork_close_in_child(fd);
	os->guest[os->guests++] = (struct os_guest){fd, who.uid};
}

void os_claim_serve(struct os *os)
{
	const int claim = __atomic_load_n(&os->claim_fd, __ATOMIC_ACQUIRE);
	int fd;

	if (!__atomic_exchange_n(&os->claim_asked, false, __ATOMIC_RELAXED) ||
	    claim < 0)
		return;
	__atomic_store_n(&os->claim_after_ns, clock_ns() + GUESTS_PERIOD_NS,
			 __ATOMIC_RELAXED);
	for (unsigned i = os->guests; i-- > 0;)
		if (guest_gone(os->guest[i].fd))
			guest_leave(os, i);
	for (int i = 0; i < GUESTS_BACKLOG; i++) {
		fd = fd_high((int)sys_call(SYS_accept4, claim, 0, 0,
					   SOCK_CLOEXEC | SOCK_NONBLOCK, 0, 0));
		if (fd < 0)
			break;
		guest_take(os, fd);
	}
}

/* --- the guests -------------------------------------------------------------------- */

int os_holder_ask(struct os *os, const char *name, struct os_holder *who)
{
	struct sockaddr_un sun;
	int len = name_address(name, &sun), fd, ret;
	struct ucred cred = {0};

	if (len < 0)
		return len;
	fd = name_socket();
	if (fd < 0)
		return fd;
	ret = sys_connect(fd, &sun, (socklen_t)len);
	if (ret == 0)
		ret = cred_check(fd, &cred);
	if (ret == -EPROTOTYPE) /* something else has it */
		ret = -EPERM;
	*who = (struct os_holder){cred.pid, cred.uid};
	if (ret < 0) {
		sys_close(fd);
		return ret;
	}
	fork_close_in_child(fd);
	__atomic_store_n(&os->holder_fd, fd, __ATOMIC_RELAXED);
	return fd;
}

bool os_holder_spoke(struct os *os)
{
	return __atomic_exchange_n(&os->holder_spoke, false, __ATOMIC_RELAXED);
}

int os_holder_says(struct os *os, int fd, uint64_t *secret)
{
	uint64_t word;
	struct iovec iov = {&word, sizeof(word)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	const ssize_t n = sys_recvmsg(fd, &m, MSG_DONTWAIT | MSG_TRUNC);

	(void)os;
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n != sizeof(word))
		return -EPIPE;
	*secret = word;
	return 1;
}

void os_holder_leave(struct os *os, int fd)
{
	__atomic_store_n(&os->holder_fd, -1, __ATOMIC_RELAXED);
	fork_forget(fd);
	sys_close(fd);
}
