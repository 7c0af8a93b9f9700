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

/** qp_enter_error() - The same, of a QP that is not in ERR yet, without an event. */
void qp_enter_error(struct qp *qp);

/** qp_fail() - To ERR as soon as nothing moves; @event or QP_NO_EVENT. */
void qp_fail(struct qp *qp, uint8_t event);

/** qp_blame() - The same; for @cause (enum wc_cause), if it was for none before. */
void qp_blame(struct qp *qp, uint16_t cause, uint8_t event);

/* The numbers of nic_event_type that xport raises. */
enum {
	QP_EVENT_FATAL = 1,
	QP_EVENT_REQ_ERR = 2,
	QP_EVENT_ACCESS_ERR = 3,
	QP_EVENT_COMM_EST = 4,
	QP_EVENT_SQ_DRAINED = 5,
	QP_NO_EVENT = 0xff,
};

#endif
