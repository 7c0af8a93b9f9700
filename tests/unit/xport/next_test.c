/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* next_test.c: what a requester was told of the packet that comes next, event by event. */
#include "base/check.h"
#include "xport/next.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Return: what is told after @n events from NEXT_UNSAID on. */
static enum next_state told(const enum next_event *events, unsigned n)
{
	enum next_state now = NEXT_UNSAID;

	for (unsigned i = 0; i < n; i++)
		now = next_after(now, events[i]);
	return now;
}

#define TOLD(...)                                                              \
	told((const enum next_event[]){__VA_ARGS__},                           \
	     ARRAY_SIZE(((const enum next_event[]){__VA_ARGS__})))

/* It is overtaken, is told missing, and comes. */
static void next__gap(void **state)
{
	(void)state;
	assert_int_equal(TOLD(NEXT_OVERTAKEN), NEXT_GAP);
	assert_int_equal(TOLD(NEXT_OVERTAKEN, NEXT_CAME), NEXT_UNSAID);
	assert_false(next_rnr(NEXT_GAP) || next_forgot(NEXT_GAP));
}

/* What comes behind an RNR NAK is dropped, until the packet itself comes. */
static void next__without_a_receive(void **state)
{
	(void)state;
	assert_int_equal(TOLD(NEXT_CAME, NEXT_NO_RECEIVE), NEXT_RNR);
	assert_true(next_rnr(NEXT_RNR));
	assert_int_equal(TOLD(NEXT_CAME, NEXT_NO_RECEIVE, NEXT_CAME),
			 NEXT_UNSAID);
	/* one that was kept behind a gap */
	assert_int_equal(TOLD(NEXT_OVERTAKEN, NEXT_NO_RECEIVE), NEXT_RNR);
}

/* Its page comes: what was not said before is asked for now. */
static void next__in_silence(void **state)
{
	(void)state;
	assert_int_equal(TOLD(NEXT_CAME, NEXT_DROPPED), NEXT_FORGOT);
	assert_true(next_forgot(NEXT_FORGOT));
	assert_int_equal(TOLD(NEXT_DROPPED, NEXT_CAME, NEXT_DROPPED),
			 NEXT_FORGOT);
	assert_int_equal(TOLD(NEXT_DROPPED, NEXT_FORGIVEN, NEXT_ASKED),
			 NEXT_GAP);
	assert_int_equal(TOLD(NEXT_DROPPED, NEXT_RNR_SAID), NEXT_FORGOT_RNR);
	/* of what was not dropped nothing changes: another waits for its page */
	assert_int_equal(TOLD(NEXT_RNR_SAID), NEXT_UNSAID);
}

/* Who was told RNR comes again, page or no page. */
static void next__rnr_for_a_page(void **state)
{
	(void)state;
	assert_int_equal(TOLD(NEXT_DROPPED_RNR), NEXT_FORGOT_RNR);
	assert_true(next_forgot(NEXT_FORGOT_RNR) && next_rnr(NEXT_FORGOT_RNR));
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_FORGIVEN), NEXT_RNR);
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_CAME), NEXT_FORGOT);
	/* and before it was here, too */
	assert_int_equal(TOLD(NEXT_NO_RECEIVE, NEXT_DROPPED), NEXT_FORGOT_RNR);
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_DROPPED), NEXT_FORGOT_RNR);
	/* the page was quicker than the NAK */
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_RNR_UNSAID), NEXT_FORGOT);
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_FORGIVEN, NEXT_RNR_UNSAID),
			 NEXT_GAP);
}

/* A hold ends when it is said: until then the peer sends nothing. */
static void next__hold(void **state)
{
	static const enum next_event not_the_end[] = {
		NEXT_CAME,	  NEXT_NO_RECEIVE,   NEXT_DROPPED,
		NEXT_DROPPED_RNR, NEXT_DROPPED_HOLD, NEXT_RNR_SAID,
		NEXT_LOST,	  NEXT_LOST_NAK};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(not_the_end); i++)
		assert_int_equal(TOLD(NEXT_DROPPED_HOLD, not_the_end[i]),
				 NEXT_HELD);
	assert_true(next_forgot(NEXT_HELD));
	assert_false(next_rnr(NEXT_HELD));
	assert_int_equal(TOLD(NEXT_DROPPED_HOLD, NEXT_FORGIVEN), NEXT_UNSAID);
}

/* One before it was accepted, and is forgotten: that one is waited for now. */
static void next__lost(void **state)
{
	(void)state;
	assert_int_equal(TOLD(NEXT_LOST), NEXT_UNSAID);
	assert_int_equal(TOLD(NEXT_LOST_NAK), NEXT_GAP);
	assert_int_equal(TOLD(NEXT_NO_RECEIVE, NEXT_LOST), NEXT_UNSAID);
	assert_int_equal(TOLD(NEXT_OVERTAKEN, NEXT_LOST), NEXT_UNSAID);
	assert_int_equal(TOLD(NEXT_OVERTAKEN, NEXT_LOST_NAK), NEXT_GAP);
	assert_int_equal(TOLD(NEXT_NO_RECEIVE, NEXT_LOST_NAK), NEXT_GAP);
	assert_int_equal(TOLD(NEXT_DROPPED_RNR, NEXT_LOST), NEXT_FORGOT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(next__gap),
		cmocka_unit_test(next__without_a_receive),
		cmocka_unit_test(next__in_silence),
		cmocka_unit_test(next__rnr_for_a_page),
		cmocka_unit_test(next__hold),
		cmocka_unit_test(next__lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
