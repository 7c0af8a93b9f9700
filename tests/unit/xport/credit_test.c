/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* credit_test.c: a receiver lends its slots to peers that come and go, over a network
 * that loses, doubles and reorders what they tell each other and what they send.
 * Whoever keeps to what he heard finds a slot, always; credit.c CHECKs that what is
 * lent is free.
 */
#include "base/check.h"
#include "mem/mem.h"
#include "mem/pool.h"
#include "mem/state.h"
#include "wire/opcode.h"
#include "xport/credit.h"
#include "xport/kept.h"
#include "xport/lend.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/window.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SLOTS = 136, PEERS = 5, QPS = 3, WIRE = 48, PSNS = 40, SEEDS = 400 };

enum kind { NOTHING, REQUEST, PLACED, TELL, ECHO };

struct msg {
	enum kind kind;
	unsigned peer, qp;
	psn_t psn;
	uint32_t slots, serial;
};

/** struct conn - @qp: the requester; @win: of the responder. */
struct conn {
	struct qp qp;
	struct window win;
};

/** struct pair - A peer as the receiver sees it, and the other way round. */
struct pair {
	bool here;
	struct peer lender, borrower;
	struct conn conn[QPS];
};

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct account *account;
	struct rnd rnd;
	struct pair pair[PEERS];
	struct msg wire[WIRE];
	uint8_t *memory;
	bool bounded; /* the pool is larger and smaller by turns */
	uint32_t bound;
} s;

static uint32_t dice(uint32_t n)
{
	return (uint32_t)(rnd_next(&s.rnd) % n);
}

static void open_with(uint64_t seed)
{
	const uint64_t seeds[2] = {seed, 2};
	struct mem_config cfg = {.entries = 1 << 10,
				 .slots = SLOTS,
				 .tickets = 8,
				 .pagers = 4,
				 .slot_base = s.memory,
				 .counters = &s.cnt};

	memset(&s.cnt, 0, sizeof(s.cnt));
	memset(s.wire, 0, sizeof(s.wire));
	memset(s.pair, 0, sizeof(s.pair));
	s.rnd = (struct rnd){seed, 7, 0};
	assert_int_equal(mem_open(&s.mem, &cfg), 0);
	assert_int_equal(xport_open(&s.x, s.mem, &s.cnt, SLOTS, seeds), 0);
	s.bound = SLOTS;
}

static void join(unsigned i)
{
	const struct endpoint ep = {.port = 1};
	struct pair *p = &s.pair[i];

	p->here = true;
	peer_init(&p->lender, &ep, &ep.ip);
	peer_init(&p->borrower, &ep, &ep.ip);
	p->lender.kind = p->borrower.kind = PEER_NOPIN;
	for (unsigned q = 0; q < QPS; q++) {
		struct conn *c = &p->conn[q];

		*c = (struct conn){.qp.x = &s.x, .qp.peer = &p->borrower};
		list_init(&c->win.waiting);
		c->win.peer = &p->lender;
		c->win.held = &p->lender.lend.slots;
		c->win.account = &s.account;
	}
	s.x.peers++;
}

static void leave(unsigned i)
{
	struct pair *p = &s.pair[i];

	for (unsigned q = 0; q < QPS; q++) {
		win_reset(&s.x, &p->conn[q].win, 0);
		credit_placed(&p->conn[q].qp, p->conn[q].qp.req.charge.out);
	}
	for (unsigned k = 0; k < WIRE; k++)
		if (s.wire[k].peer == i)
			s.wire[k].kind = NOTHING;
	credit_end(&s.x, &p->lender);
	s.x.peers--;
	p->here = false;
}

static void close_all(void)
{
	for (unsigned i = 0; i < PEERS; i++)
		if (s.pair[i].here)
			leave(i);
	assert_int_equal(s.x.pool.lent_left, 0);
	xport_close(&s.x);
	mem_close(s.mem);
}

/* What was there is lost. */
static void put(struct msg m)
{
	s.wire[dice(WIRE)] = m;
}

static void tell(unsigned i, bool again)
{
	struct peer *p = &s.pair[i].lender;

	if (credit_lend(&s.x, p) || (again && !credit_settled(p)))
		put((struct msg){TELL, i, 0, 0, p->lend.told, p->lend.serial});
}

/* @c sends what it may, or something again. */
static void send(unsigned i, unsigned q)
{
	struct req *r = &s.pair[i].conn[q].qp.req;

	if (r->psn.max - r->psn.una < PSNS && dice(3) &&
	    credit_allows(&s.pair[i].conn[q].qp, 1)) {
		credit_sent(&s.pair[i].conn[q].qp, 1);
		put((struct msg){REQUEST, i, q, r->psn.max++, 0, 0});
	} else if (r->psn.max != r->psn.una) {
		put((struct msg){REQUEST, i, q,
				 r->psn.una + dice(r->psn.max - r->psn.una), 0,
				 0});
	}
}

static void place(unsigned i, unsigned q)
{
	struct window *w = &s.pair[i].conn[q].win;
	struct accepted *a = win_at(w, w->head);

	if (a) {
		win_drop(&s.x, w, a);
		w->head++;
	}
	put((struct msg){PLACED, i, q, w->head, 0, 0});
}

static void request_came(const struct msg *m)
{
	const struct pkt pkt = {.opcode = OP_WRITE_MIDDLE,
				.op = OPF_WRITE,
				.ext = true,
				.psn = m->psn};
	struct window *w = &s.pair[m->peer].conn[m->qp].win;
	bool must = w->data ? credit_left(&s.pair[m->peer].lender) : !s.bounded;

	if (psn_diff(m->psn, w->head) < 0 || win_has(w, m->psn))
		return;
	if (win_keep(&s.x, w, &pkt, payload_of_step(NULL)))
		assert_false(must);
}

static void came(const struct msg *m)
{
	struct pair *p = &s.pair[m->peer];
	struct qp *qp = &p->conn[m->qp].qp;

	switch (m->kind) {
	case NOTHING:
		return;
	case REQUEST:
		request_came(m);
		return;
	case PLACED:
		if (psn_diff(m->psn, qp->req.psn.una) > 0) {
			credit_placed(qp, m->psn - qp->req.psn.una);
			qp->req.psn.una = m->psn;
		}
		return;
	case TELL:
		credit_take(&p->borrower, m->slots, m->serial);
		put((struct msg){ECHO, m->peer, 0, 0, 0,
				 credit_echo(&p->borrower)});
		return;
	case ECHO:
		credit_echoed(&s.x, &p->lender, m->serial);
	}
}

static void rebound(void)
{
	if (dice(10) == 0)
		s.bound = dice(2) ? SLOTS : 8 + dice(SLOTS - 8);
	if (!credit_bound(&s.x, s.bound))
		return;
	for (unsigned n = 0; n < PEERS; n++)
		if (s.pair[n].here)
			tell(n, false);
}

static void step(void)
{
	const unsigned i = dice(PEERS), q = dice(QPS), k = dice(WIRE);

	if (s.bounded && dice(30) == 0)
		rebound();

	if (dice(400) == 0) {
		if (s.pair[i].here)
			leave(i);
		else
			join(i);
		for (unsigned n = 0; n < PEERS; n++)
			if (s.pair[n].here)
				tell(n, false);
	}
	came(&s.wire[k]);
	if (dice(2))
		s.wire[k].kind = NOTHING; /* or it comes again */
	if (!s.pair[i].here)
		return;
	send(i, q);
	if (dice(4) == 0)
		place(i, q);
	if (dice(8) == 0)
		tell(i, true);
}

static void find_slots(void)
{
	uint64_t lowered = 0, kept = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		open_with(seed);
		for (unsigned n = 0; n < 5000; n++) {
			step();
			lowered += s.pair[0].lender.lend.lent >
				   s.pair[0].lender.lend.told;
		}
		kept += s.cnt.v[CNT_slots_used_max];
		assert_int_equal(s.cnt.v[CNT_beyond_credit], 0);
		close_all();
	}
	/* it was put to the test */
	assert_true(lowered > SEEDS);
	assert_true(kept > SEEDS * SLOTS / (s.bounded ? 3 : 2));
}

static void credit__finds_a_slot(void **state)
{
	(void)state;
	find_slots();
}

/* Whatever becomes of the pool, what was lent is there. */
static void credit_bound__finds_a_slot(void **state)
{
	(void)state;
	s.bounded = true;
	find_slots();
	s.bounded = false;
}

/* The pool is smaller when the borrower keeps to less, and not before. */
static void credit_bound__what_is_lent_comes_back(void **state)
{
	struct peer *l = &s.pair[0].lender, *b = &s.pair[0].borrower;

	(void)state;
	open_with(1);
	join(0);
	assert_true(credit_lend(&s.x, l));
	credit_take(b, l->lend.told, l->lend.serial);
	credit_echoed(&s.x, l, credit_echo(b));
	assert_true(credit_bound(&s.x, SLOTS / 4));
	assert_int_equal(slots_free(s.mem), SLOTS / 2);
	assert_true(credit_lend(&s.x, l));
	assert_int_equal(l->lend.told, SLOTS / 8);
	assert_false(credit_bound(&s.x, SLOTS / 4));
	assert_int_equal(slots_free(s.mem), SLOTS / 2);
	credit_take(b, l->lend.told, l->lend.serial);
	credit_echoed(&s.x, l, credit_echo(b));
	assert_false(credit_bound(&s.x, SLOTS / 4));
	assert_int_equal(slots_free(s.mem), SLOTS / 4);
	/* and there is more again */
	assert_true(credit_bound(&s.x, SLOTS));
	assert_int_equal(slots_free(s.mem), SLOTS);
	assert_true(credit_lend(&s.x, l));
	assert_int_equal(l->lend.told, SLOTS / 2);
	close_all();
}

/* A loan shrinks when the borrower keeps to it, and not before. */
static void credit__lowered_in_two_steps(void **state)
{
	struct peer *l = &s.pair[0].lender, *b = &s.pair[0].borrower;
	struct qp *qp = &s.pair[0].conn[0].qp;
	uint32_t serial;

	(void)state;
	open_with(1);
	join(0);
	assert_true(credit_lend(&s.x, l));
	assert_int_equal(l->lend.told, SLOTS / 2);
	credit_take(b, l->lend.told, l->lend.serial);
	credit_echoed(&s.x, l, credit_echo(b));
	assert_true(credit_settled(l));
	while (credit_allows(qp, 1))
		credit_sent(qp, 1);
	/* four fifths, and its first */
	assert_in_range(qp->req.charge.out, SLOTS * 2 / 5, SLOTS * 2 / 5 + 2);
	serial = l->lend.serial;
	join(1);
	assert_true(credit_lend(&s.x, l));
	assert_int_equal(l->lend.told, SLOTS / 4);
	assert_int_equal(l->lend.lent, SLOTS / 2);
	credit_take(b, l->lend.told, l->lend.serial);
	assert_false(credit_allows(qp, 1));
	credit_echoed(&s.x, l, credit_echo(b));
	assert_int_equal(l->lend.lent, SLOTS / 2);
	credit_placed(qp, qp->req.charge.out - SLOTS / 4);
	credit_echoed(&s.x, l, credit_echo(b));
	assert_int_equal(l->lend.lent, SLOTS / 4);
	credit_take(b, SLOTS / 2, serial); /* comes late */
	assert_int_equal(b->quota.slots, SLOTS / 4);
	close_all();
}

/* What one QP's pages that do not come leave to the others. */
static void credit__left_to_other_qps(void **state)
{
	(void)state;
	open_with(1);
	join(0);
	credit_lend(&s.x, &s.pair[0].lender);
	credit_take(&s.pair[0].borrower, SLOTS / 2, 1);
	for (unsigned q = 0; q < QPS; q++) {
		struct qp *qp = &s.pair[0].conn[q].qp;

		while (credit_allows(qp, 1))
			credit_sent(qp, 1);
		assert_true(qp->req.charge.out > (q < 2 ? 1 : 0));
	}
	close_all();
}

static int setup(void **state)
{
	(void)state;
	s.memory = calloc(SLOTS, MTU_MAX);
	return s.memory ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	free(s.memory);
	return 0;
}

/* Whoever comes when a NIC has told very many. */
static void credit__any_number_is_news_at_first(void **state)
{
	static const uint32_t before[] = {0, INT32_MAX, UINT32_MAX - 1,
					  UINT32_MAX};
	struct peer *l = &s.pair[0].lender, *b = &s.pair[0].borrower;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(before); i++) {
		open_with(1);
		s.x.pool.serial = before[i];
		join(0);
		assert_true(credit_lend(&s.x, l));
		assert_int_not_equal(l->lend.serial, credit_echo(b));
		credit_take(b, l->lend.told, l->lend.serial);
		credit_echoed(&s.x, l, credit_echo(b));
		assert_int_equal(b->quota.slots, l->lend.told);
		assert_true(credit_settled(l));
		close_all();
	}
}

/* Peers that do not answer do not have all of the pool, nor what they have for
 * ever. */
static void credit__of_who_is_silent(void **state)
{
	(void)state;
	open_with(1);
	for (unsigned i = 0; i < PEERS; i++) {
		join(i);
		for (unsigned k = 0; k <= i; k++)
			credit_lend(&s.x, &s.pair[k].lender);
	}
	assert_true(slots_free(s.mem) - s.x.pool.lent_left >= SLOTS / 4);
	for (unsigned i = 0; i < PEERS; i++)
		credit_silent(&s.x, &s.pair[i].lender);
	for (unsigned i = 0; i < PEERS; i++) {
		credit_lend(&s.x, &s.pair[i].lender);
		assert_int_equal(s.pair[i].lender.lend.told, SLOTS / 2 / 8);
	}
	close_all();
}

/* Not each peer answers at once: a third finds something, though the first was told to
 * leave some only now. */
static void credit_lend__leaves_some_to_who_comes_next(void **state)
{
	(void)state;
	open_with(1);
	for (unsigned i = 0; i < 3; i++) {
		join(i);
		assert_true(credit_lend(&s.x, &s.pair[i].lender));
		assert_int_not_equal(s.pair[i].lender.lend.told, 0);
	}
	close_all();
}

/* One peer with many QPs leaves a fifth of the slots for first packets to others. */
static void credit_first__leaves_some_to_others(void **state)
{
	static struct window w[SLOTS];
	unsigned taken = 0, i;

	(void)state;
	open_with(1);
	join(0);
	join(1);
	for (i = 0; i < SLOTS; i++)
		w[i].peer = &s.pair[0].lender;
	while (credit_first(&s.x, &w[taken], true))
		taken++;
	assert_in_range(taken, SLOTS / 8 * 7 / 10, SLOTS / 8 * 8 / 10);
	w[taken].peer = &s.pair[1].lender;
	assert_true(credit_first(&s.x, &w[taken], true));
	for (i = 0; i <= taken; i++)
		credit_first(&s.x, &w[i], false);
	close_all();
}

/* The pool is to grow when a peer has filled what it was lent. */
static void credit_fill__the_last_is_a_shortage(void **state)
{
	struct peer *l = &s.pair[0].lender;

	(void)state;
	open_with(1);
	join(0);
	credit_lend(&s.x, l);
	s.x.pool.short_of = false;
	while (credit_left(l) > 1)
		credit_fill(&s.x, l, true);
	assert_false(s.x.pool.short_of);
	credit_fill(&s.x, l, true);
	assert_true(s.x.pool.short_of);
	while (l->lend.filled)
		credit_fill(&s.x, l, false);
	close_all();
}

/* Who waits for more goes on when there is more, and not when that is old. */
static void credit_take__wakes_who_waits(void **state)
{
	struct peer *b = &s.pair[0].borrower;
	struct qp *qp = &s.pair[0].conn[0].qp;

	(void)state;
	open_with(1);
	join(0);
	list_init(&qp->on.runnable);
	list_init(&qp->on.waiting);
	list_add_tail(&b->stalled, &qp->on.waiting);
	credit_take(b, 1, 2);
	assert_true(list_empty(&b->stalled));
	assert_ptr_equal(s.x.work.runnable.next, &qp->on.runnable);
	list_del(&qp->on.runnable);
	list_add_tail(&b->stalled, &qp->on.waiting);
	credit_take(b, 9, 1);
	assert_true(list_empty(&qp->on.runnable));
	list_del(&qp->on.waiting);
	close_all();
}

/* Of a new life of the peer: nothing that it lent before is kept to, and what we lend has
 * not been heard. */
static void credit_of__another_life(void **state)
{
	struct peer *l = &s.pair[0].lender, *b = &s.pair[0].borrower;
	struct qp *qp = &s.pair[0].conn[0].qp;

	(void)state;
	open_with(1);
	join(0);
	credit_of(l, 7);
	credit_lend(&s.x, l);
	credit_of(b, 8);
	credit_take(b, l->lend.told, l->lend.serial);
	credit_echoed(&s.x, l, credit_echo(b));
	credit_sent(qp, 3);
	credit_of(l, 7);
	credit_of(b, 8);
	assert_true(credit_settled(l));
	assert_int_equal(b->quota.slots, l->lend.told);
	assert_int_equal(b->quota.kept, l->lend.serial);
	credit_of(l, 9);
	credit_of(b, 9);
	assert_false(credit_settled(l));
	assert_int_equal(b->quota.slots, 0);
	assert_int_equal(credit_echo(b), 0); /* two are out beyond none */
	credit_take(b, 5, 1); /* whatever the number */
	assert_int_equal(b->quota.slots, 5);
	assert_int_equal(credit_echo(b), 1);
	credit_placed(qp, 3);
	close_all();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(credit__any_number_is_news_at_first),
		cmocka_unit_test(credit__of_who_is_silent),
		cmocka_unit_test(credit__lowered_in_two_steps),
		cmocka_unit_test(credit_lend__leaves_some_to_who_comes_next),
		cmocka_unit_test(credit_first__leaves_some_to_others),
		cmocka_unit_test(credit_fill__the_last_is_a_shortage),
		cmocka_unit_test(credit_take__wakes_who_waits),
		cmocka_unit_test(credit_of__another_life),
		cmocka_unit_test(credit__left_to_other_qps),
		cmocka_unit_test(credit__finds_a_slot),
		cmocka_unit_test(credit_bound__finds_a_slot),
		cmocka_unit_test(credit_bound__what_is_lent_comes_back),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
