/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* next.h: the request that a responder takes next, as far as its requester was told. */
#ifndef NOPIN_XPORT_NEXT_H
#define NOPIN_XPORT_NEXT_H

#include <stdbool.h>

/**
 * enum next_state - What the requester was told of the packet resp.win.next, which is not here.
 * NEXT_UNSAID:	nothing
 * NEXT_GAP:	a sequence NAK: it was overtaken, or is to be sent again
 * NEXT_RNR:	an RNR NAK: what comes behind it is dropped until it comes again
 * NEXT_FORGOT:	nothing, and it was here: its pages are being fetched, and it was not
 *		kept; it is asked for when resp.wait is woken
 * NEXT_FORGOT_RNR: the same, and an RNR NAK
 * NEXT_HELD:	the same, and to hold until then
 */
enum next_state {
	NEXT_UNSAID,
	NEXT_GAP,
	NEXT_RNR,
	NEXT_FORGOT,
	NEXT_FORGOT_RNR,
	NEXT_HELD,
	NEXT_NUM
};

/**
 * enum next_event - What happens to that packet.
 * NEXT_CAME:	it is here
 * NEXT_OVERTAKEN: another came in its place
 * NEXT_NO_RECEIVE: it was here, and no receive is posted for it
 * NEXT_DROPPED: it was here, and not kept for want of a page, which is not said
 * NEXT_DROPPED_RNR, NEXT_DROPPED_HOLD: the same, which is said
 * NEXT_RNR_SAID: a standard requester bears no more silence
 * NEXT_RNR_UNSAID: the page came before its RNR NAK left, so that is not said
 * NEXT_FORGIVEN: nothing keeps it from being taken any more
 * NEXT_ASKED:	and it is asked for
 * NEXT_LOST_NAK, NEXT_LOST: one before it was accepted, and found no slot; a requester that
 *		is no nopin is told so by a sequence NAK
 */
enum next_event {
	NEXT_CAME,
	NEXT_OVERTAKEN,
	NEXT_NO_RECEIVE,
	NEXT_DROPPED,
	NEXT_DROPPED_RNR,
	NEXT_DROPPED_HOLD,
	NEXT_RNR_SAID,
	NEXT_RNR_UNSAID,
	NEXT_FORGIVEN,
	NEXT_ASKED,
	NEXT_LOST_NAK,
	NEXT_LOST,
	NEXT_EVENTS
};

/** next_after() - Return what is told of it after @event. */
enum next_state next_after(enum next_state now, enum next_event event);

/** next_forgot() - Return true if it was here, and was not kept for want of a page. */
static inline bool next_forgot(enum next_state now)
{
	return now >= NEXT_FORGOT;
}

/** next_rnr() - Return true if the requester was told RNR. */
static inline bool next_rnr(enum next_state now)
{
	return now == NEXT_RNR || now == NEXT_FORGOT_RNR;
}

#endif
