/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fd.h: descriptors of a guest: CLOEXEC, and out of the program's way. */
#ifndef NOPIN_OS_FD_H
#define NOPIN_OS_FD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

/** union scm_rights - The control message that carries one descriptor. */
union scm_rights {
	struct cmsghdr align;
	char space[CMSG_SPACE(sizeof(int))];
};

/** scm_rights_add() - Let @m, which has no control message yet, carry @fd in @c. */
void scm_rights_add(struct msghdr *m, union scm_rights *c, int fd);

/** fd_send() - Send one byte to the socket @to, and @fd with it if that is one. Never
 * blocks. Return: -errno if it was not sent. */
int fd_send(int to, int fd);

/** fd_high() - Move @fd (or pass -errno on) out of the program's way. */
int fd_high(int fd);

/** fd_spare() - May the program lack descriptors that we keep in case they are needed? */
bool fd_spare(void);

/** fd_event() - Move @fd as fd_high() does, but to a number that select(2) takes: a program
 * may hand it to that. */
int fd_event(int fd);

/** fd_is() - Is @fd open, and the file that @dev and @ino say? The program may have closed
 * it. */
bool fd_is(int fd, uint64_t dev, uint64_t ino);

/** fd_close() - Close if it is one; -1 and -errno are left alone. */
void fd_close(int fd);

/** fd_memory() - Open a file in memory: a memfd, or where that is refused an
 * unlinked file in /dev/shm or /tmp. Return: descriptor or -errno.
 */
int fd_memory(const char *name, uint64_t bytes);

/** fd_rlimit() - Return the soft limit RLIMIT_@what; @unknown if it cannot be asked for. */
uint64_t fd_rlimit(int what, uint64_t unknown);

/** fd_may_have() - May a file be written up to @bytes? (RLIMIT_FSIZE) */
bool fd_may_have(uint64_t bytes);

/** fd_resize() - Resize @fd to @bytes as ftruncate(2) does: an empty file, or to more.
 * Return: 0; -EFBIG: the program set itself a limit; -errno. Never raises SIGXFSZ. */
int fd_resize(int fd, uint64_t bytes);

#endif
