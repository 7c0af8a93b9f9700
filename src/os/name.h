/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* name.h: names and the processes that go by them, as the door sees them. */
#ifndef NOPIN_OS_NAME_H
#define NOPIN_OS_NAME_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct os;

enum {
	OS_GUESTS_MAX = 128, /* processes that go by the holder of a name */
	OS_SPARES = 8, /* sockets to ask the holders of names with */
};

/** struct os_guest - A process that was told our secret. @stranger: of another user */
struct os_guest {
	int fd;
	uid_t uid;
	bool stranger;
};

/* What the door waits for, and does when it comes; on its thread only. */
unsigned claim_watch(const struct os *os, struct pollfd *fds, unsigned n,
		     uint64_t now_ns, uint64_t *until_ns);
void claim_heard(struct os *os);
void claim_close(struct os *os);

/** claim_make() - Become the holder of the name @arg, as os_claim().
 * Context: door_call(). */
int claim_make(struct os *os, void *arg);

void name_close(struct os *os);
/** name_prepare() - Open the sockets to ask holders with that were used. */
void name_prepare(struct os *os);

#endif
