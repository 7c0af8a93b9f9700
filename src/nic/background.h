/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* background.h: the thread of the NIC that works when no thread of the program does. */
#ifndef NOPIN_NIC_BACKGROUND_H
#define NOPIN_NIC_BACKGROUND_H

#include "nic/turn.h"

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct os_thread;

/**
 * struct background - The background thread, and the one that stands in for it.
 * @until:	when the background thread wakes by itself
 * @busy:	since when it works; 0: idle
 * @left:	of the two
 * @standby_fd:	event that wakes the other
 * @standby_asleep: until it is woken
 */
struct background {
	struct os_thread *thread, *standby;
	uint64_t until, busy;
	struct left left[2];
	int standby_fd;
	bool standby_asleep, stop;
};

int background_start(struct nic *nic);

void background_stop(struct nic *nic);

#endif
