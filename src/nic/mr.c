/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c: protection domains and regions for the API edge. */
#include "mem/mr.h"
#include "base/heap.h"
#include "mem/suspend.h"
#include "nic/device.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/progress.h"
#include "nic/reg.h"
#include "os/run.h"

#include <assert.h>
#include <errno.h>

static_assert(NIC_MAX_MR - MR_MAX == 0, "no more is promised than there is");

int nic_pd_alloc(struct nic *nic, uint32_t *pd)
{
	int n;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	n = pd_alloc(nic->mem);
	nic_unlock(nic);
	if (n < 0)
		return n;
	*pd = (uint32_t)n;
	return 0;
}

int nic_pd_dealloc(struct nic *nic, uint32_t pd)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = pd_dealloc(nic->mem, pd);
	nic_unlock(nic);
	return err;
}

int nic_mr_reg(struct nic *nic, const struct mr_attr *attr, uint32_t *key)
{
	return nic_mr_replace(nic, 0, attr, key);
}

int nic_mr_replace(struct nic *nic, uint32_t old, const struct mr_attr *attr,
		   uint32_t *key)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	err = reg_enter(nic, attr);
	if (err)
		return err;
	heap_prepare();
	nic_lock(nic);
	err = mr_replace(nic->mem, old, attr, key);
	nic_unlock(nic);
	if (err)
		reg_leave(nic, attr);
	return err;
}

/* Lock held. An access that comes while moves end waits, else there might be no end of
 * them: the region is suspended, unless it is so already, or cannot be. */
static int change(struct nic *nic, uint32_t key, uint32_t pd, uint32_t access)
{
	int err = mr_change(nic->mem, key, pd, access);
	bool suspended;

	if (err != -EBUSY)
		return err;
	err = mr_suspend(nic->mem, key, 0, nic->x.now);
	suspended = !err;
	if (err && err != -EINVAL && err != -EOPNOTSUPP)
		return err;
	while ((err = mr_change(nic->mem, key, pd, access)) == -EBUSY)
		nic_wait_idle(nic);
	if (suspended) {
		mr_resume(nic->mem, key, nic->x.now);
		nic_wake_idle(nic);
	}
	return err;
}

int nic_mr_change(struct nic *nic, uint32_t key, uint32_t pd, uint32_t access)
{
	struct mr_attr before, after;
	int err;

	err = nic_mr_query(nic, key, &before);
	if (err)
		return err;
	after = before;
	after.pd = pd;
	after.access = access;
	err = reg_enter(nic, &after);
	if (err)
		return err;
	nic_lock(nic);
	err = change(nic, key, pd, access);
	nic_unlock(nic);
	reg_leave(nic, err ? &after : &before);
	return err;
}

int nic_mr_dereg(struct nic *nic, uint32_t key)
{
	struct mr_attr attr;
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_query(nic->mem, key, &attr);
	if (!err)
		err = mr_revoke(nic->mem, key);
	if (!err)
		while ((err = mr_free(nic->mem, key)) == -EBUSY)
			nic_wait_idle(nic);
	nic_unlock(nic);
	if (!err)
		reg_leave(nic, &attr);
	return err;
}

int nic_mr_query(struct nic *nic, uint32_t key, struct mr_attr *attr)
{
	int err;

	if (nic_child(nic))
		return -ENODEV;
	nic_lock(nic);
	err = mr_query(nic->mem, key, attr);
	nic_unlock(nic);
	return err;
}
