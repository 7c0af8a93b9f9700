/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* trace_test.c: what is told of a QP. */
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/trace.h"
#include "side.h"

#include <stdio.h>

static const struct trace_qp quiet = {
	.qpn = 0x12345,
	.dest_qpn = 0xabc,
	.state = QPS_RTS,
	.una = 5,
	.acc = 6,
	.snd = 7,
	.max = 0xffffff,
	.head = 9,
	.next = 10,
	.sq = 3,
	.rq = 4,
};

static void trace_format__head(void **state)
{
	char buf[1024];
	size_t len = trace_format(buf, sizeof(buf), &quiet, 0);

	(void)state;
	assert_string_equal(buf, "qp 0x012345 RTS, to qp 0x000abc\n"
				 "  sends: 3 queued, una 0x000005 acc 0x000006 "
				 "snd 0x000007 max 0xffffff\n"
				 "  receives: 4 queued, placed 0x000009 "
				 "accepted 0x00000a\n");
	assert_int_equal(len, strlen(buf));
}

static void trace_format__what_it_waits_for(void **state)
{
	struct trace_qp t = quiet;
	char buf[1024];

	(void)state;
	t.wait = LIVE_ANSWER;
	t.retries = 2;
	t.retry_cnt = 7;
	t.spent_at = 230999999;
	trace_format(buf, sizeof(buf), &t, 1000000);
	assert_non_null(strstr(buf, "\n  waits for an answer of the peer; 2 of "
				    "7 retries left, one ends in 229 ms\n"));
	trace_format(buf, sizeof(buf), &t, UINT64_C(1) << 40);
	assert_non_null(strstr(buf, "one ends in 0 ms\n"));
	for (int i = LIVE_NOTHING + 1; i < LIVE_WAIT_NUM; i++) {
		t.wait = (enum live_wait)i;
		t.spent_at = TIME_NEVER;
		trace_format(buf, sizeof(buf), &t, 0);
		assert_non_null(strstr(buf, "; 2 of 7 retries left\n"));
		assert_null(strstr(buf, "null"));
	}
}

static void trace_format__events_in_order(void **state)
{
	struct trace_qp t = quiet;
	char buf[16384], *at = buf;

	(void)state;
	for (uint32_t i = 0; i < FLIGHT_EVENTS + 10; i++)
		flight_note(&t.log, 1000 * i, FLIGHT_RX, i, 4, i);
	trace_format(buf, sizeof(buf), &t, 1000 * (FLIGHT_EVENTS + 10));
	assert_non_null(strstr(buf, "  (10 events before)\n"));
	assert_null(strstr(buf, "psn 0x000009,"));
	for (uint32_t i = 10; i < FLIGHT_EVENTS + 10; i++) {
		char line[128];

		snprintf(line, sizeof(line),
			 "  -%u.000 us RX, psn 0x%06x, BTH opcode 0x4, "
			 "payload bytes %u\n",
			 FLIGHT_EVENTS + 10 - i, i, i);
		at = strstr(at, line);
		assert_non_null(at);
	}
}

/* Whatever is in the ring, also nonsense, and whatever room there is. */
static void trace_format__never_too_long(void **state)
{
	struct trace_qp t = quiet;
	char buf[8192];

	(void)state;
	t.state = QPS_NUM;
	for (int i = 0; i < 2 * FLIGHT_EVENTS; i++)
		flight_note(&t.log, UINT64_MAX, (enum flight_kind)(i * 7),
			    UINT32_MAX, UINT16_MAX, UINT64_MAX);
	for (size_t size = 1; size < sizeof(buf); size += 13) {
		size_t len;

		memset(buf, '#', sizeof(buf));
		len = trace_format(buf, size, &t, 0);
		assert_true(len < size);
		assert_int_equal(strlen(buf), len);
		assert_int_equal(buf[size], '#');
	}
}

static uint64_t payload(const struct side *s, enum flight_kind kind)
{
	static struct trace_qp t;
	uint64_t bytes = 0;

	nic_lock(s->nic);
	trace_copy(&t, s->qp);
	nic_unlock(s->nic);
	assert_true(t.log.next <= FLIGHT_EVENTS);
	for (uint64_t i = 0; i < t.log.next; i++)
		if (t.log.ev[i].kind == kind)
			bytes += t.log.ev[i].b;
	return bytes;
}

static int open_sides(void **state)
{
	(void)state;
	sides_open_usual();
	return 0;
}

/* Lengths are of payload, without headers, at both ends; inline or not. */
static void trace_copy__lengths(void **state)
{
	static const uint32_t len[] = {0, 1, 64, 4096, 4097, 20000};
	uint64_t all = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(len); i++) {
		side_post(&side[0],
			  (struct wqe){.op = WR_WRITE,
				       .raddr = (uintptr_t)side[1].buf,
				       .rkey = side[1].key},
			  side[0].buf, len[i]);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		all += len[i];
		assert_int_equal(payload(&side[0], FLIGHT_TX), all);
		assert_int_equal(payload(&side[1], FLIGHT_RX), all);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(trace_format__head),
		cmocka_unit_test(trace_format__what_it_waits_for),
		cmocka_unit_test(trace_format__events_in_order),
		cmocka_unit_test(trace_format__never_too_long),
		cmocka_unit_test_setup_teardown(trace_copy__lengths, open_sides,
						sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
