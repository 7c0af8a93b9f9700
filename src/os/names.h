/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* names.h: what processes of a host know each other by: names and their holders, the
 * control socket, the board. The rules are in run.h.
 */
#ifndef NOPIN_OS_NAMES_H
#define NOPIN_OS_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os;

/**
 * os_claim() - Become the holder of a name in this network namespace (an
 * abstract unix socket; the kernel frees it when the process dies).
 * Return: a number for os_unclaim() and os_claim_share(); -EADDRINUSE while another
 * process is the holder. Context: a thread of ours that never blocks does it.
 */
int os_claim(struct os *os, const char *name);
void os_unclaim(struct os *os, int claim);

/**
 * os_claim_share() - Tell @secret from now on to each process that asks the holder of
 * the name @claim, if it is of our user or root's, or we are root's; every 5 ms at most.
 * @port: of os_port_open(): the port that we speak to them from. No other process gets
 * it before they were told of our end.
 * Return: 0, or -errno. Context: one name of a NIC.
 */
int os_claim_share(struct os *os, int claim, int port, uint64_t secret);

/** os_claim_unshare() - Stop sharing the name: for processes that were told the holder has
 * ended. */
void os_claim_unshare(struct os *os);

/**
 * os_claim_closed() - Give up the name, the processes that were told, and the port, as
 * far as the door has descriptors of its own: the program has closed our descriptors.
 * None of the program's numbers is touched.
 * @claim:	is none any more
 */
void os_claim_closed(struct os *os, int claim);

/**
 * struct os_holder - The holder of a name, as our process and user namespaces see it.
 * @pid:	0: it is of another process namespace
 * @uid:	OS_NO_USER: the kernel did not say
 */
struct os_holder {
	int32_t pid;
	uint32_t uid;
};

#define OS_NO_USER	  UINT32_MAX /* is no uid (setuid(2)) */
#define OS_HOLDER_UNKNOWN ((struct os_holder){0, OS_NO_USER})

/**
 * os_holder_ask() - Ask the holder of @name for its secret, one at a time. Never
 * blocks.
 * @who: set, of a stranger too
 * Return: a descriptor, on which the background thread's os_wait() sleeps from now on;
 * -EPERM: it is neither our user's nor root's; -ECONNREFUSED: there is none, or it does
 * not share; -EAGAIN: too many ask, and it lets none in.
 */
int os_holder_ask(struct os *os, const char *name, struct os_holder *who);

/**
 * os_holder_says() - Read what it has said since. Never blocks.
 * Return: 1: its @secret; 0: nothing, and it lives; -EPIPE: it has ended, or does
 * not want us; -ECONNRESET: it ended before it let us in.
 */
int os_holder_says(struct os *os, int fd, uint64_t *secret);

/** os_holder_wait() - Sleep until it says something, or ends, or it is @until_ns. */
void os_holder_wait(struct os *os, int fd, uint64_t until_ns);
void os_holder_leave(struct os *os, int fd);
/** os_holder_spoke() - Has the background thread's os_wait() seen that it did, or
 * ended, since this was asked last? */
bool os_holder_spoke(struct os *os);

/**
 * os_ctl_open() - Let programs of our user and root ask questions: listen under
 * a name with our process id. A program that asks wakes the background thread.
 * Return: 0; -EADDRINUSE: another NIC of this process does. Context: a thread of the
 * program's.
 */
int os_ctl_open(struct os *os);

/**
 * os_ctl_take() - Read what a program asks, if anything was heard of it.
 * Never blocks, and lets one in every 50 ms at most.
 * @buf:	@size bytes, not terminated
 * Return: bytes > 0: os_ctl_answer() is due. -EAGAIN: none asks, or not now.
 * -EPERM: it may not ask; -EMSGSIZE: its request is too long: it has been told. A
 * program that was let in and says nothing stays as long as no other wants to be.
 * Context: background thread.
 */
int os_ctl_take(struct os *os, char *buf, size_t size);

/**
 * os_ctl_answer() - Say @error; or, if that is NULL, hand @text over as a file in
 * memory, so that a slow reader keeps no thread waiting.
 */
int os_ctl_answer(struct os *os, const char *error, const char *text,
		  size_t len);

enum { OS_NOTES_MAX = 256, OS_NOTE_BYTES = 192 };

/** struct os_note - Of the process @pid. Any process of the user may have written what is
 * in @bytes. */
struct os_note {
	int32_t pid;
	char name[20];
	uint8_t bytes[OS_NOTE_BYTES];
};

/**
 * os_board_open() - Join the board, where the processes of our user pin up notes for
 * each other. None of these functions waits for another process, whatever it does.
 * @dir:	where it is; NULL: in shared memory
 * Return: 0; -EBUSY: another NIC of this process has; -EUSERS: no room; -EPERM: the
 * file there is not ours alone; -EBADMSG: it is something else; -ENOENT, ...
 * Context: this and the others: one thread at a time.
 */
int os_board_open(struct os *os, const char *dir);
void os_board_close(struct os *os);

/**
 * os_board_post() - Pin up a note of OS_NOTE_BYTES, in place of the one before.
 * Return: 0; -EBADF: the board is lost (the program closed it, or a process broke it).
 */
int os_board_post(struct os *os, const void *note);

/**
 * os_board_read() - Read the notes of the other processes that are alive.
 * @out:	of OS_NOTES_MAX; good until the next call
 * Return: how many; -EBADF: as os_board_post().
 */
int os_board_read(struct os *os, const struct os_note **out);

/** os_board_mine() - Return our own note, as it was posted last. */
const struct os_note *os_board_mine(struct os *os);

#endif
