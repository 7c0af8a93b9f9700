/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atfork.h: handlers of fork(). */
#ifndef NOPIN_OS_ATFORK_H
#define NOPIN_OS_ATFORK_H

/**
 * fork_init() - Forget, in a child of fork(), all that its parent had.
 * Return: 0 or -ENOMEM. Context: before anything else of os/.
 */
int fork_init(void);

#endif
