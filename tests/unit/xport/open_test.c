/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open_test.c: what a QP says about its secret, to whom, and what it believes; in the
 * order of the rules in doc/wire.md, OPEN. */
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/dialect.h"
#include "xport/life.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/spare.h"
#include "xport/transport.h"
#include "xport/waits.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

enum { THEIRS = 0xcafe, QPN = 7, DEST = 9 };

enum { MANY = 64 };

static struct {
	struct counters cnt;
	struct xport x;
	struct peer peer;
	struct qp qp;
	struct qp many[MANY];
	unsigned asked[MANY];
} s;

static const struct ipaddr local = {.b = {[15] = 1}};
static const struct endpoint there = {.ip = {.b = {[15] = 2}}, .port = 18515};

static void connect(struct qp *qp, uint32_t qpn)
{
	const struct qp_config cfg = {.transport = &transport_rc, .qpn = qpn};

	qp_init(qp, &s.x, &cfg);
	qp->state = QPS_RTR;
	qp->attr.dest_qpn = DEST;
	qp->peer = &s.peer;
}

/* A QP in RTR, whose first question has left. */
static int begin(void **state)
{
	struct pkt p;

	(void)state;
	memset(&s, 0, sizeof(s));
	s.x.cnt = &s.cnt;
	s.x.rnd = (struct rnd){1, 2, 3};
	list_init(&s.x.work.opens);
	list_init(&s.x.work.runnable);
	list_init(&s.x.work.ack_peers);
	timerq_init(&s.x.timers);
	if (timerq_reserve(&s.x.timers, 1 + MANY))
		return -1;
	peer_init(&s.peer, &there, &local);
	connect(&s.qp, QPN);
	s.peer.kind = PEER_NOPIN;
	s.x.now = MS;
	open_begin(&s.qp);
	return open_next(&s.x, &p) == &s.qp ? 0 : -1;
}

static int end(void **state)
{
	(void)state;
	open_end(&s.qp);
	qp_rearm(&s.qp);
	list_del(&s.qp.on.runnable);
	timerq_fini(&s.x.timers);
	return 0;
}

static bool take(uint32_t epoch, uint32_t theirs, uint32_t flags, uint64_t now)
{
	const struct pkt p = {.opcode = OP_X_OPEN,
			      .ext = true,
			      .src_qpn = DEST,
			      .epoch = epoch,
			      .my_epoch = theirs,
			      .open_flags = flags};

	s.x.now = now;
	return open_take(&s.qp, &p);
}

static void says(uint32_t epoch, uint32_t flags)
{
	struct pkt p;

	assert_ptr_equal(open_next(&s.x, &p), &s.qp);
	assert_int_equal(p.qpn, DEST);
	assert_int_equal(p.src_qpn, QPN);
	assert_int_equal(p.my_epoch, s.qp.open.mine);
	assert_int_equal(p.epoch, epoch);
	assert_int_equal(p.open_flags, flags);
}

static void says_nothing(void)
{
	struct pkt p;

	assert_null(open_next(&s.x, &p));
}

static void open_begin__epoch(void **state)
{
	const uint32_t mine = s.qp.open.mine;

	(void)state;
	assert_int_not_equal(mine, 0);
	assert_false(qp_open(&s.qp));
	open_end(&s.qp);
	s.x.now = MS;
	open_begin(&s.qp);
	assert_int_not_equal(s.qp.open.mine, mine);
	says(0, OPEN_ASK);
}

/* It is answered, which proves nothing, and once a millisecond. */
static void open_take__question(void **state)
{
	(void)state;
	assert_false(take(0, THEIRS, OPEN_ASK, 10 * MS));
	says(THEIRS, OPEN_ASK);
	assert_false(qp_open(&s.qp));
	assert_false(take(0, THEIRS + 1, OPEN_ASK, 11 * MS - 1));
	says_nothing();
	assert_int_equal(s.cnt.v[CNT_drop_open], 1);
	assert_false(take(0, THEIRS + 1, OPEN_ASK, 11 * MS));
	says(THEIRS + 1, OPEN_ASK);
}

/* Anybody may have asked, so the answer is given once: what is said again by the
 * clock is our own question, which the peer does answer. */
static void open_take__forged(void **state)
{
	(void)state;
	assert_false(take(0, THEIRS + 1, OPEN_ASK, 1 * MS));
	says(THEIRS + 1, OPEN_ASK);
	s.x.now = 2 * MS;
	open_timeout(&s.qp);
	says(0, OPEN_ASK);
}

/* Nor do questions, which anybody may ask, bring the half second to its end. */
static void open_timeout__forged(void **state)
{
	struct pkt p;

	(void)state;
	s.peer.kind = PEER_NOPIN;
	for (uint64_t at = 2 * MS; at <= 511 * MS; at += MS) {
		take(0, THEIRS + 1, OPEN_ASK, at);
		open_next(&s.x, &p);
		s.x.now = at;
		open_timeout(&s.qp);
		open_next(&s.x, &p);
		assert_false(s.qp.open.plain);
	}
	s.x.now = 513 * MS;
	open_timeout(&s.qp);
	assert_true(s.qp.open.plain);
}

static void open_take__answer(void **state)
{
	(void)state;
	assert_true(take(s.qp.open.mine, THEIRS, OPEN_ASK, 2 * MS));
	assert_int_equal(s.qp.open.theirs, THEIRS);
	assert_false(s.qp.open.known);
	says(THEIRS, OPEN_ASK | OPEN_SURE);
	/* it was lost: both ask again */
	assert_false(take(s.qp.open.mine, THEIRS, OPEN_ASK, 3 * MS));
	says(THEIRS, OPEN_ASK | OPEN_SURE);
	s.x.now = 4 * MS;
	open_timeout(&s.qp);
	says(THEIRS, OPEN_ASK | OPEN_SURE);
	assert_false(take(s.qp.open.mine, THEIRS, OPEN_SURE, 5 * MS));
	says_nothing();
	s.x.now = 5000 * MS;
	open_timeout(&s.qp);
	says_nothing();
	assert_int_equal(s.qp.open.ask_at, TIME_NEVER);
}

static void open_take__guess(void **state)
{
	(void)state;
	assert_false(take(s.qp.open.mine + 1, THEIRS, OPEN_SURE, 2 * MS));
	assert_false(take(s.qp.open.mine, 0, OPEN_SURE, 2 * MS));
	assert_int_equal(s.cnt.v[CNT_drop_epoch], 2);
	assert_false(qp_open(&s.qp));
	says_nothing();
}

/* Nobody is told who does not know it already; and it never goes back. */
static void open_take__when_open(void **state)
{
	(void)state;
	assert_true(take(s.qp.open.mine, THEIRS, OPEN_SURE, 2 * MS));
	says(THEIRS, OPEN_SURE);
	assert_false(take(0, THEIRS, OPEN_ASK, 50 * MS));
	assert_false(take(s.qp.open.mine, THEIRS + 1, OPEN_ASK, 50 * MS));
	assert_int_equal(s.cnt.v[CNT_drop_open], 2);
	assert_int_equal(s.qp.open.theirs, THEIRS);
	says_nothing();
}

static void qp_admits__by_state(void **state)
{
	const struct pkt plain = {.op = OPF_REQUEST};
	struct pkt ext = {.op = OPF_REQUEST, .ext = true};

	(void)state;
	ext.epoch = s.qp.open.mine;
	assert_true(qp_admits(&s.qp, &plain));
	assert_true(qp_admits(&s.qp, &ext));
	assert_true(take(s.qp.open.mine, THEIRS, OPEN_SURE, 2 * MS));
	assert_false(qp_admits(&s.qp, &plain));
	assert_true(qp_admits(&s.qp, &ext));
	ext.epoch++;
	assert_false(qp_admits(&s.qp, &ext));
}

/* More and more rarely; after half a second requests wait no more; a standard NIC is
 * left in peace at last, and a nopin never. */
static void open_timeout__nobody_answers(void **state)
{
	const enum peer_kind kind = *(const enum peer_kind *)*state;
	uint64_t at = s.qp.open.ask_at, gap = 0;
	unsigned asked = 0;

	s.peer.kind = kind;
	assert_int_equal(at, 2 * MS);
	while (at != TIME_NEVER && asked < 100) {
		assert_true(s.qp.open.ask_at - at <= 1000 * MS);
		gap = s.qp.open.ask_at - at;
		at = s.qp.open.ask_at;
		assert_int_equal(s.qp.open.plain, at > 512 * MS);
		assert_int_equal(open_waits(&s.qp),
				 kind == PEER_NOPIN && !s.qp.open.plain);
		s.x.now = at;
		open_timeout(&s.qp);
		if (s.qp.open.ask_at == TIME_NEVER)
			break;
		says(0, OPEN_ASK);
		asked++;
	}
	says_nothing();
	assert_int_equal(gap, 1000 * MS);
	assert_int_equal(asked, kind == PEER_NOPIN ? 100 : 15);
	assert_int_equal(s.x.plain, 1);
	/* and yet */
	assert_true(take(s.qp.open.mine, THEIRS, OPEN_SURE, at + MS));
	assert_int_equal(s.x.plain, 0);
}

/* What came with our epoch is from who is open: it is asked for its own, and nothing
 * standard is sent to it, however long that takes. */
static void open_proved__asks(void **state)
{
	(void)state;
	s.x.now = 2 * MS;
	open_proved(&s.qp);
	says(0, OPEN_ASK);
	s.qp.open.plain = true;
	s.x.plain = 1;
	assert_true(open_waits(&s.qp));
}

static int begin_many(void **state)
{
	(void)state;
	if (begin(state))
		return -1;
	open_end(&s.qp);
	peer_init(&s.peer, &there, &local);
	s.peer.kind = PEER_NOPIN;
	for (uint32_t i = 0; i < MANY; i++) {
		connect(&s.many[i], i);
		open_begin(&s.many[i]);
		s.x.now += MS / 100; /* they are not made all at once */
	}
	return 0;
}

static int end_many(void **state)
{
	for (unsigned i = 0; i < MANY; i++) {
		open_end(&s.many[i]);
		qp_rearm(&s.many[i]);
		list_del(&s.many[i].on.runnable);
	}
	return end(state);
}

/* Return: how many OPENs leave. */
static unsigned leave(void)
{
	struct pkt p;
	unsigned n = 0;

	while (open_next(&s.x, &p)) {
		s.asked[p.src_qpn]++;
		n++;
	}
	return n;
}

/* Time goes on to @ms in steps of @step. Return: how many OPENs leave. */
static unsigned wait_until(uint64_t ms, uint64_t step)
{
	unsigned n = 0;

	for (uint64_t at = s.x.now; at <= ms * MS; at += step) {
		s.x.now = at;
		for (unsigned i = 0; i < MANY; i++)
			open_timeout(&s.many[i]);
		n += leave();
	}
	return n;
}

/* A process that has no CPU has a socket buffer with 512 places: what many QPs ask it
 * leaves room for what they sent. */
static void open_timeout__spares_the_peer(void **state)
{
	unsigned asked = leave();

	(void)state;
	assert_int_equal(asked, MANY);
	asked += wait_until(511, MS / 4);
	assert_int_equal(asked, 4 * MANY); /* at 0, 1, 15 and 127 ms */
	/* nobody waits longer than alone */
	assert_int_equal(s.x.plain, 0);
	wait_until(514, MS / 4);
	assert_int_equal(s.x.plain, MANY);
	/* and it goes on, each for itself */
	wait_until(4000, MS);
	memset(s.asked, 0, sizeof(s.asked));
	wait_until(24000, MS);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(s.asked[i], 20);
}

/* A few ask as often as one. */
static void open_timeout__few(void **state)
{
	(void)state;
	for (unsigned i = 3; i < MANY; i++)
		open_end(&s.many[i]);
	s.peer.opens.num = 0;
	leave();
	memset(s.asked, 0, sizeof(s.asked));
	wait_until(514, MS / 4);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(s.asked[i], 9);
}

static bool answer(struct qp *qp, uint32_t epoch, uint32_t flags)
{
	const struct pkt p = {.opcode = OP_X_OPEN,
			      .ext = true,
			      .src_qpn = DEST,
			      .epoch = epoch,
			      .my_epoch = THEIRS,
			      .open_flags = flags};

	return open_take(qp, &p);
}

/* All have asked, more than once, and what they ask from now on counts. */
static void spare_at(uint64_t ms)
{
	leave();
	wait_until(ms, MS / 4);
	assert_true(s.peer.opens.num >= SPARE_FROM);
	memset(s.asked, 0, sizeof(s.asked));
}

/* One is answered, so all are heard: what they ask is asked again as if alone. */
static void open_take__answers_for_all(void **state)
{
	(void)state;
	spare_at(3);
	assert_true(answer(&s.many[0], s.many[0].open.mine, OPEN_SURE));
	leave();
	wait_until(6, MS / 4);
	assert_int_equal(s.asked[MANY - 1], 1);
}

/* So is what came with the epoch of one, whatever it was. */
static void open_proved__for_all(void **state)
{
	(void)state;
	spare_at(3);
	open_proved(&s.many[0]);
	assert_int_equal(leave(), 1);
	wait_until(6, MS / 4);
	assert_int_equal(s.asked[MANY / 2], 1);
}

/* Anybody may ask, so a question tells nothing of the peer; nor does it cost one. */
static void open_take__question_is_no_answer(void **state)
{
	(void)state;
	spare_at(3);
	assert_false(answer(&s.many[0], 0, OPEN_ASK));
	assert_false(answer(&s.many[1], s.many[1].open.mine + 1, OPEN_ASK));
	assert_int_equal(leave(), 1);
	assert_int_equal(wait_until(7, MS / 4), 0);
	wait_until(17, MS / 4);
	for (unsigned i = 1; i < MANY; i++)
		assert_int_equal(s.asked[i], 1);
}

/* Few that ask for long are not many, and others do not spare the peer for them. */
static void open_timeout__one_for_long(void **state)
{
	struct qp *qp = &s.many[1];

	(void)state;
	for (unsigned i = 1; i < MANY; i++)
		open_end(&s.many[i]);
	leave();
	wait_until(90000, MS);
	open_begin(qp);
	leave();
	memset(s.asked, 0, sizeof(s.asked));
	wait_until(90512, MS / 4);
	assert_int_equal(s.asked[1], 9);
}

/* A new connection is nothing to spare. */
static void open_begin__beside_others(void **state)
{
	struct qp *qp = &s.many[MANY - 1];

	(void)state;
	spare_at(600);
	open_end(qp);
	open_begin(qp);
	leave();
	assert_int_equal(s.asked[MANY - 1], 1);
	wait_until(602, MS / 4);
	assert_int_equal(s.asked[MANY - 1], 2);
	/* nor are connections that begin anew, as the peer is a nopin after all */
	for (unsigned i = 0; i < MANY; i++)
		open_restart(&s.many[i]);
	assert_int_equal(leave(), MANY);
}

/* Nor is the third, which was lost, and which nobody asks for. */
static void open_timeout__third_lost(void **state)
{
	struct qp *qp = &s.many[MANY - 1];

	(void)state;
	spare_at(600);
	assert_true(answer(qp, qp->open.mine, OPEN_ASK));
	s.peer.opens.num = SPARE_FROM;
	wait_until(602, MS / 4);
	assert_int_equal(s.asked[MANY - 1], 2);
}

#define TEST(f)	     cmocka_unit_test_setup_teardown(f, begin, end)
#define TEST_MANY(f) cmocka_unit_test_setup_teardown(f, begin_many, end_many)

int main(void)
{
	static enum peer_kind nopin = PEER_NOPIN, standard = PEER_STANDARD;
	const struct CMUnitTest tests[] = {
		TEST(open_begin__epoch),
		TEST(open_take__question),
		TEST(open_take__forged),
		TEST(open_timeout__forged),
		TEST(open_take__answer),
		TEST(open_take__guess),
		TEST(open_take__when_open),
		TEST(qp_admits__by_state),
		cmocka_unit_test_prestate_setup_teardown(
			open_timeout__nobody_answers, begin, end, &nopin),
		cmocka_unit_test_prestate_setup_teardown(
			open_timeout__nobody_answers, begin, end, &standard),
		TEST(open_proved__asks),
		TEST_MANY(open_timeout__spares_the_peer),
		TEST_MANY(open_timeout__few),
		TEST_MANY(open_take__answers_for_all),
		TEST_MANY(open_proved__for_all),
		TEST_MANY(open_take__question_is_no_answer),
		TEST_MANY(open_timeout__one_for_long),
		TEST_MANY(open_begin__beside_others),
		TEST_MANY(open_timeout__third_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
