/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* comp_test.c: requests complete in order, and give back their share of the peer. The
 * indices of the send queue wrap after its first request, and PSNs after two.
 */
#include "mem/mem.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/wq.h"
#include "xport/comp.h"
#include "xport/credit.h"
#include "xport/deadline.h"
#include "xport/flow.h"
#include "xport/life.h"
#include "xport/reads.h"
#include "xport/requester.h"

enum { MTU = 1024, SLOTS = 8, ENTRIES = 8, QPN = 77, RETRIES = 5, RNRS = 6 };
enum { FIRST_PSN = 0xfffffe, CAUSE = CAUSE_ACCESS, NS = 1000 };
#define FIRST_INDEX UINT32_MAX

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct wq sq;
	struct cq cq;
	struct qp qp;
	unsigned posted;
} s;

static void begin_at(psn_t psn, uint32_t index)
{
	struct req *r = &s.qp.req;

	s.sq.prod = s.sq.cons = index;
	r->psn.una = r->psn.acc = r->psn.snd = r->psn.max = r->psn.placed = psn;
	r->win.head = r->win.next = r->reads.last_again_to = psn;
	r->wqe.cur = r->wqe.started = r->wqe.rsp = index;
	r->reads.chunk = 1;
	live_reset(r);
	comp_reload(&s.qp);
}

static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};
	const struct qp_config cfg = {.qpn = QPN,
				      .transport = &transport_rc,
				      .sq = &s.sq,
				      .send_cq = &s.cq,
				      .sq_sig_all = true};

	memset(&s, 0, sizeof(s));
	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	assert_int_equal(wq_init(&s.sq, ENTRIES, 1, 0), 0);
	assert_int_equal(cq_init(&s.cq, ENTRIES), 0);
	list_init(&s.cq.link);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	peer_init(&s.peer, &ep, &ep.ip);
	s.peer.kind = PEER_NOPIN;
	assert_int_equal(qp_init(&s.qp, &s.x, &cfg), 0);
	s.qp.peer = &s.peer;
	s.qp.open.mine = s.qp.open.theirs = 1;
	s.qp.mtu = MTU;
	s.qp.state = QPS_RTS;
	s.qp.attr.retry_cnt = RETRIES;
	s.qp.attr.rnr_retry = RNRS;
	begin_at(FIRST_PSN, FIRST_INDEX);
	return 0;
}

static int teardown(void **state)
{
	qp_fini(&s.qp);
	assert_int_equal(s.peer.flow.in_flight, 0);
	assert_int_equal(s.peer.quota.out, 0);
	cq_fini(&s.cq);
	wq_fini(&s.sq);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

/* The next request is posted; its wr_id is its number. */
static struct wqe *post(uint8_t op, uint32_t packets)
{
	struct wqe *w = wq_reserve(&s.sq);

	assert_non_null(w);
	*w = (struct wqe){.wr_id = s.posted++,
			  .op = op,
			  .length = (uint64_t)packets * MTU,
			  .num_psn = packets,
			  .met = {.ns = NS, .faults = 1}};
	wq_publish(&s.sq);
	return w;
}

/* And is sent. */
static struct wqe *sent(uint8_t op, uint32_t packets)
{
	struct wqe *w = post(op, packets);
	struct req *r = &s.qp.req;

	w->first_psn = r->psn.max;
	r->psn.snd = r->psn.max = psn_add(r->psn.max, packets);
	r->wqe.cur = ++r->wqe.started;
	if (!wr_op_is(op, WRO_READ))
		credit_sent(&s.qp, packets);
	if (packets)
		flow_sent(&s.qp, r->psn.max,
			  flow_charge(false, packets, packets * MTU));
	return w;
}

static psn_t psn(uint32_t n)
{
	return psn_add(FIRST_PSN, n);
}

static void check_always(void)
{
	flow_check(&s.qp);
	reads_check(&s.qp);
	credit_check(&s.qp);
}

/* The peer says that the first @n PSNs are placed. */
static void placed(uint32_t n)
{
	comp_placed(&s.qp, psn(n));
	check_always();
}

/* The response of what ends behind PSN @n was placed here. */
static void answered(uint32_t n)
{
	s.qp.req.psn.una = psn(n);
	placed(n);
}

static struct cqe completion(unsigned i, enum wc_status status)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, i);
	assert_int_equal(e.status, status);
	assert_int_equal(e.qpn, QPN);
	return e;
}

static void check_una(uint32_t n)
{
	assert_int_equal(s.qp.req.psn.una, psn(n));
	assert_true(cq_empty(&s.cq));
}

/* --- placement --------------------------------------------------------------- */

static void comp_placed__one_after_the_other(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	sent(WR_SEND, 3);
	sent(WR_WRITE, 2);
	placed(0);
	check_una(0);
	placed(1);
	completion(0, WC_SUCCESS);
	check_una(1);
	placed(3);
	check_una(3);
	placed(2);
	check_una(3);
	placed(6);
	completion(1, WC_SUCCESS);
	completion(2, WC_SUCCESS);
	check_una(6);
	assert_int_equal(s.sq.cons, s.sq.prod);
}

/* Placed packets are accepted, too, and count against no quota. */
static void comp_placed__gives_back(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	sent(WR_WRITE, 4);
	assert_int_equal(s.peer.quota.out, 3);
	placed(2);
	assert_int_equal(s.peer.quota.out, 1);
	assert_int_equal(r->charge.out, 2);
	assert_int_equal(r->psn.acc, psn(2));
	assert_int_not_equal(r->charge.charged, 0);
	placed(4);
	completion(0, WC_SUCCESS);
	assert_int_equal(s.peer.quota.out, 0);
	assert_int_equal(r->charge.charged, 0);
	assert_int_equal(r->psn.acc, psn(4));
}

/* Placed over there, but not answered: requests behind it wait, and need not be said to
 * be placed again. */
static void comp_placed__behind_a_read(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	sent(WR_READ, 3);
	sent(WR_WRITE, 1);
	placed(2);
	completion(0, WC_SUCCESS);
	check_una(1);
	placed(5);
	check_una(1);
	s.qp.req.psn.una = psn(3);
	placed(3);
	check_una(3);
	answered(4);
	assert_int_equal(completion(1, WC_SUCCESS).byte_len, 3 * MTU);
	completion(2, WC_SUCCESS);
	check_una(5);
}

static void comp_placed__an_atomic(void **state)
{
	struct wqe *w = sent(WR_FETCH_ADD, 1);

	(void)state;
	w->length = 4 * MTU;
	placed(1);
	check_una(0);
	answered(1);
	assert_int_equal(completion(0, WC_SUCCESS).byte_len, ATOMIC_BYTES);
}

/* Packets to be sent again have come: skip them. */
static void comp_placed__after_going_back(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	sent(WR_WRITE, 2);
	sent(WR_WRITE, 2);
	r->psn.snd = r->psn.una;
	r->wqe.cur = s.sq.cons;
	flow_forget(&s.qp);
	placed(3);
	completion(0, WC_SUCCESS);
	assert_int_equal(r->psn.snd, psn(3));
	assert_int_equal(r->wqe.cur, s.sq.cons);
	placed(4);
	completion(1, WC_SUCCESS);
	assert_int_equal(r->psn.snd, psn(4));
	assert_int_equal(r->wqe.cur, s.sq.cons);
}

/* WRITEs alone leave no PSN of READs far behind. */
static void comp_placed__takes_reads_along(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	sent(WR_WRITE, 4);
	placed(2);
	assert_int_equal(r->win.next, psn(2));
	assert_int_equal(r->reads.last_again_to, psn(2));
	r->win.next = r->reads.last_again_to = psn(4);
	placed(3);
	assert_int_equal(r->win.next, psn(4));
	assert_int_equal(r->reads.last_again_to, psn(4));
	placed(4);
}

static void comp_placed__all_retries_again(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	sent(WR_WRITE, 2);
	r->retries = r->rnr_retries = 1;
	r->failure.too_large = true;
	placed(0);
	assert_int_equal(r->retries, 1);
	assert_int_equal(r->rnr_retries, 1);
	placed(1);
	assert_int_equal(r->retries, RETRIES);
	assert_int_equal(r->rnr_retries, RNRS);
	assert_false(r->failure.too_large);
}

/* --- completions ------------------------------------------------------------- */

static void completion__only_if_asked_for(void **state)
{
	(void)state;
	s.qp.cfg.sq_sig_all = false;
	sent(WR_WRITE, 1);
	sent(WR_WRITE, 1)->flags = WQE_SIGNALED;
	sent(WR_WRITE, 1);
	placed(2);
	completion(1, WC_SUCCESS);
	assert_true(cq_empty(&s.cq));
	assert_int_equal(s.sq.prod - s.sq.cons, 1);
	comp_fail_wqe(&s.qp, s.sq.cons, WC_REM_ACCESS_ERR, CAUSE);
	comp_flush(&s.qp);
	completion(2, WC_REM_ACCESS_ERR);
}

static void completion__of_the_oldest(void **state)
{
	struct cqe e;

	(void)state;
	sent(WR_SEND, 1);
	comp_oldest(&s.qp, WC_LOC_LEN_ERR, CAUSE);
	e = completion(0, WC_LOC_LEN_ERR);
	assert_int_equal(e.vendor_err, CAUSE);
	assert_int_equal(e.op, WR_SEND);
	assert_int_equal(e.byte_len, 0);
	assert_int_equal(s.sq.cons, s.sq.prod);
}

/* A request that never began met nothing: its slot still says so of the one before. */
static void completion__what_was_met(void **state)
{
	struct cqe e;

	(void)state;
	sent(WR_WRITE, 1);
	post(WR_WRITE, 1);
	qp_enter_error(&s.qp);
	comp_flush(&s.qp);
	e = completion(0, WC_WR_FLUSH_ERR);
	assert_int_equal(e.met.faults, 1);
	assert_int_equal(e.met.ns, NS);
	e = completion(1, WC_WR_FLUSH_ERR);
	assert_int_equal(e.met.faults, 0);
	assert_int_equal(e.met.ns, 0);
}

/* --- requests without packets ------------------------------------------------ */

static void comp_reap__local_ones_in_their_turn(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	sent(WR_LOCAL_INV, 0);
	sent(WR_WRITE, 1);
	comp_reap(&s.qp);
	check_una(0);
	placed(1);
	completion(0, WC_SUCCESS);
	completion(1, WC_SUCCESS);
	check_una(1);
	placed(2);
	completion(2, WC_SUCCESS);
}

/* Its turn has not come. */
static void comp_reap__one_that_was_not_done(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	sent(WR_LOCAL_INV, 0);
	r->wqe.cur = s.sq.cons;
	comp_reap(&s.qp);
	assert_true(cq_empty(&s.cq));
	r->wqe.cur++;
	comp_reap(&s.qp);
	completion(0, WC_SUCCESS);
	comp_reap(&s.qp);
	assert_true(cq_empty(&s.cq));
}

static void comp_drained__once(void **state)
{
	(void)state;
	sent(WR_WRITE, 2);
	s.qp.attr.en_sqd_async_notify = true;
	placed(1);
	s.qp.state = QPS_SQD;
	comp_drained(&s.qp);
	assert_int_equal(s.qp.events, 0);
	placed(2);
	assert_int_equal(s.qp.events, 1u << QP_EVENT_SQ_DRAINED);
	s.qp.events = 0;
	comp_drained(&s.qp);
	assert_int_equal(s.qp.events, 0);
}

static void comp_drained__not_where_it_goes_on(void **state)
{
	(void)state;
	s.qp.attr.en_sqd_async_notify = true;
	comp_drained(&s.qp);
	assert_int_equal(s.qp.events, 0);
	s.qp.attr.en_sqd_async_notify = false;
	s.qp.state = QPS_SQD;
	comp_drained(&s.qp);
	assert_int_equal(s.qp.events, 0);
}

/* --- failures ---------------------------------------------------------------- */

static void request_fails(unsigned i, enum wc_status status)
{
	comp_fail_wqe(&s.qp, FIRST_INDEX + i, status, CAUSE);
}

static void comp_fail_wqe__once_it_is_the_oldest(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	sent(WR_WRITE, 1);
	sent(WR_WRITE, 1);
	request_fails(1, WC_REM_ACCESS_ERR);
	assert_int_equal(s.qp.state, QPS_RTS);
	placed(3);
	completion(0, WC_SUCCESS);
	assert_int_equal(s.qp.state, QPS_ERR);
	assert_true(cq_empty(&s.cq));
	comp_flush(&s.qp);
	assert_int_equal(completion(1, WC_REM_ACCESS_ERR).vendor_err, CAUSE);
	assert_int_equal(completion(2, WC_WR_FLUSH_ERR).vendor_err, CAUSE);
	assert_true(cq_empty(&s.cq));
	assert_int_equal(s.cnt.v[CNT_quota_left], 1);
}

static void comp_fail_wqe__at_once(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	request_fails(0, WC_LOC_PROT_ERR);
	assert_int_equal(s.qp.state, QPS_ERR);
	comp_flush(&s.qp);
	completion(0, WC_LOC_PROT_ERR);
}

/* Of several the oldest counts. */
static void comp_fail_wqe__the_oldest_of_them(void **state)
{
	(void)state;
	for (int i = 0; i < 4; i++)
		sent(WR_WRITE, 1);
	request_fails(2, WC_REM_OP_ERR);
	request_fails(3, WC_REM_INV_REQ_ERR);
	request_fails(2, WC_REM_INV_REQ_ERR);
	request_fails(1, WC_REM_ACCESS_ERR);
	placed(1);
	assert_int_equal(s.qp.state, QPS_ERR);
	comp_flush(&s.qp);
	completion(0, WC_SUCCESS);
	completion(1, WC_REM_ACCESS_ERR);
	completion(2, WC_WR_FLUSH_ERR);
	completion(3, WC_WR_FLUSH_ERR);
}

static void comp_fail_wqe__the_same_again(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	sent(WR_WRITE, 1);
	request_fails(1, WC_REM_OP_ERR);
	request_fails(1, WC_REM_ACCESS_ERR);
	placed(1);
	comp_flush(&s.qp);
	completion(0, WC_SUCCESS);
	completion(1, WC_REM_OP_ERR);
}

/* Requests before it go on as always, also half way. */
static void comp_fail_wqe__what_is_before_it(void **state)
{
	(void)state;
	sent(WR_WRITE, 4);
	sent(WR_WRITE, 3);
	request_fails(1, WC_REM_ACCESS_ERR);
	placed(2);
	assert_int_equal(s.qp.req.charge.out, 5);
	assert_int_equal(s.peer.quota.out, 4);
	placed(4);
	assert_int_equal(s.cnt.v[CNT_quota_left], 2);
	comp_flush(&s.qp);
	completion(0, WC_SUCCESS);
	completion(1, WC_REM_ACCESS_ERR);
}

static void comp_flush__all_that_is_posted(void **state)
{
	struct req *r = &s.qp.req;

	(void)state;
	s.qp.cfg.sq_sig_all = false;
	s.qp.cause = CAUSE;
	for (unsigned i = 0; i < ENTRIES; i++)
		post(WR_WRITE, 1);
	r->wqe.started++;
	qp_enter_error(&s.qp);
	comp_flush(&s.qp);
	for (unsigned i = 0; i < ENTRIES; i++)
		assert_int_equal(completion(i, WC_WR_FLUSH_ERR).vendor_err,
				 CAUSE);
	assert_int_equal(r->wqe.started, s.sq.prod);
	assert_int_equal(r->wqe.cur, s.sq.prod);
	assert_int_equal(s.sq.cons, s.sq.prod);
	comp_flush(&s.qp);
	assert_true(cq_empty(&s.cq));
}

/* A queue that is used again (SQE) has no failure. */
static void comp_flush__forgets_the_failure(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	request_fails(0, WC_REM_OP_ERR);
	comp_flush(&s.qp);
	completion(0, WC_REM_OP_ERR);
	begin_at(FIRST_PSN, FIRST_INDEX);
	post(WR_WRITE, 1);
	comp_flush(&s.qp);
	completion(1, WC_WR_FLUSH_ERR);
}

static void comp_reads_pending__until_it_completes(void **state)
{
	(void)state;
	sent(WR_WRITE, 1);
	assert_false(comp_reads_pending(&s.qp));
	post(WR_READ, 1);
	assert_false(comp_reads_pending(&s.qp));
	wq_at(&s.sq, s.qp.req.wqe.started)->first_psn = s.qp.req.psn.max;
	s.qp.req.psn.max = s.qp.req.psn.snd = psn(2);
	s.qp.req.wqe.cur = ++s.qp.req.wqe.started;
	assert_true(comp_reads_pending(&s.qp));
	sent(WR_CMP_SWP, 1);
	placed(3);
	assert_true(comp_reads_pending(&s.qp));
	answered(2);
	assert_true(comp_reads_pending(&s.qp));
	answered(3);
	assert_false(comp_reads_pending(&s.qp));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(comp_placed__one_after_the_other),
		T(comp_placed__gives_back),
		T(comp_placed__behind_a_read),
		T(comp_placed__an_atomic),
		T(comp_placed__after_going_back),
		T(comp_placed__takes_reads_along),
		T(comp_placed__all_retries_again),
		T(completion__only_if_asked_for),
		T(completion__of_the_oldest),
		T(completion__what_was_met),
		T(comp_reap__local_ones_in_their_turn),
		T(comp_reap__one_that_was_not_done),
		T(comp_drained__once),
		T(comp_drained__not_where_it_goes_on),
		T(comp_fail_wqe__once_it_is_the_oldest),
		T(comp_fail_wqe__at_once),
		T(comp_fail_wqe__the_oldest_of_them),
		T(comp_fail_wqe__the_same_again),
		T(comp_fail_wqe__what_is_before_it),
		T(comp_flush__all_that_is_posted),
		T(comp_flush__forgets_the_failure),
		T(comp_reads_pending__until_it_completes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
