/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr.c: protection domains and regions for the API edge. */
#include "nic/impl.h"

#include <errno.h>

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
