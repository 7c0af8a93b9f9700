/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* standby.h: the thread that stands in for the background thread. */
#ifndef NOPIN_NIC_STANDBY_H
#define NOPIN_NIC_STANDBY_H

#include "base/base.h"

struct nic;

int standby_start(struct nic *nic);
void standby_stop(struct nic *nic);

/** standby_watch() - The background thread begins to work (true), or ended. */
void standby_watch(struct nic *nic, bool works);

/** standby_call() - It does something that is no work of the NIC, until it says
 * that it ended: others are not to wait for that. */
void standby_call(struct nic *nic);

#endif
