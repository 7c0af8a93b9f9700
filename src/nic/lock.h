/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lock.h: the engine lock, from below: nothing is done when it is given back. */
#ifndef NOPIN_NIC_LOCK_H
#define NOPIN_NIC_LOCK_H

struct nic;

void nic_lock(struct nic *nic);

/** nic_wake_idle() - Engine lock held: something was committed. */
void nic_wake_idle(struct nic *nic);

#endif
