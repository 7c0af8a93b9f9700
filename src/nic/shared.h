/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared.h: shared receive queues, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_SHARED_H
#define NOPIN_NIC_SHARED_H

#include <stdint.h>

struct nic;
struct nic_async;
struct nic_srq;

/**
 * struct nic_srq_attr
 * @max_wr, @max_sge: receives, and SGEs of each
 * @limit:	an event tells when fewer receives than these are left; 0: none will
 */
struct nic_srq_attr {
	uint32_t max_wr, max_sge, limit;
};

/**
 * nic_srq_create() - Create a queue of receives for several QPs, without a limit.
 * @pd:		of the memory of its receives; QPs may have others
 * @cookie:	of its events
 * Return: 0; -EINVAL: no receives, or more of anything than NIC_MAX_*; -ENOMEM.
 */
int nic_srq_create(struct nic *nic, struct nic_async *async, uint32_t pd,
		   const struct nic_srq_attr *attr, void *cookie,
		   struct nic_srq **out);

/** nic_srq_destroy() - Destroy the queue with all that is posted. Return: 0; -EBUSY: QPs
 * take receives from it. */
int nic_srq_destroy(struct nic_srq *srq);

/** nic_srq_arm() - Have an event told, once, when fewer than @limit receives are left, be
 * it now. 0: none. Return: 0; -EINVAL: more than there can be. */
int nic_srq_arm(struct nic_srq *srq, uint32_t limit);

/** nic_srq_query() - Read the attributes; a limit that was reached is 0. */
int nic_srq_query(struct nic_srq *srq, struct nic_srq_attr *out);

#endif
