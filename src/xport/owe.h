/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owe.h: what is owed to a requester. */
#ifndef NOPIN_XPORT_OWE_H
#define NOPIN_XPORT_OWE_H

#include "base/base.h"
#include "wire/wire.h"

struct qp;
struct resp;

/** owe_by() - Owe an ACK that leaves at @due_ns. */
void owe_by(struct qp *qp, uint64_t due_ns);

void ack_owe(struct qp *qp, uint64_t now_ns);

/**
 * ack_received() - A receive completed. Who sees that may end the connection, or the
 * program, at once: so the ACK leaves before the engine gives the thread back. Only
 * where a request has followed each receive so far it goes with the next.
 */
void ack_received(struct qp *qp, uint64_t now_ns);

/** ack_answered() - A new request leaves. */
void ack_answered(struct resp *r);

/** ack_repeat() - What came moves nothing on: of that, or of what it tells of gaps, one
 * ACK in xport.ack_delay_ns is enough, or packets that are overtaken all the time
 * are answered by as many ACKs, which nothing limits. */
void ack_repeat(struct qp *qp, uint64_t now_ns);

/** ack_repeat_timeout() - One that had to wait for that may go. */
void ack_repeat_timeout(struct qp *qp, uint64_t now_ns);

void ack_nak(struct qp *qp, uint8_t syndrome, psn_t psn, uint64_t now_ns);

/** ack_page_rnr() - RNR for @psn, whose page is missing. */
void ack_page_rnr(struct qp *qp, uint8_t code, psn_t psn, uint64_t now_ns);

/** ack_answer() - It was asked where we are: say that, or that it is not known while
 * something of @qp moves, and then that. */
void ack_answer(struct qp *qp, uint16_t question, uint64_t now_ns);

/** ack_say() - Tell a nopin peer @xack_flags as soon as possible. */
void ack_say(struct qp *qp, uint32_t xack_flags, uint64_t now_ns);

void ack_cancel(struct qp *qp);

/** ack_rest() - Owe what an ACK could not say because of the READ answered now. */
void ack_rest(struct qp *qp, uint64_t now_ns);

/** ack_again() - What an owed ACK had to wait for may be over. */
void ack_again(struct qp *qp);

#endif
