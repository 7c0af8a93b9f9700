/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud.h: datagrams. A number, which stands for a PSN in everything that
 * counts by these, is the index of the receive that a datagram takes. */
#ifndef NOPIN_XPORT_UD_H
#define NOPIN_XPORT_UD_H

#include "ring/wqe.h"
#include "xport/rx.h"

struct burst;
struct pkt;
struct qp;

/**
 * struct ud - What a QP of datagrams has besides (ud_rx.c, ud_tx.c).
 * @to:		where qp.peer is, if that is set: nic/ sees to it
 * @held:	slots that it has
 */
struct ud {
	struct wqe_to to;
	uint32_t held;
};

enum rx_result ud_rx(struct qp *qp, const struct pkt *pkt,
		     struct payload payload, struct rx_run *run);
bool ud_drain(struct qp *qp, struct rx_run *run);
void ud_rx_commit(struct rx_run *run);
bool ud_tx(struct qp *qp, struct burst *b);

/** ud_tx_commit() - Commit @b as qp_tx_commit() does; the holds are released already. */
void ud_tx_commit(struct qp *qp, const struct burst *b, int error);

/** ud_refused() - End sending with the oldest request, which goes nowhere. */
void ud_refused(struct qp *qp);
void ud_timeout(struct qp *qp);

#endif
