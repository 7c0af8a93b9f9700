/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handover_test.c: a page that two peers wait for, of which one keeps so many pagers busy
 * that it may not ask: it is asked for when the other may, and in its turn.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "peers.h"

#include <string.h>

enum {
	OWN = 2000, /* a page that only peer 1 wants */
	OTHERS = 50000, /* those of peer 2 */
	SLOW = 100000, /* the first of the pages that do not come */
};

/* So many pages of peer 1 do not come; it waits for another one, and may not ask. */
static void begin(struct peers *p, uint32_t pagers, unsigned slow)
{
	struct ticket_req r;

	peers_open_many(p, pagers);
	for (unsigned i = 0; i <= slow; i++)
		want(p, 1, SLOW + 10 * i);
	for (unsigned i = 0; i < slow; i++)
		fix_next(&p->f);
	assert_false(ticket_next(p->f.m, &r));
}

/* Ask for all pages that may be. Return: is @vpn among them? */
static bool asked(struct peers *p, uint64_t vpn)
{
	struct ticket_req r;
	bool found = false;

	while (ticket_next(p->f.m, &r))
		found |= r.vpn == vpn;
	return found;
}

/* A page in the line of peer 0 is as good as next, since peer 1 waits for it, too. */
static void handover__the_second_of_a_line(void **state)
{
	struct peers p;

	(void)state;
	begin(&p, 16, 8);
	for (unsigned i = 1; i <= 11; i++)
		want(&p, 0, 10 * i);
	want(&p, 1, 20);
	assert_true(asked(&p, 20));
	peers_close(&p);
}

static void handover__the_others_are_cancelled(void **state)
{
	struct waiter *w[4];
	struct peers p;

	(void)state;
	begin(&p, 4, 2);
	for (unsigned i = 0; i < 4; i++)
		w[i] = want(&p, 0, 10 * i);
	want(&p, 0, 50);
	want(&p, 1, 50);
	for (unsigned i = 0; i < 4; i++)
		waiter_cancel(p.f.m, w[i]);
	assert_true(asked(&p, 50));
	peers_close(&p);
}

/* What nobody waits for is no reason to leave it to others. */
static void handover__not_behind_what_is_fetched_ahead(void **state)
{
	struct waiter *w;
	struct peers p;
	struct dma d;

	(void)state;
	begin(&p, 16, 8);
	d = fix_dma(&p.f, 10 * PAGE_BYTES, 1, true);
	d.ahead = 250 * PAGE_BYTES;
	w = &p.w[p.n++];
	waiter_init(w, w);
	w->share = p.s[0];
	assert_int_equal(fix_run(&p.f, &d, w), V_WAIT);
	want(&p, 0, 5000);
	want(&p, 1, 5000);
	assert_true(asked(&p, 5000));
	peers_close(&p);
}

/* A page that moved into the line of peer 1 goes back when only peer 0 may ask. */
static void handover__back(void **state)
{
	struct ticket_req r, none;
	struct waiter *w;
	struct peers p;

	(void)state;
	peers_open_with(&p, 2);
	want(&p, 1, 100);
	assert_int_equal(fix_next(&p.f).vpn, 100);
	want(&p, 0, 0);
	w = want(&p, 0, 10);
	want(&p, 0, 20);
	want(&p, 1, 20);
	assert_int_equal(p.s[1]->tickets, 2);
	r = fix_next(&p.f);
	assert_int_equal(r.vpn, 0);
	assert_false(ticket_next(p.f.m, &none));
	waiter_cancel(p.f.m, w);
	fix_done(&p.f, r, 1, false);
	assert_int_equal(fix_next(&p.f).vpn, 20);
	peers_close(&p);
}

/* Return: the one that may be asked for in its place. */
static struct ticket_req answer_one(struct peers *p, struct ticket_req r)
{
	struct ticket_req none;

	fix_done(&p->f, r, 1, false);
	r = fix_next(&p->f);
	assert_false(ticket_next(p->f.m, &none));
	return r;
}

/* Both peers go through one file, peer 0 is always there first, and one of its pages does
 * not come. Peer 1 has a page of its own to wait for. */
static void handover__overtakes_no_own_page_for_ever(void **state)
{
	enum { ROUNDS = 40 };
	struct ticket_req r, none;
	uint64_t next = 10;
	struct peers p;
	int i;

	(void)state;
	peers_open_many(&p, 2);
	want(&p, 0, SLOW);
	fix_next(&p.f);
	want(&p, 1, 1000);
	r = fix_next(&p.f);
	want(&p, 0, next);
	want(&p, 0, next + 10);
	want(&p, 1, OWN);
	want(&p, 1, OWN + 10);
	want(&p, 1, next);
	want(&p, 1, next + 10);
	assert_false(ticket_next(p.f.m, &none));
	for (i = 0; i < ROUNDS && r.vpn != OWN; i++, next += 10) {
		want(&p, 0, next + 20);
		want(&p, 1, next + 20);
		r = answer_one(&p, r);
	}
	assert_true(i < 4);
	peers_close(&p);
}

/* A peer that joins the other's pages, which neither may ask for, keeps its turn. */
static void handover__joins_lose_no_turn(void **state)
{
	enum { ROUNDS = 40 };
	struct ticket_req r, none;
	uint64_t next = 10;
	struct peers p;
	int i;

	(void)state;
	peers_open_many(&p, 4);
	for (unsigned n = 0; n < 2; n++) {
		want(&p, n, SLOW + 10 * n);
		fix_next(&p.f);
	}
	want(&p, 0, next);
	r = fix_next(&p.f);
	want(&p, 1, OWN);
	want(&p, 0, next + 10);
	assert_false(ticket_next(p.f.m, &none));
	for (i = 0; i < ROUNDS && r.vpn != OWN; i++, next += 20) {
		want(&p, 0, next + 20);
		want(&p, 0, next + 30);
		want(&p, 1, next + 30);
		assert_false(ticket_next(p.f.m, &none));
		r = answer_one(&p, r);
	}
	assert_true(i < 4);
	peers_close(&p);
}

/** struct outstanding - What is with the pagers, but for what does not come. */
struct outstanding {
	struct ticket_req r[WAITERS];
	unsigned n;
	bool own; /* OWN was asked for */
};

static void ask_all(struct peers *p, struct outstanding *a)
{
	for (; ticket_next(p->f.m, &a->r[a->n]); a->n++)
		a->own |= a->r[a->n].vpn == OWN;
}

/* Answer the oldest of those pages that are (not @others) pages of the line of peer 0.
 * Return: false: there is none. */
static bool answer_oldest(struct peers *p, struct outstanding *a, bool others)
{
	for (unsigned i = 0; i < a->n; i++)
		if ((a->r[i].vpn >= OTHERS) == others) {
			fix_done(&p->f, a->r[i], 1, false);
			memmove(&a->r[i], &a->r[i + 1],
				(--a->n - i) * sizeof(a->r[0]));
			return true;
		}
	return false;
}

static void answer_all(struct peers *p, struct outstanding *a, bool others)
{
	while (answer_oldest(p, a, others))
		;
}

/* Two peers, each with a page that does not come; peer 2 has another one out, and peer 1
 * waits for a page of its own. */
static void begin_two(struct peers *p, struct outstanding *a)
{
	a->n = 0;
	a->own = false;
	peers_open_many(p, 4);
	for (unsigned peer = 1; peer <= 2; peer++) {
		want(p, peer, SLOW + 10 * peer);
		fix_next(&p->f);
	}
	want(p, 2, OTHERS);
	ask_all(p, a);
	want(p, 1, OWN);
}

/* Nor one that joins pages in the middle of a line which the first may ask for. */
static void handover__nor_where_the_first_may_ask(void **state)
{
	enum { LINE = 60, MIDDLE = 300, ROUNDS = 20 };
	struct outstanding a;
	struct peers p;
	unsigned i;

	(void)state;
	begin_two(&p, &a);
	want(&p, 2, OTHERS + 10);
	for (unsigned k = 0; k < LINE; k++)
		want(&p, 0, 10 + 10 * k);
	ask_all(&p, &a);
	for (i = 0; i < ROUNDS && !a.own; i++) {
		want(&p, 2, OTHERS + 20 + 10 * i);
		answer_all(&p, &a, false);
		want(&p, 1, MIDDLE + 10 * i);
		answer_all(&p, &a, true);
		ask_all(&p, &a);
	}
	assert_true(i < 4);
	peers_close(&p);
}

/* A share that was set aside comes before one that has a page to wait for since then. */
static void handover__not_behind_those_that_came_since(void **state)
{
	enum { ROUNDS = 40 };
	struct outstanding a = {.n = 0};
	struct peers p;
	unsigned i;

	(void)state;
	peers_open_many(&p, 3);
	want(&p, 1, SLOW);
	fix_next(&p.f);
	want(&p, 2, OTHERS);
	ask_all(&p, &a);
	want(&p, 1, OWN);
	ask_all(&p, &a);
	for (i = 0; i < ROUNDS && !a.own; i++) {
		want(&p, 2, OTHERS + 10 * (i + 1));
		answer_oldest(&p, &a, true);
		ask_all(&p, &a);
	}
	assert_true(i < 4);
	peers_close(&p);
}

/* Nor if one of those joins a page that may be handed over: then all look again. */
static void handover__joins_of_others_cost_no_turn(void **state)
{
	enum { ROUNDS = 20, OFTEN = 6 };
	struct outstanding a;
	struct peers p;
	unsigned i;

	(void)state;
	begin_two(&p, &a);
	ask_all(&p, &a);
	for (i = 0; i < ROUNDS && !a.own; i++) {
		for (unsigned k = 0; k < OFTEN; k++)
			want(&p, 0, 100 * (i + 1) + 10 * k);
		want(&p, 2, OTHERS + 10 * (i + 1));
		want(&p, 2, 100 * (i + 1) + 50);
		ask_all(&p, &a);
		answer_oldest(&p, &a, true);
		answer_oldest(&p, &a, false);
		do {
			ask_all(&p, &a);
		} while (answer_oldest(&p, &a, false));
	}
	assert_true(i < 4);
	peers_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handover__the_second_of_a_line),
		cmocka_unit_test(handover__the_others_are_cancelled),
		cmocka_unit_test(handover__not_behind_what_is_fetched_ahead),
		cmocka_unit_test(handover__back),
		cmocka_unit_test(handover__overtakes_no_own_page_for_ever),
		cmocka_unit_test(handover__joins_lose_no_turn),
		cmocka_unit_test(handover__nor_where_the_first_may_ask),
		cmocka_unit_test(handover__not_behind_those_that_came_since),
		cmocka_unit_test(handover__joins_of_others_cost_no_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
