/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* d_tenant.c: another user of a program's NIC. Preloaded into the server of an
 * unmodified perftest pair, it registers memory whose pages are slow and lets
 * d_fault, in another process, WRITE to it: the NIC meets page faults that are
 * none of the program's business.
 *
 * D_TENANT names the abstract socket of d_fault, D_KIND the memory. The program's
 * own thread does nothing of this but the beginning, before main().
 */
#include "lib.h"

#include "d_tenant.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>

static struct host h;
static struct link l;
static struct cold c;
static int fd;

/* The faulter asks for a new round when it has used up the pages of the last. */
static void *serve(void *unused)
{
	uint64_t word;

	while (recv(fd, &word, sizeof(word), MSG_WAITALL) == sizeof(word)) {
		word = (uintptr_t)cold_round(&c);
		if (send(fd, &word, sizeof(word), MSG_NOSIGNAL) < 0)
			break;
	}
	return unused;
}

__attribute__((constructor)) static void tenant_start(void)
{
	const char *name = getenv("D_TENANT"), *kind = getenv("D_KIND");
	pthread_t t;

	if (!name || !kind ||
	    strncmp(program_invocation_short_name, "ib_", 3) != 0)
		return;
	fd = tenant_socket(name, false);
	cold_open(&c, kind, TENANT_PAGES * PAGE, 1);
	host_open(&h);
	link_open(&l, &h, fd, host_reg(&h, c.base, cold_size(&c)));
	REQUIRE(pthread_create(&t, NULL, serve, NULL) == 0);
}
