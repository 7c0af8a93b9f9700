/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall_queue.h: upcalls, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_UPCALL_QUEUE_H
#define NOPIN_NIC_UPCALL_QUEUE_H

#include "mem/upcall.h"

#include <stdint.h>

struct nic;
struct nic_counter;
struct nic_upcalls;

/**
 * nic_upcalls_open() - Open a queue for what becomes of regions that are registered with
 * nic_upcalls_queue() as their mr_attr.upcalls.
 * @events:	it holds, 1..UPCALLS_MAX
 * @fd:		readable while events are queued; those of regions that are gone may
 *		be among them
 */
int nic_upcalls_open(struct nic *nic, uint32_t events, struct nic_upcalls **out,
		     int *fd);
/** nic_upcalls_close() - Close the queue; no thread is in nic_upcalls_get(). Return: 0;
 * -EBUSY: a region uses it. */
int nic_upcalls_close(struct nic_upcalls *u);
struct upcalls *nic_upcalls_queue(struct nic_upcalls *u);
/**
 * nic_upcalls_get() - Take the next event. Blocks, and then runs the engine itself, unless
 * the fd is O_NONBLOCK (-EAGAIN); a thread that then asks in vain twice runs it, too.
 */
int nic_upcalls_get(struct nic_upcalls *u, struct upcall *out);
/** nic_upcalls_try() - Take the next event, if there is one. Makes no progress. */
bool nic_upcalls_try(struct nic_upcalls *u, struct upcall *out);
/** nic_upcalls_count() - Let what is queued from now on raise @c, which lives as long as
 * the queue; NULL: nothing. */
void nic_upcalls_count(struct nic_upcalls *u, struct nic_counter *c);

#endif
