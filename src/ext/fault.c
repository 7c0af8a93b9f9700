/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: which strategy answers missing pages: choosing it and asking. */
#include "ext/ext.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"

#include <assert.h>
#include <errno.h>

/* Programs were built with these numbers, and ours are cast to them. */
#define SAME(ours, theirs)                                                     \
	static_assert(0 + (ours) == 0 + (theirs), "the ABI's numbers")

SAME(STRATEGY_NONE, NOPIN_FAULT_DEFAULT);
SAME(STRATEGY_PARK, NOPIN_FAULT_PARK);
SAME(STRATEGY_INLINE, NOPIN_FAULT_INLINE);
SAME(STRATEGY_OVERWRITE, NOPIN_FAULT_OVERWRITE);
SAME(STRATEGY_BACKUP, NOPIN_FAULT_BACKUP);
SAME(STRATEGY_REDIRECT, NOPIN_FAULT_REDIRECT);
SAME(STRATEGY_REPLAY, NOPIN_FAULT_REPLAY);
SAME(STRATEGY_RESUME, NOPIN_FAULT_RESUME);
SAME(STRATEGY_RNR, NOPIN_FAULT_RNR);
SAME(STRATEGY_DROP, NOPIN_FAULT_DROP);
SAME(STRATEGY_BLOCK, NOPIN_FAULT_BLOCK);
SAME(STRATEGY_ADAPTIVE, NOPIN_FAULT_ADAPTIVE);
SAME(STRATEGY_NUM, NOPIN_FAULT_ADAPTIVE + 1);

const char *nopin_fault_name(enum nopin_fault fault)
{
	if (fault == NOPIN_FAULT_DEFAULT)
		return "default";
	return (unsigned)fault < STRATEGY_NUM
		       ? strategy_name((enum strategy)fault)
		       : NULL;
}

int nopin_fault_parse(const char *name, enum nopin_fault *fault)
{
	enum strategy s = strategy_by_name(name);

	if (s == STRATEGY_NONE && strcmp(name, "default") != 0)
		return EINVAL;
	*fault = (enum nopin_fault)s;
	return 0;
}

int nopin_get_fault(struct ibv_context *context, enum nopin_fault *fault)
{
	enum strategy s;
	int rc = nic_fault(vctx_of(context)->nic, &s);

	if (!rc)
		*fault = (enum nopin_fault)s;
	return -rc;
}

int nopin_qp_set_fault(struct ibv_qp *qp, enum nopin_fault fault)
{
	return -nic_qp_set_fault(vqp_of(qp)->nic, (enum strategy)fault);
}

int nopin_qp_get_fault(struct ibv_qp *qp, enum nopin_fault *fault)
{
	enum strategy s;
	int rc = nic_qp_fault(vqp_of(qp)->nic, &s);

	if (!rc)
		*fault = (enum nopin_fault)s;
	return -rc;
}

int nopin_mr_set_fault(struct ibv_mr *mr, enum nopin_fault fault)
{
	return -nic_mr_set_fault(vctx_of(mr->context)->nic, mr->handle,
				 (enum strategy)fault);
}

int nopin_mr_get_fault(struct ibv_mr *mr, enum nopin_fault *fault)
{
	struct mr_attr attr;
	int rc = nic_mr_query(vctx_of(mr->context)->nic, mr->handle, &attr);

	if (!rc)
		*fault = (enum nopin_fault)attr.fault;
	return -rc;
}
