/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* retry.h: what is sent again. */
#ifndef NOPIN_XPORT_RETRY_H
#define NOPIN_XPORT_RETRY_H

#include "base/flight.h"
#include "wire/pkt.h"
#include "wire/psn.h"

struct burst;
struct qp;
struct req;

void retry_rewind(struct qp *qp, enum flight_kind why);

/** retry_unsent() - Go on where @b began: nothing of it left. */
void retry_unsent(struct qp *qp, const struct burst *b);

/** retry_ask_again() - Send what was asked for in [@due, @end) again. */
void retry_ask_again(struct qp *qp, psn_t due, psn_t end);

/** retry_forget() - Forget what the peer has and lacks. */
void retry_forget(struct req *r);

/** retry_news() - Note that the peer was heard of; @progress: and is further than
 * before. */
void retry_news(struct qp *qp, bool progress);

/** retry_rnr() - Go back and pause as the RNR @code says, or fail the oldest request if no
 * retry is left. @fault: a nopin says that a page is missing: costs nothing. */
void retry_rnr(struct qp *qp, psn_t psn, uint8_t code, bool fault);
void retry_sack(struct qp *qp, const struct pkt *p, bool probed);

/** retry_twice() - Learn how late packets are from the peer's word that one came twice. */
void retry_twice(struct qp *qp);
void retry_hold(struct qp *qp);
void retry_resume(struct qp *qp);

/** retry_may() - Is something lost, and may it be sent before the peer is heard
 * of again? */
bool retry_may(const struct req *r);

/** retry_wants() - Is something to be sent again, as far as is known? */
bool retry_wants(const struct req *r);
bool retry_is_lost(const struct qp *qp, psn_t psn);
void retry_resent(struct qp *qp, psn_t psn);
bool retry_next_lost(struct qp *qp, psn_t *psn);

/** retry_kick() - Kick @qp, unless it surely has nothing to send. */
void retry_kick(struct qp *qp);

/** retry_gap_timeout() - Take what others overtook for lost, if it is time. */
void retry_gap_timeout(struct qp *qp);

/** retry_check() - Assert what is always so of the PSNs and losses of a requester. */
void retry_check(const struct qp *qp);

#endif
