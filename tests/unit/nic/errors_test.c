/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* errors_test.c: what both programs get for what one of them asked for and may
 * not have (IBTA 9.7.4, 9.9.2, 10.10.3), between nopins and between NICs that
 * know no extensions: a status, the rest is flushed, no byte is touched, and
 * another connection of the same NICs goes on.
 */
#include "base/page.h"
#include "mem/key_table.h"
#include "mem/mr.h"
#include "mem/state.h"
#include "nic/completion.h"
#include "nic/memory.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "side.h"
#include "wire/aeth.h"

#include <sys/mman.h>

enum {
	ALL = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC,
	READ_ONLY = 4 * PAGE_BYTES, /* offset of such a page */
	UNMAPPED = 8 * PAGE_BYTES,
	HALF = BUF / 2,
	FILL = 0x5a, /* the first half */
	OTHER = 0xa5 /* the second */
};

static struct side by[SIDES]; /* the other connection */

static int open_all(bool standard)
{
	const struct nic_config cfg = {.os = {.addr = "lo", .pagers = 2},
				       .entries = 1 << 16,
				       .scatter = true,
				       .pool_bytes = 1 << 20,
				       .standard = standard,
				       .strategies = 1u << STRATEGY_REDIRECT |
						     1u << STRATEGY_RESUME};

	sides_open(&cfg);
	for (int i = 0; i < SIDES; i++) {
		by[i] = side[i];
		side_qp(&by[i], DEPTH, NULL, NULL);
		memset(side[i].buf, FILL, HALF);
		memset(side[i].buf + HALF, OTHER, HALF);
	}
	for (int i = 0; i < SIDES; i++)
		side_connect(&by[i], &by[!i]);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return open_all(false);
}

static int setup_standard(void **state)
{
	(void)state;
	return open_all(true);
}

static int teardown(void **state)
{
	side_recv(&by[1], by[1].buf, 64, 1);
	side_post(&by[0], (struct wqe){.op = WR_SEND}, by[0].buf, 64);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(side_cqe(&by[i]).status, WC_SUCCESS);
	for (int i = 0; i < SIDES; i++)
		side_qp_close(&by[i]);
	return sides_close(state);
}

/* Side 1 gives its peer @access. PSNs are new ones: what is still on its way from
 * before must not fit. No timeout on a slow machine, either: retries are counted. */
static void connect_again(uint32_t access, uint8_t rnr_retry)
{
	enum { STEP = 1 << 16, SECONDS_4 = 20 };
	const struct qp_attr reset = {.state = QPS_RESET};
	static uint32_t psn;

	psn = (psn + STEP) & PSN_MASK;
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_qp_modify(side[i].qp, &reset, QPA_STATE),
				 0);
	for (int i = 0; i < SIDES; i++) {
		struct qp_attr a = side_attr(&side[i], &side[!i]);

		a.access = access;
		a.sq_psn = a.rq_psn = (a.sq_psn + psn) & PSN_MASK;
		a.timeout = SECONDS_4;
		a.rnr_retry = rnr_retry;
		a.retry_cnt = 200;
		for (enum qp_state to = QPS_INIT; to <= QPS_RTS; to++)
			assert_int_equal(side_next(&side[i], &a, to), 0);
	}
}

static uint32_t reg(struct side *s, uint32_t pd, uint64_t length,
		    uint32_t access)
{
	const uint64_t at = length == UINT64_MAX ? 0 : (uintptr_t)s->buf;
	const struct mr_attr mr = {.pd = pd,
				   .addr = at,
				   .iova = at,
				   .length = length,
				   .access = access};
	uint32_t key;

	assert_int_equal(nic_mr_reg(s->nic, &mr, &key), 0);
	return key;
}

/* Regions of a side that a request may not use in one way or another. */
struct keys {
	uint32_t pd, stale, foreign, local, whole;
};

static struct keys keys_open(struct side *s)
{
	const uint32_t any = ACCESS_LOCAL_WRITE | ALL;
	struct keys k;

	assert_int_equal(nic_pd_alloc(s->nic, &k.pd), 0);
	k.stale = reg(s, s->pd, BUF, any);
	assert_int_equal(nic_mr_dereg(s->nic, k.stale), 0);
	k.foreign = reg(s, k.pd, BUF, any);
	k.local = reg(s, s->pd, BUF, 0);
	k.whole = reg(s, s->pd, UINT64_MAX, any | ACCESS_ON_DEMAND);
	mprotect(s->buf + READ_ONLY, PAGE_BYTES, PROT_READ);
	mprotect(s->buf + UNMAPPED, PAGE_BYTES, PROT_NONE);
	return k;
}

static void keys_close(struct side *s, const struct keys *k)
{
	mprotect(s->buf, HALF, PROT_READ | PROT_WRITE);
	assert_int_equal(nic_mr_dereg(s->nic, k->foreign), 0);
	assert_int_equal(nic_mr_dereg(s->nic, k->local), 0);
	assert_int_equal(nic_mr_dereg(s->nic, k->whole), 0);
	assert_int_equal(nic_pd_dealloc(s->nic, k->pd), 0);
}

/* A request and, behind it, one that would be good. It waits for a READ before
 * it, as there is no order between the two otherwise (table 79). */
static void two_fail(enum wr_op op, struct sge local, uint64_t raddr,
		     uint32_t rkey, enum wc_status status)
{
	side_post_sge(&side[0],
		      (struct wqe){.op = (uint8_t)op,
				   .wr_id = 1,
				   .raddr = raddr,
				   .rkey = rkey},
		      local);
	side_post(&side[0],
		  (struct wqe){.op = WR_WRITE,
			       .wr_id = 2,
			       .flags = WQE_FENCE,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key},
		  side[0].buf + HALF, 8);
	for (uint64_t id = 1; id <= 2; id++) {
		const struct cqe e = side_cqe(&side[0]);

		assert_int_equal(e.wr_id, id);
		assert_int_equal(e.status, id == 1 ? status : WC_WR_FLUSH_ERR);
	}
}

/* Its first half, but for what a request may begin with that ends in a page that
 * is not there. */
static void untouched(const struct side *s)
{
	for (size_t i = 0; i < HALF; i++)
		if (i < UNMAPPED - 4 || i >= UNMAPPED + PAGE_BYTES)
			assert_int_equal(s->buf[i], FILL);
}

static void request__refused_by_the_peer(void **state)
{
	const uint64_t at = (uintptr_t)side[1].buf;
	const struct keys k = keys_open(&side[1]);
	const uint32_t good = side[1].key;
	const struct {
		enum wr_op op;
		uint32_t access, key;
		uint64_t raddr;
		enum wc_status status;
	} wrong[] = {
		{WR_WRITE, ALL, good ^ 0x100, at, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, k.stale, at, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, k.stale, at, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, k.foreign, at, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, k.foreign, at, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, k.local, at, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, k.local, at, WC_REM_ACCESS_ERR},
		{WR_FETCH_ADD, ALL, k.local, at, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, good, at - 1, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, good, at + BUF - 7, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, good, at + BUF - 7, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, good, UINT64_MAX - 3, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, k.whole, UINT64_MAX - 3, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, k.whole, UINT64_MAX - 3, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, good, at + READ_ONLY, WC_REM_ACCESS_ERR},
		{WR_FETCH_ADD, ALL, good, at + READ_ONLY, WC_REM_ACCESS_ERR},
		{WR_WRITE, ALL, good, at + UNMAPPED - 4, WC_REM_ACCESS_ERR},
		{WR_READ, ALL, good, at + UNMAPPED - 4, WC_REM_ACCESS_ERR},
		{WR_WRITE, 0, good, at, WC_REM_INV_REQ_ERR},
		{WR_READ, ALL & ~ACCESS_REMOTE_READ, good, at,
		 WC_REM_INV_REQ_ERR},
		{WR_CMP_SWP, ALL & ~ACCESS_REMOTE_ATOMIC, good, at,
		 WC_REM_INV_REQ_ERR},
		{WR_FETCH_ADD, ALL, good, at + 4, WC_REM_INV_REQ_ERR},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		const struct sge from = {(uintptr_t)side[0].buf + HALF, 8,
					 side[0].key};

		connect_again(wrong[i].access, 7);
		two_fail(wrong[i].op, from, wrong[i].raddr, wrong[i].key,
			 wrong[i].status);
		untouched(&side[1]);
	}
	keys_close(&side[1], &k);
}

/* A key that is the other connection's alone, as that of a window of type 2 will be:
 * every kind of request names its QP. */
static void request__by_the_key_of_one_qp(void **state)
{
	static const enum wr_op ops[] = {WR_WRITE, WR_READ, WR_FETCH_ADD};
	const uint32_t any = ACCESS_LOCAL_WRITE | ALL;
	struct mem *m = side[1].nic->mem;
	const uint32_t key = reg(&side[1], side[1].pd, BUF, any);
	struct key_row *row;
	uint32_t at, of;

	(void)state;
	nic_lock(side[1].nic);
	assert_int_equal(key_take(&m->keys, &at), 0);
	row = key_at(&m->keys, at);
	*row = *key_find(&m->keys, key, &of);
	row->key = key_new(&m->keys, at);
	row->kind = KEY_QP_WINDOW;
	row->addr = 0;
	nic_unlock(side[1].nic);
	for (size_t i = 0; i < ARRAY_SIZE(ops) * 2; i++) {
		const enum wr_op op = ops[i / 2];
		const uint32_t len = op == WR_FETCH_ADD ? 8 : HALF;

		connect_again(ALL, 7);
		nic_lock(side[1].nic);
		row->qpn = i % 2 ? side[1].qpn : by[1].qpn;
		nic_unlock(side[1].nic);
		side_post_sge(
			&side[0],
			(struct wqe){.op = (uint8_t)op,
				     .raddr = (uintptr_t)side[1].buf,
				     .rkey = row->key},
			(struct sge){(uintptr_t)side[0].buf, len, side[0].key});
		assert_int_equal(side_cqe(&side[0]).status,
				 i % 2 ? WC_SUCCESS : WC_REM_ACCESS_ERR);
	}
	nic_lock(side[1].nic);
	key_give_back(&m->keys, at);
	nic_unlock(side[1].nic);
	assert_int_equal(nic_mr_dereg(side[1].nic, key), 0);
}

static void request__refused_at_home(void **state)
{
	const uint64_t at = (uintptr_t)side[0].buf, other = at + HALF;
	const struct keys k = keys_open(&side[0]);
	const uint32_t good = side[0].key;
	const struct {
		enum wr_op op;
		uint32_t key;
		uint64_t addr;
	} wrong[] = {
		{WR_WRITE, good ^ 0x100, other},
		{WR_SEND, k.stale, other},
		{WR_WRITE, k.foreign, other},
		{WR_READ, k.foreign, at},
		{WR_READ, k.local, at},
		{WR_FETCH_ADD, k.local, at},
		{WR_WRITE, good, at + BUF - 7},
		{WR_READ, good, at - 1},
		{WR_WRITE, k.whole, UINT64_MAX - 3},
		{WR_READ, good, at + READ_ONLY},
		{WR_WRITE, good, at + UNMAPPED - 4},
		{WR_READ, good, at + UNMAPPED - 4},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		connect_again(ALL, 7);
		two_fail(wrong[i].op,
			 (struct sge){wrong[i].addr, 8, wrong[i].key},
			 (uintptr_t)side[1].buf +
				 (wrong[i].op == WR_WRITE ? 0 : HALF),
			 side[1].key, WC_LOC_PROT_ERR);
		untouched(&side[0]);
		untouched(&side[1]);
	}
	keys_close(&side[0], &k);
}

/* An atomic without room for the old value: nothing happens. */
static void atomic__no_room_for_the_old_value(void **state)
{
	static const enum wr_op ops[] = {WR_FETCH_ADD, WR_CMP_SWP};
	uint64_t fill;

	(void)state;
	memset(&fill, FILL, sizeof(fill));
	for (size_t i = 0; i < ARRAY_SIZE(ops) * 8; i++) {
		const struct sge room = {(uintptr_t)side[0].buf,
					 (uint32_t)(i % 8), side[0].key};

		connect_again(ALL, 7);
		side_post_sge(&side[0],
			      (struct wqe){.op = (uint8_t)ops[i / 8],
					   .raddr = (uintptr_t)side[1].buf,
					   .rkey = side[1].key,
					   .compare = fill,
					   .swap_add = 1},
			      room);
		side_ended(&side[0], WC_LOC_LEN_ERR, CAUSE_LENGTH);
		untouched(&side[0]);
		untouched(&side[1]);
	}
}

/* A byte too much in the only packet, or in the second one. */
static void send__too_long(void **state)
{
	static const uint32_t room[] = {0, 16, 4096, 4097, 8191};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
		connect_again(ALL, 7);
		side_recv(&side[1], side[1].buf + HALF, room[i], 1);
		side_recv(&side[1], side[1].buf, HALF, 1);
		side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf,
			  room[i] + 1);
		side_ended(&side[0], WC_REM_INV_REQ_ERR,
			   CAUSE_NAK | AETH_NAK | NAK_INVALID_REQUEST);
		side_ended(&side[1], WC_LOC_LEN_ERR, CAUSE_LENGTH);
		side_ended(&side[1], WC_WR_FLUSH_ERR, CAUSE_LENGTH);
		untouched(&side[1]);
		assert_int_equal(side[1].buf[HALF + room[i]], OTHER);
	}
}

static void send__to_a_receive_that_may_not_be_written(void **state)
{
	const struct keys k = keys_open(&side[1]);

	(void)state;
	connect_again(ALL, 7);
	side_recv(&side[1], side[1].buf + READ_ONLY, 64, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf + HALF, 8);
	side_ended(&side[0], WC_REM_OP_ERR,
		   CAUSE_NAK | AETH_NAK | NAK_REMOTE_OPERATION);
	side_ended(&side[1], WC_LOC_PROT_ERR, CAUSE_ACCESS);
	untouched(&side[1]);
	keys_close(&side[1], &k);
}

static uint64_t rnrs(void)
{
	struct counters c;

	nic_counters(side[0].nic, &c);
	return c.v[CNT_rnr_rx];
}

/* The budget is that of times it is tried again. A nopin on a slow machine may
 * send again, too, what its peer's answer to a question does not name. */
static void send__nobody_receives(void **state)
{
	(void)state;
	for (uint8_t budget = 0; budget < 7; budget += 3) {
		const uint64_t before = rnrs();
		struct cqe e;

		connect_again(ALL, budget);
		side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf,
			  8);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_RNR_RETRY_EXC_ERR);
		assert_int_equal(e.vendor_err >> 5, AETH_RNR >> 5);
		assert_in_range(rnrs() - before, budget + 1,
				side[0].nic->cfg.standard ? budget + 1 : 100);
	}
}

/* 7 is for ever, and more is 7. */
static void send__nobody_receives_for_long(void **state)
{
	static const uint8_t budget[] = {7, 200};
	enum { OFTEN = 300 };
	struct cqe e;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(budget); i++) {
		const uint64_t enough = rnrs() + OFTEN;

		connect_again(ALL, budget[i]);
		assert_int_equal(side_query(&side[0]).rnr_retry, 7);
		assert_int_equal(side_query(&side[0]).retry_cnt, 7);
		side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf,
			  8);
		while (rnrs() < enough)
			assert_int_equal(nic_cq_poll(side[0].cq, 1, &e), 0);
		side_recv(&side[1], side[1].buf, 64, 1);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		assert_int_equal(side_cqe(&side[1]).status, WC_SUCCESS);
	}
}

#define BOTH(f)                                                                \
	cmocka_unit_test_setup_teardown(f, setup, teardown),                   \
	{                                                                      \
		"standard: " #f, f, setup_standard, teardown, NULL             \
	}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(request__refused_by_the_peer),
		BOTH(request__by_the_key_of_one_qp),
		BOTH(request__refused_at_home),
		BOTH(atomic__no_room_for_the_old_value),
		BOTH(send__too_long),
		BOTH(send__to_a_receive_that_may_not_be_written),
		BOTH(send__nobody_receives),
		BOTH(send__nobody_receives_for_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
