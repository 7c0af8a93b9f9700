/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr_test.c: how long a standard peer is told to wait for a page. */
#include "bench.h"
#include "wire/timecode.h"

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

/* The first page comes, and the WRITE to the second begins to wait for its own. */
static void first_page_comes(void)
{
	struct ticket_req req;
	struct list woken;

	list_init(&woken);
	assert_true(ticket_next(s.mem, &req));
	bench_page_comes(&s, 0);
	ticket_done(s.mem, req.id, 1, false, true, 0, 0, 1, 1, &woken);
	wake_all(&woken);
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
