/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* events.h: what programs are told, and how they are woken. */
#ifndef NOPIN_NIC_EVENTS_H
#define NOPIN_NIC_EVENTS_H

#include "base/list.h"
#include "nic/async.h"

#include <pthread.h>
#include <stdint.h>

struct nic;

enum { ASYNC_OWN_MAX = 4 }; /* kinds of events that belong to no object */

struct nic_async {
	struct nic *nic;
	int fd;
	struct list all; /* nic.asyncs */
	pthread_mutex_t lock;
	struct list cqs, qps, srqs; /* with events to report */
	/* the device's and the port's, in this order, each once */
	enum nic_event_type own[ASYNC_OWN_MAX];
	unsigned nown;
};

struct nic_channel {
	struct nic *nic;
	int fd;
	pthread_mutex_t lock;
	struct list ready; /* struct nic_cq.ready */
	uint32_t woken; /* it is not empty (atomic) */
};

/** channel_quiet() - Clear the channel's descriptor, if no event is left there. Locked. */
void channel_quiet(struct nic_channel *ch);
void events_deliver(struct nic *nic);

/** events_srqs() - Deliver that shared receive queues have fewer receives than their
 * limits, as is looked at after each plan in which a message may have taken one. A receive
 * that was given back by then was not missed. Engine lock held. */
void events_srqs(struct nic *nic);

/** events_raise() - Raise an event of the device or of its port, in every queue of events.
 * Engine lock held. */
void events_raise(struct nic *nic, enum nic_event_type type);

/** events_died() - Fail every QP in RTR or beyond, and tell every queue of events and the
 * log: the program closed our descriptors (nic.closed). Engine lock held. */
void events_died(struct nic *nic);

#endif
