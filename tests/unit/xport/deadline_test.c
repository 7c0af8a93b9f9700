/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* deadline_test.c: the one timer of a QP: which deadlines count in which state. */
#include "bench.h"
#include "xport/requester.h"

static struct bench s;

static void due(enum qp_state in, uint64_t at)
{
	s.qp.state = in;
	qp_rearm(&s.qp);
	assert_int_equal(timerq_next(&s.x.timers), at);
	deadline_check(&s.qp);
}

static void qp_rearm__in_each_state(void **state)
{
	const uint64_t req = BENCH_BEGIN + 1, resp = BENCH_BEGIN + 2;

	(void)state;
	bench_open(&s, PEER_NOPIN, 0);
	s.qp.resp.at[RESP_REPEAT] = resp;
	s.qp.req.at[REQ_LATE] = req;
	due(QPS_RTR, resp);
	due(QPS_RTS, req);
	due(QPS_SQD, req);
	due(QPS_SQE, resp);
	due(QPS_ERR, TIME_NEVER);
	/* the peer is asked who it is in any */
	s.qp.open.ask_at = req - 1;
	due(QPS_ERR, req - 1);
	due(QPS_SQD, req - 1);
	s.qp.open.ask_at = TIME_NEVER;
	bench_close(&s);
}

/* Each of them, the last of its kind too. */
static void qp_rearm__the_first(void **state)
{
	(void)state;
	bench_open(&s, PEER_NOPIN, 0);
	for (unsigned i = 0; i < REQ_DEADLINES; i++) {
		s.qp.req.at[i] = BENCH_BEGIN + 100 - i;
		due(QPS_RTS, BENCH_BEGIN + 100 - i);
	}
	for (unsigned i = 0; i < RESP_DEADLINES; i++) {
		s.qp.resp.at[i] = BENCH_BEGIN + 50 - i;
		due(QPS_RTS, BENCH_BEGIN + 50 - i);
	}
	deadlines_none(s.qp.req.at, REQ_DEADLINES);
	deadlines_none(s.qp.resp.at, RESP_DEADLINES);
	due(QPS_RTS, TIME_NEVER);
	bench_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp_rearm__in_each_state),
		cmocka_unit_test(qp_rearm__the_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
