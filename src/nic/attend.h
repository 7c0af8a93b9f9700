/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attend.h: a thread of the program polls, or blocks: it runs the engine. */
#ifndef NOPIN_NIC_ATTEND_H
#define NOPIN_NIC_ATTEND_H

#include "os/wait.h"

#include <stdint.h>

struct nic;

void attend_poll(struct nic *nic);

/**
 * attend_block() - Run the engine, sleep until @fd, @until_ns or something else.
 * @woken:	not 0 when @fd is readable (atomic)
 * @sig:	of the caller, which restores them in the end
 * Return: 0; -EINTR: a handler without SA_RESTART ran. Context: a thread that is
 * in a call of the program's, without a lock; a cancellation point.
 */
int attend_block(struct nic *nic, int fd, const uint32_t *woken,
		 uint64_t until_ns, struct os_signals *sig);

/** attend_doze() - Sleep as attend_block() does, but other threads run the engine. */
int attend_doze(struct nic *nic, int fd, uint64_t until_ns,
		struct os_signals *sig);

#endif
