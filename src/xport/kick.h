/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* kick.h: that a QP may have something to do. */
#ifndef NOPIN_XPORT_KICK_H
#define NOPIN_XPORT_KICK_H

#include "base/base.h"

struct qp;

void qp_kick(struct qp *qp);

/** qp_kick_again() - Unless it surely has nothing to send. */
void qp_kick_again(struct qp *qp);
void qp_rearm(struct qp *qp);
void qp_drainable(struct qp *qp);

/** qp_kick_all() - What QPs waited for on this list, by peer_link, happened. */
void qp_kick_all(struct list *waiting);

#endif
