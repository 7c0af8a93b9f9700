/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr.h: what a standard requester is told of a page. */
#ifndef NOPIN_XPORT_FAULT_RNR_H
#define NOPIN_XPORT_FAULT_RNR_H

#include <stdint.h>

struct qp;

/** rnr_silence() - Start the time after which a standard requester is told RNR. */
void rnr_silence(struct qp *qp);

/** fault_silence_over() - Tell a standard requester RNR, as that time is over. */
void fault_silence_over(struct qp *qp);

#endif
