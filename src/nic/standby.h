/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* standby.h: the thread that stands in for the background thread. */
#ifndef NOPIN_NIC_STANDBY_H
#define NOPIN_NIC_STANDBY_H

struct nic;

int standby_start(struct nic *nic);
void standby_stop(struct nic *nic);

#endif
