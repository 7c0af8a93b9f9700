/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kick.h: QPs that may have something to do. */
#ifndef NOPIN_XPORT_KICK_H
#define NOPIN_XPORT_KICK_H

#include "base/list.h"

struct qp;
struct xport;

/** qp_kick() - Let @qp be asked what it has to send. */
void qp_kick(struct qp *qp);

/** qp_drainable() - Let @qp be asked what of its slots can be placed. */
void qp_drainable(struct qp *qp);

/** qp_kick_all() - Kick the QPs on the list @waiting, by qp.on.waiting; it is empty then. */
void qp_kick_all(struct list *waiting);

#endif
