/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flush.h: the queues of a QP that has failed. */
#ifndef NOPIN_XPORT_FLUSH_H
#define NOPIN_XPORT_FLUSH_H

#include "base/base.h"

struct qp;

/** qp_flush() - In ERR and when nothing moves: complete everything. */
void qp_flush(struct qp *qp, uint64_t now_ns);

/** qp_rx_moved() - Moves of the receiving half ended: what waited goes on. */
void qp_rx_moved(struct qp *qp, uint64_t now_ns);

#endif
