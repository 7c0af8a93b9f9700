/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* atfork.h: handlers of fork(). */
#ifndef NOPIN_OS_ATFORK_H
#define NOPIN_OS_ATFORK_H

/**
 * fork_init() - Before anything else of os/: in a child, forget what its parent had.
 * Return: 0 or -ENOMEM.
 */
int fork_init(void);

#endif
