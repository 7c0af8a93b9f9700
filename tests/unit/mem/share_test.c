/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* share_test.c: what a peer may have of tickets and pagers, and whose turn it is. */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/share.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/tickets.h"
#include "mem/use.h"
#include "mem/waiter.h"
#include "mem/waiting.h"
#include "peers.h"

/* Likewise one of the NIC itself. */
static struct waiter *want_own(struct peers *p, uint64_t vpn)
{
	struct waiter *w = &p->w[p->n++];

	waiter_init(w, w);
	assert_int_equal(fix_access(&p->f, vpn, 1, true, w), V_WAIT);
	return w;
}

static bool starves(const struct waiter *w)
{
	return w->ticket.v == TICKET_STARVED;
}

/* The waiter that is told to try again, or NULL. */
static struct waiter *told(struct peers *p)
{
	struct waiter *w;

	list_init(&p->f.woken);
	moved_take(p->f.m, &p->f.woken);
	if (list_empty(&p->f.woken))
		return NULL;
	w = list_entry(p->f.woken.next, struct waiter, link);
	list_del(&w->link);
	assert_true(list_empty(&p->f.woken));
	return w;
}

static void share_get__one_of_a_peer_in_a_pd(void **state)
{
	int other;
	struct peers p;

	(void)state;
	peers_open(&p);
	other = pd_alloc(p.f.m);
	assert_ptr_equal(share_get(&p.list[0], p.f.pd), p.s[0]);
	share_put(p.s[0]);
	assert_false(list_empty(&p.list[0]));
	assert_ptr_not_equal(p.s[0], p.s[1]);
	share_put(p.s[1]);
	p.s[1] = share_get(&p.list[1], (uint32_t)other);
	assert_ptr_not_equal(p.s[1], p.s[0]);
	assert_int_equal(pd_dealloc(p.f.m, (uint32_t)other), 0);
	peers_close(&p);
}

/* Half of what is left, each; whoever comes finds some. */
static void share_claim__leaves_others_some(void **state)
{
	static const unsigned got[3] = {4, 2, 1};
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned n = 0; n < got[i]; n++)
			assert_false(starves(want(&p, i, 100 * i + 10 * n)));
		assert_true(starves(want(&p, i, 100 * i + 90)));
		assert_int_equal(p.s[i]->tickets, got[i]);
	}
	assert_int_equal(tickets_out(p.f.m), 7);
	assert_int_equal(p.f.cnt.v[CNT_ticket_waits], 3);
	peers_close(&p);
}

/* First come, first served; who was not told may not overtake. */
static void share_claim__in_order(void **state)
{
	struct waiter *first, *second, *late;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	first = want(&p, 0, 100);
	second = want(&p, 0, 200);
	assert_null(told(&p));
	fix_done(&p.f, fix_next(&p.f), 1, false);
	assert_ptr_equal(told(&p), first);
	late = want(&p, 0, 300);
	assert_true(starves(late));
	assert_int_equal(fix_access(&p.f, 100, 1, true, first), V_WAIT);
	assert_false(starves(first));
	assert_int_equal(p.s[0]->tickets, 4);
	fix_done(&p.f, fix_next(&p.f), 1, false);
	assert_ptr_equal(told(&p), second);
	waiter_cancel(p.f.m, second);
	assert_ptr_equal(told(&p), late);
	assert_null(told(&p));
	peers_close(&p);
}

/* A promise is kept, and ends with the need. */
static void share_turn_over__passes_it_on(void **state)
{
	struct waiter *first, *second;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	first = want(&p, 0, 100);
	second = want(&p, 0, 200);
	fix_done(&p.f, fix_next(&p.f), 1, false);
	assert_ptr_equal(told(&p), first);
	assert_int_equal(p.s[0]->promised, 1);
	spt_map(p.f.m, 100, 1, true, p.f.now);
	assert_int_equal(fix_access(&p.f, 100, 1, true, first), V_OK);
	assert_int_equal(p.s[0]->promised, 1);
	assert_ptr_equal(told(&p), second);
	/* or with a ticket that another opened */
	assert_int_equal(fix_access(&p.f, 30, 1, true, second), V_WAIT);
	assert_int_equal(p.s[0]->promised, 0);
	assert_int_equal(p.f.m->tickets.promised, 0);
	peers_close(&p);
}

/* A waiter that looks again keeps its place. */
static void share_claim__keeps_its_place(void **state)
{
	struct waiter *first;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	first = want(&p, 0, 100);
	want(&p, 0, 200);
	assert_int_equal(fix_access(&p.f, 100, 1, true, first), V_WAIT);
	assert_int_equal(p.f.cnt.v[CNT_ticket_waits], 2);
	fix_done(&p.f, fix_next(&p.f), 1, false);
	assert_ptr_equal(told(&p), first);
	peers_close(&p);
}

static void touch_ahead(struct peers *p, unsigned i, uint64_t vpn,
			uint64_t pages)
{
	struct dma d = fix_dma(&p->f, vpn * PAGE_BYTES, 1, true);
	struct waiter *w = &p->w[p->n++];

	waiter_init(w, w);
	w->share = p->s[i];
	d.ahead = pages * PAGE_BYTES;
	assert_int_equal(fix_run(&p->f, &d, w), V_WAIT);
}

/* What nobody waits for takes a part, and is given up for who does. */
static void share_ahead__gives_way(void **state)
{
	struct peers p;

	(void)state;
	peers_open(&p);
	touch_ahead(&p, 0, 1000, 100);
	assert_int_equal(p.s[0]->tickets, 3);
	assert_false(starves(want(&p, 0, 10)));
	assert_int_equal(p.s[0]->tickets, 4);
	assert_false(starves(want(&p, 0, 20)));
	assert_false(starves(want(&p, 0, 30)));
	assert_int_equal(p.s[0]->tickets, 4);
	assert_int_equal(p.f.cnt.v[CNT_tickets_unasked], 2);
	assert_true(starves(want(&p, 0, 40)));
	peers_close(&p);
}

/* Who needs a page that is far back in another's line does not wait there. */
static void share_takes_over__from_who_has_more(void **state)
{
	struct waiter *w;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	w = want(&p, 1, 30);
	assert_int_equal(p.s[0]->tickets, 3);
	assert_int_equal(p.s[1]->tickets, 1);
	fix_next(&p.f);
	assert_int_equal(fix_next(&p.f).id.v, w->ticket.v);
	peers_close(&p);
}

/* Nor in the line of who has as few tickets, and pagers that do not come back. */
static void share_takes_over__from_who_waits(void **state)
{
	struct waiter *w;
	struct peers p;

	(void)state;
	peers_open(&p);
	want(&p, 0, 0);
	fix_next(&p.f);
	want(&p, 0, 10);
	want(&p, 1, 20);
	w = want(&p, 1, 10);
	assert_ptr_equal(ticket_of(&p.f.m->tickets, w->ticket)->share, p.s[1]);
	peers_close(&p);
}

/* Two peers want page 20, which stands in the line of the first: that was as good as the
 * other's when it came. Return: the waiter of the second. */
static struct waiter *want_twenty(struct peers *p)
{
	struct waiter *w, *first;

	peers_open(p);
	want(p, 1, 100);
	want(p, 1, 110);
	want(p, 0, 0);
	want(p, 0, 10);
	first = want(p, 0, 20);
	w = want(p, 1, 20);
	assert_int_equal(w->ticket.v, first->ticket.v);
	assert_ptr_equal(ticket_of(&p->f.m->tickets, w->ticket)->share,
			 p->s[0]);
	assert_int_equal(p->s[0]->guests, 1);
	return w;
}

/* And then the pages of the first take long: two pagers are free, and it may have none. */
static void answer_the_second(struct peers *p)
{
	fix_done(&p->f, fix_next(&p->f), 1, false);
	assert_int_equal(fix_next(&p->f).vpn, 0);
	fix_done(&p->f, fix_next(&p->f), 1, false);
	assert_int_equal(fix_next(&p->f).vpn, 10);
}

/* Nor does it wait where it turns out later that it should not. */
static void share_next__hands_over(void **state)
{
	struct waiter *w;
	struct peers p;

	(void)state;
	w = want_twenty(&p);
	answer_the_second(&p);
	assert_int_equal(fix_next(&p.f).vpn, 20);
	assert_ptr_equal(ticket_of(&p.f.m->tickets, w->ticket)->share, p.s[1]);
	assert_int_equal(p.s[0]->guests + p.s[1]->guests, 0);
	assert_int_equal(p.s[0]->tickets, 2);
	assert_int_equal(p.s[1]->tickets, 1);
	peers_close(&p);
}

/* It does not fall back behind all that the other waits for. */
static void share_next__hands_over_to_the_head(void **state)
{
	struct ticket_req r;
	struct peers p;

	(void)state;
	peers_open_with(&p, 2);
	for (unsigned n = 0; n < 3; n++)
		want(&p, 1, 100 + 10 * n);
	want(&p, 0, 0);
	want(&p, 0, 20);
	want(&p, 1, 20);
	r = fix_next(&p.f);
	assert_int_equal(r.vpn, 100);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	for (unsigned n = 0; n < 2 && r.vpn != 20; n++) {
		fix_done(&p.f, r, 1, false);
		r = fix_next(&p.f);
	}
	assert_int_equal(r.vpn, 20);
	peers_close(&p);
}

/* Nor does it stay where it comes too late for that: the own share, which may always
 * ask, has asked no less. */
static void share_takes_over__from_who_may_not_ask(void **state)
{
	struct ticket_req r;
	struct waiter *w;
	struct peers p;

	(void)state;
	peers_open_with(&p, 2);
	want(&p, 0, 0);
	want(&p, 0, 20);
	want_own(&p, 100);
	want_own(&p, 110);
	for (unsigned n = 0; n < 3; n++)
		fix_next(&p.f);
	assert_false(ticket_next(p.f.m, &r));
	w = want_own(&p, 20);
	assert_int_equal(fix_next(&p.f).id.v, w->ticket.v);
	peers_close(&p);
}

/* A peer that may not ask either gets nothing. */
static void share_next__hands_over_to_who_may_ask(void **state)
{
	struct ticket_req r;
	struct waiter *w;
	struct peers p;

	(void)state;
	peers_open(&p);
	want(&p, 1, 100);
	want(&p, 1, 110);
	want(&p, 0, 0);
	want(&p, 0, 20);
	w = want(&p, 1, 20);
	for (unsigned n = 0; n < 3; n++)
		fix_next(&p.f);
	assert_false(ticket_next(p.f.m, &r));
	assert_ptr_equal(ticket_of(&p.f.m->tickets, w->ticket)->share, p.s[0]);
	peers_close(&p);
}

/* Peer 0 wants pages 0, 10 and 20. */
static void want_line(struct peers *p)
{
	for (unsigned n = 0; n < 3; n++)
		want(p, 0, 10 * n);
}

/* Peer 1 keeps the only pager busy before. */
static void open_with_a_line(struct peers *p)
{
	peers_open_with(p, 1);
	want(p, 1, 100);
	assert_int_equal(fix_next(&p->f).vpn, 100);
	want_line(p);
}

/* Two pages of a line are others', who both may ask. */
static void share_next__hands_over_more_than_one(void **state)
{
	struct ticket_req r, slow[2];
	struct peers p;

	(void)state;
	peers_open_with(&p, 2);
	want_line(&p);
	want(&p, 1, 100);
	want(&p, 1, 110);
	want(&p, 2, 200);
	want(&p, 2, 210);
	want(&p, 1, 10);
	want(&p, 2, 20);
	assert_int_equal(p.s[0]->guests, 2);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	for (unsigned n = 0; n < 2; n++)
		slow[n] = fix_next(&p.f);
	waiter_cancel(p.f.m, &p.w[6]);
	for (unsigned n = 0; n < 2; n++)
		fix_done(&p.f, slow[n], 1, false);
	assert_int_equal(fix_next(&p.f).vpn, 10);
	assert_int_equal(fix_next(&p.f).vpn, 20);
	assert_false(ticket_next(p.f.m, &r));
	peers_close(&p);
}

/* One peer gets them in the order in which they were wanted, also if it waits for nothing
 * else. */
static void share_next__hands_over_in_order(void **state)
{
	struct ticket_req r;
	struct peers p;

	(void)state;
	peers_open_with(&p, 2);
	want_line(&p);
	want(&p, 1, 100);
	want(&p, 1, 110);
	want(&p, 1, 10);
	want(&p, 1, 20);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	r = fix_next(&p.f);
	assert_int_equal(r.vpn, 100);
	waiter_cancel(p.f.m, &p.w[4]);
	for (unsigned n = 1; n < 3; n++) {
		fix_done(&p.f, r, 1, false);
		r = fix_next(&p.f);
		assert_int_equal(r.vpn, 10 * n);
	}
	peers_close(&p);
}

/* But what is not next there would wait for all that stands before it. */
static void share_takes_over__the_end_of_a_line(void **state)
{
	struct waiter *w;
	struct peers p;

	(void)state;
	open_with_a_line(&p);
	w = want(&p, 1, 20);
	assert_ptr_equal(ticket_of(&p.f.m->tickets, w->ticket)->share, p.s[1]);
	peers_close(&p);
}

/* A share that may ask keeps what is next in its line, though another waits for it, too,
 * that may not. */
static void share_takes_over__not_from_who_may_ask(void **state)
{
	struct peers p;

	(void)state;
	open_with_a_line(&p);
	want(&p, 1, 0);
	assert_int_equal(p.s[0]->tickets, 3);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	peers_close(&p);
}

/* Who waited with it and does not any more is no reason. */
static void share_next__hands_nothing_over(void **state)
{
	struct ticket_req r;
	struct waiter *w;
	struct peers p;

	(void)state;
	w = want_twenty(&p);
	waiter_cancel(p.f.m, w);
	answer_the_second(&p);
	assert_int_equal(p.s[0]->guests, 1);
	assert_false(ticket_next(p.f.m, &r));
	assert_int_equal(p.s[0]->guests, 0);
	peers_close(&p);
}

/* The parts of one access wait with one waiter, and the first is there: the second
 * keeps its place in line, and its turn. */
static void dma_resolve__more_keeps_the_turn(void **state)
{
	struct waiter *w;
	struct peers p;
	struct dma d;

	(void)state;
	peers_open(&p);
	p.f.m->tickets.num = 4;
	want(&p, 0, 10);
	want(&p, 0, 20);
	w = want(&p, 0, 30);
	assert_true(starves(w));
	spt_map(p.f.m, 40, 1, true, p.f.now);
	d = fix_dma(&p.f, 40 * PAGE_BYTES, PAGE_BYTES, true);
	d.more = true;
	assert_int_equal(fix_run(&p.f, &d, w), V_OK);
	assert_true(starves(w));
	waiter_cancel(p.f.m, &p.w[0]);
	assert_ptr_equal(told(&p), w);
	assert_int_equal(fix_run(&p.f, &d, w), V_OK);
	assert_true(w->turn);
	d.more = false;
	assert_int_equal(fix_run(&p.f, &d, w), V_OK);
	assert_false(w->turn);
	peers_close(&p);
}

/* Peers take turns, and nobody takes all pagers. */
static void share_next__takes_turns(void **state)
{
	struct ticket_req r[4];
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	want(&p, 1, 100);
	want(&p, 1, 110);
	r[0] = fix_next(&p.f);
	assert_int_equal(r[0].vpn, 0);
	r[1] = fix_next(&p.f);
	assert_int_equal(r[1].vpn, 100);
	r[2] = fix_next(&p.f);
	assert_int_equal(r[2].vpn, 10);
	/* one is free, and both have one or more */
	assert_false(ticket_next(p.f.m, &r[3]));
	assert_false(ticket_new(p.f.m));
	/* but who has none may always ask, even where all are busy */
	p.f.m->tickets.pagers = p.f.m->cfg.pagers = 3;
	want(&p, 2, 200);
	assert_int_equal(fix_next(&p.f).vpn, 200);
	p.f.m->tickets.pagers = p.f.m->cfg.pagers = 4;
	fix_done(&p.f, r[2], 1, false);
	assert_true(ticket_new(p.f.m));
	assert_false(ticket_next(p.f.m, &r[3]));
	fix_done(&p.f, r[1], 1, false);
	assert_int_equal(fix_next(&p.f).vpn, 110);
	peers_close(&p);
}

static void share_next__one_alone_gets_half(void **state)
{
	struct ticket_req r;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	for (unsigned n = 0; n < FIX_PAGERS / 2; n++)
		r = fix_next(&p.f);
	assert_false(ticket_next(p.f.m, &r));
	peers_close(&p);
}

/* Of fewer pagers as well; and who could not ask may when there are more. */
static void pagers_bound__half_of_them(void **state)
{
	struct ticket_req r;
	struct mem_use use;
	struct peers p;

	(void)state;
	peers_open(&p);
	for (unsigned n = 0; n < 4; n++)
		want(&p, 0, 10 * n);
	pagers_bound(p.f.m, 0);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	mem_use(p.f.m, &use);
	assert_false(use.pagers_short);
	assert_false(ticket_next(p.f.m, &r));
	mem_use(p.f.m, &use);
	assert_true(use.pagers_short);
	assert_int_equal(use.asked, 1);
	/* as long as somebody waits */
	mem_use(p.f.m, &use);
	assert_true(use.pagers_short);
	pagers_bound(p.f.m, UINT32_MAX);
	assert_true(ticket_new(p.f.m));
	for (unsigned n = 1; n < FIX_PAGERS / 2; n++)
		assert_int_equal(fix_next(&p.f).vpn, 10 * n);
	assert_false(ticket_next(p.f.m, &r));
	peers_close(&p);
}

/* What is touched ahead gets three of four pagers that are for it. */
static void share_next__few_ahead(void **state)
{
	struct ticket_req r;
	struct peers p;

	(void)state;
	peers_open_with(&p, 8);
	p.f.m->cfg.tickets = 8;
	touch_ahead(&p, 0, 1000, 100);
	touch_ahead(&p, 1, 2000, 100);
	assert_int_equal(fix_next(&p.f).vpn, 1000);
	assert_int_equal(fix_next(&p.f).vpn, 2000);
	assert_int_equal(fix_next(&p.f).vpn, 1001);
	assert_int_equal(p.s[0]->ahead_asked, 1);
	while (ticket_next(p.f.m, &r))
		;
	assert_true(p.f.m->tickets.ahead_asked <= ahead_max(p.f.m));
	peers_close(&p);
}

/* All peers of a PD together leave some to the other PDs. */
static void share_next__pds(void **state)
{
	struct list list;
	struct ticket_req r;
	struct share *s;
	struct peers p;
	int other;

	(void)state;
	peers_open(&p);
	other = pd_alloc(p.f.m);
	list_init(&list);
	s = share_get(&list, (uint32_t)other);
	p.f.m->tickets.pagers = p.f.m->cfg.pagers = 2;
	for (unsigned i = 0; i < 3; i++)
		want(&p, i, 100 * i);
	assert_int_equal(fix_next(&p.f).vpn, 0);
	assert_int_equal(fix_next(&p.f).vpn, 100);
	assert_false(ticket_next(p.f.m, &r));
	share_put(s);
	/* as long as there are others */
	assert_int_equal(pd_dealloc(p.f.m, (uint32_t)other), 0);
	assert_true(ticket_new(p.f.m));
	assert_int_equal(fix_next(&p.f).vpn, 200);
	peers_close(&p);
}

static void share_claim__pds(void **state)
{
	struct peers p;

	(void)state;
	peers_open(&p);
	p.f.m->pds.v[p.f.pd - 1].tickets += 32;
	assert_true(starves(want(&p, 0, 100)));
	p.f.m->pds.v[p.f.pd - 1].tickets -= 32;
	peers_close(&p);
}

/* A PD goes while a pager has a ticket of it, and the next one gets its number. */
static void share_closed__after_its_pd(void **state)
{
	struct ticket_req r;
	struct waiter *w;
	struct peers p;
	int pd;

	(void)state;
	peers_open(&p);
	pd = pd_alloc(p.f.m);
	share_put(p.s[1]);
	p.s[1] = share_get(&p.list[1], (uint32_t)pd);
	w = want(&p, 1, 100);
	r = fix_next(&p.f);
	waiter_cancel(p.f.m, w);
	share_put(p.s[1]);
	assert_int_equal(pd_dealloc(p.f.m, (uint32_t)pd), 0);
	assert_int_equal(pd_alloc(p.f.m), pd);
	fix_done(&p.f, r, 1, false);
	p.s[1] = share_get(&p.list[1], (uint32_t)pd);
	assert_false(starves(want(&p, 1, 200)));
	assert_int_equal(pd_dealloc(p.f.m, (uint32_t)pd), 0);
	peers_close(&p);
}

/* A peer goes while a page of it hangs, and then the NIC. */
static void share_forget__a_page_that_never_comes(void **state)
{
	struct peers p;

	(void)state;
	peers_open(&p);
	want(&p, 0, 100);
	fix_next(&p.f);
	peers_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(share_get__one_of_a_peer_in_a_pd),
		cmocka_unit_test(share_ahead__gives_way),
		cmocka_unit_test(share_claim__leaves_others_some),
		cmocka_unit_test(share_claim__in_order),
		cmocka_unit_test(share_claim__keeps_its_place),
		cmocka_unit_test(share_claim__pds),
		cmocka_unit_test(share_turn_over__passes_it_on),
		cmocka_unit_test(share_takes_over__from_who_has_more),
		cmocka_unit_test(share_takes_over__from_who_waits),
		cmocka_unit_test(share_takes_over__from_who_may_not_ask),
		cmocka_unit_test(share_next__hands_over),
		cmocka_unit_test(share_next__hands_over_to_who_may_ask),
		cmocka_unit_test(share_next__hands_over_to_the_head),
		cmocka_unit_test(share_next__hands_over_more_than_one),
		cmocka_unit_test(share_next__hands_over_in_order),
		cmocka_unit_test(share_takes_over__not_from_who_may_ask),
		cmocka_unit_test(share_takes_over__the_end_of_a_line),
		cmocka_unit_test(share_next__hands_nothing_over),
		cmocka_unit_test(dma_resolve__more_keeps_the_turn),
		cmocka_unit_test(share_next__takes_turns),
		cmocka_unit_test(share_next__one_alone_gets_half),
		cmocka_unit_test(pagers_bound__half_of_them),
		cmocka_unit_test(share_next__few_ahead),
		cmocka_unit_test(share_next__pds),
		cmocka_unit_test(share_closed__after_its_pd),
		cmocka_unit_test(share_forget__a_page_that_never_comes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
