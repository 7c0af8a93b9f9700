/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.h: what the two sides of notify.c have in common. */
#ifndef NOPIN_TESTS_HOST_NOTIFY_H
#define NOPIN_TESTS_HOST_NOTIFY_H

#include "host.h"

/* A WRITE is LEN bytes at OFFSET of the reader's PAGES. */
enum { NOTIFY_PAGES = 4, NOTIFY_OFFSET = 100, NOTIFY_LEN = 2 * PAGE + 8 };

/** notify_sender() - The side that knows nothing of nopin, but the number of a
 * counter. @fd: to the reader. */
void notify_sender(int fd, uint64_t rounds);

#endif
