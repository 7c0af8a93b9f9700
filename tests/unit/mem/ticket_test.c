/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ticket_test.c: outstanding faults, their waiters, and what they install. */
#include "base/check.h"
#include "base/page.h"
#include "fixture.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/use.h"
#include "mem/waiter.h"

/* Miss [vpn, vpn + pages) with a waiter of its own. */
static void miss(struct fix *f, struct waiter *w, uint64_t vpn, uint64_t pages,
		 bool write)
{
	waiter_init(w, w);
	assert_int_equal(fix_access(f, vpn, pages, write, w), V_WAIT);
	assert_int_not_equal(w->ticket.v, 0);
}

static void check_req(struct fix *f, uint64_t vpn, uint64_t pages, bool write)
{
	struct ticket_req req = fix_next(f);

	assert_int_equal(req.vpn, vpn);
	assert_int_equal(req.pages, pages);
	assert_int_equal(req.write, write);
	fix_done(f, req, 0, false);
}

static void ticket_find__merges(void **state)
{
	struct waiter a, b, c;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 4, true);
	miss(&f, &b, 102, 1, true);
	miss(&f, &c, 103, 9, false);
	assert_int_equal(a.ticket.v, b.ticket.v);
	assert_int_equal(a.ticket.v, c.ticket.v);
	assert_int_equal(tickets_out(f.m), 1);
	assert_int_equal(f.cnt.v[CNT_tickets], 1);
	assert_int_equal(f.cnt.v[CNT_tickets_merged], 2);
	assert_int_equal(f.cnt.v[CNT_faults], 3);
	check_req(&f, 100, 4, true);
	fix_close(&f);
}

/* Who wants to write is not helped by a ticket for reading. */
static void ticket_find__reading_is_not_enough_to_write(void **state)
{
	struct waiter r, w, r2, w2;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &r, 100, 4, false);
	miss(&f, &w, 101, 1, true);
	miss(&f, &r2, 103, 1, false);
	miss(&f, &w2, 101, 1, true);
	assert_int_not_equal(r.ticket.v, w.ticket.v);
	assert_int_equal(r.ticket.v, r2.ticket.v);
	assert_int_equal(w.ticket.v, w2.ticket.v);
	check_req(&f, 100, 4, false);
	check_req(&f, 101, 1, true);
	fix_close(&f);
}

/* Runs that touch the ends of the hash's blocks. */
static void ticket_find__across_blocks(void **state)
{
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 255, 2, true);
	for (uint64_t p = 254; p < 259; p++) {
		bool inside = p == 255 || p == 256;

		miss(&f, &b, p, 1, true);
		assert_int_equal(a.ticket.v == b.ticket.v, inside);
		waiter_cancel(f.m, &b);
	}
	waiter_cancel(f.m, &a);
	miss(&f, &a, 511, 256, true);
	miss(&f, &b, 766, 1, true);
	assert_int_equal(a.ticket.v, b.ticket.v);
	waiter_cancel(f.m, &b);
	miss(&f, &b, 767, 1, true);
	assert_int_not_equal(a.ticket.v, b.ticket.v);
	waiter_cancel(f.m, &b);
	waiter_cancel(f.m, &a);
	assert_int_equal(tickets_out(f.m), 0);
	fix_close(&f);
}

static void ticket_room__stops_at_the_next_ticket(void **state)
{
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 300, 4, false);
	miss(&f, &b, 200, 200, false);
	check_req(&f, 300, 4, false);
	check_req(&f, 200, 100, false);
	miss(&f, &a, 1000, 300, false);
	check_req(&f, 1000, TICKET_PAGES, false);
	fix_close(&f);
}

static void ticket_open__bounded(void **state)
{
	struct waiter w[FIX_TICKETS + 1];
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	for (unsigned i = 0; i < FIX_TICKETS; i++)
		miss(&f, &w[i], 10 * i, 1, false);
	waiter_init(&w[FIX_TICKETS], NULL);
	assert_int_equal(fix_access(&f, 500, 1, false, &w[FIX_TICKETS]),
			 V_NO_RESOURCE);
	assert_int_equal(w[FIX_TICKETS].ticket.v, 0);
	assert_int_equal(f.cnt.v[CNT_faults], FIX_TICKETS);
	assert_int_equal(tickets_out(f.m), FIX_TICKETS);
	for (unsigned i = 0; i < FIX_TICKETS; i++)
		check_req(&f, 10 * i, 1, false);
	assert_int_equal(fix_access(&f, 500, 1, false, &w[FIX_TICKETS]),
			 V_WAIT);
	waiter_cancel(f.m, &w[FIX_TICKETS]);
	fix_close(&f);
}

/* Ids are not used again soon, and never 0. */
static void ticket_open__ids(void **state)
{
	struct ticket_id last = {0};
	struct waiter w;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	for (int i = 0; i < 70000 * FIX_TICKETS / 8; i++) {
		miss(&f, &w, 5, 1, false);
		assert_int_not_equal(w.ticket.v, last.v);
		last = w.ticket;
		waiter_cancel(f.m, &w);
	}
	fix_close(&f);
}

static void waiter_cancel__takes_an_unsent_ticket_along(void **state)
{
	struct ticket_req req;
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, false);
	miss(&f, &b, 100, 1, false);
	waiter_cancel(f.m, &a);
	assert_int_equal(tickets_out(f.m), 1);
	waiter_cancel(f.m, &b);
	waiter_cancel(f.m, &b);
	assert_int_equal(tickets_out(f.m), 0);
	assert_false(ticket_next(f.m, &req));
	fix_close(&f);
}

static void waiter_cancel__leaves_a_sent_ticket(void **state)
{
	struct ticket_req req;
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, false);
	req = fix_next(&f);
	waiter_cancel(f.m, &a);
	assert_int_equal(tickets_out(f.m), 1);
	fix_done(&f, req, 1, false);
	assert_true(list_empty(&f.woken));
	assert_int_equal(tickets_out(f.m), 0);
	assert_true(fix_ready(&f, 100, false));
	fix_close(&f);
}

static void waiter_cancel__forgets_the_verdict(void **state)
{
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, false);
	fix_done(&f, fix_next(&f), 0, true);
	assert_true(a.bad.any);
	waiter_cancel(f.m, &a);
	assert_int_equal(fix_access(&f, 100, 1, false, &a), V_WAIT);
	waiter_cancel(f.m, &a);
	fix_close(&f);
}

static void ticket_next__each_once_in_order(void **state)
{
	struct ticket_req r, r2;
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	assert_false(ticket_next(f.m, &r));
	miss(&f, &a, 100, 1, false);
	miss(&f, &b, 200, 2, true);
	r = fix_next(&f);
	r2 = fix_next(&f);
	assert_int_equal(r.id.v, a.ticket.v);
	assert_int_equal(r.vpn, 100);
	assert_int_equal(r2.id.v, b.ticket.v);
	assert_int_equal(r2.vpn, 200);
	assert_true(r2.write);
	assert_false(ticket_next(f.m, &r));
	fix_done(&f, r2, 2, false);
	assert_ptr_equal(list_entry(f.woken.next, struct waiter, link), &b);
	assert_int_equal(b.ticket.v, 0);
	assert_int_not_equal(a.ticket.v, 0);
	waiter_cancel(f.m, &a);
	fix_done(&f, r, 0, false);
	fix_close(&f);
}

static void ticket_unsent__comes_first_again(void **state)
{
	struct ticket_req r;
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, false);
	miss(&f, &b, 200, 1, false);
	r = fix_next(&f);
	ticket_unsent(f.m, r.id);
	assert_int_equal(fix_next(&f).id.v, a.ticket.v);
	ticket_unsent(f.m, r.id);
	waiter_cancel(f.m, &a);
	assert_int_equal(tickets_out(f.m), 1);
	r = fix_next(&f);
	assert_int_equal(r.id.v, b.ticket.v);
	waiter_cancel(f.m, &b);
	ticket_unsent(f.m, r.id);
	assert_int_equal(tickets_out(f.m), 0);
	fix_close(&f);
}

/* Nobody was asked before the unmap, so the answer will be true. */
static void ticket_unsent__is_not_stale(void **state)
{
	struct ticket_req r;
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, false);
	assert_int_equal(spt_unmap(f.m, 100, 1), 0);
	r = fix_next(&f);
	assert_int_equal(spt_unmap(f.m, 100, 1), 0);
	ticket_unsent(f.m, r.id);
	miss(&f, &b, 100, 1, false);
	assert_int_equal(a.ticket.v, b.ticket.v);
	fix_done(&f, fix_next(&f), 1, false);
	assert_true(fix_ready(&f, 100, false));
	fix_close(&f);
}

static void ticket_done__wakes_in_order_and_installs(void **state)
{
	struct waiter w[4];
	struct list *pos;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	for (int i = 0; i < 4; i++)
		miss(&f, &w[i], 100, 3, true);
	fix_done(&f, fix_next(&f), 3, false);
	pos = f.woken.next;
	for (int i = 0; i < 4; i++, pos = pos->next) {
		assert_ptr_equal(pos, &w[i].link);
		assert_int_equal(w[i].ticket.v, 0);
		assert_false(w[i].bad.any);
		assert_ptr_equal(w[i].owner, &w[i]);
	}
	assert_ptr_equal(pos, &f.woken);
	for (uint64_t p = 99; p < 104; p++)
		assert_int_equal(fix_ready(&f, p, true), p > 99 && p < 103);
	assert_int_equal(f.cnt.v[CNT_service_ns], 1000);
	fix_close(&f);
}

static void ticket_done__readable_only(void **state)
{
	struct ticket_req r;
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, true);
	r = fix_next(&f);
	r.write = false;
	fix_done(&f, r, 1, false);
	assert_true(fix_ready(&f, 100, false));
	assert_false(fix_ready(&f, 100, true));
	fix_close(&f);
}

enum change { UNMAP, PROTECT, PROTECT_ALL, CHANGES };

static void change(struct fix *f, enum change how, uint64_t vpn, uint64_t pages)
{
	if (how == UNMAP)
		assert_int_equal(spt_unmap(f->m, vpn, pages), 0);
	else if (how == PROTECT)
		assert_int_equal(spt_protect(f->m, vpn, pages), 0);
	else
		spt_protect_all(f->m);
}

/* An answer counts for the pages in front of those that were unmapped
 * meanwhile; where they were protected, for reading only.
 */
static void ticket_done__after_a_change(void **state)
{
	static const struct {
		uint64_t vpn, pages;
		unsigned front; /* of 4 */
	} cases[] = {
		{96, 4, 4},
		{97, 4, 0},
		{100, 1, 0},
		{101, 1, 1},
		{103, 9, 3},
		{104, 9, 4},
		{0, 200, 0},
		{102, 0, 4},
		{0, UINT64_MAX, 0},
		{101, 0, 4},
		{5000, UINT64_MAX, 4},
	};
	struct waiter a, b;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	for (unsigned i = 0; i < ARRAY_SIZE(cases); i++)
		for (enum change how = UNMAP; how < PROTECT_ALL; how++) {
			struct ticket_req r;

			miss(&f, &a, 100, 4, true);
			r = fix_next(&f);
			change(&f, how, cases[i].vpn, cases[i].pages);
			bool hit = cases[i].front < 4;

			/* nobody joins it for a page that is gone */
			for (unsigned p = 0; p < 4; p++) {
				miss(&f, &b, 100 + p, 1, true);
				assert_int_equal(a.ticket.v == b.ticket.v,
						 how == PROTECT ||
							 p < cases[i].front);
				waiter_cancel(f.m, &b);
			}
			fix_done(&f, r, 4, false);
			assert_ptr_equal(f.woken.next, &a.link);
			for (unsigned p = 0; p < 4; p++) {
				bool there = how == PROTECT ||
					     p < cases[i].front;

				assert_int_equal(fix_ready(&f, 100 + p, false),
						 there);
				assert_int_equal(fix_ready(&f, 100 + p, true),
						 how == PROTECT ? !hit : there);
			}
			assert_int_equal(spt_unmap(f.m, 0, 200), 0);
		}
	fix_close(&f);
}

static void ticket_done__after_a_fork(void **state)
{
	struct ticket_req r;
	struct waiter a;
	struct fix f;

	(void)state;
	for (int exact = 0; exact < 2; exact++) {
		fix_open(&f,
			 (struct mem_config){.entries = 64, .exact = exact});
		miss(&f, &a, 100, 1, true);
		r = fix_next(&f);
		change(&f, PROTECT_ALL, 0, 0);
		fix_done(&f, r, 1, false);
		assert_ptr_equal(f.woken.next, &a.link);
		assert_true(fix_ready(&f, 100, false));
		assert_false(fix_ready(&f, 100, true));
		fix_close(&f);
	}
}

/* What nobody waits for comes last, few at a time; who joins makes it urgent. */
static void ticket_next__ahead_comes_last(void **state)
{
	struct ticket_req r[8];
	struct waiter a, b, c;
	struct dma d;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	f.m->tickets.pagers = f.m->cfg.pagers =
		8; /* four of them for what is ahead */
	waiter_init(&a, &a);
	d = fix_dma(&f, 100 * PAGE_BYTES, 1, true);
	d.ahead = 62 * PAGE_BYTES; /* 2 + 4 + 8 + 16 + 16 + 16 */
	assert_int_equal(fix_run(&f, &d, &a), V_WAIT);
	miss(&f, &b, 500, 1, true);
	miss(&f, &c, 140, 1, true); /* in the piece at 131 */
	for (unsigned i = 0; i < 6; i++)
		r[i] = fix_next(&f);
	assert_int_equal(r[0].vpn, 100);
	assert_int_equal(r[1].vpn, 500);
	assert_int_equal(r[2].vpn, 131);
	assert_int_equal(r[3].vpn, 101);
	assert_int_equal(r[4].vpn, 103);
	assert_int_equal(r[5].vpn, 107);
	r[6] = fix_next(&f);
	assert_int_equal(r[6].vpn, 115);
	assert_false(ticket_next(f.m, &r[7]));
	fix_done(&f, r[4], 4, false);
	r[4] = fix_next(&f);
	assert_int_equal(r[4].vpn, 147);
	for (unsigned i = 0; i < 7; i++)
		fix_done(&f, r[i], r[i].pages, false);
	fix_close(&f);
}

/* A failure that may be the unmap's own is no verdict. */
static void ticket_done__stale_failure_is_no_verdict(void **state)
{
	struct ticket_req r;
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, true);
	r = fix_next(&f);
	change(&f, UNMAP, 100, 1);
	fix_done(&f, r, 0, true);
	assert_false(a.bad.any);
	assert_int_equal(fix_access(&f, 100, 1, true, &a), V_WAIT);
	waiter_cancel(f.m, &a);
	fix_close(&f);
}

static void ticket_done__failed(void **state)
{
	struct waiter before, on, behind;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &on, 100, 8, true);
	miss(&f, &before, 101, 2, true);
	miss(&f, &behind, 106, 1, true);
	fix_done(&f, fix_next(&f), 4, true);
	assert_int_equal(f.cnt.v[CNT_fault_prot], 1);
	assert_int_equal(fix_access(&f, 101, 2, true, &before), V_OK);
	assert_int_equal(fix_access(&f, 106, 1, true, &behind), V_WAIT);
	assert_int_equal(fix_access(&f, 100, 8, true, &on), V_PROT);
	assert_int_equal(f.cnt.v[CNT_tickets], 2);
	/* once */
	assert_int_equal(fix_access(&f, 100, 8, true, &on), V_WAIT);
	waiter_cancel(f.m, &on);
	waiter_cancel(f.m, &behind);
	fix_close(&f);
}

static void ticket_done__failed_behind_its_last_page(void **state)
{
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, true);
	fix_done(&f, fix_next(&f), 1, true);
	assert_false(a.bad.any);
	assert_int_equal(f.cnt.v[CNT_fault_prot], 0);
	assert_int_equal(fix_access(&f, 100, 1, true, &a), V_OK);
	fix_close(&f);
}

/* The page may be read, only not written. */
static void ticket_done__failed_write_is_no_verdict_on_reading(void **state)
{
	struct waiter r, w;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &w, 100, 1, true);
	miss(&f, &r, 100, 1, false);
	assert_int_equal(r.ticket.v, w.ticket.v);
	fix_done(&f, fix_next(&f), 0, true);
	assert_int_equal(fix_access(&f, 100, 1, true, &w), V_PROT);
	assert_int_equal(fix_access(&f, 100, 1, false, &r), V_WAIT);
	fix_done(&f, fix_next(&f), 0, true);
	assert_int_equal(fix_access(&f, 100, 1, false, &r), V_PROT);
	fix_close(&f);
}

static void ticket_done__failed_but_ready_meanwhile(void **state)
{
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, true);
	fix_done(&f, fix_next(&f), 0, true);
	spt_map(f.m, 100, 1, true, f.now);
	assert_int_equal(fix_access(&f, 100, 1, true, &a), V_OK);
	assert_false(a.bad.any);
	fix_close(&f);
}

static void ticket_done__learns_what_is_cheap(void **state)
{
	struct waiter a;
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	miss(&f, &a, 100, 1, true);
	list_init(&f.woken);
	ticket_done(f.m, fix_next(&f).id, 1, false, true, 150 * 4096 + 1,
		    160 * 4096 + 4095, 9, f.now, &f.woken);
	mem_inline_budget(f.m, 100);
	for (uint64_t p = 148; p < 163; p++)
		assert_int_equal(fix_peek(&f, p * 4096, 1, true) == V_OK,
				 p > 150 && p < 160);
	fix_close(&f);
}

/* Answers come in any order; the others go on waiting. */
static void tickets_out__counts(void **state)
{
	struct ticket_req r[3];
	struct waiter w[3];
	struct fix f;

	(void)state;
	fix_open_exact(&f, 4096);
	for (unsigned i = 0; i < 3; i++) {
		miss(&f, &w[i], 10 * i, 1, false);
		r[i] = fix_next(&f);
	}
	for (unsigned i = 3; i-- > 0;) {
		assert_int_equal(tickets_out(f.m), i + 1);
		fix_done(&f, r[i], 1, false);
		assert_ptr_equal(f.woken.next, &w[i].link);
		assert_ptr_equal(f.woken.prev, &w[i].link);
	}
	assert_int_equal(tickets_out(f.m), 0);
	fix_close(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ticket_find__merges),
		cmocka_unit_test(ticket_find__reading_is_not_enough_to_write),
		cmocka_unit_test(ticket_find__across_blocks),
		cmocka_unit_test(ticket_room__stops_at_the_next_ticket),
		cmocka_unit_test(ticket_open__bounded),
		cmocka_unit_test(ticket_open__ids),
		cmocka_unit_test(waiter_cancel__takes_an_unsent_ticket_along),
		cmocka_unit_test(waiter_cancel__leaves_a_sent_ticket),
		cmocka_unit_test(waiter_cancel__forgets_the_verdict),
		cmocka_unit_test(ticket_next__each_once_in_order),
		cmocka_unit_test(ticket_unsent__comes_first_again),
		cmocka_unit_test(ticket_unsent__is_not_stale),
		cmocka_unit_test(ticket_done__wakes_in_order_and_installs),
		cmocka_unit_test(ticket_done__readable_only),
		cmocka_unit_test(ticket_next__ahead_comes_last),
		cmocka_unit_test(ticket_done__after_a_change),
		cmocka_unit_test(ticket_done__after_a_fork),
		cmocka_unit_test(ticket_done__stale_failure_is_no_verdict),
		cmocka_unit_test(ticket_done__failed),
		cmocka_unit_test(ticket_done__failed_behind_its_last_page),
		cmocka_unit_test(
			ticket_done__failed_write_is_no_verdict_on_reading),
		cmocka_unit_test(ticket_done__failed_but_ready_meanwhile),
		cmocka_unit_test(ticket_done__learns_what_is_cheap),
		cmocka_unit_test(tickets_out__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
