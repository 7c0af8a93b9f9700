/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* alone.c: gives a test program a network of its own.
 *
 * NICs hold UDP port 4791 and abstract sockets, which are one for each network
 * namespace, so another NIC on the host would change what these tests see. Before
 * main() the program moves to a new namespace with a loopback device. Where that is
 * refused it waits until no other test program of this directory runs.
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int put(const char *path, const char *text)
{
	const ssize_t len = (ssize_t)strlen(text);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int err = fd < 0 || write(fd, text, (size_t)len) != len;

	if (fd >= 0)
		close(fd);
	return err;
}

/* The user stays the same one in a namespace of users of its own. */
static int unshare_as_user(unsigned uid, unsigned gid)
{
	char line[64];

	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return -1;
	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	if (put("/proc/self/uid_map", line))
		return -1;
	put("/proc/self/setgroups", "deny");
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	return put("/proc/self/gid_map", line);
}

static int loopback_up(void)
{
	struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = fd < 0 || ioctl(fd, SIOCSIFFLAGS, &lo);

	if (fd >= 0)
		close(fd);
	return err;
}

static void wait_for_others(void)
{
	char path[4096], *slash;
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
	int fd;

	if (len < 0)
		abort();
	path[len] = '\0';
	slash = strrchr(path, '/');
	*slash = '\0';
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_EX))
		abort();
}

static __attribute__((constructor)) void be_alone(void)
{
	if (!unshare(CLONE_NEWNET) || !unshare_as_user(getuid(), getgid())) {
		if (loopback_up())
			abort();
		return;
	}
	wait_for_others();
}
