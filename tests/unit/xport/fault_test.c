/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_test.c: a page is missing: which strategy answers, and is the packet kept or
 * forgotten, its peer told or not?
 */
#include "bench.h"
#include "mem/account.h"
#include "mem/suspend.h"
#include "xport/fault.h"
#include "xport/fault_backup.h"
#include "xport/kept.h"
#include "xport/requester.h"

#define MS	BENCH_MS
#define SET(s)	STRATEGY_BIT(STRATEGY_##s)
#define LONG_NS (10 * MS) /* of a page: others would want the slots meanwhile */

enum { PSN = PSN_MASK, MTU = BENCH_MTU, FORGOTTEN_MAX = 8, DELAY_NS = 1000 };

static struct bench s;
static struct qp ud; /* receives datagrams */
static uint8_t payload[MTU];

static int setup_as(enum peer_kind kind)
{
	const struct qp_config cfg = {.transport = &transport_ud, .mtu = MTU};

	bench_open(&s, kind, PSN);
	s.x.ack_delay_ns = DELAY_NS;
	s.qp.req.win.head = s.qp.req.win.next = PSN;
	assert_int_equal(qp_init(&ud, &s.x, &cfg), 0);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return setup_as(PEER_NOPIN);
}

static int setup_standard(void **state)
{
	(void)state;
	return setup_as(PEER_STANDARD);
}

static int teardown(void **state)
{
	(void)state;
	win_reset(&s.x, &ud.resp.win, 0);
	win_reset(&s.x, &s.qp.req.win, 0);
	mem_account_gone(s.mem, &ud.account);
	bench_close(&s);
	return 0;
}

static struct pkt write_at(psn_t psn, uint32_t len)
{
	const bool only = len <= MTU;
	struct pkt p = bench_pkt(&s, only ? OP_WRITE_ONLY : OP_WRITE_FIRST,
				 psn);

	p.payload_len = MIN(len, (uint32_t)MTU);
	p.dma_len = len;
	return p;
}

/* A WRITE of @len bytes comes and misses its page. */
static void miss(psn_t psn, uint32_t len)
{
	const struct pkt p = write_at(psn, len);

	if (!s.qp.resp.wait.ticket.v)
		bench_wait(&s, &s.qp.resp.wait, 0);
	fault_request(&s.qp, &p, payload_of_step(payload));
}

static bool kept(psn_t psn)
{
	return win_has(&s.qp.resp.win, psn);
}

/* --- requests ------------------------------------------------------------------ */

/* Accept it, and packets ahead of it, and owe an ACK. */
static void fault_request__kept(void **state)
{
	const struct pkt ahead = write_at(0, 1);

	(void)state;
	s.x.strategies = SET(REDIRECT);
	assert_int_equal(win_keep(&s.x, &s.qp.resp.win, &ahead,
				  payload_of_step(payload)),
			 0);
	miss(PSN, 1);
	assert_true(kept(PSN));
	assert_int_equal(s.qp.resp.win.next, 1);
	assert_true(s.qp.resp.ack.owed);
	assert_int_equal(s.peer.acks.due_ns, s.x.now + DELAY_NS);
	assert_int_equal(s.cnt.v[CNT_fault_redirect], 1);
	assert_false(next_forgot(s.qp.resp.next));
}

/* Before it is placed there is nothing to say; but its silence has an end. */
static void fault_request__kept_of_a_standard_peer(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT) | SET(RNR);
	miss(PSN, 1);
	assert_true(kept(PSN));
	assert_false(s.qp.resp.ack.owed);
	assert_true(deadline_ahead(s.qp.resp.at[RESP_SILENCE], s.x.now));
}

/* It comes again unasked and finds a slot: its sender may go on. */
static void fault_request__kept_of_a_peer_that_holds(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	s.x.strategies = SET(RESUME);
	miss(PSN, 1);
	assert_true(next_forgot(r->next));
	assert_int_equal(r->next, NEXT_HELD);
	assert_int_equal(r->ack.xack, XACK_HOLD);
	assert_int_equal(r->win.next, PSN);
	s.x.strategies = SET(REDIRECT);
	miss(PSN, 1);
	assert_true(kept(PSN));
	assert_false(next_forgot(r->next));
	assert_int_not_equal(r->next, NEXT_HELD);
	assert_int_equal(r->ack.xack, XACK_RESUME);
}

/* Packets behind PSN fill all slots of their share. */
static void fill_window(void)
{
	struct pkt p = write_at(psn_add(PSN, 1), 1);

	while (!win_keep(&s.x, &s.qp.resp.win, &p, payload_of_step(payload)))
		p.psn = psn_add(p.psn, 1);
	assert_in_range(s.qp.resp.win.num, 1, BENCH_SLOTS);
}

/* A strategy that cannot answer leaves it to the next. */
static void fault_request__in_turn(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT) | SET(RESUME) | SET(RNR) | SET(DROP);
	fill_window();
	miss(PSN, 1);
	assert_int_equal(s.cnt.v[CNT_fault_resume], 1);
	assert_int_equal(s.cnt.v[CNT_fault_redirect], 0);
	assert_int_equal(s.cnt.v[CNT_fault_rnr], 0);
	assert_int_equal(s.cnt.v[CNT_fault_drop], 0);
}

/* None of the set can answer: RNR always does. */
static void fault_request__the_last_resort(void **state)
{
	(void)state;
	s.x.strategies = SET(PARK) | SET(BACKUP) | SET(INLINE);
	miss(PSN, 1);
	assert_true(next_forgot(s.qp.resp.next));
	assert_int_equal(s.cnt.v[CNT_fault_rnr], 1);
	assert_int_equal(s.qp.resp.ack.page_rnr.psn, PSN);
}

static void fault_request__as_the_region_wants(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT);
	bench_wait(&s, &s.qp.resp.wait, 0);
	s.qp.resp.wait.set = SET(RESUME);
	miss(PSN, 1);
	assert_false(kept(PSN));
	assert_int_equal(s.cnt.v[CNT_fault_resume], 1);
}

static void fault_request__as_the_qp_wants(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT);
	s.qp.fault = STRATEGY_DROP;
	miss(PSN, 1);
	assert_false(kept(PSN));
	assert_int_equal(s.cnt.v[CNT_fault_drop], 1);
	assert_false(s.qp.resp.ack.owed);
}

/* The page is there already: the order to hold ends at once. */
static void fault_request__of_a_page_that_came(void **state)
{
	const struct pkt p = write_at(PSN, 1);
	struct resp *r = &s.qp.resp;

	(void)state;
	s.x.strategies = SET(RESUME);
	fault_request(&s.qp, &p, payload_of_step(payload));
	assert_false(next_forgot(r->next));
	assert_int_not_equal(r->next, NEXT_HELD);
	assert_int_equal(r->ack.xack, XACK_RESUME);
}

static void fault_request__of_a_region(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT);
	assert_int_equal(mr_suspend(s.mem, s.key, MS, s.x.now), 0);
	miss(PSN, 1);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
}

/* --- packets forgotten often --------------------------------------------------- */

/* The page comes, and goes before the packet does. */
static void miss_again(psn_t psn)
{
	waiter_cancel(s.mem, &s.qp.resp.wait);
	s.x.now += MS;
	miss(psn, 1);
}

static void fault_request__forgotten_too_often(void **state)
{
	(void)state;
	s.x.strategies = SET(RESUME);
	for (unsigned i = 0; i < FORGOTTEN_MAX; i++) {
		miss_again(PSN);
		assert_false(kept(PSN));
	}
	assert_int_equal(s.cnt.v[CNT_fault_rescued], 0);
	miss_again(PSN);
	assert_true(kept(PSN));
	assert_int_equal(s.cnt.v[CNT_fault_rescued], 1);
}

/* Repetitions during one fetch count once. */
static void fault_request__forgotten_once_for_each_fetch(void **state)
{
	(void)state;
	s.x.strategies = SET(RESUME);
	for (unsigned i = 0; i < 2 * FORGOTTEN_MAX; i++)
		miss(PSN, 1);
	assert_false(kept(PSN));
	assert_int_equal(s.cnt.v[CNT_fault_resume], 2 * FORGOTTEN_MAX);
}

static void fault_request__forgotten_anew_for_each_packet(void **state)
{
	(void)state;
	s.x.strategies = SET(RESUME);
	for (unsigned i = 0; i < 2 * FORGOTTEN_MAX; i++) {
		miss_again(psn_add(PSN, i / FORGOTTEN_MAX));
		assert_int_equal(s.qp.resp.win.num, 0);
	}
	assert_int_equal(s.cnt.v[CNT_fault_rescued], 0);
}

/* --- adaptive -------------------------------------------------------------------- */

/* A long WRITE to a page that takes long, with others about. */
static void miss_much(strategies_t set)
{
	s.x.strategies = set | SET(ADAPTIVE);
	s.peer.refs = 2;
	bench_wait(&s, &s.qp.resp.wait, 0);
	s.x.now += LONG_NS;
	miss(PSN, BENCH_SLOTS * MTU);
}

static void fault_request__the_best_comes_first(void **state)
{
	(void)state;
	miss_much(SET(REDIRECT) | SET(RESUME));
	assert_int_equal(s.cnt.v[CNT_fault_resume], 1);
	assert_false(kept(PSN));
}

static void fault_request__the_best_is_not_allowed(void **state)
{
	(void)state;
	miss_much(SET(REDIRECT) | SET(RNR));
	assert_int_equal(s.cnt.v[CNT_fault_resume], 0);
	assert_true(kept(PSN));
}

/* Packets behind a missing page crowd as that packet would. */
static void fault_crowds__only_where_adaptive_says_so(void **state)
{
	const struct pkt p = write_at(psn_add(PSN, 1), BENCH_SLOTS * MTU);

	(void)state;
	s.x.strategies = SET(ADAPTIVE) | SET(REDIRECT) | SET(RESUME);
	s.peer.refs = 2;
	assert_false(fault_crowds(&s.qp, &p)); /* nothing is missing */
	bench_wait(&s, &s.qp.resp.wait, 0);
	assert_false(fault_crowds(&s.qp, &p)); /* it may come soon */
	s.x.now += LONG_NS;
	assert_true(fault_crowds(&s.qp, &p));
	s.qp.resp.next = NEXT_FORGOT;
	assert_false(fault_crowds(&s.qp, &p));
	s.qp.resp.next = NEXT_UNSAID;
	s.x.strategies = SET(REDIRECT) | SET(RESUME);
	assert_false(fault_crowds(&s.qp, &p));
}

static void fault_forget__is_not_kept(void **state)
{
	const struct pkt p = write_at(PSN, 1);

	(void)state;
	s.x.strategies = SET(REDIRECT) | SET(RESUME);
	bench_wait(&s, &s.qp.resp.wait, 0);
	fault_forget(&s.qp, &p);
	assert_false(kept(PSN));
	assert_true(next_forgot(s.qp.resp.next));
	assert_int_equal(s.qp.resp.ack.xack, XACK_HOLD);
}

static void fault_waiting__ends_the_silence(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT) | SET(RNR);
	fault_waiting(&s.qp);
	assert_true(deadline_ahead(s.qp.resp.at[RESP_SILENCE], s.x.now));
}

static void fault_waiting__asks_to_hold(void **state)
{
	(void)state;
	assert_int_equal(mr_suspend(s.mem, s.key, MS, s.x.now), 0);
	bench_wait(&s, &s.qp.resp.wait, 0);
	fault_waiting(&s.qp);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
	assert_false(deadline_waits(s.qp.resp.at[RESP_SILENCE]));
}

/* --- sources --------------------------------------------------------------------- */

/* Sources park under any strategy; a peer that waits for an answer is told in time. */
static void fault_source__parks(void **state)
{
	const struct flight *f = &s.qp.log;

	(void)state;
	s.x.strategies = SET(DROP) | SET(RNR);
	for (unsigned i = 0; i < 2; i++) {
		const struct flight_event *e;

		fault_source(&s.qp, psn_add(PSN, i), i);
		assert_int_equal(s.cnt.v[CNT_fault_park], i + 1);
		e = &f->ev[(f->next - 1) % FLIGHT_EVENTS];
		assert_int_equal(e->kind, FLIGHT_FAULT);
		assert_int_equal(e->a, STRATEGY_PARK);
		assert_int_equal(e->psn, psn_add(PSN, i));
		assert_int_equal(deadline_waits(s.qp.resp.at[RESP_SILENCE]), i);
	}
	assert_int_equal(s.cnt.v[CNT_fault_drop], 0);
}

static void fault_source__of_a_region_of_an_answer(void **state)
{
	(void)state;
	assert_int_equal(mr_suspend(s.mem, s.key, MS, s.x.now), 0);
	bench_wait(&s, &s.qp.req.wait, 0);
	fault_source(&s.qp, PSN, false);
	assert_false(s.qp.resp.ack.owed);
	bench_wait(&s, &s.qp.resp.replay.wait, 0);
	fault_source(&s.qp, PSN, true);
	assert_true(s.qp.resp.ack.owed);
}

/* --- responses -------------------------------------------------------------------- */

static bool respond(void)
{
	struct pkt p = bench_pkt(&s, OP_READ_RESP_ONLY, PSN);

	p.payload_len = 1;
	if (!s.qp.req.rsp_wait.ticket.v)
		bench_wait(&s, &s.qp.req.rsp_wait, 0);
	return fault_response(&s.qp, &p, payload_of_step(payload));
}

static void fault_response__kept(void **state)
{
	(void)state;
	s.x.strategies = SET(REDIRECT);
	assert_true(respond());
	assert_true(win_has(&s.qp.req.win, PSN));
	assert_false(kept(PSN));
	assert_false(s.qp.req.reads.missed);
}

/* Our side can ask again; strategies for requests do not fit. */
static void fault_response__asked_for_again(void **state)
{
	static const strategies_t sets[] = {SET(RESUME), SET(RNR), SET(DROP)};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(sets); i++) {
		s.x.strategies = sets[i];
		s.qp.req.reads.missed = false;
		assert_false(respond());
		assert_true(s.qp.req.reads.missed);
		assert_int_equal(s.cnt.v[CNT_fault_replay], i + 1);
	}
	assert_false(next_forgot(s.qp.resp.next));
	assert_int_equal(s.qp.resp.ack.xack, 0);
}

static void fault_response__forgotten_too_often(void **state)
{
	(void)state;
	s.x.strategies = SET(RNR);
	for (unsigned i = 0; i <= FORGOTTEN_MAX; i++) {
		waiter_cancel(s.mem, &s.qp.req.rsp_wait);
		s.x.now += MS;
		assert_int_equal(respond(), i == FORGOTTEN_MAX);
	}
	assert_int_equal(s.cnt.v[CNT_fault_rescued], 1);
}

/* --- datagrams ---------------------------------------------------------------------- */

static bool datagram(strategies_t set)
{
	const struct pkt p = {.op = opcode_info(OP_UD_SEND_ONLY)->flags,
			      .opcode = OP_UD_SEND_ONLY,
			      .payload_len = 1};
	bool is_kept;

	s.x.strategies = set;
	is_kept = fault_datagram(&ud, &p, payload_of_step(payload));
	if (is_kept)
		win_advance(&ud.resp.win, MTU);
	return is_kept;
}

static void fault_datagram__kept_in_turn(void **state)
{
	(void)state;
	assert_true(datagram(SET(BACKUP)));
	assert_true(datagram(SET(BACKUP) | SET(REDIRECT) | SET(DROP)));
	assert_int_equal(ud.resp.win.next, 2);
	assert_int_equal(s.cnt.v[CNT_fault_backup], 2);
	assert_int_equal(s.cnt.v[CNT_fault_redirect], 0);
}

static void fault_datagram__dropped(void **state)
{
	(void)state;
	assert_false(datagram(SET(DROP) | SET(REDIRECT) | SET(RESUME)));
	assert_int_equal(s.cnt.v[CNT_fault_drop], 1);
	assert_int_equal(s.cnt.v[CNT_drop_no_backup], 0);
	assert_int_equal(ud.resp.win.num, 0);
}

/* Nobody sends it again, and nobody is told. */
static void fault_datagram__without_a_slot(void **state)
{
	(void)state;
	while (datagram(SET(BACKUP) | SET(REDIRECT) | SET(RNR)))
		;
	assert_in_range(ud.resp.win.num, 1, BENCH_SLOTS - 1);
	assert_int_equal(s.cnt.v[CNT_drop_no_backup], 1);
	assert_false(datagram(SET(REDIRECT)));
	assert_int_equal(s.cnt.v[CNT_drop_no_backup], 2);
	assert_false(next_forgot(ud.resp.next));
}

/* --- the end ------------------------------------------------------------------------ */

static void fault_forgiven__says_resume_to_who_holds(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	r->next = NEXT_FORGOT;
	fault_forgiven(&s.qp);
	assert_false(next_forgot(r->next));
	assert_int_equal(r->ack.xack, 0);
	r->next = NEXT_HELD;
	fault_forgiven(&s.qp);
	assert_int_not_equal(r->next, NEXT_HELD);
	assert_int_equal(r->ack.xack, XACK_RESUME);
}

/* The page is there, and the peer was told nothing: ask for the packet. */
static void fault_resolved__asks_for_it(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	r->next = NEXT_FORGOT;
	r->at[RESP_SILENCE] = s.x.now;
	fault_resolved(&s.qp);
	assert_false(next_forgot(r->next));
	assert_int_equal(r->next, NEXT_GAP);
	assert_int_equal(r->ack.nak.syndrome, AETH_NAK | NAK_PSN_SEQUENCE);
	assert_int_equal(r->ack.nak.psn, PSN);
	assert_false(deadline_waits(r->at[RESP_SILENCE]));
}

/* A peer that holds hears RESUME; one with an RNR comes by itself. */
static void fault_resolved__of_who_was_told(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		r->next = i ? NEXT_FORGOT_RNR : NEXT_HELD;
		r->ack.xack = 0;
		fault_resolved(&s.qp);
		assert_false(next_forgot(r->next));
		assert_int_equal(r->next, i ? NEXT_RNR : NEXT_UNSAID);
		assert_int_equal(r->ack.nak.syndrome, 0);
		assert_int_equal(r->ack.xack, i ? 0 : XACK_RESUME);
	}
}

static void fault_resolved__of_nothing(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	fault_resolved(&s.qp);
	assert_int_equal(r->ack.nak.syndrome, 0);
	/* a request before it fails */
	r->next = NEXT_HELD;
	r->dead = true;
	fault_resolved(&s.qp);
	assert_int_equal(r->ack.nak.syndrome, 0);
	assert_int_equal(r->ack.xack, 0);
}

int main(void)
{
#define T(f)	    cmocka_unit_test_setup_teardown(f, setup, teardown)
#define STANDARD(f) cmocka_unit_test_setup_teardown(f, setup_standard, teardown)
	const struct CMUnitTest tests[] = {
		T(fault_request__kept),
		STANDARD(fault_request__kept_of_a_standard_peer),
		T(fault_request__kept_of_a_peer_that_holds),
		T(fault_request__in_turn),
		T(fault_request__the_last_resort),
		T(fault_request__as_the_region_wants),
		T(fault_request__as_the_qp_wants),
		T(fault_request__of_a_page_that_came),
		T(fault_request__of_a_region),
		T(fault_request__forgotten_too_often),
		T(fault_request__forgotten_once_for_each_fetch),
		T(fault_request__forgotten_anew_for_each_packet),
		T(fault_request__the_best_comes_first),
		T(fault_request__the_best_is_not_allowed),
		T(fault_crowds__only_where_adaptive_says_so),
		T(fault_forget__is_not_kept),
		STANDARD(fault_waiting__ends_the_silence),
		T(fault_waiting__asks_to_hold),
		STANDARD(fault_source__parks),
		T(fault_source__of_a_region_of_an_answer),
		T(fault_response__kept),
		T(fault_response__asked_for_again),
		T(fault_response__forgotten_too_often),
		T(fault_datagram__kept_in_turn),
		T(fault_datagram__dropped),
		T(fault_datagram__without_a_slot),
		T(fault_forgiven__says_resume_to_who_holds),
		STANDARD(fault_resolved__asks_for_it),
		T(fault_resolved__of_who_was_told),
		T(fault_resolved__of_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
