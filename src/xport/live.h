/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* live.h: does the requester get anywhere? */
#ifndef NOPIN_XPORT_LIVE_H
#define NOPIN_XPORT_LIVE_H

#include "ring/cqe.h"
#include "wire/pkt.h"
#include "wire/psn.h"

struct peer;
struct qp;
struct req;

/*
 * TRIAL_NONE: until nothing has moved for an ACK timeout; again after progress and
 *	when a retry is spent
 * TRIAL_DUE: the oldest packet is to be sent once more
 * TRIAL_MADE: it was, and questions of after that count
 */
enum trial { TRIAL_NONE, TRIAL_DUE, TRIAL_MADE };

/**
 * struct live - Does the requester get anywhere? (live.c)
 * @left_ns:	what REQ_STALLED has to go while it stands (deadline.h)
 * @una, @best:	of the last progress; the highest req.acc since
 * @explained:	the last answer gave a reason to wait
 * @excused:	it was silent because we did not ask, at @asked_ns last
 * @window:	nothing could be sent, as others have the window
 */
struct live {
	uint64_t left_ns, asked_ns;
	psn_t una, best;
	bool explained, excused, window;
	enum trial trial;
};

void live_reset(struct req *r);

/** live_start() - Let the clocks run that stand: it is the peer's turn. */
void live_start(struct qp *qp);

/** live_stop() - Stop the clocks: it is not the peer's turn. The next question is the
 * first. */
void live_stop(struct qp *qp);

/** live_restart() - Send all again that was sent. */
void live_restart(struct qp *qp);

/** live_wait_open() - Let the clocks run if a request has to wait until it is known what
 * the peer is. */
void live_wait_open(struct qp *qp);

/** live_sent() - Let the clocks run, as requests leave (@first: and none were on their
 * way). live_none_sent(): let them run if none can, as others have the window. */
void live_sent(struct qp *qp, bool first);
void live_none_sent(struct qp *qp);

/** live_spend() - Spend one retry. Return: false: none was left, and the QP failed: for
 * @cause, or because packets are too large. */
bool live_spend(struct qp *qp, enum wc_cause cause);

/** live_not_ready() - Give the retries back, as the peer said RNR, unless it is one that is
 * asked. */
void live_not_ready(struct qp *qp);

/** live_moved() - Is it further than it ever was, since this was asked last? */
bool live_moved(struct qp *qp);
void live_progress(struct qp *qp);

/** live_heard() - Learn from @p, which came and is no progress, whether there is a reason
 * to wait, or spend a retry; @answer: to our newest question. */
void live_heard(struct qp *qp, const struct pkt *p, bool answer);

/** live_heard_of() - Note that something came from @p to one of the QPs towards it. */
void live_heard_of(struct peer *p, uint64_t now_ns);

/** live_page_came() - Give the peer, which has answered once and says so, an ACK timeout
 * from now: a response waited for the page, and may be asked for anew. */
void live_page_came(struct qp *qp);

/** live_ask() - Ask the peer for its state now, and from then on as if it was never
 * asked. */
void live_ask(struct qp *qp);

/** live_asked() - Note that a question is about to leave. */
void live_asked(struct qp *qp);

/** live_repeats() - Is the oldest packet to be sent again? live_repeated(): it was;
 * live_unsent(): what begins at @from was not. */
bool live_repeats(const struct req *r);
void live_repeated(struct qp *qp);
void live_unsent(struct qp *qp, psn_t from);

/** live_timeout() - Do what is due by the clocks. Return: is all to be sent again? */
bool live_timeout(struct qp *qp);

/** live_check() - Assert what is always so of struct live and struct req_probe. */
void live_check(const struct qp *qp);

#endif
