/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fork.h: what fork() means to a NIC. */
#ifndef NOPIN_OS_FORK_H
#define NOPIN_OS_FORK_H

#include <stdbool.h>
#include <stdint.h>

/** fork_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void fork_in_child(void);

/** fork_begin() - Begin a fork(): faults and steps wait until fork_end(), by the same
 * thread of the parent. */
void fork_begin(void);
void fork_end(void);

uint64_t fork_count(void);
bool fork_in_progress(void);

/**
 * fork_close_in_child() - Let each forked child close @fd (a socket), which it must not
 * keep alive. fork_forget() before it is closed here.
 */
void fork_close_in_child(int fd);
void fork_forget(int fd);

/** fork_stop() - Let fork() wait until fork_go_on(), by the same thread. */
void fork_stop(void);
void fork_go_on(void);

/**
 * fork_keep_present() - Make [addr, addr + bytes), which no child gets, present before
 * each fork(). fork_let_go() before it is unmapped.
 */
void fork_keep_present(uint64_t addr, uint64_t bytes);
void fork_let_go(uint64_t addr);

#endif
