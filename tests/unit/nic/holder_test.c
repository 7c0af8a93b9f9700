/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* holder_test.c: waiting for the holder of UDP port 4791, and what is said of it. */
#include "port_4791.h"

/* It says nothing before it was waited for three times. */
static void connects_after_three_waits(void)
{
	silent = true;
	waited = 0;
	until_waited = 3;
	connect_one_more();
	assert_int_equal(waited, 3);
	assert_true(guest->roce.told);
}

/* Packets may come as soon as a QP is connected. */
static void roce_welcome__before_the_first_packet(void **state)
{
	(void)state;
	assert_true(guest->roce.told);
	guest->roce.told = false;
	connects_after_three_waits();
}

/* One that does not run is waited for once. */
static void roce_welcome__not_for_ever(void **state)
{
	unsigned before;

	(void)state;
	guest->roce.told = false;
	silent = true;
	until_waited = UINT_MAX;
	connect_one_more();
	before = waited;
	connect_one_more();
	assert_int_equal(waited, before);
	silent = false;
}

/* Another may run. */
static void roce_welcome__of_one_after_one_that_was_late(void **state)
{
	(void)state;
	forget_holder();
	guest->roce.late = true;
	connects_after_three_waits();
}

/* The QP is made while the holder begins, and connected at once. */
static void roce_welcome__of_one_that_begins(void **state)
{
	(void)state;
	forget_holder();
	refusals = 4; /* the first when the QP is made */
	waited = 0;
	connect_one_more();
	assert_int_equal(refusals, 0);
	assert_int_equal(waited, 3 + 1); /* and for what it says */
	assert_true(guest->roce.told);
}

static void roce_welcome__of_one_that_never_begins(void **state)
{
	(void)state;
	forget_holder();
	refusals = UINT_MAX;
	waited = 0;
	guest->roce.late = true; /* it was waited for */
	connect_one_more();
	assert_int_equal(waited, 0);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	guest->roce.doubt_ns -= 2000000000;
	guest->roce.late = false;
	connect_one_more();
	assert_int_equal(waited, 0);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	refusals = 0;
}

static void roce_text__states(void **state)
{
	(void)state;
	assert_non_null(strstr(text_of(holder), "\"state\":\"ours\""));
	assert_non_null(strstr(text_of(guest), "\"state\":\"served\""));
	guest->roce.state = ROCE_STRANGER;
	guest->roce.who = (struct os_holder){12, 1001};
	assert_non_null(strstr(text_of(guest), "\"stranger\",\"pid\":12,"
					       "\"uid\":1001"));
}

/* It is said once, and only where it matters. */
static void roce_turn__says_that_nobody_passes_on(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	(void)roce_turn(guest, TIME_NEVER);
	assert_int_equal(warned, 0);
	guest->roce.wanted = false;
	guest->roce.state = ROCE_TAKEN;
	(void)roce_turn(guest, TIME_NEVER);
	assert_int_equal(warned, 0);
	for (int i = 0; i < 3; i++) {
		roce_needed(guest);
		(void)roce_turn(guest, TIME_NEVER);
		assert_int_equal(warned, 1);
	}
	log_set(LOG_WARN, NULL);
}

/* The program of the holder closed all that it has: the name is the next one's. */
static void roce_turn__of_a_closed_holder(void **state)
{
	int claim;

	(void)state;
	holder->closed = true;
	(void)roce_turn(holder, TIME_NEVER);
	claim = os_claim(guest->os, "nopin-roce-4791");
	assert_true(claim >= 0);
	os_unclaim(guest->os, claim);
	send_from_holder(holder->roce.secret);
	assert_false(believed());
	holder->closed = false;
}

/* One that was asked again, and ends the connection again, is heard at once: what it
 * leaves in the descriptor ends each sleep. */
static void roce_turn__refused_again(void **state)
{
	(void)state;
	roce_needed(guest);
	forget_holder();
	refuses = true;
	connect_one_more();
	assert_int_equal(guest->roce.state, ROCE_REFUSED);
	guest->roce.try_ns = 0; /* the second is over */
	turn();
	assert_true(guest->roce.guest >= 0);
	guest->roce.try_ns = TIME_NEVER; /* not on account of that */
	guest->os->holder.spoke = true;
	turn();
	assert_true(guest->roce.guest < 0);
	refuses = false;
}

/* It ends with a packet on its way to us, and the packet finds that out. */
static void roce_turn__of_a_holder_found_dead(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	nic_lock(guest);
	guest->roce.try_ns = 0;
	roce_needed(guest); /* as each turn of the engine */
	nic_unlock(guest);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	send_from_holder(secret);
	nic_lock(holder);
	roce_release(holder);
	nic_unlock(holder);
	assert_false(believed());
	assert_true(guest->roce.guest < 0);
	turn();
	assert_int_equal(guest->roce.state, ROCE_OURS);
}

/* A process that dies closes the port last: it is in use a moment longer. */
static void roce_turn__of_a_holder_that_is_dying(void **state)
{
	uint64_t until;
	int port;

	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	nic_tick(guest);
	roce_needed(guest);
	port = port_without_name();
	guest->os->holder.spoke = true; /* its connection ended */
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, 1, os_now(guest->os) + CLAIM_AGAIN_NS);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	port_is_free(port);
	assert_int_equal(warned, 0);
	log_set(LOG_WARN, NULL);
}

/* What is no nopin has the port for a second and longer. When it ends is not told. */
static void roce_turn__of_a_port_that_is_taken(void **state)
{
	uint64_t now, until;
	int port;

	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	port = port_without_name();
	guest->roce.state = ROCE_UNASKED;
	guest->roce.wanted = false;
	forget_holder();
	nic_lock(guest);
	roce_claim(guest);
	nic_unlock(guest);
	/* it does not matter */
	assert_int_equal(roce_turn(guest, TIME_NEVER), TIME_NEVER);
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, 1, os_now(guest->os) + CLAIM_AGAIN_NS);
	need(1000000000);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	guest->roce.try_ns = 0;
	now = guest->x.now = os_now(guest->os);
	until = roce_turn(guest, TIME_NEVER);
	assert_in_range(until, now + 1000000000,
			os_now(guest->os) + 1000000000);
	assert_int_equal(warned, 1);
	port_is_free(port);
	log_set(LOG_WARN, NULL);
}

/* The holder's end would end each sleep of a NIC that looks no more. */
static void roce_turn__of_a_closed_guest(void **state)
{
	(void)state;
	assert_true(guest->roce.guest >= 0);
	guest->closed = true;
	turn();
	assert_true(guest->roce.guest < 0);
	guest->closed = false;
}

/* One of another process namespace has no pid here, and refuses all the same. */
static void roce_text__without_a_pid(void **state)
{
	(void)state;
	guest->roce.state = ROCE_REFUSED;
	guest->roce.who = (struct os_holder){0, 1001};
	assert_non_null(
		strstr(text_of(guest), "\"state\":\"refused\",\"uid\":1001}"));
}

/* Who held it once is not told of who holds it now. */
static void roce_text__ours_after_it_was_anothers(void **state)
{
	(void)state;
	holder->roce.who = (struct os_holder){12, 1001};
	assert_non_null(strstr(text_of(holder), "\"state\":\"ours\"}"));
}

/* What is said is so now; what was never asked is not for being said. */
static void roce_text__looks_first(void **state)
{
	(void)state;
	need(0);
	nic_lock(holder);
	roce_release(holder);
	nic_unlock(holder);
	guest->roce.try_ns = 0;
	assert_non_null(strstr(text_of(guest), "\"state\":\"ours\"}"));
	holder->roce.state = ROCE_UNASKED;
	holder->roce.try_ns = 0;
	assert_non_null(strstr(text_of(holder), "\"state\":\"unasked\"}"));
	assert_true(holder->roce.guest < 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_roce, sides_close)
	const struct CMUnitTest tests[] = {
		T(roce_welcome__before_the_first_packet),
		T(roce_welcome__not_for_ever),
		T(roce_welcome__of_one_after_one_that_was_late),
		T(roce_welcome__of_one_that_begins),
		T(roce_welcome__of_one_that_never_begins),
		T(roce_text__states),
		T(roce_turn__says_that_nobody_passes_on),
		T(roce_turn__of_a_closed_holder),
		T(roce_turn__refused_again),
		T(roce_turn__of_a_holder_found_dead),
		T(roce_turn__of_a_holder_that_is_dying),
		T(roce_turn__of_a_port_that_is_taken),
		T(roce_turn__of_a_closed_guest),
		T(roce_text__without_a_pid),
		T(roce_text__ours_after_it_was_anothers),
		T(roce_text__looks_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
