/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wqe_test.c: PSNs of requests: how many, and before, in or behind them, also of one
 * that has half of all PSNs.
 */
#include "ring/wq.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/wqe.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { LAST_PSN = 0xffffff, HALF = 1 << 23, ENTRIES = 4 };
/* MOST: bytes of the longest message */
#define MOST (UINT64_C(1) << 31)

static uint32_t packets(uint8_t op, uint64_t length, uint32_t mtu)
{
	const struct qp qp = {.mtu = mtu};
	const struct wqe w = {.op = op, .length = length};

	return wqe_packets(&qp, &w);
}

static void wqe_packets__of_data(void **state)
{
	static const uint8_t ops[] = {WR_SEND, WR_WRITE, WR_READ};

	(void)state;
	for (size_t i = 0; i < sizeof(ops); i++) {
		assert_int_equal(packets(ops[i], 0, MTU_MIN), 1);
		assert_int_equal(packets(ops[i], 1, MTU_MIN), 1);
		assert_int_equal(packets(ops[i], MTU_MIN - 1, MTU_MIN), 1);
		assert_int_equal(packets(ops[i], MTU_MIN, MTU_MIN), 1);
		assert_int_equal(packets(ops[i], MTU_MIN + 1, MTU_MIN), 2);
		assert_int_equal(packets(ops[i], 2 * MTU_MIN, MTU_MIN), 2);
		assert_int_equal(packets(ops[i], MOST, MTU_MIN), HALF);
		assert_int_equal(packets(ops[i], MOST, MTU_MAX), HALF / 16);
	}
}

static void wqe_packets__of_others(void **state)
{
	(void)state;
	assert_int_equal(packets(WR_CMP_SWP, 8, MTU_MIN), 1);
	assert_int_equal(packets(WR_FETCH_ADD, 2 * MTU_MIN, MTU_MIN), 1);
	assert_int_equal(packets(WR_LOCAL_INV, 0, MTU_MIN), 0);
	assert_int_equal(packets(WR_BIND_MW, MTU_MIN, MTU_MIN), 0);
}

static void wqe_is__answered_with_data(void **state)
{
	(void)state;
	for (uint8_t op = WR_NONE; op < WR_NUM; op++) {
		const struct wqe w = {.op = op};
		const bool atomic = op == WR_CMP_SWP || op == WR_FETCH_ADD;

		assert_int_equal(wqe_is_atomic(&w), atomic);
		assert_int_equal(wqe_is_read(&w), atomic || op == WR_READ);
	}
}

static void wqe_offset__over_the_wrap(void **state)
{
	const struct wqe w = {.first_psn = LAST_PSN, .num_psn = 2};

	(void)state;
	assert_int_equal(wqe_offset(&w, LAST_PSN - 1), -1);
	assert_int_equal(wqe_offset(&w, LAST_PSN), 0);
	assert_int_equal(wqe_offset(&w, 0), 1);
	assert_int_equal(wqe_offset(&w, 1), 2);
	assert_int_equal(wqe_end(&w), 1);
}

/* As far as anything is started before a message, or behind the longest one. */
static void wqe_offset__as_far_as_it_goes(void **state)
{
	static const psn_t firsts[] = {0, 1, HALF, LAST_PSN};

	(void)state;
	for (size_t i = 0; i < sizeof(firsts) / sizeof(firsts[0]); i++) {
		const struct wqe w = {.first_psn = firsts[i], .num_psn = HALF};
		const psn_t end = wqe_end(&w);

		assert_int_equal(wqe_offset(&w, end), HALF);
		assert_int_equal(wqe_offset(&w, psn_add(end, REQ_PSNS_AHEAD)),
				 HALF + REQ_PSNS_AHEAD);
		assert_int_equal(
			wqe_offset(&w, psn_add(firsts[i],
					       PSN_MASK + 1 - REQ_PSNS_AHEAD)),
			-REQ_PSNS_AHEAD);
	}
}

static void wqe_passed__with_its_last(void **state)
{
	static const uint32_t lengths[] = {0, 1, 2, HALF};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct wqe w = {.first_psn = LAST_PSN,
				      .num_psn = lengths[i]};
		const psn_t end = psn_add(LAST_PSN, lengths[i]);

		assert_true(wqe_passed(&w, end));
		assert_true(wqe_passed(&w, psn_add(end, 1)));
		assert_false(wqe_passed(&w, psn_add(end, PSN_MASK)));
		assert_false(wqe_passed(&w, LAST_PSN - 1));
	}
}

static struct wq *queue(struct qp *qp)
{
	static struct wq sq;

	assert_int_equal(wq_init(&sq, ENTRIES, 1, 0), 0);
	sq.prod = sq.cons = UINT32_MAX;
	*qp = (struct qp){.cfg.sq = &sq, .req.wqe.started = UINT32_MAX};
	return &sq;
}

/* A request is posted. */
static void post(struct wq *sq, psn_t first, uint32_t num)
{
	struct wqe *w = wq_reserve(sq);

	assert_non_null(w);
	w->first_psn = first;
	w->num_psn = num;
	wq_publish(sq);
}

static void check_at(const struct qp *qp, psn_t psn, uint32_t index)
{
	uint32_t at;

	assert_true(req_wqe_at(qp, psn, &at));
	assert_int_equal(at, index);
}

static void check_none(const struct qp *qp, psn_t psn)
{
	uint32_t at = 5;

	assert_false(req_wqe_at(qp, psn, &at));
	assert_int_equal(at, 5);
}

static void req_wqe_at__of_those_that_started(void **state)
{
	struct qp qp;
	struct wq *sq = queue(&qp);

	(void)state;
	check_none(&qp, 0);
	post(sq, LAST_PSN - 1, 3);
	post(sq, 1, 0); /* a local one, which has none */
	post(sq, 1, 1);
	post(sq, 2, 1); /* and did not start */
	qp.req.wqe.started = 2;
	check_none(&qp, LAST_PSN - 2);
	check_at(&qp, LAST_PSN - 1, UINT32_MAX);
	check_at(&qp, LAST_PSN, UINT32_MAX);
	check_at(&qp, 0, UINT32_MAX);
	check_at(&qp, 1, 1);
	check_none(&qp, 2);
	wq_release(sq, 1);
	check_none(&qp, 0);
	check_at(&qp, 1, 1);
	wq_fini(sq);
}

static void req_wqe_at__of_the_longest(void **state)
{
	struct qp qp;
	struct wq *sq = queue(&qp);

	(void)state;
	post(sq, 7, HALF);
	post(sq, 7 + HALF, 2);
	qp.req.wqe.started = 1;
	check_none(&qp, 6);
	check_at(&qp, 7, UINT32_MAX);
	check_at(&qp, 7 + HALF - 1, UINT32_MAX);
	check_at(&qp, 7 + HALF, 0);
	check_at(&qp, 7 + HALF + 1, 0);
	check_none(&qp, 7 + HALF + 2);
	wq_fini(sq);
}

static uint32_t psns(uint8_t opcode, uint32_t len)
{
	const struct pkt p = {.opcode = opcode, .dma_len = len};

	return request_psns(&p, MTU_MIN);
}

/* A READ request has as many as its responses. */
static void request_psns__of_a_read(void **state)
{
	(void)state;
	assert_int_equal(psns(OP_READ_REQ, 0), 1);
	assert_int_equal(psns(OP_READ_REQ, 1), 1);
	assert_int_equal(psns(OP_READ_REQ, MTU_MIN), 1);
	assert_int_equal(psns(OP_READ_REQ, MTU_MIN + 1), 2);
	assert_int_equal(psns(OP_READ_REQ, MOST), HALF);
	/* it is refused, but counted before that */
	assert_int_equal(psns(OP_READ_REQ, UINT32_MAX), PSN_MASK + 1);
}

static void request_psns__of_others(void **state)
{
	(void)state;
	assert_int_equal(psns(OP_WRITE_FIRST, MOST), 1);
	assert_int_equal(psns(OP_FETCH_ADD, 8), 1);
	assert_int_equal(psns(OP_SEND_ONLY, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wqe_packets__of_data),
		cmocka_unit_test(wqe_packets__of_others),
		cmocka_unit_test(wqe_is__answered_with_data),
		cmocka_unit_test(wqe_offset__over_the_wrap),
		cmocka_unit_test(wqe_offset__as_far_as_it_goes),
		cmocka_unit_test(wqe_passed__with_its_last),
		cmocka_unit_test(req_wqe_at__of_those_that_started),
		cmocka_unit_test(req_wqe_at__of_the_longest),
		cmocka_unit_test(request_psns__of_a_read),
		cmocka_unit_test(request_psns__of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
