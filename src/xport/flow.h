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
 * What was sent again is charged until it can be no more on its way; it goes from
 * one to the next, so whatever is sent again later keeps nothing waiting.
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

/** flow_even() - @p accepted so many @packets more; @gaps: others before them are
 * missing. */
void flow_even(struct peer *p, uint32_t packets, bool gaps);

/** flow_charge() - Return the cost of packets to the receiver (design D14). */
uint32_t flow_charge(bool gso, uint32_t packets, uint32_t bytes);

bool flow_may_send(struct qp *qp, uint32_t charge);

/** flow_wait() - @qp waits for budget or slots of its peer. Return: false. */
bool flow_wait(struct qp *qp);
void flow_sent(struct qp *qp, psn_t end, uint32_t charge);

/** flow_again() - Copies of [@from, @to) left, which cost @charge: what was not copied
 * before is charged once more, until all that was sent before is accepted and
 * the copies can be no more on their way. */
void flow_again(struct qp *qp, psn_t from, psn_t to, uint32_t charge);

/** flow_unsent() - Give back what was charged last, from @from on: it did not leave. */
void flow_unsent(struct qp *qp, psn_t from, uint32_t charge);
void flow_accepted(struct qp *qp, psn_t accepted, uint64_t now_ns);

/** flow_copies_came() - Time is up for those that are late. */
void flow_copies_came(struct qp *qp, uint64_t now_ns);
void flow_forget(struct qp *qp);

/** flow_held() - The peer forgets what is on the way, when it comes to it. */
void flow_held(struct qp *qp);

/** flow_resumed() - It may not have come to it yet. */
void flow_resumed(struct qp *qp);
bool flow_may_read(struct qp *qp, uint32_t charge);

/** flow_quiet() - The peer of @qp, a standard one, answered nothing for an ACK timeout,
 * or (not @quiet) something came from it. While it is quiet READs to it do not wait for
 * the room that those before them hold: nothing may ever fill it, and they would
 * end one budget full after the other. */
void flow_quiet(struct qp *qp, bool quiet);
void flow_read(struct qp *qp, uint32_t charge);

/** flow_read_again() - Charge what ends at @to once more: it was asked for again,
 * until it is answered (flow_answered()). */
void flow_read_again(struct qp *qp, psn_t to, uint32_t charge);
void flow_answered(struct qp *qp, psn_t before);

/** flow_read_forget() - None of what was asked for is waited for. */
void flow_read_forget(struct qp *qp);
void flow_read_done(struct qp *qp, uint32_t charge);

/** flow_chunk_end() - Return the end of the READ request that asks for packet @k of @w. */
uint32_t flow_chunk_end(const struct qp *qp, const struct wqe *w, uint32_t k);
uint32_t flow_chunk_charge(const struct qp *qp, const struct wqe *w,
			   uint32_t k);

#endif
