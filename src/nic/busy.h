/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* busy.h: since when the background thread does one thing. */
#ifndef NOPIN_NIC_BUSY_H
#define NOPIN_NIC_BUSY_H

#include <stdbool.h>
#include <stdint.h>

struct nic;

/** busy_mark() - Note that the background thread begins to work (@works), or has ended;
 * as it begins, wake the thread that stands in for it. */
void busy_mark(struct nic *nic, bool works);

/** busy_call() - Let the other thread stand in at once: the background thread does
 * something that is no work of the NIC, until it says that it ended (busy_mark()). Others
 * are not to wait for that. */
void busy_call(struct nic *nic);

/** busy_since() - Return when it began, or 0: it waits for work. */
uint64_t busy_since(const struct nic *nic);

#endif
