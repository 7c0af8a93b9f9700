/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reply.h: responses to READs and atomics. */
#ifndef NOPIN_XPORT_REPLY_H
#define NOPIN_XPORT_REPLY_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/rx.h"

struct qp;
struct wqe;

enum rx_result reply_rx(struct qp *qp, const struct pkt *pkt,
			struct payload payload, struct rx_run *run);
bool reply_more(struct qp *qp, psn_t psn, uint32_t n);
void reply_commit(struct rx_run *run);
bool reply_drain(struct qp *qp, struct rx_run *run);

/** reply_page_came() - Ask again, if a response was dropped for want of the page. */
void reply_page_came(struct qp *qp);

/** reply_timeout() - Ask again for a response that others overtook, if it counts as lost by
 * now. */
void reply_timeout(struct qp *qp);

/** reply_carried() - Take what a request of the peer says of what it placed. */
void reply_carried(struct qp *qp, const struct pkt *request);

/** reply_wqe() - Return the READ whose next response is @psn, or NULL; NULL also while a
 * response waits. */
struct wqe *reply_wqe(struct qp *qp, psn_t psn);

#endif
