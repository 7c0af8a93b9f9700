/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* next.c: the request that a responder takes next. */
#include "xport/next.h"
#include "base/check.h"

#include <stdint.h>

enum { NEVER = NEXT_NUM };

/* A row has what it is after the event, by what it was: UNSAID, GAP, RNR, FORGOT,
 * FORGOT_RNR, HELD. A requester that holds is told to go on by NEXT_FORGIVEN, so no other
 * event ends a hold. */
static const uint8_t edges[NEXT_EVENTS][NEXT_NUM] = {
	[NEXT_CAME] = {NEXT_UNSAID, NEXT_UNSAID, NEXT_UNSAID, NEXT_FORGOT,
		       NEXT_FORGOT, NEXT_HELD},
	[NEXT_OVERTAKEN] = {NEXT_GAP, NEVER, NEVER, NEVER, NEVER, NEVER},
	[NEXT_NO_RECEIVE] = {NEXT_RNR, NEXT_RNR, NEXT_RNR, NEXT_FORGOT_RNR,
			     NEXT_FORGOT_RNR, NEXT_HELD},
	[NEXT_DROPPED] = {NEXT_FORGOT, NEXT_FORGOT, NEXT_FORGOT_RNR,
			  NEXT_FORGOT, NEXT_FORGOT_RNR, NEXT_HELD},
	[NEXT_DROPPED_RNR] = {NEXT_FORGOT_RNR, NEXT_FORGOT_RNR, NEXT_FORGOT_RNR,
			      NEXT_FORGOT_RNR, NEXT_FORGOT_RNR, NEXT_HELD},
	[NEXT_DROPPED_HOLD] = {NEXT_HELD, NEXT_HELD, NEXT_HELD, NEXT_HELD,
			       NEXT_HELD, NEXT_HELD},
	[NEXT_RNR_SAID] = {NEXT_UNSAID, NEXT_GAP, NEXT_RNR, NEXT_FORGOT_RNR,
			   NEXT_FORGOT_RNR, NEXT_HELD},
	[NEXT_RNR_UNSAID] = {NEVER, NEVER, NEXT_GAP, NEVER, NEXT_FORGOT, NEVER},
	[NEXT_FORGIVEN] = {NEXT_UNSAID, NEXT_GAP, NEXT_RNR, NEXT_UNSAID,
			   NEXT_RNR, NEXT_UNSAID},
	[NEXT_ASKED] = {NEXT_GAP, NEVER, NEVER, NEVER, NEVER, NEVER},
	[NEXT_LOST_NAK] = {NEXT_GAP, NEXT_GAP, NEXT_GAP, NEXT_FORGOT,
			   NEXT_FORGOT, NEXT_HELD},
	[NEXT_LOST] = {NEXT_UNSAID, NEXT_UNSAID, NEXT_UNSAID, NEXT_FORGOT,
		       NEXT_FORGOT, NEXT_HELD},
};

enum next_state next_after(enum next_state now, enum next_event event)
{
	const uint8_t to = edges[event][now];

	CHECK(to != NEVER);
	return (enum next_state)to;
}
