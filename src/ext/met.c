/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* met.c: what page faults cost a work request. */
#include "ext/ext.h"
#include "nic/completion.h"

int nopin_cq_met(struct ibv_cq *cq, uint64_t back, struct nopin_met *met)
{
	struct met got;
	int rc = nic_cq_met(vcq_of(cq)->nic, back, &got);

	if (!rc)
		*met = (struct nopin_met){.wait_ns = got.ns,
					  .faults = got.faults};
	return -rc;
}
