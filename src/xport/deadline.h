/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deadline.h: the one timer of a QP, and what it is for. TIME_NEVER: nothing is due. */
#ifndef NOPIN_XPORT_DEADLINE_H
#define NOPIN_XPORT_DEADLINE_H

#include "base/timerq.h"

#include <stdbool.h>
#include <stdint.h>

struct qp;

/*
 * Deadlines of a requester. They count in RTS and SQD.
 * REQ_SILENT:	then the peer was silent for an ACK timeout (live.c; NEVER: it is not
 *		its turn)
 * REQ_STALLED:	then nothing moved for one, of what was not explained (live.c; NEVER:
 *		this clock stands, and has live.left_ns to go)
 * REQ_PROBE:	a nopin is asked for its state (live.c)
 * REQ_GAP:	what was overtaken counts as lost (retry.c)
 * REQ_READ_GAP: the response that others overtook does (reply.c)
 * REQ_PAUSE:	nothing is sent before (RNR, socket full)
 * REQ_LATE:	copies before req.charge.copies_to are no more on their way (flow.c)
 * REQ_HOLD:	we were asked to hold, and go on, from req.acc, unless XACK_RESUME comes
 * REQ_SUSPEND:	the peer waits for a region of its own: our timers stand still until it
 *		says otherwise, or until then (hold.c)
 */
enum req_deadline {
	REQ_SILENT,
	REQ_STALLED,
	REQ_PROBE,
	REQ_GAP,
	REQ_READ_GAP,
	REQ_PAUSE,
	REQ_LATE,
	REQ_HOLD,
	REQ_SUSPEND,
	REQ_DEADLINES
};

/*
 * Deadlines of a responder. They count in all states but ERR.
 * RESP_PAUSE:	no response before: the socket was full
 * RESP_SILENCE: standard peers: then say RNR instead (fault_rnr.c)
 * RESP_RESUME:	RESUME is said again, as win.next has not come (fault_resume.c)
 * RESP_REPEAT:	what moved nothing on may be acknowledged (owe.c)
 */
enum resp_deadline {
	RESP_PAUSE,
	RESP_SILENCE,
	RESP_RESUME,
	RESP_REPEAT,
	RESP_DEADLINES
};

/** deadlines_none() - Let none of the first @n of @at be due. */
static inline void deadlines_none(uint64_t *at, unsigned n)
{
	while (n--)
		at[n] = TIME_NEVER;
}

/** deadline_waits() - Return true if something is due at @at, or was. */
static inline bool deadline_waits(uint64_t at)
{
	return at != TIME_NEVER;
}

/** deadline_ahead() - Return true if something is due at @at, and not yet. */
static inline bool deadline_ahead(uint64_t at, uint64_t now_ns)
{
	return deadline_waits(at) && now_ns < at;
}

/** qp_rearm() - Set the timer of @qp to the earliest of its deadlines. */
void qp_rearm(struct qp *qp);

/** deadline_check() - Assert that the timer of @qp is due when the first of them is. */
void deadline_check(const struct qp *qp);

#endif
