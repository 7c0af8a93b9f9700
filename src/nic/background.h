/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* background.h: the thread of the NIC that works when no thread of the program does. */
#ifndef NOPIN_NIC_BACKGROUND_H
#define NOPIN_NIC_BACKGROUND_H

struct nic;

int background_start(struct nic *nic);

void background_stop(struct nic *nic);

#endif
