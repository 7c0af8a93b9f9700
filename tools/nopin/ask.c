/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ask.c: asks the NIC of a running program. It listens on an abstract unix
 * socket named by its process id, takes one message, the request, and answers
 * with "ok" and the descriptor of a file that holds the text, or with "error" and
 * why, or asks to come "again".
 */
#include "nopin.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

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
static int dial(long pid)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	const int n = snprintf(sun.sun_path + 1, sizeof(sun.sun_path) - 1,
			       "nopin/ctl/%ld", pid);
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

/* Return: the descriptor that the program sent, or -errno; @why: what it said. */
static int receive(int sock, int patience_ms, char why[ASK_WHY_MAX])
{
	struct pollfd wait = {.fd = sock, .events = POLLIN};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = {why, ASK_WHY_MAX - 1};
	struct msghdr m = {.msg_iov = &iov,
			   .msg_iovlen = 1,
			   .msg_control = control.space,
			   .msg_controllen = sizeof(control.space)};
	struct cmsghdr *c;
	ssize_t n;
	int fd;

	if (poll(&wait, 1, patience_ms) == 0)
		return -ETIMEDOUT;
	n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	if (n <= 0)
		return n ? -errno : -ECONNRESET;
	why[n] = '\0';
	c = CMSG_FIRSTHDR(&m);
	if (strcmp(why, "ok") == 0 && c && c->cmsg_level == SOL_SOCKET &&
	    c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(fd))) {
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
		return fd;
	}
	if (strcmp(why, "again") == 0)
		return -EAGAIN; /* another one waited; nothing was done */
	if (strncmp(why, "error ", 6) != 0)
		return -EPROTO;
	memmove(why, why + 6, strlen(why + 6) + 1);
	return -EREMOTEIO;
}

/* Return: a text, to be freed, with its length; or NULL with errno. */
static char *read_file(int fd, size_t *len)
{
	struct stat st;
	char *text = NULL;

	if (fstat(fd, &st) == 0 && st.st_size >= 0)
		text = malloc((size_t)st.st_size + 1);
	for (*len = 0; text && *len < (size_t)st.st_size;) {
		ssize_t n = pread(fd, text + *len, (size_t)st.st_size - *len,
				  (off_t)*len);

		if (n > 0) {
			*len += (size_t)n;
		} else if (n == 0 || errno != EINTR) {
			free(text);
			return NULL;
		}
	}
	if (text)
		text[*len] = '\0';
	return text;
}

static void explain(int err, char why[ASK_WHY_MAX])
{
	const char *what = strerror(err);

	if (err == EREMOTEIO)
		return; /* it did so itself */
	if (err == ESRCH)
		what = "there is no such process";
	else if (err == ECONNREFUSED)
		what = "it has no NIC open";
	else if (err == EACCES || err == EPERM)
		what = "it is not yours";
	else if (err == ECONNRESET)
		what = "it ended before it answered";
	else if (err == ETIMEDOUT || err == EAGAIN)
		what = "it does not answer";
	snprintf(why, ASK_WHY_MAX, "%s", what);
}

/* Return: as receive(). */
static int ask_once(long pid, const char *request, int patience_ms,
		    char why[ASK_WHY_MAX])
{
	const int sock = dial(pid);
	int ret = sock;

	if (sock < 0)
		return ret;
	/* Whoever refuses us may have hung up already, but has said why. */
	if (send(sock, request, strlen(request), MSG_NOSIGNAL) < 0 &&
	    errno != EPIPE && errno != ECONNRESET)
		ret = -errno;
	else
		ret = receive(sock, patience_ms, why);
	close(sock);
	return ret;
}

static int ms_since(const struct timespec *begin)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int)((now.tv_sec - begin->tv_sec) * 1000 +
		     (now.tv_nsec - begin->tv_nsec) / 1000000);
}

char *ask_nic(long pid, const char *request, int patience_ms, size_t *len,
	      char why[ASK_WHY_MAX])
{
	int err = enter_netns(pid), fd = -1, left = patience_ms;
	struct timespec begin;
	char *text = NULL;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	why[0] = '\0';
	while (!err) {
		fd = ask_once(pid, request, left, why);
		err = fd < 0 ? -fd : 0;
		left = patience_ms - ms_since(&begin);
		if (err != EAGAIN || left <= 0)
			break;
		err = 0;
	}
	if (!err) {
		text = read_file(fd, len);
		err = text ? 0 : errno;
		close(fd);
	}
	if (err)
		explain(err, why);
	return text;
}

bool parse_number(const char *word, int base, long min, long max, long *n)
{
	char *end;

	errno = 0;
	*n = strtol(word, &end, base);
	return !errno && *n >= min && *n <= max && !*end && end != word;
}

bool parse_pid(const char *word, long *pid)
{
	return parse_number(word, 10, 1, INT_MAX, pid);
}
