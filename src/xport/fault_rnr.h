/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr.h: what a standard requester is told of a page. */
#ifndef NOPIN_XPORT_FAULT_RNR_H
#define NOPIN_XPORT_FAULT_RNR_H

#include <stdint.h>

struct qp;

/** rnr_silence() - Start the time after which a standard requester is told RNR. */
void rnr_silence(struct qp *qp);

/** rnr_silence_heeded() - Forget that time, as the requester came again after an RNR, unless
 * a READ waits for its page. */
void rnr_silence_heeded(struct qp *qp);

/** rnr_silence_end() - Forget that time, unless a READ waits for its page or what
 * comes next was forgotten. */
void rnr_silence_end(struct qp *qp);

/** rnr_silence_again() - Start that time anew, as the requester hears a response. */
void rnr_silence_again(struct qp *qp);

/** fault_silence_over() - Tell a standard requester RNR, as that time is over. */
void fault_silence_over(struct qp *qp);

#endif
