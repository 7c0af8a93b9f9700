/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* roce_test.c: whose word counts for where a packet came from, and which process is taken
 * for the holder of UDP port 4791.
 */
#include "port_4791.h"

static void roce_trusts__port_and_secret(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	assert_int_not_equal(secret, 0);
	send_from_holder(secret);
	assert_true(believed());
	send_from_holder(secret ^ 1);
	assert_false(believed());
	/* there another process may have the port, or of the other family */
	send_from_port(secret, 2);
	assert_false(believed());
	send_from_anywhere(secret);
	assert_false(believed());
	send_from_anywhere(0);
	assert_false(believed());
}

/* The port may be anybody's from then on, and the secret was told to others. */
static void roce_trusts__nobody_after_its_end(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	os_claim_unshare(holder->os);
	send_from_holder(secret);
	assert_false(believed());
	assert_true(guest->roce.guest < 0);
}

/* Who holds the port is not told anything by others. */
static void roce_trusts__not_the_holder_itself(void **state)
{
	struct pkt p = {.fwd_secret = holder->roce.secret};
	const struct os_rx from = {
		.src = {.ip = holder->gids.slot[0].ip, .port = ROCE_PORT}};

	(void)state;
	assert_false(roce_trusts(holder, &p, &from));
}

/* It let us in and has said nothing: the secret that we have is another holder's. */
static void roce_trusts__not_before_it_was_told(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	need(0);
	forget_holder();
	silent = true;
	waited = 0;
	until_waited = UINT_MAX;
	need(0);
	assert_true(guest->roce.guest >= 0 && !guest->roce.told);
	assert_int_equal(guest->roce.secret, secret);
	send_from_holder(secret);
	assert_false(believed());
	assert_true(guest->roce.guest >= 0);
	until_waited = 0; /* now it says it */
	send_from_holder(secret);
	assert_true(believed());
}

/* The connection ends before anything was told: then nothing is passed on, which is
 * said once, and tried again in a second. */
static void roce_claim__refused(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = asked = 0;
	roce_needed(guest);
	forget_holder();
	refuses = true;
	connect_one_more();
	assert_int_equal(guest->roce.state, ROCE_REFUSED);
	assert_non_null(strstr(text_of(guest), "\"refused\",\"pid\":"));
	for (int i = 0; i < 3; i++)
		turn();
	assert_int_equal(warned, 1);
	assert_int_equal(asked, 1);
	assert_in_range(guest->roce.try_ns, began_ns + 1000000000,
			os_now(guest->os) + 1000000000);
	refuses = false;
	guest->roce.try_ns = 0; /* the second is over */
	turn();
	assert_int_equal(asked, 2);
	while (!guest->roce.told) {
		guest->roce.try_ns = 0;
		turn();
		idle(guest);
	}
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	assert_int_equal(warned, 1);
	log_set(LOG_WARN, NULL);
}

/* Where no names can be had the port is for one NIC. */
static void roce_claim__without_a_name(void **state)
{
	(void)state;
	forget_holder();
	/* the guest has no thread that runs now */
	nic_lock(holder);
	roce_release(holder);
	nameless = -EAFNOSUPPORT;
	holder->roce.try_ns = 0;
	guest->roce.state = ROCE_UNASKED;
	holder->x.now = 1;
	roce_claim(holder);
	guest->x.now = 1;
	roce_claim(guest);
	nic_unlock(holder);
	nameless = 0;
	assert_true(holder->roce.claim < 0 && holder->roce.port >= 0);
	assert_int_equal(holder->roce.state, ROCE_OURS);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	guest->roce.try_ns = 0;
	nic_lock(holder);
	guest->x.now = 1 + 1000000000;
	roce_claim(guest);
	nic_unlock(holder);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
}

/* A moment without descriptors is none: neither the port without a name, nor for ever
 * without the port. */
static void roce_claim__short_of_descriptors(void **state)
{
	uint64_t now, until;

	(void)state;
	forget_holder();
	nic_lock(holder);
	roce_release(holder);
	holder->roce.state = ROCE_UNASKED;
	holder->roce.try_ns = 0;
	nameless = -EMFILE;
	holder->x.now = 1;
	roce_claim(holder);
	nic_unlock(holder);
	assert_true(holder->roce.port < 0);
	assert_int_equal(holder->roce.state, ROCE_UNASKED);
	now = os_now(holder->os);
	until = roce_turn(holder, TIME_NEVER);
	assert_in_range(until, now + 1000000000,
			os_now(holder->os) + 1000000000);
	nameless = 0;
	holder->roce.try_ns = 0; /* the second is over */
	assert_int_equal(roce_turn(holder, TIME_NEVER), TIME_NEVER);
	assert_int_equal(holder->roce.state, ROCE_OURS);
	assert_true(holder->roce.claim >= 0 && holder->roce.port >= 0);
}

/* Nobody needs it yet: it is looked for again all the same, as others may. */
static void roce_claim__short_of_descriptors_before_it_matters(void **state)
{
	(void)state;
	forget_holder();
	guest->roce.state = ROCE_UNASKED;
	guest->roce.wanted = false;
	nameless = -EMFILE;
	nic_lock(guest);
	roce_claim(guest);
	nic_unlock(guest);
	nameless = 0;
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	guest->roce.try_ns = 0; /* the second is over */
	turn();
	assert_true(guest->roce.guest >= 0);
}

/* The port was found taken while it did not matter. Return: port_without_name() */
static int not_needed_yet(enum roce_state found)
{
	const int port = port_without_name();

	guest->roce.wanted = false;
	forget_holder();
	guest->roce.state = found;
	return port;
}

/* What was found before it mattered may be long ago. */
static void roce_needed__after_the_port_was_taken(void **state)
{
	int port;

	(void)state;
	port = not_needed_yet(ROCE_TAKEN);
	guest->roce.try_ns = TIME_NEVER;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	port_is_free(port);
}

/* And so may be since when that was doubted. */
static void roce_needed__after_a_doubt(void **state)
{
	int port;

	(void)state;
	port = not_needed_yet(ROCE_UNASKED);
	guest->roce.doubt_ns = 1;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	assert_true(guest->roce.doubt_ns > 1);
	port_is_free(port);
}

/* What was doubted before the connection is nothing that the holder did not say. */
static void roce_claim__after_a_doubt(void **state)
{
	(void)state;
	need(0);
	forget_holder();
	silent = true;
	waited = 0;
	until_waited = UINT_MAX;
	guest->roce.doubt_ns = 1;
	need(0);
	assert_true(guest->roce.guest >= 0);
	guest->roce.try_ns = 0;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	silent = false;
}

/* The connection waits to be let in, and the holder ends: that is no refusal. */
static void roce_claim__of_a_holder_that_has_ended(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	need(0);
	forget_holder();
	nic_lock(guest);
	roce_claim(guest);
	resets = true;
	guest->roce.try_ns = 0;
	roce_claim(guest);
	resets = false;
	nic_unlock(guest);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	nic_lock(holder);
	roce_release(holder);
	nic_unlock(holder);
	assert_in_range(guest->roce.try_ns, 1,
			os_now(guest->os) + CLAIM_AGAIN_NS);
	guest->os->holder.spoke = true;
	turn();
	assert_int_equal(guest->roce.state, ROCE_OURS);
	assert_int_equal(warned, 0);
	log_set(LOG_WARN, NULL);
}

/* Or it looks, and says what is to be said, up to a second later. */
static void roce_changed__wakes_the_thread_that_looks(void **state)
{
	int port;

	(void)state;
	need(0);
	forget_holder();
	kicks = 0;
	need(0);
	assert_true(guest->roce.guest >= 0);
	assert_int_equal(kicks,
			 2); /* to sleep on that, and until it is silent */
	guest->roce.told = true;
	need(0);
	assert_false(guest->roce.orphan);
	port = port_without_name();
	forget_holder();
	kicks = 0;
	need(0);
	assert_true(guest->roce.doubt_ns);
	assert_int_equal(kicks, 1);
	need(0);
	assert_int_equal(kicks, 1);
	turn();
	kicks = 0;
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_TAKEN);
	assert_int_equal(kicks, 1);
	port_is_free(port);
}

/* Datagrams of standard peers may come as soon as there is a QP for them. */
static void roce_needed__by_a_qp_of_datagrams(void **state)
{
	struct nic_qp_init init = {.max_send_wr = 1,
				   .max_recv_wr = 1,
				   .max_send_sge = 1,
				   .max_recv_sge = 1,
				   .ud = true};
	const struct side *s = &side[side[1].nic == guest];
	struct nic_qp *qp;
	uint32_t qpn;

	(void)state;
	guest->roce.wanted = false;
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->cq;
	assert_int_equal(nic_qp_create(guest, NULL, &init, &qp, &qpn), 0);
	assert_true(guest->roce.wanted);
	assert_int_equal(nic_qp_destroy(qp), 0);
}

/* One that lets nobody in is the one that it was. */
static void roce_claim__of_a_holder_that_is_stopped(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	need(0);
	forget_holder();
	guest->roce.state = ROCE_STRANGER;
	guest->roce.who = (struct os_holder){12, 1001};
	stopped = true;
	need(0);
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_STRANGER);
	assert_int_equal(guest->roce.who.pid, 12);
	guest->roce.state = ROCE_UNASKED;
	guest->roce.try_ns = 0;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_SILENT);
	assert_non_null(strstr(text_of(guest), "\"state\":\"silent\"}"));
	turn();
	assert_int_equal(warned, 1);
	stopped = false;
	log_set(LOG_WARN, NULL);
}

/* It takes the connection, as its backlog has room, and says nothing; or it does when it
 * runs again. */
static void roce_claim__of_a_holder_that_stops(void **state)
{
	(void)state;
	log_set(LOG_WARN, count_warnings);
	warned = 0;
	need(0);
	forget_holder();
	guest->roce.state = ROCE_STRANGER; /* it was another's until now */
	silent = true;
	waited = 0;
	until_waited = 1;
	need(0);
	assert_true(guest->roce.guest >= 0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	assert_true(guest->roce.orphan);
	guest->roce.try_ns = 0;
	need(0);
	assert_int_equal(guest->roce.state, ROCE_UNASKED);
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_SILENT);
	assert_false(guest->roce.orphan); /* what it says wakes us */
	assert_non_null(strstr(text_of(guest), "\"silent\",\"pid\":"));
	turn();
	assert_int_equal(warned, 1);
	waited = 1;
	guest->roce.try_ns = 0;
	need(2000000000);
	assert_int_equal(guest->roce.state, ROCE_SERVED);
	assert_int_equal(guest->roce.doubt_ns, 0);
	turn();
	assert_int_equal(warned, 1);
	log_set(LOG_WARN, NULL);
	forget_holder();
	waited = 0;
	silent = true;
	need(0);
	guest->roce.try_ns = 0;
	need(0);
	assert_int_not_equal(guest->roce.doubt_ns, 0);
	waited = 1;
	guest->roce.try_ns = 0;
	need(0);
	assert_int_equal(guest->roce.doubt_ns,
			 0); /* the next one's is its own */
}

/* A packet finds out that it ended before it let us in: then somebody looks. */
static void roce_trusts__of_a_holder_that_never_spoke(void **state)
{
	const uint64_t secret = holder->roce.secret;

	(void)state;
	need(0);
	forget_holder();
	guest->roce.state = ROCE_UNASKED;
	need(0);
	assert_true(guest->roce.guest >= 0 && !guest->roce.told);
	resets = true;
	send_from_holder(secret);
	assert_false(believed());
	resets = false;
	assert_true(guest->roce.guest < 0);
	assert_true(guest->roce.orphan);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_roce, sides_close)
	const struct CMUnitTest tests[] = {
		T(roce_trusts__port_and_secret),
		T(roce_trusts__nobody_after_its_end),
		T(roce_trusts__not_the_holder_itself),
		T(roce_trusts__not_before_it_was_told),
		T(roce_claim__refused),
		T(roce_claim__without_a_name),
		T(roce_claim__short_of_descriptors),
		T(roce_claim__short_of_descriptors_before_it_matters),
		T(roce_needed__after_the_port_was_taken),
		T(roce_needed__after_a_doubt),
		T(roce_claim__after_a_doubt),
		T(roce_claim__of_a_holder_that_has_ended),
		T(roce_changed__wakes_the_thread_that_looks),
		T(roce_needed__by_a_qp_of_datagrams),
		T(roce_claim__of_a_holder_that_is_stopped),
		T(roce_claim__of_a_holder_that_stops),
		T(roce_trusts__of_a_holder_that_never_spoke),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
