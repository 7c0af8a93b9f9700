/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handover_test.c: a page that two peers wait for, of which one keeps so many pagers busy
 * that it may not ask: it is asked for when the other may, and in its turn.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "peers.h"

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

/* Answer those of @r that are (not @others) pages of the line of peer 0. Return: how many
 * are left. */
static unsigned answer(struct peers *p, struct ticket_req *r, unsigned n,
		       bool others)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < n; i++)
		if ((r[i].vpn >= OTHERS) == others)
			fix_done(&p->f, r[i], 1, false);
		else
			r[kept++] = r[i];
	return kept;
}

/* Nor one that joins pages in the middle of a line which the first may ask for. */
static void handover__nor_where_the_first_may_ask(void **state)
{
	enum { LINE = 60, MIDDLE = 300, ROUNDS = 20 };
	struct ticket_req r[16];
	unsigned n = 0;
	bool got = false;
	struct peers p;
	int i;

	(void)state;
	peers_open_many(&p, 4);
	for (unsigned peer = 1; peer <= 2; peer++) {
		want(&p, peer, SLOW + 10 * peer);
		fix_next(&p.f);
	}
	want(&p, 2, OTHERS);
	r[n++] = fix_next(&p.f);
	want(&p, 1, OWN);
	want(&p, 2, OTHERS + 10);
	for (unsigned k = 0; k < LINE; k++)
		want(&p, 0, 10 + 10 * k);
	while (ticket_next(p.f.m, &r[n]))
		n++;
	for (i = 0; i < ROUNDS && !got; i++) {
		want(&p, 2, OTHERS + 20 + 10 * (unsigned)i);
		n = answer(&p, r, n, false);
		want(&p, 1, MIDDLE + 10 * (unsigned)i);
		n = answer(&p, r, n, true);
		for (; ticket_next(p.f.m, &r[n]); n++)
			got |= r[n].vpn == OWN;
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
