/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.h: queues of upcalls. */
#ifndef NOPIN_NIC_UPCALL_H
#define NOPIN_NIC_UPCALL_H

#include "mem/upcall.h"

struct nic;
struct nic_counter;

/**
 * struct nic_upcalls
 * @looked:	a thread that does not sleep found nothing, and nothing since
 *		(relaxed)
 * @counter:	is raised when something was queued, or NULL; engine lock
 * @q:		engine lock
 */
struct nic_upcalls {
	struct nic *nic;
	int fd;
	bool looked;
	struct nic_counter *counter;
	struct upcalls q;
};

/** upcalls_deliver() - Wake the threads that wait for upcalls, and raise the counters of
 * their queues. Lock held. */
void upcalls_deliver(struct nic *nic);

#endif
