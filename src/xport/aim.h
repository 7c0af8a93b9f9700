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
 * ud_aim() - It goes to @peer.
 * Return: where the one before went, which @qp knows no more, or NULL.
 */
struct peer *ud_aim(struct qp *qp, const struct wqe_to *to, struct peer *peer);

/** ud_nowhere() - There is no such place: the request fails. */
void ud_nowhere(struct qp *qp);

#endif
