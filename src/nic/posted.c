/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* posted.c: QPs to which something was posted, told to the engine without its
 * lock: a stack that posters push on and the holder of the lock takes whole.
 */
#include "nic/posted.h"
#include "nic/device.h"
#include "nic/qp.h"
#include "xport/control.h"

void posted_push(struct nic_qp *qp)
{
	struct nic *nic = qp->nic;

	if (__atomic_exchange_n(&qp->posted, 1, __ATOMIC_ACQ_REL))
		return;
	qp->posted_next = __atomic_load_n(&nic->posted, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(&nic->posted, &qp->posted_next, qp,
					    true, __ATOMIC_RELEASE,
					    __ATOMIC_RELAXED))
		;
}

/* The flag is cleared before the queue is looked at, so a request posted after
 * the look is pushed again. */
void posted_take(struct nic *nic)
{
	struct nic_qp *qp, *next;

	if (!__atomic_load_n(&nic->posted, __ATOMIC_RELAXED))
		return;
	qp = __atomic_exchange_n(&nic->posted, NULL, __ATOMIC_ACQUIRE);
	for (; qp; qp = next) {
		next = qp->posted_next;
		/* pairs with posted_push(): sees what was published before */
		__atomic_exchange_n(&qp->posted, 0, __ATOMIC_ACQ_REL);
		qp_posted(&qp->qp);
	}
}
