/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hold.h: peers that are asked to wait. */
#ifndef NOPIN_XPORT_HOLD_H
#define NOPIN_XPORT_HOLD_H

#include <stdint.h>

struct pkt;
struct qp;
struct req;

/** hold_ask() - Ask the peer to hold: what just had to wait may wait for a region. */
void hold_ask(struct qp *qp);

/** hold_extend() - Let an ACK say that; hold_said(): it did. */
void hold_extend(struct qp *qp, struct pkt *p);
void hold_said(struct qp *qp);

/** hold_over() - A waiter of the responder was woken: who holds may go on. */
void hold_over(struct qp *qp);

/** hold_silent_until() - So long a standard peer bears it, or 0. */
uint64_t hold_silent_until(const struct qp *qp);

/** hold_heard() - The requester hears an ACK. */
void hold_heard(struct qp *qp, const struct pkt *p);

void hold_timeout(struct qp *qp);

#endif
