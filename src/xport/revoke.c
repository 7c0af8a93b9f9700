/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.c: keys that are invalidated while something moves. */
#include "xport/revoke.h"
#include "base/list.h"
#include "base/verdict.h"
#include "mem/mr.h"
#include "xport/kick.h"
#include "xport/qp.h"
#include "xport/xport.h"

enum verdict qp_invalidate(struct qp *qp, uint32_t key, bool *revoked)
{
	struct mem *m = qp->x->mem;

	if (!*revoked && mr_invalidate(m, qp->cfg.pd, key) != V_OK)
		return V_PROT;
	*revoked = true;
	if (mr_idle(m, key))
		return V_OK;
	if (list_empty(&qp->on.idle))
		list_add_tail(&qp->x->work.idle_waiters, &qp->on.idle);
	return V_WAIT;
}

void qp_moves_ended(struct xport *x)
{
	list_for_each_safe(l, tmp, &x->work.idle_waiters) {
		struct qp *qp = list_entry(l, struct qp, on.idle);

		list_del(l);
		qp_kick(qp);
		qp_drainable(qp);
	}
}
