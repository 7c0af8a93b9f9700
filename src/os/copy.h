/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* copy.h: copies between application memory and a NIC's. The rules are in run.h.
 */
#ifndef NOPIN_OS_COPY_H
#define NOPIN_OS_COPY_H

#include "base/moves.h"

#include <stddef.h>

struct os;

/**
 * os_memory() - Allocate NIC memory: zeroed, page-aligned, never pinned, freed by
 * os_close(). The @nic pointers of MOVE_SCATTER must lie in it (it is a memfd,
 * so that the kernel can copy from it to the application and say EFAULT; beyond a
 * limit of the size of files it is none, and a move costs a copy more).
 */
void *os_memory(struct os *os, size_t bytes);

/**
 * os_moves() - Execute copies, from the first that is not done; may block as
 * long as a page takes; never raises a signal. Stops at the first failure, see
 * struct moves; called again it goes on with the one that failed.
 * Context: any thread, no lock held.
 */
void os_moves(struct os *os, struct moves *mv);

/**
 * os_drop() - Drop the pages of the MOVE_OVERWRITEs in @mv, which is only their first
 * half: for a caller that writes there by receiving. A page that cannot be dropped
 * costs time, no more.
 */
void os_drop(struct os *os, const struct moves *mv);

/** struct os_usage - Faults of a thread, and how often it went to sleep. */
struct os_usage {
	uint64_t minflt, majflt, sleeps;
};

/** os_usage() - Return the usage of the calling thread so far. */
struct os_usage os_usage(void);

#endif
