/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wait.h: sleeping, and what ends that. The rules are in run.h.
 */
#ifndef NOPIN_OS_WAIT_H
#define NOPIN_OS_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct os;

/**
 * struct os_signals - Of a thread of the program in a verb that may sleep; begins
 * as {.blocked = false}.
 * @mask:	signals that the program blocks there, bit n - 1 for signal n; known while
 *		@blocked
 * @let_in_ns:	os_wait_in_verb()'s own: they surely were let in then; 0: not since
 *		@blocked
 * @asked:	the kernel was just asked which handlers there are, for the next sleep
 */
struct os_signals {
	uint64_t mask, let_in_ns;
	bool blocked, asked;
};

/** os_signals_block() - Block signals until os_signals_restore(): only os_wait_in_verb()
 * lets them in. Those that a fault of the thread raises are not blocked. */
void os_signals_block(struct os_signals *s);
void os_signals_restore(struct os_signals *s);

/**
 * os_signals_differ() - Are handlers installed that are to end a wait, and others
 * with SA_RESTART? Then only os_event_wait() does what each wants.
 */
bool os_signals_differ(struct os_signals *s);

/* EVENT: nothing but @extra_fd. */
enum os_wait_for { OS_WAIT_TIMER, OS_WAIT_PACKETS, OS_WAIT_EVENT };

/**
 * os_wait() - Sleep until a page answer, a kick, the deadline or, if asked, a
 * packet. @extra_fd (or -1): also until it is readable, and not for a kick.
 * Context: threads of ours; several may wait at once.
 */
void os_wait(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
	     int extra_fd);

/**
 * os_wait_in_verb() - Sleep as os_wait() does, in a thread of the program. A
 * cancellation point.
 * @s:		blocked: are let in, also if the deadline has passed
 * Return: 0; -EINTR: a handler without SA_RESTART ran.
 */
int os_wait_in_verb(struct os *os, enum os_wait_for what, uint64_t deadline_ns,
		    int fd, struct os_signals *s);

/**
 * os_event_wait() - Sleep until @fd, an event, is set, which it stays; or for no
 * reason. Signals are as in read(2).
 * @s:		restored
 * Return: 0; -EINTR. Context: a thread of the program; a cancellation point.
 */
int os_event_wait(int fd, struct os_signals *s);

/** os_doze() - Sleep until @event_fd (or -1) is set, which it clears, or
 * @deadline_ns. */
void os_doze(struct os *os, int event_fd, uint64_t deadline_ns);

/** os_has_packet() - Is there one in a socket, for any thread that asks? */
bool os_has_packet(const struct os *os);
/** os_kick() - Wake the background thread out of os_wait(). */
void os_kick(struct os *os);
/** os_closed() - Did os_wait() find that the program closed our descriptors? */
bool os_closed(const struct os *os);

/** os_event_open() - Open a pollable descriptor; it starts unreadable. */
int os_event_open(void);
/** os_event_own() - Open one that no program is told of: out of its way. */
int os_event_own(void);
void os_event_set(int fd);
/** os_event_clear() - Return: true if it was set. */
bool os_event_clear(int fd);
void os_event_close(int fd);
/** os_event_nonblock() - Did the program set O_NONBLOCK on it? */
bool os_event_nonblock(int fd);

#endif
