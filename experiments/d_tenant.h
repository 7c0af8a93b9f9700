/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* d_tenant.h: what d_tenant.c and d_fault.c agree on. */
#ifndef NOPIN_EXPERIMENTS_D_TENANT_H
#define NOPIN_EXPERIMENTS_D_TENANT_H

#include "lib.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { TENANT_PAGES = 1024 };

/* @listens: for one connection. Return: the connected socket. */
static inline int tenant_socket(const char *name, bool listens)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	const int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const socklen_t n = (socklen_t)(offsetof(struct sockaddr_un, sun_path) +
					1 + strlen(name));
	int fd = s;

	REQUIRE(s >= 0 && strlen(name) + 1 < sizeof(a.sun_path));
	strcpy(a.sun_path + 1, name);
	if (!listens) {
		REQUIRE(connect(s, (struct sockaddr *)&a, n) == 0);
		return s;
	}
	REQUIRE(bind(s, (struct sockaddr *)&a, n) == 0);
	REQUIRE(listen(s, 1) == 0);
	out_row("listens", "%s", name);
	fflush(stdout);
	fd = accept4(s, NULL, NULL, SOCK_CLOEXEC);
	REQUIRE(fd >= 0);
	return fd;
}

#endif
