/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: a queue of upcalls that is not empty any more wakes its reader. */
#include "mem/upcall.h"
#include "base/check.h"
#include "nic/counter.h"
#include "nic/device.h"
#include "nic/upcall.h"
#include "os/wait.h"

void upcalls_deliver(struct nic *nic)
{
	struct upcalls *q;

	while ((q = upcalls_next(nic->mem))) {
		struct nic_upcalls *u = container_of(q, struct nic_upcalls, q);

		os_event_set(u->fd);
		if (u->counter)
			counter_raise(u->counter);
	}
}
