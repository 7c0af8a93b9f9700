/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* alone.c: gives a test program a network of its own; `alone COMMAND...` gives it to a
 * command.
 *
 * NICs hold UDP port 4791 and abstract sockets, which are one for each network
 * namespace, and share a board in /dev/shm, so another NIC on the host would change what
 * these tests see. Before main() the program moves to new namespaces with a loopback
 * device and an empty /dev/shm. Where that is refused it waits until no other such program of its directory runs.
 */
#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ALL = CLONE_NEWNET | CLONE_NEWNS };

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

	if (unshare(CLONE_NEWUSER | ALL))
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

/* In a chroot "/" need not be a mount.
 * Return: 0; -1: /dev/shm stays everybody's. */
static int shm_empty(void)
{
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	    mount("none", "/dev/shm", NULL, MS_PRIVATE, NULL))
		return -1;
	return mount("tmpfs", "/dev/shm", "tmpfs", 0, "mode=1777");
}

static void wait_for_others(void)
{
	/* /proc may name it as seen from outside of a chroot */
	char *path = strdup((const char *)getauxval(AT_EXECFN)), *slash;
	int fd;

	if (!path)
		abort();
	slash = strrchr(path, '/');
	if (slash)
		slash[1] = '\0';
	/* also of a command */
	fd = open(slash ? path : ".", O_RDONLY | O_DIRECTORY);
	free(path);
	if (fd < 0 || flock(fd, LOCK_EX))
		abort();
}

static __attribute__((constructor)) void be_alone(void)
{
	if (!unshare(ALL) || !unshare_as_user(getuid(), getgid())) {
		if (loopback_up())
			abort();
		if (!shm_empty())
			return;
	}
	wait_for_others();
}
