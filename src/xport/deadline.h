/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deadline.h: the one timer of a QP. */
#ifndef NOPIN_XPORT_DEADLINE_H
#define NOPIN_XPORT_DEADLINE_H

struct qp;

/** qp_rearm() - Set the timer of @qp to the earliest of its deadlines. */
void qp_rearm(struct qp *qp);

/** deadline_check() - Assert that the timer of @qp is due when the first of them is. */
void deadline_check(const struct qp *qp);

#endif
