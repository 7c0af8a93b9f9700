/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* waits.h: what a request waits for. */
#ifndef NOPIN_XPORT_WAITS_H
#define NOPIN_XPORT_WAITS_H

#include <stdbool.h>
#include <stdint.h>

struct qp;

/**
 * enum live_wait - What the oldest request of a connection waits for; of several the
 * first.
 * LIVE_OWN: a page or a move of this host
 * LIVE_PAUSE: the peer had no receive, or our socket no room
 * LIVE_HOLD, LIVE_REGION: the peer misses a page, or has suspended a region
 * LIVE_WINDOW: others have the window
 * LIVE_EXPLAINED: the peer, which gave a reason when it was asked last
 * LIVE_STALLED: the peer, which answers, and neither moves nor gives any
 * LIVE_ANSWER: the peer
 */
enum live_wait {
	LIVE_NOTHING,
	LIVE_HELLO,
	LIVE_OWN,
	LIVE_PAUSE,
	LIVE_HOLD,
	LIVE_REGION,
	LIVE_WINDOW,
	LIVE_EXPLAINED,
	LIVE_STALLED,
	LIVE_ANSWER,
	LIVE_WAIT_NUM
};

/** live_waits() - Return what the oldest request of @qp waits for. @spent_at: when a retry
 * is spent if nothing happens, or TIME_NEVER. */
enum live_wait live_waits(const struct qp *qp, uint64_t *spent_at);

/**
 * hold_expected() - Does our responder wait for a region to be resumed? Then a
 * nopin peer is asked to hold for so long.
 */
bool hold_expected(const struct qp *qp, uint64_t *ns);

/**
 * qp_patience_ns() - Return the time that a region may be suspended before a standard
 * peer's retries are used up, if it has the ACK timeout and the retries of @qp:
 * UINT64_MAX for a nopin, and without a timeout.
 */
uint64_t qp_patience_ns(const struct qp *qp);

#endif
