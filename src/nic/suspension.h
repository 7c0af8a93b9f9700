/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspension.h: suspension of regions, for the API edge.
 * Threads, errors and children of fork(): nic.h.
 */
#ifndef NOPIN_NIC_SUSPENSION_H
#define NOPIN_NIC_SUSPENSION_H

#include <stdbool.h>
#include <stdint.h>

struct nic;

/**
 * nic_mr_suspend() - Suspend the region: nothing accesses it from the return on, until it
 * is resumed. Waits for moves that are in it.
 * @expected_ns: what peers are told; 0: it is not known
 * Return: as mr_suspend().
 */
int nic_mr_suspend(struct nic *nic, uint32_t key, uint64_t expected_ns);
/** nic_mr_update() - Note that the memory of a suspended region is at @addr now. Return: as
 * mr_update(); -EFAULT: not all is mapped there; or why it is refused (reg_enter()). */
int nic_mr_update(struct nic *nic, uint32_t key, uint64_t addr,
		  uint64_t length);
/** nic_mr_resume() - Resume the region: its waiters go on. Return: as mr_resume(). */
int nic_mr_resume(struct nic *nic, uint32_t key);

/**
 * struct nic_suspension
 * @held:	connections whose peer is asked to hold
 * @since_ns:	for how long it has been suspended, or 0
 * @limit_ns:	how long standard peers bear it (qp_patience_ns()), UINT64_MAX: there
 *		are none in the region's protection domain, nor take receives from it
 * @pause_ns:	how long the last suspension held up the first waiter that met it
 */
struct nic_suspension {
	bool suspended;
	unsigned held;
	uint64_t since_ns, expected_ns, limit_ns, pause_ns;
};
int nic_mr_suspension(struct nic *nic, uint32_t key,
		      struct nic_suspension *out);

#endif
