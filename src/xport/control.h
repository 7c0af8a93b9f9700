/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* control.h: the life of a QP, as nic/ directs it. */
#ifndef NOPIN_XPORT_CONTROL_H
#define NOPIN_XPORT_CONTROL_H

#include "wire/pkt.h"
#include "xport/attr.h"
#include "xport/peer.h"
#include "xport/qp.h"

struct waiter;
struct xport;

/** qp_init() - Initialize @qp, in RESET; queues are the caller's and outlive it. */
int qp_init(struct qp *qp, struct xport *x, const struct qp_config *cfg);

/** qp_fini() - Forget everything. No burst or rx_run of it may be out. */
void qp_fini(struct qp *qp);

/**
 * qp_modify() - Check @mask against the state table (IBTA table 91 as verbs
 * programs know it) and apply. @peer: for RTR, already looked up.
 * Return: 0, -EINVAL, -ENOMEM.
 */
int qp_modify(struct qp *qp, const struct qp_attr *attr, uint32_t mask,
	      struct peer *peer);

/** qp_modify_ok() - Would qp_modify() do it? */
bool qp_modify_ok(const struct qp *qp, const struct qp_attr *attr,
		  uint32_t mask);

void qp_query(const struct qp *qp, struct qp_attr *attr);

/** qp_error() - Put @qp into ERR, and flush both queues once nothing is moving. */
void qp_error(struct qp *qp);

/**
 * qp_abandon() - Put @qp, which the program destroys or resets, into ERR as qp_error()
 * does. It has no completion any more, until RESET.
 */
void qp_abandon(struct qp *qp);

/** qp_idle() - True if no burst and no rx_run of @qp is out: it may be freed. */
static inline bool qp_idle(const struct qp *qp)
{
	return !qp->tx_moving && !qp->rx_moving;
}

/** qp_receives() - Is @qp in a state that takes packets? */
static inline bool qp_receives(const struct qp *qp)
{
	return qp->state >= QPS_RTR && qp->state <= QPS_SQE;
}

/** replay_busy() - Is a READ or an atomic of the peer not answered whole? */
static inline bool replay_busy(const struct qp *qp)
{
	return qp->resp.replay.at != qp->resp.replay.next;
}

/** qp_posted() - Kick @qp, as sends or receives were posted. In SQE the sends are flushed
 * instead, in ERR both queues, once nothing is moving. */
void qp_posted(struct qp *qp);

/** qp_timeout() - Do all that is due for @qp: qp->timer is. */
void qp_timeout(struct qp *qp);

/** qp_wake() - Let the QP of @w, one of its waiters, go on: ticket_done() woke @w. */
void qp_wake(struct waiter *w);

#endif
