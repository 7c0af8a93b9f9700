/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h: what is done about a missing page. */
#ifndef NOPIN_XPORT_FAULT_H
#define NOPIN_XPORT_FAULT_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/payload.h"

struct qp;

/** fault_datagram() - A datagram met a missing page. true: it is kept as win.next. */
bool fault_datagram(struct qp *qp, const struct pkt *pkt,
		    struct payload payload);

/** fault_request() - A request at win.next met a missing page. */
void fault_request(struct qp *qp, const struct pkt *pkt,
		   struct payload payload);

/** fault_forget() - It is not kept; whoever sent it is told to wait. */
void fault_forget(struct qp *qp, const struct pkt *pkt);

/**
 * fault_crowds() - Is @pkt, which comes while a page is missing that is needed
 * before it, better not kept either?
 */
bool fault_crowds(struct qp *qp, const struct pkt *pkt);

/** fault_waiting() - A request in a slot did. */
void fault_waiting(struct qp *qp);

/** fault_source() - A page to be sent is missing, of a READ response or not. */
void fault_source(struct qp *qp, psn_t psn, bool response);

/** fault_response() - A READ response did. Return: true if it was kept. */
bool fault_response(struct qp *qp, const struct pkt *pkt,
		    struct payload payload);

/** fault_forgiven() - Let what was held go on: what was forgotten came again. */
void fault_forgiven(struct qp *qp);
void fault_resolved(struct qp *qp);

#endif
