/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* responder_test.c: what a responder refuses, and before what; and what it is asked
 * for again before it has answered.
 */
#include "nic/step.h"
#include "steps.h"
#include "wire/opcode.h"
#include "xport/replay.h"
#include "xport/responder.h"

enum { MANY = 3, TAIL = 5 };

/* Side 0 may ask for more at a time than side 1 said that it takes. */
static void let_in_flight(uint8_t asked, uint8_t taken)
{
	side[0].qp->qp.attr.max_rd_atomic = asked;
	side[1].qp->qp.attr.max_dest_rd_atomic = taken;
}

/* All reach side 1 before it answers any. */
static void ask_at_once(unsigned reads)
{
	know_pages(&side[1]);
	know_pages(&side[0]);
	for (unsigned i = 0; i < reads; i++)
		post(&side[0], WR_READ, 64);
	send_all(&side[0]);
	RECEIVE_UNTIL(side[1].qp->qp.resp.replay.next ==
			      side[1].qp->qp.resp.replay.at + reads ||
		      side[1].qp->qp.resp.dead);
}

/* As many as it said are taken, ... */
static void read__as_many_as_were_agreed(void **state)
{
	(void)state;
	let_in_flight(MANY, MANY);
	ask_at_once(MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* ... and not one more (IBTA 9.7.4.1.3). */
static void read__one_too_many(void **state)
{
	(void)state;
	let_in_flight(MANY, MANY - 1);
	ask_at_once(MANY);
	for (unsigned i = 0; i < MANY - 1; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_INV_REQ_ERR);
}

/* The first packets of it would fit. */
static void write__too_long_places_nothing(void **state)
{
	static const uint8_t untouched[4096];
	const uint64_t at = BUF / 2 - 4096;

	(void)state;
	memset(side[0].buf, 0x5a, BUF);
	memset(side[1].buf + BUF - 4096, 0, 4096);
	know_pages(&side[1]);
	post_at(&side[0], WR_WRITE, at, LEN);
	side[0].nic->rx.peek = 0;
	assert_int_equal(wait_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
	assert_memory_equal(side[1].buf + BUF - 4096, untouched,
			    sizeof(untouched));
}

/* Return: the READ of all, from its middle on, but for its PSN. */
static struct pkt read_from_tail(void)
{
	return (struct pkt){.op = OPF_READ,
			    .va = (uintptr_t)side[1].buf + BUF / 2 +
				  TAIL * 4096,
			    .rkey = side[1].key,
			    .dma_len = LEN - TAIL * 4096};
}

/* It is on its way: what comes before it is not left out. */
static void replay__what_is_not_answered_yet(void **state)
{
	const struct resp *r = &side[1].qp->qp.resp;
	const struct resource *res;
	struct pkt tail = read_from_tail();

	(void)state;
	memset(side[1].buf + BUF / 2, 0xa5, LEN);
	know_pages(&side[1]);
	know_pages(&side[0]);
	post(&side[0], WR_READ, LEN);
	send_all(&side[0]);
	RECEIVE_UNTIL(r->replay.next == r->replay.at + 1);
	res = &r->replay.res[r->replay.at % RESOURCES_MAX];
	assert_int_equal(res->at, 0);
	tail.psn = psn_add(res->psn, TAIL);
	nic_tick(side[1].nic);
	replay_duplicate(&side[1].qp->qp, &tail);
	assert_int_equal(res->at, 0);
	assert_int_equal(side[1].nic->cnt.v[CNT_replays], 0);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[0].buf, side[1].buf + BUF / 2, LEN);
}

/* What is answered again from its middle on is an answer of its own: its first packet
 * says FIRST and has the AETH (IBTA 9.7.5.1.5). */
static void replay__begins_with_a_first(void **state)
{
	struct nic *nic = side[1].nic;
	const struct resp *r = &side[1].qp->qp.resp;
	struct step *tx = &nic->steps.v[2];
	uint32_t flags[OS_SEGS_MAX], num;
	const struct resource *res;
	struct pkt tail = read_from_tail();

	(void)state;
	know_pages(&side[1]);
	know_pages(&side[0]);
	post(&side[0], WR_READ, LEN);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	res = &r->replay.res[(r->replay.next - 1) % RESOURCES_MAX];
	assert_int_equal(res->at, res->num);
	tail.psn = psn_add(res->psn, TAIL);
	nic_tick(nic);
	replay_duplicate(&side[1].qp->qp, &tail);
	assert_int_equal(res->at, TAIL);
	assert_true(engine_plan(nic, tx, false, os_now(nic->os)));
	num = tx->burst.nsegs;
	for (unsigned i = 0; i < num; i++)
		flags[i] = opcode_info(tx->burst.bytes[tx->burst.seg[i].hdr])
				   ->flags;
	plan_move_commit(nic, tx); /* or the NIC would not close */
	assert_in_range(num, 1, LEN / 4096 - TAIL);
	for (unsigned i = 0; i < num; i++)
		assert_int_equal(
			flags[i] & (OPF_READ | OPF_RESPONSE | OPF_FIRST |
				    OPF_LAST),
			OPF_READ | OPF_RESPONSE | (i == 0 ? OPF_FIRST : 0) |
				(TAIL + i == res->num - 1 ? OPF_LAST : 0));
}

int main(void)
{
#define T(f)                                                                   \
	cmocka_unit_test_setup_teardown(f, setup, sides_close),                \
	{                                                                      \
		"standard: " #f, f, setup_standard, sides_close, NULL          \
	}
	const struct CMUnitTest tests[] = {
		T(read__as_many_as_were_agreed),
		T(read__one_too_many),
		T(write__too_long_places_nothing),
		T(replay__what_is_not_answered_yet),
		T(replay__begins_with_a_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
