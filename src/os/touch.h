/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* touch.h: a page touched from user mode. */
#ifndef NOPIN_OS_TOUCH_H
#define NOPIN_OS_TOUCH_H

#include <stdbool.h>
#include <stdint.h>

/**
 * touch_page() - Load one byte at @addr, or (@write) or-in nothing, from user
 * mode. Context: a pager: SIGSEGV and SIGBUS not blocked. Return: 0, -EFAULT.
 */
int touch_page(uint64_t addr, bool write);

/** touch_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void touch_in_child(void);

#endif
