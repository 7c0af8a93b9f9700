/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace.c: nopin trace PID: prints what the NIC of a running program did last:
 * its counters and, of each QP, the state and the flight recorder. The program
 * listens on an abstract unix socket named by its process id, and answers with
 * the descriptor of a file that holds the text.
 */
#include "nopin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { PATIENCE_MS = 5000 };

/* Abstract names belong to a network namespace: go where the program is.
 * Return: 0 or an errno.
 */
static int enter_netns(long pid)
{
	struct stat ours, theirs;
	char path[64];
	int fd, err = 0;

	snprintf(path, sizeof(path), "/proc/%ld/ns/net", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? ESRCH : errno;
	if (fstat(fd, &theirs) < 0 || stat("/proc/self/ns/net", &ours) < 0 ||
	    ((ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) &&
	     setns(fd, CLONE_NEWNET) < 0))
		err = errno;
	close(fd);
	return err;
}

/* Return: a connection, or -errno. Only the process itself may answer: anybody
 * could have taken its name.
 */
static int ask(long pid)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const int n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			       "nopin/trace/%ld", pid);
	const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct ucred who = {0};
	socklen_t len = sizeof(who);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sun,
		    (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 +
			    (socklen_t)n) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) < 0)
		err = errno;
	else if (who.pid != pid)
		err = EPERM;
	if (!err)
		return fd;
	close(fd);
	return -err;
}

/* Return: the descriptor that the program sent, or -errno. */
static int receive(int sock)
{
	struct pollfd wait = {.fd = sock, .events = POLLIN};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte;
	struct iovec iov = {&byte, 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.space,
			   .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	if (poll(&wait, 1, PATIENCE_MS) == 0)
		return -ETIMEDOUT;
	n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	c = CMSG_FIRSTHDR(&m);
	if (n == 0 || !c || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -EACCES; /* closed without an answer: not for us */
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static bool print_file(int fd)
{
	char buf[65536];
	ssize_t n;
	off_t at = 0;

	while ((n = pread(fd, buf, sizeof(buf), at)) > 0) {
		if (fwrite(buf, 1, (size_t)n, stdout) != (size_t)n)
			return false;
		at += n;
	}
	return n == 0 && fflush(stdout) == 0;
}

static int explain(long pid, int err)
{
	switch (err) {
	case ESRCH:
		complain("trace: there is no process %ld", pid);
		break;
	case ECONNREFUSED:
		complain("trace: process %ld has no NIC open", pid);
		break;
	case EACCES:
	case EPERM:
		complain("trace: process %ld is not yours", pid);
		break;
	default:
		complain("trace: process %ld: %s", pid, strerror(err));
	}
	return EXIT_BROKEN;
}

int trace_main(int argc, char **argv)
{
	char *end;
	long pid;
	int err, sock, fd;

	errno = 0;
	pid = argc == 2 ? strtol(argv[1], &end, 10) : 0;
	if (pid <= 0 || pid > INT_MAX || errno || *end) {
		complain("trace: of which process?");
		return EXIT_USAGE;
	}
	err = enter_netns(pid);
	if (err)
		return explain(pid, err);
	sock = ask(pid);
	if (sock < 0)
		return explain(pid, -sock);
	fd = receive(sock);
	if (fd < 0)
		return explain(pid, -fd);
	if (print_file(fd))
		return 0;
	complain("trace: %s", strerror(errno));
	return EXIT_BROKEN;
}
