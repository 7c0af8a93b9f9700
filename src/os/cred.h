/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cred.h: the owner of the other end of a unix socket. */
#ifndef NOPIN_OS_CRED_H
#define NOPIN_OS_CRED_H

#include <stdbool.h>

struct ucred;

/**
 * cred_check() - Ask for the owner of the other end of the unix socket @fd.
 * @apart:	the thread's descriptors are not those of the process, for which
 *		files are kept open
 * Return: 0: our user's or root's; -EPERM: a stranger's.
 */
int cred_check(int fd, bool apart, struct ucred *who);

#endif
