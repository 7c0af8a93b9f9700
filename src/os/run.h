/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h: a NIC on its host: opened and closed, its clock, its threads and its forks.
 *
 * src/os/ is the only place that makes system calls. tests/simhost has the same
 * façades (run.h, net.h, wait.h, copy.h, pages.h, names.h) over virtual time, a virtual
 * network and virtual pages; a program links one or the other.
 *
 * Rules of all of them (design D8, D9, D13): no function but os_wait_in_verb() and
 * os_event_wait() is a cancellation point. None uses more than 2 KiB of stack. errno is
 * kept. Every descriptor is CLOEXEC and moved to a high number. Nothing is written to
 * standard output. Unless it says otherwise a function may be called from any thread
 * and returns 0 or -errno.
 */
#ifndef NOPIN_OS_RUN_H
#define NOPIN_OS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os;

/**
 * struct os_config - What the environment asked for, already checked.
 * @addr:	NOPIN_ADDR: comma-separated addresses or interface names to
 *		offer, or NULL for all
 * @no_gso, @no_gro: refuse the feature as a kernel without it would
 * @pagers:	pager threads to start at most (0: no pagers, a page asked for
 *		never comes; for tests)
 */
struct os_config {
	const char *addr;
	bool no_gso, no_gro;
	unsigned pagers;
};

int os_open(struct os **out, const struct os_config *cfg);

/** os_close() - Close @os: end the pagers and the door, and close every descriptor.
 * Context: all other threads of ours have ended. */
void os_close(struct os *os);

/** os_now() - Read the monotonic clock, ns. Never 0. */
uint64_t os_now(struct os *os);

/** os_random() - Fill @buf with @len bytes of the kernel's randomness. */
void os_random(struct os *os, void *buf, size_t len);

/**
 * os_memory_limit() - Name the limit of the process that may be why memory is short.
 * @text:	of @size bytes, set: a phrase, terminated
 */
void os_memory_limit(char *text, size_t size);

/** os_memory_left() - Could @bytes more be mapped now, as far as limits go? */
bool os_memory_left(size_t bytes);

/** os_descriptor_limit() - Return how many descriptors the process may have. */
uint64_t os_descriptor_limit(void);

/**
 * os_prepare() - Open what threads of ours may need next. A descriptor that is opened
 * has the lowest free number of the program for a moment, which the program does not
 * expect of other threads than those that call verbs.
 * Context: a thread of the program, no lock held.
 */
void os_prepare(struct os *os);

/** os_prepare_due() - Was something used that os_prepare() had opened, since this was
 * asked last? Cheap. */
bool os_prepare_due(struct os *os);

/** os_log() - Write a finished line to standard error, unless a pipe is full. */
void os_log(const char *line, size_t len);

struct os_thread;
/** os_thread_start() - Start a thread as design D13 says: named, signals blocked. */
int os_thread_start(struct os *os, struct os_thread **out, const char *name,
		    void (*fn)(void *arg), void *arg);
void os_thread_join(struct os_thread *t);

/** os_self() - Name the thread that runs, in its process; not 0. */
uintptr_t os_self(void);

/** os_relax() - Pause for a moment in a spin. */
void os_relax(void);

/** os_child() - Are we a fork()ed child of the process that opened @os (or NULL)? */
bool os_child(const struct os *os);

/** os_forks() - Count the forks of this process since os_open(). */
uint64_t os_forks(const struct os *os);

/** os_forking() - Is it in fork()? Faults wait until it is not. */
bool os_forking(const struct os *os);

/**
 * os_step_begin() - Hold off forks up to os_step_end(): what is found out about pages
 * from here on may be used until then without asking for forks again. One that begins
 * meanwhile waits for the end, 5 ms at most.
 * Return: to be handed to os_step_end(). false: a fork is on, and does not wait.
 */
bool os_step_begin(void);
void os_step_end(bool begun);

#endif
