/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* life.h: states of a QP, and how one ends. */
#ifndef NOPIN_XPORT_LIFE_H
#define NOPIN_XPORT_LIFE_H

#include "xport/attr.h"

struct cq;
struct cqe;
struct qp;

void qp_set_state(struct qp *qp, enum qp_state to);

void qp_event(struct qp *qp, unsigned event);
void qp_push_cqe(struct qp *qp, struct cq *cq, const struct cqe *e);

/** qp_enter_error() - Put @qp, which is not in ERR yet, into ERR, without an event. */
void qp_enter_error(struct qp *qp);

/** qp_fail() - Put @qp into ERR, if it is not there, with @event or QP_NO_EVENT. Its queues
 * are flushed as soon as nothing moves. */
void qp_fail(struct qp *qp, uint8_t event);

/** qp_blame() - Fail @qp as qp_fail() does, for @cause (enum wc_cause) if it has none from
 * before; that of SQE does not count. */
void qp_blame(struct qp *qp, uint16_t cause, uint8_t event);

/* The numbers of nic_event_type that xport raises. */
enum {
	QP_EVENT_FATAL = 1,
	QP_EVENT_REQ_ERR = 2,
	QP_EVENT_ACCESS_ERR = 3,
	QP_EVENT_COMM_EST = 4,
	QP_EVENT_SQ_DRAINED = 5,
	QP_EVENT_LAST_WQE_REACHED = 16,
	QP_NO_EVENT = 0xff,
};

#endif
