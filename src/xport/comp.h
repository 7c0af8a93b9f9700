/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* comp.h: completions of requests. */
#ifndef NOPIN_XPORT_COMP_H
#define NOPIN_XPORT_COMP_H

#include "ring/cqe.h"
#include "wire/psn.h"

struct qp;

void comp_placed(struct qp *qp, psn_t target);
void comp_reap(struct qp *qp);

/** comp_oldest() - Complete the oldest request as @status and @cause (enum wc_cause)
 * say. */
void comp_oldest(struct qp *qp, enum wc_status status, uint16_t cause);
void comp_drained(struct qp *qp);
bool comp_reads_pending(const struct qp *qp);
void comp_fail_wqe(struct qp *qp, uint32_t index, enum wc_status status,
		   uint16_t cause);
void comp_flush(struct qp *qp);

/** comp_reload() - Give @qp all its retries again, those after an RNR too, and forget that
 * packets were too large. */
void comp_reload(struct qp *qp);

#endif
