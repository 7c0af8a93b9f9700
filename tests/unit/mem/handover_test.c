/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handover_test.c: a page that two peers wait for, of which one keeps so many pagers busy
 * that it may not ask: it is asked for when the other may, and in its turn.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "peers.h"

enum { SLOW = 100000 }; /* the first of the pages that do not come */

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

/* All that may be asked for now. Return: @vpn is. */
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

/* Both peers go through one file, peer 0 is always there first, and one of its pages does
 * not come. Peer 1 has a page of its own to wait for. */
static void handover__overtakes_no_own_page_for_ever(void **state)
{
	enum { OWN = 2000, ROUNDS = 40 };
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
		fix_done(&p.f, r, 1, false);
		r = fix_next(&p.f);
		assert_false(ticket_next(p.f.m, &none));
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
