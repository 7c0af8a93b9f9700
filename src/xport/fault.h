/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.h: what is done about a missing page. */
#ifndef NOPIN_XPORT_FAULT_H
#define NOPIN_XPORT_FAULT_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/payload.h"

struct qp;

/** fault_datagram() - Keep or drop the datagram @pkt, which met a missing page.
 * Return: true: it is kept as win.next. */
bool fault_datagram(struct qp *qp, const struct pkt *pkt,
		    struct payload payload);

/** fault_request() - Let a strategy answer the missing page that @pkt met, the request at
 * win.next. */
void fault_request(struct qp *qp, const struct pkt *pkt,
		   struct payload payload);

/** fault_forget() - Forget the request @pkt, which is not kept. Its sender is told to wait;
 * a standard one hears nothing at first. */
void fault_forget(struct qp *qp, const struct pkt *pkt);

/**
 * fault_crowds() - Is @pkt, which comes while a page is missing that is needed
 * before it, better not kept either?
 */
bool fault_crowds(struct qp *qp, const struct pkt *pkt);

/** fault_waiting() - See that the peer waits, as a request in a slot met a missing page. A
 * standard one hears RNR if that lasts; a nopin is asked to hold if it is for a region. */
void fault_waiting(struct qp *qp);

/** fault_source() - Park the packet @psn, a READ response (@response) or not: a page to be
 * sent is missing. */
void fault_source(struct qp *qp, psn_t psn, bool response);

/** fault_response() - Let a strategy answer the missing page that @pkt met, a response to a
 * READ or atomic of ours. Return: true if it was kept. */
bool fault_response(struct qp *qp, const struct pkt *pkt,
		    struct payload payload);

/** fault_forgiven() - Let what was held go on: what was forgotten came again. */
void fault_forgiven(struct qp *qp);
void fault_resolved(struct qp *qp);

#endif
