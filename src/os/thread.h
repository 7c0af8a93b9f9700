/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* thread.h: threads of a guest. */
#ifndef NOPIN_OS_THREAD_H
#define NOPIN_OS_THREAD_H

#include <stddef.h>

struct os_thread;

/** thread_start() - Start a thread as os_thread_start(), with a stack of @stack_bytes. */
int thread_start(struct os_thread **out, const char *name,
		 void (*fn)(void *arg), void *arg, size_t stack_bytes);

/** thread_leave() - Leave @t to itself instead of joining it. It keeps its stack for ever,
 * unless it has ended already. */
void thread_leave(struct os_thread *t);

#endif
