/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* async.h: asynchronous events, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_ASYNC_H
#define NOPIN_NIC_ASYNC_H

struct nic;
struct nic_async;

/* The numbers are those of enum ibv_event_type. */
enum nic_event_type {
	NIC_EVENT_CQ_ERR = 0,
	NIC_EVENT_QP_FATAL = 1,
	NIC_EVENT_QP_REQ_ERR = 2,
	NIC_EVENT_QP_ACCESS_ERR = 3,
	NIC_EVENT_COMM_EST = 4,
	NIC_EVENT_SQ_DRAINED = 5,
	NIC_EVENT_DEVICE_FATAL = 8,
	NIC_EVENT_PORT_ACTIVE = 9,
	NIC_EVENT_PORT_ERR = 10,
	NIC_EVENT_SRQ_LIMIT_REACHED = 15,
	NIC_EVENT_QP_LAST_WQE_REACHED = 16,
	NIC_EVENT_GID_CHANGE = 18,
};

/** struct nic_event - @cookie: of the CQ, QP or SRQ (NULL: the device's or port's). */
struct nic_event {
	enum nic_event_type type;
	void *cookie;
};

/** nic_async_open() - Open a queue of events, with a pollable descriptor. */
int nic_async_open(struct nic *nic, struct nic_async **out, int *fd);
void nic_async_close(struct nic_async *a);
/** nic_async_get() - Take the next event. Blocks unless the fd is O_NONBLOCK (-EAGAIN). */
int nic_async_get(struct nic_async *a, struct nic_event *ev);

#endif
