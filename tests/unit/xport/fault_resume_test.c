/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_resume_test.c: a nopin is asked to hold at a missing page, and told to go on when
 * the page is there: several times, until its packet comes.
 */
#include "bench.h"
#include "xport/fault_resume.h"
#include "xport/strategy.h"

#define MS BENCH_MS

enum { PSN = PSN_MASK };

static struct bench s;

static int setup(void **state)
{
	(void)state;
	bench_open(&s, PEER_NOPIN, PSN);
	s.x.ack_delay_ns = MS;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	bench_close(&s);
	return 0;
}

/* A WRITE to the first page meets its fault at @site. */
static enum fault_answer ask(enum fault_site site, bool ext)
{
	struct pkt p = bench_pkt(&s, OP_WRITE_ONLY, PSN);
	const struct fault f = {.qp = &s.qp,
				.site = site,
				.wait = &s.qp.resp.wait,
				.pkt = &p,
				.psn = p.psn};

	p.ext = ext;
	return fault_resume.answer(&f);
}

/* Let the ACK leave. Return: its flags. */
static uint32_t said(void)
{
	const uint32_t flags = s.qp.resp.ack.xack;

	s.qp.resp.ack.xack = 0;
	ack_cancel(&s.qp);
	return flags;
}

static void answer__asks_to_hold_at_once(void **state)
{
	const struct resp *r = &s.qp.resp;

	(void)state;
	bench_wait(&s, &s.qp.resp.wait, 0);
	assert_int_equal(ask(SITE_REQUEST, true), FAULT_FORGOTTEN);
	assert_true(next_forgot(r->next));
	assert_int_equal(r->next, NEXT_HELD);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
	assert_int_equal(said(), XACK_HOLD);
	assert_int_equal(s.cnt.v[CNT_fault_resume], 1);
	assert_false(deadline_waits(r->at[RESP_RESUME]));
}

/* A standard peer would not understand. */
static void answer__not_of_a_standard_packet(void **state)
{
	const struct resp *r = &s.qp.resp;

	(void)state;
	assert_int_equal(ask(SITE_REQUEST, false), FAULT_NEXT);
	assert_false(next_forgot(r->next));
	assert_int_not_equal(r->next, NEXT_HELD);
	assert_int_equal(said(), 0);
	assert_int_equal(s.cnt.v[CNT_fault_resume], 0);
}

static void answer__of_requests_only(void **state)
{
	(void)state;
	for (unsigned i = SITE_NONE + 1; i < SITE_NUM; i++) {
		if (i == SITE_REQUEST)
			continue;
		assert_int_equal(ask((enum fault_site)i, true), FAULT_NEXT);
		assert_false(next_forgot(s.qp.resp.next));
		assert_int_not_equal(s.qp.resp.next, NEXT_HELD);
		assert_int_equal(said(), 0);
	}
	assert_int_equal(s.cnt.v[CNT_fault_resume], 0);
}

/* The newer word counts: one that is to hold and to go on would do neither. */
static void resume_say__in_place_of_hold(void **state)
{
	(void)state;
	assert_int_equal(ask(SITE_REQUEST, true), FAULT_FORGOTTEN);
	resume_say(&s.qp);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
	assert_int_equal(said(), XACK_RESUME);
}

/* Timers wake the QP for it. */
static void resume_say__once_more_after_a_millisecond(void **state)
{
	(void)state;
	resume_say(&s.qp);
	assert_int_equal(s.qp.resp.at[RESP_RESUME], BENCH_BEGIN + MS);
	assert_int_equal(s.qp.timer.at_ns, BENCH_BEGIN + MS);
	assert_int_equal(said(), XACK_RESUME);
}

/* Let @ns pass; before the last one nothing is said. Return: the flags said then. */
static uint32_t told_after(uint64_t ns)
{
	s.x.now += ns - 1;
	resume_timeout(&s.qp);
	assert_int_equal(said(), 0);
	s.x.now++;
	resume_timeout(&s.qp);
	return said();
}

static void resume_timeout__three_times_ever_later(void **state)
{
	(void)state;
	resume_say(&s.qp);
	assert_int_equal(said(), XACK_RESUME);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(told_after(MS << i), XACK_RESUME);
	assert_false(deadline_waits(s.qp.resp.at[RESP_RESUME]));
	s.x.now += 3600 * 1000 * MS;
	resume_timeout(&s.qp);
	assert_int_equal(said(), 0);
	assert_int_equal(s.cnt.v[CNT_resumes_again], 3);
}

/* Of another page: as if nothing had been said before. */
static void resume_timeout__anew_for_each_page(void **state)
{
	(void)state;
	resume_say(&s.qp);
	said();
	for (unsigned i = 0; i < 3; i++)
		told_after(MS << i);
	resume_say(&s.qp);
	assert_int_equal(said(), XACK_RESUME);
	assert_int_equal(told_after(MS), XACK_RESUME);
	assert_int_equal(told_after(2 * MS), XACK_RESUME);
}

static void resume_timeout__nothing_was_said(void **state)
{
	(void)state;
	resume_timeout(&s.qp);
	assert_int_equal(said(), 0);
	assert_int_equal(s.cnt.v[CNT_resumes_again], 0);
}

static void resume_heard__is_not_said_again(void **state)
{
	(void)state;
	resume_say(&s.qp);
	said();
	assert_int_equal(told_after(MS), XACK_RESUME);
	resume_heard(&s.qp);
	s.x.now += 3600 * 1000 * MS;
	resume_timeout(&s.qp);
	assert_int_equal(said(), 0);
	assert_int_equal(s.cnt.v[CNT_resumes_again], 1);
}

/* Meanwhile the page is gone, or its region suspended: it is to wait again. */
static void resume_timeout__it_is_to_hold_again(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct resp *r = &s.qp.resp;

		resume_say(&s.qp);
		said();
		r->next = i == 0 ? NEXT_HELD : NEXT_UNSAID;
		r->hold.asked = i == 1;
		s.x.now += MS;
		resume_timeout(&s.qp);
		assert_int_equal(said(), 0);
		assert_false(deadline_waits(r->at[RESP_RESUME]));
	}
	assert_int_equal(s.cnt.v[CNT_resumes_again], 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(answer__asks_to_hold_at_once),
		T(answer__not_of_a_standard_packet),
		T(answer__of_requests_only),
		T(resume_say__in_place_of_hold),
		T(resume_say__once_more_after_a_millisecond),
		T(resume_timeout__three_times_ever_later),
		T(resume_timeout__anew_for_each_page),
		T(resume_timeout__nothing_was_said),
		T(resume_heard__is_not_said_again),
		T(resume_timeout__it_is_to_hold_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
