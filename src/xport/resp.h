/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* resp.h: requests that come. */
#ifndef NOPIN_XPORT_RESP_H
#define NOPIN_XPORT_RESP_H

#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/rx.h"

struct qp;

/**
 * resp_reserve() - Have places for @rd_atomic READs and atomics at once, and for as many
 * that were answered; those that are in use stay.
 * Return: 0; -ENOMEM.
 */
int resp_reserve(struct qp *qp, uint32_t rd_atomic);

/** resp_release() - Give the places back; none is in use. */
void resp_release(struct qp *qp);

void resp_reset(struct qp *qp);

/** resp_untake() - Give back the receives that messages have which are not complete. */
void resp_untake(struct qp *qp);

enum rx_result resp_rx(struct qp *qp, const struct pkt *pkt,
		       struct payload payload, struct rx_run *run);

/** resp_more(), reply_more() - See qp_rx_more(); from @psn on. */
bool resp_more(struct qp *qp, psn_t psn, uint32_t n);
void resp_commit(struct rx_run *run);
bool resp_drain(struct qp *qp, struct rx_run *run);

/** resp_settle() - Fail @qp for a check that failed, if nothing moves or waits that came
 * before it.
 */
void resp_settle(struct qp *qp);
void resp_flush(struct qp *qp);
void resp_timeout(struct qp *qp);

/** resp_check() - Assert what is always so of what the responder accepted. */
void resp_check(const struct qp *qp);

#endif
