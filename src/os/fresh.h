/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fresh.h: how long a page may be believed to be present. */
#ifndef NOPIN_OS_FRESH_H
#define NOPIN_OS_FRESH_H

#include <stdbool.h>
#include <stdint.h>

/** fresh_check() - Look at the host's reclaim counters, if it is time. */
void fresh_check(uint64_t now_ns);

/** fresh_wanted() - Was os_fresh_after() asked lately, so that looking makes sense? */
bool fresh_wanted(uint64_t now_ns);

/** fresh_still() - Was nothing reclaimed from @then_ns to a moment ago, and is
 * nothing about to be? Where something was in the last ten seconds more follows. */
bool fresh_still(uint64_t then_ns, uint64_t now_ns);

/** fresh_unsure() - Note that a page was served that goes in ways that are not counted. */
void fresh_unsure(uint64_t now_ns);

/** fresh_unknown(), fresh_known() - Note that it is not known if a page that was served is
 * one of these; and that now it is known. */
void fresh_unknown(void);
void fresh_known(void);

/** fresh_in_child() - Forget what was the parent's. Context: fork_forget_parent(), before
 * anything else of os/ runs in a child. */
void fresh_in_child(void);

#endif
