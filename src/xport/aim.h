/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* aim.h: where datagrams go. */
#ifndef NOPIN_XPORT_AIM_H
#define NOPIN_XPORT_AIM_H

#include <stdint.h>

struct peer;
struct qp;
struct wqe_to;

/**
 * ud_next() - Return the address of the next datagram of @qp: qp->peer has to be that
 * NIC before qp_tx(). NULL: nothing is to be sent, or that it is already.
 */
const struct wqe_to *ud_next(const struct qp *qp);

/**
 * ud_aim() - Aim the next datagram of @qp at @peer, which is at @to.
 * Return: the peer of the one before, to which @qp refers no more, or NULL.
 */
struct peer *ud_aim(struct qp *qp, const struct wqe_to *to, struct peer *peer);

/** ud_nowhere() - Fail the oldest request of @qp: no peer is to be had at its address. */
void ud_nowhere(struct qp *qp);

#endif
