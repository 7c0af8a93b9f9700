/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cred.c: is the other end of a unix socket our user's, or root's? The kernel tells
 * a number (SO_PEERCRED). A user that our user namespace has no number for is told
 * as the overflow uid, 65534, which is also the number of Debian's nobody. So that
 * number proves nothing unless the namespace has one for everybody, or the process is
 * in it.
 */
#include "os/cred.h"
#include "base/check.h"
#include "os/fd.h"
#include "os/file.h"
#include "os/sys.h"
#include "os/sys_file.h"
#include "os/sys_socket.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

enum { OVERFLOW_UID = 65534 };

/* Return: bytes of text in @buf, always terminated. */
static size_t read_text(const char *path, bool apart, char *buf, size_t size)
{
	const int fd = apart ? sys_open(path, O_RDONLY) : file_borrow(path);
	ssize_t n = fd < 0 ? 0 : sys_pread(fd, buf, size - 1, 0);

	if (apart)
		fd_close(fd);
	else
		file_return(fd);
	n = MAX(n, (ssize_t)0);
	buf[n] = '\0';
	return (size_t)n;
}

static uint32_t overflow_uid(bool apart)
{
	char text[32];

	if (!read_text("/proc/sys/kernel/overflowuid", apart, text,
		       sizeof(text)))
		return OVERFLOW_UID;
	return (uint32_t)strtoul(text, NULL, 10);
}

/* Has our user namespace a number for each user there can be? */
static bool every_uid_mapped(bool apart)
{
	enum { INSIDE, OUTSIDE, COUNT, NUMBERS };
	unsigned long number[NUMBERS];
	char text[128], *at = text;

	if (!read_text("/proc/self/uid_map", apart, text, sizeof(text)))
		return false;
	for (unsigned i = 0; i < NUMBERS; i++) {
		char *from = at;

		number[i] = strtoul(from, &at, 10);
		if (at == from)
			return false;
	}
	return number[INSIDE] == 0 && number[COUNT] == UINT32_MAX;
}

static bool in_our_userns(pid_t pid)
{
	struct stat ours, theirs;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/user", pid);
	return sys_stat("/proc/self/ns/user", &ours) == 0 &&
	       sys_stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
	       ours.st_ino == theirs.st_ino;
}

/* A process id may be another's by now. A kernel that can say so (6.5) is asked;
 * one that cannot leaves a stranger the chance to wait until its number is given to
 * a process of this namespace. */
static bool peer_lives(int fd)
{
	int pidfd = -1,
	    ret = sys_getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd);
	struct timespec now = {0};
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	if (ret < 0)
		return ret == -ENOPROTOOPT;
	ret = sys_ppoll(&p, 1, &now);
	sys_close(pidfd);
	return ret == 0;
}

/**
 * cred_check() - See cred.h.
 * @who: set, also to a stranger's; pid 0 and no uid if the kernel does not tell
 */
int cred_check(int fd, bool apart, struct ucred *who)
{
	struct ucred peer = {.uid = UINT32_MAX, .gid = UINT32_MAX};
	socklen_t len = sizeof(peer);
	long ret;

	ret = sys_call(SYS_getsockopt, fd, SOL_SOCKET, SO_PEERCRED,
		       SYS_PTR(&peer), SYS_PTR(&len), 0);
	*who = peer;
	if (ret < 0)
		return (int)ret;
	if (peer.uid != 0 &&
	    peer.uid != (uid_t)sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0))
		return -EPERM;
	if (peer.uid != overflow_uid(apart) || every_uid_mapped(apart))
		return 0;
	return in_our_userns(peer.pid) && peer_lives(fd) ? 0 : -EPERM;
}
