/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* flow.h: what may be on its way. */
#ifndef NOPIN_XPORT_FLOW_H
#define NOPIN_XPORT_FLOW_H

#include "base/flight.h"
#include "wire/psn.h"

#include <stdbool.h>

struct peer;
struct qp;
struct wqe;
struct xport;

enum { FLIGHT_RUNS = 64 };

/** struct flight_run - A burst on its way: charged until accepted. */
struct flight_run {
	psn_t end;
	uint32_t charge;
};

/*
 * Copies, which were sent again, are charged until they can be no more on their way. They
 * go from one to the next, so copies that are sent later keep nothing waiting.
 * COPIES_NEW: they become COPIES_SENT when there are no others.
 * COPIES_SENT: until all that was sent before the last of them left is accepted.
 * COPIES_ACCEPTED: they become COPIES_LATE when there are no others, at once where
 *	packets are not late.
 * COPIES_LATE: for as long as packets are late.
 */
enum copies {
	COPIES_NEW,
	COPIES_SENT,
	COPIES_ACCEPTED,
	COPIES_LATE,
	COPIES_NUM
};

/** flow_whole() - Do bursts to @p arrive as one piece? */
bool flow_whole(const struct peer *p);

/** flow_even() - Count the @packets more that @p accepted; @gaps: others before them are
 * missing, and the count begins anew. */
void flow_even(struct peer *p, uint32_t packets, bool gaps);

/** flow_charge() - Return the cost of packets to the receiver (design D14). */
uint32_t flow_charge(bool gso, uint32_t packets, uint32_t bytes);

bool flow_may_send(struct qp *qp, uint32_t charge);

/** flow_wait() - Let @qp wait for budget or slots of its peer. Return: false. */
bool flow_wait(struct qp *qp);
void flow_sent(struct qp *qp, psn_t end, uint32_t charge);

/** flow_again() - Charge for copies of [@from, @to), which left and cost @charge: packets
 * that were not copied before are charged once more, until all that was sent before is
 * accepted and the copies can be no more on their way. */
void flow_again(struct qp *qp, psn_t from, psn_t to, uint32_t charge);

/** flow_unsent() - Give back what was charged last, from @from on: it did not leave. */
void flow_unsent(struct qp *qp, psn_t from, uint32_t charge);
void flow_accepted(struct qp *qp, psn_t accepted);

/** flow_copies_came() - Give back the charge of copies that are late: their time is up. */
void flow_copies_came(struct qp *qp);
void flow_forget(struct qp *qp);

/** flow_held() - Remember the charge of all that is on the way: the peer forgets that, when
 * it comes to it. */
void flow_held(struct qp *qp);

/** flow_resumed() - Charge once more what flow_held() remembered: the peer may not have
 * come to it yet. */
void flow_resumed(struct qp *qp);

/** flow_check() - Assert what is always so of struct req_charge. */
void flow_check(const struct qp *qp);
#endif
