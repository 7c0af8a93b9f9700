/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mounts.h: what filesystems make of a descriptor that is closed. */
#ifndef NOPIN_OS_MOUNTS_H
#define NOPIN_OS_MOUNTS_H

#include <stdbool.h>

/**
 * mounts_may_flush() - May a filesystem act when copies of the descriptors below @end
 * are closed? True, too, if that cannot be found out. No server of files is asked
 * anything, and none can keep the caller waiting. Context: takes the lowest free number
 * for a moment.
 */
bool mounts_may_flush(unsigned end);

#endif
