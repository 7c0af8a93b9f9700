/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack.h: what is said to the requester. */
#ifndef NOPIN_XPORT_ACK_H
#define NOPIN_XPORT_ACK_H

#include "wire/pkt.h"

struct burst;
struct qp;
struct resp;

/** ack_headers() - Let a request say what is placed here. */
void ack_headers(const struct qp *qp, struct pkt *p);

/** ack_first() - Does a request to a peer that is no nopin, which says nothing of what
 * is placed, have to wait for an ACK? That leaves now. */
bool ack_first(struct qp *qp);

/** ack_carry() - Let the headers of @b, of requests, say a plain ACK that is owed. */
void ack_carry(struct qp *qp, struct burst *b);

/** ack_append() - Put ACKs owed to b->peer behind what is in @b. */
bool ack_append(struct qp *qp, struct burst *b);

#endif
