/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: choosing what answers missing pages, for the API edge: of one QP or of
 * one region. What a choice allows is in base/strategy.c, what follows from it in
 * xport/fault.c and mem/dma.c.
 */
#include "base/strategy.h"
#include "mem/mr.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/progress.h"
#include "nic/qp.h"

#include <errno.h>

/* To sleep in a fault is something that a NIC does or does not do. */
static int check(const struct nic *nic, enum strategy s)
{
	if ((unsigned)s >= STRATEGY_NUM)
		return -EINVAL;
	if (s == STRATEGY_BLOCK ||
	    nic->cfg.strategies & STRATEGY_BIT(STRATEGY_BLOCK))
		return -EOPNOTSUPP;
	return 0;
}

int nic_fault(struct nic *nic, enum strategy *out)
{
	if (nic_child(nic))
		return -ENODEV;
	*out = nic->cfg.fault;
	return 0;
}

int nic_qp_set_fault(struct nic_qp *qp, enum strategy s)
{
	int err;

	if (nic_child(qp->nic))
		return -ENODEV;
	err = check(qp->nic, s);
	if (err)
		return err;
	nic_lock(qp->nic);
	qp->qp.fault = s;
	nic_unlock(qp->nic);
	return 0;
}

int nic_qp_fault(struct nic_qp *qp, enum strategy *out)
{
	if (nic_child(qp->nic))
		return -ENODEV;
	nic_lock(qp->nic);
	*out = qp->qp.fault;
	nic_unlock(qp->nic);
	return 0;
}

int nic_mr_set_fault(struct nic *nic, uint32_t key, enum strategy s)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	err = check(nic, s);
	if (err)
		return err;
	nic_lock(nic);
	err = mr_set_fault(nic->mem, key, s);
	nic_unlock(nic);
	return err;
}
