/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* refuse.h: a host that refuses things. os/ makes every system call through
 * syscall(2), which refuse.c replaces: a call that matches a rule fails with
 * the errno the rule says, as on a kernel without the feature.
 */
#ifndef NOPIN_TESTS_REFUSE_H
#define NOPIN_TESTS_REFUSE_H

/** refuse() - Fail calls @nr whose argument @arg (-1: any) is @value. */
void refuse(long nr, int arg, long value, int err);

/** refuse_nth() - Fail the @n-th call @nr from now on (1: the next), once. */
void refuse_nth(long nr, unsigned n, int err);

/** meanwhile() - The program does @what just before the next call @nr, once. */
void meanwhile(long nr, void (*what)(void));

/** redirect() - Who opens or looks for @path gets @to. Both are kept, not copied. */
void redirect(const char *path, const char *to);

/** refuse_none() - Forget all rules, redirections and counts. */
void refuse_none(void);

/** refuse_calls() - How many calls @nr were made since refuse_none(). */
unsigned refuse_calls(long nr);

#endif
