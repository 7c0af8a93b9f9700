/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.h: the queues of a QP that has failed. */
#ifndef NOPIN_XPORT_FLUSH_H
#define NOPIN_XPORT_FLUSH_H

#include <stdint.h>

struct qp;

/** qp_flush() - Complete all that is queued, if @qp is in ERR and nothing of it moves. */
void qp_flush(struct qp *qp);

/** qp_rx_moved() - Let go on what waited for the moves of the receiving half. */
void qp_rx_moved(struct qp *qp);

#endif
