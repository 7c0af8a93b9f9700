/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport_rc.h: reliable connections. */
#ifndef NOPIN_XPORT_TRANSPORT_RC_H
#define NOPIN_XPORT_TRANSPORT_RC_H

#include "xport/rx.h"

struct qp;

/** rc_rx() - Take one packet as qp_rx() does, of a QP that is a reliable connection. */
enum rx_result rc_rx(struct qp *qp, const struct pkt *pkt,
		     struct payload payload, struct rx_run *run);

#endif
