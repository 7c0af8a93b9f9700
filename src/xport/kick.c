/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kick.c: QPs that may have something to do stand on lists of the NIC until the engine
 * comes to them. Nothing is looked at here: a QP that has nothing to do leaves its list
 * then.
 */
#include "xport/kick.h"
#include "base/list.h"
#include "xport/qp.h"
#include "xport/xport.h"

void qp_kick(struct qp *qp)
{
	if (list_empty(&qp->on.runnable))
		list_add_tail(&qp->x->work.runnable, &qp->on.runnable);
}

void qp_drainable(struct qp *qp)
{
	if (list_empty(&qp->on.drainable))
		list_add_tail(&qp->x->work.drainable, &qp->on.drainable);
}

void qp_kick_all(struct list *waiting)
{
	list_for_each_safe(l, tmp, waiting) {
		list_del(l);
		qp_kick(list_entry(l, struct qp, on.waiting));
	}
}
