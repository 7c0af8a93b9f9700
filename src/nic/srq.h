/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* srq.h: a shared receive queue of a program. */
#ifndef NOPIN_NIC_SRQ_H
#define NOPIN_NIC_SRQ_H

#include "base/list.h"
#include "nic/shared.h"
#include "ring/srq.h"

#include <pthread.h>
#include <stdint.h>

struct nic;
struct nic_async;

/**
 * struct nic_srq
 * @lock:	of its posters
 * @refs:	QPs that take receives from it (engine lock)
 * @attr:	@attr.limit is 0 once it was told
 * @armed:	on nic.armed while it has a limit
 * @async_link:	on nic_async.srqs: an event is to be fetched
 */
struct nic_srq {
	struct srq srq;
	struct nic *nic;
	struct nic_async *async;
	struct nic_srq_attr attr;
	pthread_mutex_t lock;
	unsigned refs;
	void *cookie;
	struct list armed, async_link;
};

#endif
