/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: suspending a region, moving what is below it, resuming it. */
#include "ext/ext.h"
#include "nic/suspension.h"

#include <errno.h>

static struct nic *nic_of(const struct ibv_mr *mr)
{
	return vctx_of(mr->context)->nic;
}

int nopin_mr_suspend(struct ibv_mr *mr, uint64_t expected_ns)
{
	return -nic_mr_suspend(nic_of(mr), mr->handle, expected_ns);
}

int nopin_mr_update(struct ibv_mr *mr, void *addr, size_t length)
{
	int rc = nic_mr_update(nic_of(mr), mr->handle, (uintptr_t)addr, length);

	if (!rc)
		mr->addr = addr;
	return -rc;
}

int nopin_mr_resume(struct ibv_mr *mr)
{
	return -nic_mr_resume(nic_of(mr), mr->handle);
}

int nopin_mr_query_suspension(struct ibv_mr *mr, struct nopin_suspension *out,
			      size_t size)
{
	struct nopin_suspension s;
	struct nic_suspension n;
	int rc;

	if (!size || size > sizeof(s))
		return EINVAL;
	rc = nic_mr_suspension(nic_of(mr), mr->handle, &n);
	if (rc)
		return -rc;
	s = (struct nopin_suspension){.suspended = n.suspended,
				      .held = n.held,
				      .since_ns = n.since_ns,
				      .expected_ns = n.expected_ns,
				      .limit_ns = n.limit_ns,
				      .pause_ns = n.pause_ns};
	memcpy(out, &s, size);
	return 0;
}
