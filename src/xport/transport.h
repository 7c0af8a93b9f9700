/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* transport.h: transport services (IBTA 9.7 and 9.8): what a QP of each does, one row
 * each. Rows are called by run and by burst; for each packet qp.c calls that of a
 * reliable connection directly.
 */
#ifndef NOPIN_XPORT_TRANSPORT_H
#define NOPIN_XPORT_TRANSPORT_H

#include "xport/attr.h"
#include "xport/rx.h"

#include <stdbool.h>
#include <stddef.h>

struct burst;
struct peer;
struct qp;

/**
 * struct qp_edge - One legal transition (IBTA table 91).
 * @need: attributes that must be given, @may: that may be given besides
 */
struct qp_edge {
	uint8_t from, to;
	uint32_t need, may;
};

/**
 * struct transport - A transport service.
 * @edges, @num_edges: but those to RESET and ERR, which all have
 * @packets:	that its packets have of OPF_UD
 * @connected:	a QP has one peer, and sends and receives nothing else
 * @ready:	to RTR: set peer and MTU
 * @timeout:	of what it sends
 * @tx, @tx_commit, @rx, @rx_commit, @drain: as qp_tx() and so on
 */
struct transport {
	const struct qp_edge *edges;
	size_t num_edges;
	uint32_t packets;
	bool connected;
	void (*ready)(struct qp *qp, struct peer *peer);
	void (*timeout)(struct qp *qp);
	bool (*tx)(struct qp *qp, struct burst *b);
	void (*tx_commit)(struct qp *qp, const struct burst *b, int error);
	enum rx_result (*rx)(struct qp *qp, const struct pkt *pkt,
			     struct payload payload, struct rx_run *run);
	void (*rx_commit)(struct rx_run *run);
	bool (*drain)(struct qp *qp, struct rx_run *run);
};

extern const struct transport transport_rc, transport_ud;

#endif
