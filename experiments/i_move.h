/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* i_move.h: what i_move.c and i_mover.c both know of a refused move. */
#ifndef NOPIN_EXPERIMENTS_I_MOVE_H
#define NOPIN_EXPERIMENTS_I_MOVE_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define NO_USERFAULTFD                                                         \
	"the kernel does not let us stop those who touch the memory meanwhile"

/* Does @why, as the NIC says it, mean that this host can move nothing so? A kernel
 * without userfaultfd, or a filter that hides it, is only told by its errno. */
static inline bool no_userfaultfd(const char *why)
{
	return strstr(why, "unprivileged_userfaultfd") ||
	       strcmp(why, strerror(ENOSYS)) == 0;
}

#endif
