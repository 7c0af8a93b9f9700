/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* closed.h: a program that closes descriptors it did not open, ours too (fork, and a loop
 * of close()). The numbers may be another file's from then on. */
#ifndef NOPIN_NIC_CLOSED_H
#define NOPIN_NIC_CLOSED_H

#include "nic/device.h"

#include <stdbool.h>

/** closed_note() - Note that the program closed our descriptors, and wake the background
 * thread. Once noted, it stays so. Context: any thread. */
void closed_note(struct nic *nic);

/** closed_noted() - Return true if the program closed our descriptors. Context: any
 * thread. */
static inline bool closed_noted(const struct nic *nic)
{
	return __atomic_load_n(&nic->closed, __ATOMIC_RELAXED);
}

/** closed_untold() - Return true if they are closed, and the program was not told
 * (IBV_EVENT_DEVICE_FATAL). Lock held. */
static inline bool closed_untold(const struct nic *nic)
{
	return closed_noted(nic) && !nic->dead;
}

#endif
