/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hold_test.c: suspended regions: a responder asks its peer to hold, a standard peer hears
 * nothing for a time, and a requester that holds goes on in the end.
 */
#include "base/check.h"
#include "base/page.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/suspend.h"
#include "memory.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/timecode.h"
#include "xport/comp.h"
#include "xport/deadline.h"
#include "xport/hold.h"
#include "xport/live.h"
#include "xport/owe.h"
#include "xport/waits.h"

#define MS	   UINT64_C(1000000)
#define BEGIN_NS   (1000 * MS)
#define UNKNOWN_NS (1000 * MS) /* for a region without an announced time */
#define MOST_NS	   (600 * 1000 * MS) /* more is not believed */

enum { REGIONS = 2, BASE = 0x100000, UNA = 10, ACC = 12, MAX_PSN = 14 };
enum { TIMEOUT = 14 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp;
	struct wq sq;
	struct moves moves;
	struct holds holds;
	uint32_t pd, key[REGIONS];
} s;

static uint64_t region_at(unsigned i)
{
	return BASE + i * PAGE_BYTES;
}

/* Packets [UNA, MAX_PSN) are on their way, of which two were accepted. */
static void start_requester(void)
{
	struct req *r = &s.qp.req;

	r->psn.una = r->psn.placed = UNA;
	r->psn.acc = ACC;
	r->psn.snd = r->psn.max = MAX_PSN;
	live_reset(r);
	comp_reload(&s.qp);
	live_start(&s.qp);
}

static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};
	const struct ipaddr ip = {.b = {0}};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, 16, 8, true);
	s.x.now = BEGIN_NS;
	s.pd = (uint32_t)pd_alloc(s.mem);
	for (unsigned i = 0; i < REGIONS; i++) {
		const struct mr_attr mr = {.pd = s.pd,
					   .addr = region_at(i),
					   .iova = region_at(i),
					   .length = PAGE_BYTES};

		assert_int_equal(mr_register(s.mem, &mr, &s.key[i]), 0);
	}
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	peer_init(&s.peer, &ep, &ip);
	s.peer.kind = PEER_NOPIN;
	s.peer.features = HELLO_SUSPEND;
	assert_int_equal(qp_init(&s.qp, &s.x,
				 &(struct qp_config){.transport = &transport_rc,
						     .sq = &s.sq}),
			 0);
	s.qp.peer = &s.peer;
	s.qp.open = (struct open){.mine = 1, .theirs = 2, .ask_at = TIME_NEVER};
	s.qp.mtu = 1024;
	s.qp.state = QPS_RTS;
	s.qp.attr = (struct qp_attr){.timeout = TIMEOUT, .retry_cnt = 7};
	start_requester();
	return 0;
}

static int teardown(void **state)
{
	waiter_cancel(s.mem, &s.qp.resp.wait);
	waiter_cancel(s.mem, &s.qp.resp.replay.wait);
	mem_account_gone(s.mem, &s.qp.account);
	ack_cancel(&s.qp);
	list_del(&s.qp.on.runnable);
	timerq_set(&s.x.timers, &s.qp.timer, TIME_NEVER);
	for (unsigned i = 0; i < REGIONS; i++)
		assert_int_equal(mr_free(s.mem, s.key[i]), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static void suspend(unsigned i, uint64_t expected_ns)
{
	assert_int_equal(mr_suspend(s.mem, s.key[i], expected_ns, s.x.now), 0);
}

/* @w is to read a byte of the region @i. */
static void access_region(struct waiter *w, unsigned i)
{
	const struct dma d = {
		.pd = s.pd, .key = s.key[i], .iova = region_at(i), .len = 1};

	assert_int_equal(dma_resolve(s.mem, &d, NULL, 0, s.x.now, 0, w,
				     &s.moves, &s.holds),
			 V_WAIT);
}

static void resume(unsigned i)
{
	struct list woken;

	assert_int_equal(mr_resume(s.mem, s.key[i], s.x.now), 0);
	list_init(&woken);
	moved_take(s.mem, &woken);
	list_for_each_safe(l, tmp, &woken)
		list_del(l);
}

/* A request waits for the first region, and the answer to a READ for the second. */
static void wait_for_regions(uint64_t first_ns, uint64_t second_ns)
{
	suspend(0, first_ns);
	access_region(&s.qp.resp.wait, 0);
	suspend(1, second_ns);
	access_region(&s.qp.resp.replay.wait, 1);
}

static uint64_t expected_ns(void)
{
	uint64_t ns = 0;

	assert_true(hold_expected(&s.qp, &ns));
	return ns;
}

/* --- the responder ---------------------------------------------------------- */

static void hold_expected__only_of_a_region(void **state)
{
	uint64_t ns = 7;

	(void)state;
	assert_false(hold_expected(&s.qp, &ns));
	access_region(&s.qp.resp.wait, 0); /* its page is missing */
	assert_false(hold_expected(&s.qp, &ns));
	suspend(1, MS);
	assert_false(hold_expected(&s.qp, &ns));
	access_region(&s.qp.resp.replay.wait, 1);
	assert_int_equal(expected_ns(), MS);
	resume(1);
	assert_false(hold_expected(&s.qp, &ns));
	assert_int_equal(ns, 7);
}

static void hold_expected__the_longer_of_two(void **state)
{
	(void)state;
	wait_for_regions(5 * MS, 9 * MS);
	assert_int_equal(expected_ns(), 9 * MS);
	resume(1);
	assert_int_equal(expected_ns(), 5 * MS);
	suspend(1, 4 * MS);
	access_region(&s.qp.resp.replay.wait, 1);
	assert_int_equal(expected_ns(), 5 * MS);
}

/* One region has no announced time: that of the other counts. */
static void hold_expected__unknown(void **state)
{
	(void)state;
	suspend(0, 0);
	access_region(&s.qp.resp.wait, 0);
	assert_int_equal(expected_ns(), UNKNOWN_NS);
	suspend(1, 1);
	access_region(&s.qp.resp.replay.wait, 1);
	assert_int_equal(expected_ns(), 1);
}

static void hold_expected__bounded(void **state)
{
	static const uint64_t ns[][2] = {{MOST_NS - 1, MOST_NS - 1},
					 {MOST_NS, MOST_NS},
					 {MOST_NS + 1, MOST_NS},
					 {UINT64_MAX, MOST_NS}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ns); i++) {
		suspend(0, ns[i][0]);
		access_region(&s.qp.resp.wait, 0);
		assert_int_equal(expected_ns(), ns[i][1]);
		resume(0);
	}
}

/* An ACK that says so leaves at once, and one is enough. */
static void hold_ask__once_and_now(void **state)
{
	(void)state;
	s.x.ack_delay_ns = MS;
	hold_ask(&s.qp);
	assert_false(s.qp.resp.ack.owed);
	suspend(0, MS);
	access_region(&s.qp.resp.wait, 0);
	hold_ask(&s.qp);
	assert_true(s.qp.resp.ack.owed);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
	ack_cancel(&s.qp);
	hold_said(&s.qp);
	assert_int_equal(s.cnt.v[CNT_suspend_asked], 1);
	hold_ask(&s.qp);
	assert_false(s.qp.resp.ack.owed);
}

static void hold_ask__not_for_datagrams(void **state)
{
	(void)state;
	suspend(0, MS);
	access_region(&s.qp.resp.wait, 0);
	s.qp.connected = false;
	hold_ask(&s.qp);
	assert_false(s.qp.resp.ack.owed);
}

static void hold_extend__microseconds(void **state)
{
	static const uint64_t ns[][2] = {
		{1, 1}, {1000, 1}, {1001, 2}, {MOST_NS, MOST_NS / 1000}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ns); i++) {
		struct pkt p = {.xack_flags = XACK_PROBED};

		suspend(0, ns[i][0]);
		access_region(&s.qp.resp.wait, 0);
		hold_extend(&s.qp, &p);
		assert_int_equal(p.xack_flags, XACK_PROBED | XACK_SUSPEND);
		assert_int_equal(p.hold_us, ns[i][1]);
		resume(0);
	}
}

static void hold_extend__nothing_to_say(void **state)
{
	struct pkt p = {.xack_flags = XACK_PROBED};

	(void)state;
	hold_extend(&s.qp, &p);
	suspend(0, MS);
	access_region(&s.qp.resp.wait, 0);
	s.peer.features = (uint32_t)~HELLO_SUSPEND;
	hold_extend(&s.qp, &p);
	assert_int_equal(p.xack_flags, XACK_PROBED);
	assert_int_equal(p.hold_us, 0);
}

/* Repeat the order to hold, which may have been lost. */
static void hold_extend__also_that_it_is_to_hold(void **state)
{
	(void)state;
	suspend(0, MS);
	access_region(&s.qp.resp.wait, 0);
	for (unsigned i = 0; i < NEXT_NUM; i++) {
		struct pkt p = {.xack_flags = 0};

		s.qp.resp.next = (enum next_state)i;
		hold_extend(&s.qp, &p);
		assert_int_equal(p.xack_flags,
				 i == NEXT_HELD ? XACK_SUSPEND | XACK_HOLD
						: XACK_SUSPEND);
	}
}

static void hold_over__of_nobody_asked(void **state)
{
	(void)state;
	hold_over(&s.qp);
	assert_int_equal(s.qp.resp.ack.xack, 0);
	assert_false(s.qp.resp.ack.owed);
}

/* With the last of the regions; and again, if it gets lost. */
static void hold_over__of_the_last_region(void **state)
{
	struct resp *r = &s.qp.resp;

	(void)state;
	wait_for_regions(5 * MS, 9 * MS);
	hold_said(&s.qp);
	resume(0);
	hold_over(&s.qp);
	assert_true(r->hold.asked);
	assert_int_equal(r->ack.xack, 0);
	resume(1);
	hold_over(&s.qp);
	assert_false(r->hold.asked);
	assert_int_equal(r->ack.xack, XACK_RESUME);
	assert_int_equal(s.peer.acks.due_ns, s.x.now);
	assert_true(deadline_ahead(r->at[RESP_RESUME], s.x.now));
}

/* --- standard requesters ---------------------------------------------------- */

static void be_standard(void)
{
	s.peer.kind = PEER_STANDARD;
	s.qp.open.theirs = 0;
}

static void qp_patience_ns__half_a_retry_is_left(void **state)
{
	const uint64_t t = ack_timeout_to_ns(TIMEOUT);
	const uint64_t ns[] = {0, t / 2, t + t / 2, 2 * t + t / 2};

	(void)state;
	be_standard();
	for (uint8_t i = 0; i < ARRAY_SIZE(ns); i++) {
		s.qp.attr.retry_cnt = i;
		assert_int_equal(qp_patience_ns(&s.qp), ns[i]);
	}
	s.qp.attr.timeout = 31; /* the longest, in 64 bits */
	s.qp.attr.retry_cnt = 7;
	assert_int_equal(qp_patience_ns(&s.qp), ack_timeout_to_ns(31) * 13 / 2);
}

/* Before RTS the timeout is not known. */
static void qp_patience_ns__before_rts(void **state)
{
	(void)state;
	be_standard();
	s.qp.state = QPS_RTR;
	assert_int_equal(qp_patience_ns(&s.qp), 0);
	s.qp.attr.timeout = 0;
	assert_int_equal(qp_patience_ns(&s.qp), 0);
}

static void qp_patience_ns__for_ever(void **state)
{
	(void)state;
	assert_int_equal(qp_patience_ns(&s.qp), UINT64_MAX);
	be_standard();
	s.qp.attr.timeout = 0;
	assert_int_equal(qp_patience_ns(&s.qp), UINT64_MAX);
}

static void hold_silent_until__since_the_first_wait(void **state)
{
	uint64_t patience;

	(void)state;
	be_standard();
	patience = qp_patience_ns(&s.qp);
	assert_int_equal(hold_silent_until(&s.qp), 0);
	suspend(0, MS);
	suspend(1, MS);
	access_region(&s.qp.resp.wait, 0);
	assert_int_equal(hold_silent_until(&s.qp), BEGIN_NS + patience);
	s.x.now += 3 * MS;
	access_region(&s.qp.resp.replay.wait, 1);
	assert_int_equal(hold_silent_until(&s.qp), BEGIN_NS + patience);
	resume(0);
	assert_int_equal(hold_silent_until(&s.qp),
			 BEGIN_NS + 3 * MS + patience);
	s.x.now += 3 * MS;
	suspend(0, MS);
	access_region(&s.qp.resp.wait, 0);
	assert_int_equal(hold_silent_until(&s.qp),
			 BEGIN_NS + 3 * MS + patience);
	s.qp.attr.timeout = 0;
	assert_int_equal(hold_silent_until(&s.qp), UINT64_MAX);
}

/* --- the requester ----------------------------------------------------------- */

static void hear(uint32_t flags, uint32_t hold_us)
{
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_ACK,
			      .psn = UNA - 1,
			      .accepted = ACC - 1,
			      .xack_flags = flags,
			      .hold_us = hold_us};

	hold_heard(&s.qp, &p);
}

/* Timers stop for three times the announced time; each ACK announces it anew. */
static void hold_heard__three_times_as_long(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	assert_true(deadline_waits(r->at[REQ_SILENT]));
	hear(XACK_SUSPEND, 1);
	assert_int_equal(r->at[REQ_SUSPEND], BEGIN_NS + 3000);
	assert_int_equal(r->suspend_ns, 1000);
	assert_false(deadline_waits(r->at[REQ_SILENT]));
	assert_false(deadline_waits(r->at[REQ_STALLED]));
	s.x.now += 2000;
	hear(XACK_SUSPEND, 2);
	assert_int_equal(r->at[REQ_SUSPEND], BEGIN_NS + 2000 + 6000);
	assert_int_equal(s.cnt.v[CNT_suspend_heard], 1);
	assert_false(deadline_waits(r->at[REQ_HOLD]));
}

static void hold_heard__bounded(void **state)
{
	(void)state;
	hear(XACK_SUSPEND, UINT32_MAX);
	assert_int_equal(s.qp.req.suspend_ns, MOST_NS);
	assert_int_equal(s.qp.req.at[REQ_SUSPEND], BEGIN_NS + 3 * MOST_NS);
}

/* The peer asks for both: the requester holds until both are over. */
static void hold(void)
{
	s.qp.req.at[REQ_HOLD] = s.x.now + 1;
	hear(XACK_SUSPEND | XACK_HOLD, 1000);
	assert_int_equal(s.qp.req.at[REQ_HOLD], BEGIN_NS + 3 * MS);
}

static void hold_heard__an_end_without_the_order_to_go_on(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	hold();
	hear(0, 0);
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
	assert_false(req_held(r));
	assert_int_equal(r->psn.snd, ACC);
	assert_int_equal(s.cnt.v[CNT_suspend_silence], 0);
}

/* The region is back, and a page of it is missing. */
static void hold_heard__an_end_that_it_is_to_hold(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	hold();
	hear(XACK_HOLD, 0);
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
	assert_true(req_held(r));
	assert_int_equal(r->psn.snd, MAX_PSN);
}

/* No region is suspended: any ACK would end each hold. */
static void hold_heard__no_end_of_another_hold(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	s.qp.req.at[REQ_HOLD] = s.x.now + MS;
	hear(0, 0);
	assert_int_equal(r->at[REQ_HOLD], BEGIN_NS + MS);
	assert_int_equal(r->psn.snd, MAX_PSN);
	assert_true(deadline_waits(r->at[REQ_SILENT]));
}

static void hold_timeout__not_before_it_is_due(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	hold_timeout(&s.qp);
	assert_true(deadline_waits(r->at[REQ_SILENT]));
	hold();
	s.x.now += 3 * MS - 1;
	hold_timeout(&s.qp);
	assert_true(deadline_waits(r->at[REQ_SUSPEND]));
	assert_int_equal(s.cnt.v[CNT_suspend_silence], 0);
	s.x.now += 1;
	hold_timeout(&s.qp);
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
	assert_int_equal(s.cnt.v[CNT_suspend_silence], 1);
	assert_false(req_held(r));
	assert_int_equal(r->psn.snd, ACC);
}

/* From now on silence costs retries as ever. */
static void hold_timeout__its_timers_run(void **state)
{
	const struct req *r = &s.qp.req;

	(void)state;
	hear(XACK_SUSPEND, 1000);
	s.x.now += 3 * MS;
	hold_timeout(&s.qp);
	assert_true(deadline_ahead(r->at[REQ_SILENT], s.x.now));
	assert_true(deadline_ahead(r->at[REQ_PROBE], s.x.now));
	assert_int_equal(r->psn.snd, MAX_PSN);
}

static void hold_timeout__nothing_is_on_its_way(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	r->psn.una = r->psn.acc = r->psn.snd = MAX_PSN;
	hear(XACK_SUSPEND, 1000);
	s.x.now += 3 * MS;
	hold_timeout(&s.qp);
	assert_false(deadline_waits(r->at[REQ_SILENT]));
	assert_false(deadline_waits(r->at[REQ_PROBE]));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(hold_expected__only_of_a_region),
		T(hold_expected__the_longer_of_two),
		T(hold_expected__unknown),
		T(hold_expected__bounded),
		T(hold_ask__once_and_now),
		T(hold_ask__not_for_datagrams),
		T(hold_extend__microseconds),
		T(hold_extend__nothing_to_say),
		T(hold_extend__also_that_it_is_to_hold),
		T(hold_over__of_nobody_asked),
		T(hold_over__of_the_last_region),
		T(qp_patience_ns__half_a_retry_is_left),
		T(qp_patience_ns__before_rts),
		T(qp_patience_ns__for_ever),
		T(hold_silent_until__since_the_first_wait),
		T(hold_heard__three_times_as_long),
		T(hold_heard__bounded),
		T(hold_heard__an_end_without_the_order_to_go_on),
		T(hold_heard__an_end_that_it_is_to_hold),
		T(hold_heard__no_end_of_another_hold),
		T(hold_timeout__not_before_it_is_due),
		T(hold_timeout__its_timers_run),
		T(hold_timeout__nothing_is_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
