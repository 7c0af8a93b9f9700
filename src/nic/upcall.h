/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.h: queues of upcalls. */
#ifndef NOPIN_NIC_UPCALL_H
#define NOPIN_NIC_UPCALL_H

#include "base/base.h"

struct nic;

/** upcalls_deliver() - Lock held: wake whoever waits for upcalls. */
void upcalls_deliver(struct nic *nic);

#endif
