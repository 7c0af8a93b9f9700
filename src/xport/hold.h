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

/** hold_over() - Let a peer that holds go on, if no region is waited for any more: a waiter
 * of @qp was woken. */
void hold_over(struct qp *qp);

/** hold_silent_until() - Return the time until which a standard peer bears the wait for a
 * region, or 0: none is waited for. */
uint64_t hold_silent_until(const struct qp *qp);

/** hold_heard() - Let the requester hold, or end that, as @p says, an ACK that it hears. */
void hold_heard(struct qp *qp, const struct pkt *p);

void hold_timeout(struct qp *qp);

#endif
