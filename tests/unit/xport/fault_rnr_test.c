/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr_test.c: how long a standard peer is told to wait for a page. */
#include "bench.h"
#include "wire/timecode.h"
#include "xport/burst.h"
#include "xport/fault.h"
#include "xport/fault_rnr.h"
#include "xport/tx.h"

enum { WRITES = 2 };

static struct bench s;
static struct pkt pkt[WRITES];

static int setup(void **state)
{
	(void)state;
	bench_open(&s, PEER_STANDARD, 0);
	s.x.strategies = strategy_set(STRATEGY_REDIRECT) |
			 strategy_set(STRATEGY_RNR);
	s.qp.attr.min_rnr_timer = 1; /* 10 us */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bench_close(&s);
	return 0;
}

/* A WRITE to the page @i comes, which is not there. */
static void write_comes(unsigned i)
{
	static uint8_t payload[BENCH_MTU];

	pkt[i] = bench_pkt(&s, OP_WRITE_ONLY, i);
	pkt[i].va = bench_page(i);
	pkt[i].dma_len = pkt[i].payload_len = BENCH_MTU;
	assert_int_equal(
		qp_rx(&s.qp, &pkt[i], payload_of_step(payload), &s.run),
		RX_NEXT);
}

/* A pager has brought the page that was asked for first. */
static void page_comes(void)
{
	struct ticket_req req;
	struct list woken;

	list_init(&woken);
	assert_true(ticket_next(s.mem, &req));
	bench_page_comes(&s, 0);
	ticket_done(s.mem, req.id, 1, false, true, 0, 0, 1, 1, &woken);
	wake_all(&woken);
}

/* The first page comes, and the WRITE to the second begins to wait for its own. */
static void first_page_comes(void)
{
	page_comes();
	while (qp_drain(&s.qp, &s.run))
		commit_run(&s.run, true);
	assert_int_equal(s.qp.resp.wait.since_ns, s.x.now);
}

/* Return: what the peer is told to wait once it bears no more silence. */
static uint64_t told_ns(int64_t after_ns)
{
	const struct resp_ack *a = &s.qp.resp.ack;

	write_comes(0);
	write_comes(1);
	s.x.now = s.qp.resp.at[RESP_SILENCE] + BENCH_MS;
	first_page_comes();
	s.x.now += (uint64_t)after_ns;
	qp_timeout(&s.qp);
	assert_int_equal(a->page_rnr.syndrome & AETH_KIND_MASK, AETH_RNR);
	return rnr_code_to_ns(a->page_rnr.syndrome & AETH_VALUE_MASK);
}

/* As long again as it took: at most what one more code says. */
static void rnr__as_long_as_the_page_took(void **state)
{
	(void)state;
	assert_in_range(told_ns(5 * BENCH_MS), 5 * BENCH_MS, 8 * BENCH_MS);
}

/* Timers run as of the time when all was heard, and a thread may have seen the page
 * missed after that. */
static void rnr__of_a_page_missed_since(void **state)
{
	(void)state;
	assert_int_equal(told_ns(-(int64_t)BENCH_MS / 2), rnr_code_to_ns(1));
}

/* It comes again before it is said that it is to: that is not said any more, and the peer
 * bears as much silence as before. */
static void rnr__of_a_packet_that_came(void **state)
{
	struct resp *r = &s.qp.resp;
	uint64_t silence;

	(void)state;
	s.x.strategies = strategy_set(STRATEGY_RNR);
	write_comes(0);
	silence = r->at[RESP_SILENCE] - s.x.now;
	s.x.now = r->at[RESP_SILENCE];
	qp_timeout(&s.qp);
	assert_true(r->ack.page_rnr.owed);
	assert_true(deadline_ahead(r->at[RESP_SILENCE], s.x.now + silence));
	write_comes(0);
	assert_false(r->ack.page_rnr.owed);
	assert_true(next_forgot(r->next) && !next_rnr(r->next));
	assert_int_equal(r->at[RESP_SILENCE], s.x.now + silence);
}

/* The peer's silence begins when something waits, not when something did before that. */
static void silence__of_what_is_placed(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	write_comes(0);
	assert_true(deadline_waits(r->at[RESP_SILENCE]));
	bench_page_comes(&s, 0);
	pages_brought(s.mem);
	while (qp_drain(&s.qp, &s.run))
		commit_run(&s.run, true);
	assert_int_equal(r->win.head, 1);
	assert_false(deadline_waits(r->at[RESP_SILENCE]));
}

/* What can be answered is. Return: how many packets leave. */
static unsigned answer(void)
{
	static struct burst b;
	unsigned n = 0;

	while (qp_tx(&s.qp, &b)) {
		n += b.nsegs;
		qp_tx_commit(&b, 0);
	}
	return n;
}

/* A READ of @len bytes of the page @i comes. Return: how many packets are answered now. */
static unsigned read_comes(psn_t psn, unsigned i, uint32_t len)
{
	const struct payload none = {.at = NULL};
	struct pkt p = bench_pkt(&s, OP_READ_REQ, psn);

	p.va = bench_page(i);
	p.dma_len = len;
	assert_int_equal(qp_rx(&s.qp, &p, none, &s.run), RX_NEXT);
	if (s.run.qp)
		commit_run(&s.run, true);
	return answer();
}

/* The silence ends, and RNR leaves that names @psn. */
static void rnr_leaves(psn_t psn)
{
	static struct burst b;
	struct pkt p;

	s.x.now = s.qp.resp.at[RESP_SILENCE];
	qp_timeout(&s.qp);
	assert_true(peer_ack_burst(&s.x, &s.peer, &b));
	p = sent_packet(&b, 0);
	assert_int_equal(p.syndrome & AETH_KIND_MASK, AETH_RNR);
	assert_int_equal(p.psn, psn);
}

/* A SEND comes, which takes a place in the run that is to move. */
static void send_comes(psn_t psn)
{
	const struct payload none = {.at = NULL};
	static struct pkt p; /* until the run is over */

	p = bench_pkt(&s, OP_SEND_ONLY, psn);
	bench_receive(&s, 1, 1, 1);
	assert_int_equal(qp_rx(&s.qp, &p, none, &s.run), RX_NEXT);
	assert_ptr_equal(s.run.qp, &s.qp);
}

/* A READ waits for its page, and the time until that is said goes on, whatever is placed
 * behind it. */
static void silence__of_a_read_before_what_is_placed(void **state)
{
	const struct resp *r = &s.qp.resp;
	uint64_t at;

	(void)state;
	assert_int_equal(read_comes(0, 0, 1), 0);
	at = r->at[RESP_SILENCE];
	assert_true(deadline_waits(at));
	send_comes(1);
	commit_run(&s.run, true);
	assert_int_equal(r->win.next, 2);
	assert_int_equal(r->at[RESP_SILENCE], at);
	rnr_leaves(0);
}

/* Each response is heard: the silence begins anew, with what waits then. */
static void silence__of_a_read_answered_in_part(void **state)
{
	const struct resp *r = &s.qp.resp;
	const uint64_t at = s.x.now;
	uint64_t silence;

	(void)state;
	s.peer.path.gso =
		true; /* what is answered and what is not, in one burst */
	assert_int_equal(read_comes(0, 0, PAGE_BYTES + 1), 0);
	silence = r->at[RESP_SILENCE] - at;
	s.x.now += 5 * BENCH_MS;
	page_comes();
	assert_int_equal(r->at[RESP_SILENCE], at + silence);
	assert_int_equal(answer(), PAGE_BYTES / BENCH_MTU);
	assert_int_not_equal(r->replay.wait.ticket.v, 0);
	assert_int_equal(r->at[RESP_SILENCE], s.x.now + silence);
}

/* But what it was told to wait is not shortened by that. */
static void silence__of_a_read_behind_a_pause(void **state)
{
	const struct resp *r = &s.qp.resp;
	uint64_t at;

	(void)state;
	s.peer.path.gso = true;
	s.qp.attr.min_rnr_timer = 31;
	assert_int_equal(read_comes(0, 0, PAGE_BYTES + 1), 0);
	rnr_leaves(0);
	at = r->at[RESP_SILENCE];
	page_comes();
	assert_int_equal(answer(), PAGE_BYTES / BENCH_MTU);
	assert_int_not_equal(r->replay.wait.ticket.v, 0);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

/* A copy that was not answered yet is before it. */
static void silence__of_a_read_behind_a_copy(void **state)
{
	(void)state;
	bench_page_comes(&s, 0);
	assert_int_equal(read_comes(0, 0, 1), 1);
	assert_int_equal(read_comes(1, 1, 1), 0);
	assert_int_equal(read_comes(0, 0, 1), 0);
	rnr_leaves(0);
}

/* So is it if what was told to come again does. */
static void silence__of_a_read_before_what_comes_again(void **state)
{
	const struct resp *r = &s.qp.resp;
	uint64_t at;

	(void)state;
	s.x.strategies = strategy_set(STRATEGY_RNR);
	bench_page_comes(&s, 0);
	assert_int_equal(read_comes(0, 0, 1), 1);
	write_comes(1);
	s.x.now = r->at[RESP_SILENCE];
	qp_timeout(&s.qp);
	assert_int_equal(r->ack.page_rnr.psn, 1);
	at = r->at[RESP_SILENCE];
	spt_unmap(s.mem, page_of(bench_page(0)), 1);
	assert_int_equal(read_comes(0, 0, 1), 0);
	write_comes(1);
	assert_int_equal(r->ack.page_rnr.syndrome, 0);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

/* It is answered: the next that waits has a time of its own. */
static void silence__of_a_read_whose_page_came(void **state)
{
	const struct resp *r = &s.qp.resp;

	(void)state;
	assert_int_equal(read_comes(0, 0, 1), 0);
	assert_true(deadline_waits(r->at[RESP_SILENCE]));
	pages_brought(s.mem);
	assert_true(deadline_waits(r->at[RESP_SILENCE]));
	assert_int_equal(answer(), 1);
	assert_false(deadline_waits(r->at[RESP_SILENCE]));
}

/* A READ waits, and a WRITE behind it. Return: when their peer is told. */
static uint64_t both_wait(void)
{
	uint64_t at;

	assert_int_equal(read_comes(0, 0, 1), 0);
	at = s.qp.resp.at[RESP_SILENCE];
	write_comes(1);
	return at;
}

/* Unless a request waits as well, or was forgotten as there was no slot. */
static void silence__of_a_request_behind_a_read(void **state)
{
	const struct resp *r = &s.qp.resp;
	const uint64_t at = both_wait();

	(void)state;
	page_comes();
	assert_int_equal(answer(), 1);
	assert_int_not_equal(r->wait.ticket.v, 0);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

static void silence__of_what_was_forgotten_behind_a_read(void **state)
{
	const struct pkt p = bench_pkt(&s, OP_WRITE_ONLY, 1);
	const struct resp *r = &s.qp.resp;
	uint64_t at;

	(void)state;
	s.x.strategies = strategy_set(STRATEGY_RNR);
	assert_int_equal(read_comes(0, 0, 1), 0);
	at = r->at[RESP_SILENCE];
	fault_forget(&s.qp, &p);
	page_comes();
	assert_int_equal(answer(), 1);
	assert_true(next_forgot(r->next));
	assert_int_equal(r->wait.ticket.v, 0);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

/* Its page came, and it is not placed yet: another of its pages may have gone. */
static void silence__of_a_request_that_is_kept(void **state)
{
	const struct resp *r = &s.qp.resp;
	const uint64_t at = both_wait();

	(void)state;
	pages_brought(s.mem);
	assert_int_equal(answer(), 1);
	assert_int_equal(r->wait.ticket.v, 0);
	assert_int_equal(r->win.num, 1);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

/* What was forgotten while the run filled waits when the run is over. */
static void silence__of_what_was_forgotten_behind_a_run(void **state)
{
	const struct resp *r = &s.qp.resp;
	uint64_t at;

	(void)state;
	s.x.strategies = strategy_set(STRATEGY_RNR);
	send_comes(0);
	write_comes(1);
	assert_true(next_forgot(r->next));
	at = r->at[RESP_SILENCE];
	assert_true(deadline_waits(at));
	commit_run(&s.run, true);
	assert_int_equal(r->at[RESP_SILENCE], at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rnr__as_long_as_the_page_took,
						setup, teardown),
		cmocka_unit_test_setup_teardown(rnr__of_a_page_missed_since,
						setup, teardown),
		cmocka_unit_test_setup_teardown(rnr__of_a_packet_that_came,
						setup, teardown),
		cmocka_unit_test_setup_teardown(silence__of_what_is_placed,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_before_what_is_placed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_answered_in_part, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_behind_a_pause, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_behind_a_copy, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_before_what_comes_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_read_whose_page_came, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_request_behind_a_read, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_a_request_that_is_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_what_was_forgotten_behind_a_read, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			silence__of_what_was_forgotten_behind_a_run, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
