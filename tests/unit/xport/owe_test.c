/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* owe_test.c: ACKs, NAKs and words to a nopin that QPs owe two peers, and by when. */
#include "mem/mem.h"
#include "memory.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "xport/deadline.h"
#include "xport/owe.h"
#include "xport/tx.h"

enum { SLOTS = 8, QPS = 3, PEERS = 2, DELAY = 1000, NOW = 50000, SERIES = 8 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer[PEERS];
	struct qp qp[QPS];
} s;

/* The last QP is the second peer's. */
static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};
	const struct qp_config cfg = {.transport = &transport_rc};

	memset(&s, 0, sizeof(s));
	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	s.x.ack_delay_ns = DELAY;
	s.x.now = NOW;
	assert_int_equal(timerq_reserve(&s.x.timers, QPS), 0);
	for (int i = 0; i < PEERS; i++)
		peer_init(&s.peer[i], &ep, &ep.ip);
	for (int i = 0; i < QPS; i++) {
		assert_int_equal(qp_init(&s.qp[i], &s.x, &cfg), 0);
		s.qp[i].peer = &s.peer[i == QPS - 1];
		s.qp[i].state = QPS_RTS;
		s.qp[i].open.mine = s.qp[i].open.theirs = 1;
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < QPS; i++) {
		owe_check(&s.qp[i]);
		deadline_check(&s.qp[i]);
		qp_fini(&s.qp[i]);
	}
	assert_true(list_empty(&s.x.work.ack_peers));
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static struct resp_ack *ack(int i)
{
	return &s.qp[i].resp.ack;
}

/* Is the first peer to be told something by then? */
static void check_due(uint64_t ns)
{
	assert_true(ack(0)->owed);
	assert_false(list_empty(&s.peer[0].acks.link));
	assert_int_equal(s.peer[0].acks.due_ns, ns);
}

/* It was said, as ack.c does that. */
static void say(int i)
{
	ack_cancel(&s.qp[i]);
	ack(i)->said_ns = s.x.now;
	ack(i)->xack = 0;
	ack(i)->busy = ack(i)->nak.owed = ack(i)->page_rnr.owed = false;
}

static void standard(int i)
{
	s.qp[i].open.theirs = 0;
	s.qp[i].open.known = false;
}

/* --- owing ------------------------------------------------------------------- */

static void owe_by__the_first_of_a_peer(void **state)
{
	(void)state;
	s.peer[0].acks.due_ns = 1; /* of long ago */
	owe_by(&s.qp[0], 500);
	check_due(500);
	owe_by(&s.qp[1], 600);
	check_due(500);
	owe_by(&s.qp[1], 400);
	check_due(400);
	assert_ptr_equal(s.peer[0].acks.owed.next, &s.qp[0].on.owed);
	assert_ptr_equal(s.peer[0].acks.owed.prev, &s.qp[1].on.owed);
	assert_true(list_empty(&s.peer[1].acks.link));
}

/* The peer is on the list as long as any of its QPs owes it something. */
static void ack_cancel__the_last_of_a_peer(void **state)
{
	(void)state;
	for (int i = 0; i < QPS; i++)
		ack_owe(&s.qp[i]);
	ack_cancel(&s.qp[0]);
	assert_false(ack(0)->owed);
	assert_false(list_empty(&s.peer[0].acks.link));
	ack_cancel(&s.qp[0]);
	assert_false(list_empty(&s.peer[0].acks.link));
	ack_cancel(&s.qp[1]);
	assert_true(list_empty(&s.peer[0].acks.link));
	assert_ptr_equal(s.x.work.ack_peers.next, &s.peer[1].acks.link);
	s.qp[1].peer = NULL; /* as of one that never had any */
	ack_cancel(&s.qp[1]);
	s.qp[1].peer = &s.peer[0];
}

static void ack_owe__within_the_delay(void **state)
{
	(void)state;
	ack_owe(&s.qp[0]);
	check_due(NOW + DELAY);
	s.x.now++;
	ack_owe(&s.qp[0]);
	check_due(NOW + DELAY);
}

/* --- receives ---------------------------------------------------------------- */

/* @n receives, each of which a request follows. */
static void series(int n)
{
	while (n--) {
		ack_received(&s.qp[0]);
		check_due(NOW);
		say(0);
		ack_answered(&s.qp[0].resp);
	}
}

static void ack_received__in_a_series_of_answers(void **state)
{
	(void)state;
	series(SERIES);
	for (int i = 0; i < 2; i++) {
		ack_received(&s.qp[0]);
		check_due(NOW + DELAY);
		say(0);
		ack_answered(&s.qp[0].resp);
	}
}

/* A peer that finds nothing in requests is told at once. */
static void ack_received__of_a_standard_peer(void **state)
{
	(void)state;
	standard(0);
	series(2 * SERIES);
}

/* Two receives in turn end a series. */
static void ack_received__without_an_answer(void **state)
{
	(void)state;
	series(SERIES);
	ack_received(&s.qp[0]);
	say(0);
	ack_received(&s.qp[0]);
	check_due(NOW);
	say(0);
	ack_answered(&s.qp[0].resp);
	series(SERIES - 1);
	ack_received(&s.qp[0]);
	check_due(NOW + DELAY);
}

/* Several requests behind one receive are one answer. */
static void ack_answered__more_than_once(void **state)
{
	(void)state;
	ack_received(&s.qp[0]);
	for (int i = 0; i < 2 * SERIES; i++)
		ack_answered(&s.qp[0].resp);
	assert_int_equal(ack(0)->answers, 1);
	say(0);
	ack_received(&s.qp[0]);
	check_due(NOW);
}

/* --- packets that move nothing on -------------------------------------------- */

static void ack_repeat__one_in_a_delay(void **state)
{
	uint64_t *at = &s.qp[0].resp.at[RESP_REPEAT];

	(void)state;
	say(0);
	s.x.now = NOW + DELAY - 1;
	ack_repeat(&s.qp[0]);
	assert_false(ack(0)->owed);
	assert_int_equal(*at, NOW + DELAY);
	assert_int_equal(timerq_next(&s.x.timers), NOW + DELAY);
	ack_repeat(&s.qp[0]);
	ack_repeat_timeout(&s.qp[0]);
	assert_false(ack(0)->owed);
	s.x.now++;
	ack_repeat_timeout(&s.qp[0]);
	check_due(s.x.now);
	assert_int_equal(*at, TIME_NEVER);
	qp_rearm(&s.qp[0]);
	say(0);
	ack_repeat_timeout(&s.qp[0]);
	assert_false(ack(0)->owed);
}

static void ack_repeat__after_a_delay(void **state)
{
	(void)state;
	say(0);
	s.x.now = NOW + DELAY;
	ack_repeat(&s.qp[0]);
	check_due(s.x.now + DELAY);
	assert_int_equal(s.qp[0].resp.at[RESP_REPEAT], TIME_NEVER);
}

/* --- NAKs -------------------------------------------------------------------- */

static void check_nak(const struct nak *nak, uint8_t syndrome, psn_t psn)
{
	assert_true(nak->owed);
	assert_int_equal(nak->syndrome, syndrome);
	assert_int_equal(nak->psn, psn);
}

static void ack_nak__and_an_rnr_for_a_page(void **state)
{
	(void)state;
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_ACCESS, PSN_MASK);
	check_due(NOW);
	ack_page_rnr(&s.qp[0], 5, 0);
	check_nak(&ack(0)->nak, AETH_NAK | NAK_REMOTE_ACCESS, PSN_MASK);
	check_nak(&ack(0)->page_rnr, AETH_RNR | 5, 0);
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 1);
	check_nak(&ack(0)->nak, AETH_NAK | NAK_PSN_SEQUENCE, 1);
	say(0);
	ack_page_rnr(&s.qp[0], AETH_VALUE_MASK, 1);
	check_due(NOW);
	check_nak(&ack(0)->page_rnr, AETH_RNR | AETH_VALUE_MASK, 1);
}

/* --- words to a nopin -------------------------------------------------------- */

static void ack_answer__busy_or_not(void **state)
{
	(void)state;
	ack_answer(&s.qp[0], 7);
	check_due(NOW);
	assert_int_equal(ack(0)->xack, XACK_PROBED);
	assert_int_equal(ack(0)->answer, 7);
	assert_false(ack(0)->busy);
	s.qp[0].rx_moving = true;
	ack_answer(&s.qp[0], 8);
	assert_true(ack(0)->busy);
	assert_int_equal(ack(0)->answer, 8);
	s.qp[0].rx_moving = false;
	ack_answer(&s.qp[0], 9);
	assert_false(ack(0)->busy);
	s.qp[0].resp.replay.answering = true;
	ack_answer(&s.qp[0], 10);
	assert_true(ack(0)->busy);
	s.qp[0].resp.replay.answering = false;
}

/* Hold and go on: only the newer one is said. */
static void ack_say__the_newer_order(void **state)
{
	(void)state;
	ack_say(&s.qp[0], XACK_HOLD);
	check_due(NOW);
	ack_say(&s.qp[0], XACK_PROBE);
	assert_int_equal(ack(0)->xack, XACK_HOLD | XACK_PROBE);
	ack_say(&s.qp[0], XACK_RESUME);
	assert_int_equal(ack(0)->xack, XACK_RESUME | XACK_PROBE);
	ack_say(&s.qp[0], XACK_HOLD);
	assert_int_equal(ack(0)->xack, XACK_HOLD | XACK_PROBE);
}

/* A peer whose epoch is not known yet will be told; a standard one never is. */
static void ack_say__to_what_kind_of_peer(void **state)
{
	(void)state;
	standard(0);
	ack_say(&s.qp[0], XACK_RESUME);
	assert_int_equal(ack(0)->xack, 0);
	assert_false(ack(0)->owed);
	s.qp[0].open.known = true;
	ack_say(&s.qp[0], XACK_RESUME);
	assert_int_equal(ack(0)->xack, XACK_RESUME);
	check_due(NOW);
}

static void ack_credit__through_which_qp(void **state)
{
	(void)state;
	s.qp[0].state = QPS_INIT;
	assert_false(ack_credit(&s.qp[0]));
	s.qp[0].state = QPS_ERR;
	assert_false(ack_credit(&s.qp[0]));
	s.qp[0].state = QPS_RTR;
	standard(0);
	assert_false(ack_credit(&s.qp[0]));
	assert_false(ack(0)->owed);
	s.qp[0].open.theirs = 1;
	assert_true(ack_credit(&s.qp[0]));
	check_due(NOW + DELAY);
}

/* --- the end ----------------------------------------------------------------- */

static void ack_last__if_packets_were_lost(void **state)
{
	(void)state;
	assert_false(ack_last(&s.qp[0]));
	assert_false(ack(0)->owed);
	ack(0)->lossy = true;
	s.qp[0].connected = false;
	assert_false(ack_last(&s.qp[0]));
	s.qp[0].connected = true;
	s.qp[0].state = QPS_ERR;
	assert_false(ack_last(&s.qp[0]));
	assert_false(ack(0)->owed);
	s.qp[0].state = QPS_SQE;
	assert_true(ack_last(&s.qp[0]));
	check_due(NOW + DELAY);
}

static void ack_last__if_it_is_owed(void **state)
{
	(void)state;
	ack_owe(&s.qp[0]);
	assert_true(ack_last(&s.qp[0]));
	check_due(NOW + DELAY);
}

/* A QP that failed has its NAK to say, and nothing else. */
static void ack_last__the_nak_of_a_failure(void **state)
{
	(void)state;
	s.qp[0].state = QPS_ERR;
	ack_owe(&s.qp[0]);
	assert_false(ack_last(&s.qp[0]));
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_ACCESS, 3);
	assert_true(ack_last(&s.qp[0]));
}

static void ack_leaving__until_the_socket_has_it(void **state)
{
	(void)state;
	assert_false(ack_leaving(&s.qp[0]));
	ack(0)->out = 1;
	assert_true(ack_leaving(&s.qp[0]));
	ack(0)->out = 0;
	s.peer[0].acks.after_ns = NOW + 1;
	assert_false(ack_leaving(&s.qp[0]));
	ack_owe(&s.qp[0]);
	assert_true(ack_leaving(&s.qp[0]));
	s.x.now++;
	assert_false(ack_leaving(&s.qp[0]));
}

static void ack_again__if_it_is_owed(void **state)
{
	(void)state;
	ack_again(&s.qp[0]);
	assert_true(list_empty(&s.peer[0].acks.link));
	ack_owe(&s.qp[0]);
	ack_again(&s.qp[0]);
	list_del(&s.peer[0].acks.link); /* nothing could be said */
	ack_again(&s.qp[0]);
	ack_again(&s.qp[0]);
	check_due(NOW + DELAY);
	assert_ptr_equal(s.x.work.ack_peers.prev, s.x.work.ack_peers.next);
}

/* Once for each READ that an ACK had to stop at. */
static void ack_rest__behind_a_read(void **state)
{
	(void)state;
	ack_rest(&s.qp[0]);
	assert_false(ack(0)->owed);
	ack(0)->rest = true;
	ack_rest(&s.qp[0]);
	check_due(NOW + DELAY);
	say(0);
	ack_rest(&s.qp[0]);
	assert_false(ack(0)->owed);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(owe_by__the_first_of_a_peer),
		T(ack_cancel__the_last_of_a_peer),
		T(ack_owe__within_the_delay),
		T(ack_received__in_a_series_of_answers),
		T(ack_received__of_a_standard_peer),
		T(ack_received__without_an_answer),
		T(ack_answered__more_than_once),
		T(ack_repeat__one_in_a_delay),
		T(ack_repeat__after_a_delay),
		T(ack_nak__and_an_rnr_for_a_page),
		T(ack_answer__busy_or_not),
		T(ack_say__the_newer_order),
		T(ack_say__to_what_kind_of_peer),
		T(ack_credit__through_which_qp),
		T(ack_last__if_packets_were_lost),
		T(ack_last__if_it_is_owed),
		T(ack_last__the_nak_of_a_failure),
		T(ack_leaving__until_the_socket_has_it),
		T(ack_again__if_it_is_owed),
		T(ack_rest__behind_a_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
