/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owe.h: decide that the requester is owed an ACK, a NAK or a word to a nopin, and by
 * when. ack.c makes the packets when they leave.
 */
#ifndef NOPIN_XPORT_OWE_H
#define NOPIN_XPORT_OWE_H

#include "wire/psn.h"

struct qp;
struct resp;

/** owe_by() - Owe the requester an ACK. @due_ns: by then it leaves. */
void owe_by(struct qp *qp, uint64_t due_ns);

/** ack_owe() - Owe the requester an ACK, which leaves within xport.ack_delay_ns. */
void ack_owe(struct qp *qp);

/**
 * ack_received() - Owe the ACK of a receive that completed. It is due now: the program
 * that sees the completion may end the connection, or itself, at once. It waits for the
 * next request, xport.ack_delay_ns at most, only if one followed each of the last
 * ANSWERS_KNOWN receives, and requests to this peer carry ACKs (dialect.carries).
 */
void ack_received(struct qp *qp);

/** ack_answered() - Note that a new request leaves, perhaps the answer to a receive. */
void ack_answered(struct resp *r);

/** ack_repeat() - Owe an ACK for a packet that moves nothing on, one in
 * xport.ack_delay_ns: packets that are overtaken all the time would be answered by as
 * many ACKs, which nothing limits. */
void ack_repeat(struct qp *qp);

/** ack_repeat_timeout() - Let an ACK go that ack_repeat() kept waiting. */
void ack_repeat_timeout(struct qp *qp);

/** ack_nak() - Owe a NAK for @psn. @syndrome: of its AETH */
void ack_nak(struct qp *qp, uint8_t syndrome, psn_t psn);

/** ack_page_rnr() - Owe an RNR for @psn, whose page is missing. @code: its time */
void ack_page_rnr(struct qp *qp, uint8_t code, psn_t psn);

/** ack_answer() - Owe the answer to @question: where the responder is. While something of
 * @qp moves, an ACK that says only that goes first. The question came with our epoch
 * (open.known). */
void ack_answer(struct qp *qp, uint16_t question);

/** ack_say() - Owe the peer an extension ACK with @xack_flags, due now; of XACK_HOLD and
 * XACK_RESUME the newer counts. It waits for the peer's epoch if the peer knows ours; if
 * neither side knows the other's, nothing is owed. */
void ack_say(struct qp *qp, uint32_t xack_flags);

/** ack_cancel() - Owe no ACK any more. */
void ack_cancel(struct qp *qp);

/** ack_rest() - Owe what an ACK could not say because of the READ answered now. */
void ack_rest(struct qp *qp);

/** ack_again() - Try once more to say what is owed: what it waited for may be over. */
void ack_again(struct qp *qp);

/** owe_check() - Assert what is always so of struct resp_ack. */
void owe_check(const struct qp *qp);

#endif
