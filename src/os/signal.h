/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* signal.h: signals of a thread of the program that waits in a verb. */
#ifndef NOPIN_OS_SIGNAL_H
#define NOPIN_OS_SIGNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct os_signals;

/** struct caught - Signals with a handler: with SA_RESTART, and without. */
struct caught {
	uint64_t restarts, ends;
};

/**
 * caught_before() - Read the installed handlers, for a sleep that begins now.
 * @again_ns:	by then it is to end, and to ask again: later if it has just been asked,
 *		now or by os_signals_differ()
 */
struct caught caught_before(struct os_signals *s, uint64_t now_ns,
			    uint64_t *again_ns);

/**
 * signals_libc_open() - Open a descriptor that is readable, for each thread, while the
 * signal waits by which the C library has the thread change its ids.
 * Return: -errno: a filter of system calls denies it, or the process has no more.
 */
int signals_libc_open(void);

/**
 * signals_mask() - Return what a sleep blocks: what the program does, and that signal
 * where it would end the wait.
 * @before:	from caught_before()
 * @libc_fd:	from signals_libc_open(), and in the sleep; -1: none, so it is let in
 */
sigset_t signals_mask(const struct os_signals *s, struct caught before,
		      int libc_fd);

/** signals_in_child() - Let it in, in a child of fork() that a handler made in a sleep. */
void signals_in_child(void);

/** caught_ends() - Is the verb, whose sleep was interrupted, to end with EINTR? */
bool caught_ends(const struct os_signals *s, struct caught before);

#endif
