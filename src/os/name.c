/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name.c: names that processes of a host find each other by (design D4):
 * abstract unix sockets, unique in a network namespace, gone with the process.
 */
#include "os/impl.h"

#include <stddef.h>
#include <string.h>
#include <sys/un.h>

#define NAME_PREFIX "nopin/"

/**
 * os_claim() - Become the holder of @name.
 * @name: at most 100 bytes
 * Return: a descriptor; -EADDRINUSE while another holds it; -ENAMETOOLONG.
 */
int os_claim(struct os *os, const char *name)
{
	const size_t prefix = sizeof(NAME_PREFIX) - 1, len = strlen(name);
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd, ret;

	(void)os;
	if (!range_ok(1 + prefix, len, sizeof(sun.sun_path)))
		return -ENAMETOOLONG;
	memcpy(sun.sun_path + 1, NAME_PREFIX, prefix);
	memcpy(sun.sun_path + 1 + prefix, name, len);
	fd = fd_high(sys_socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fd;
	ret = sys_bind(fd, &sun,
		       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				   prefix + len));
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
