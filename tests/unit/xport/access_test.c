/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* access_test.c: rights of a QP, and scatter/gather lists over two regions: moves of
 * pages that are there, and tickets for those that are not.
 */
#include "base/page.h"
#include "mem/dma.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/waiter.h"
#include "memory.h"
#include "ring/wqe.h"
#include "wire/opcode.h"
#include "xport/access.h"

enum { SLOTS = 8, REGIONS = 2, PAGES = 8, QPN = 77, SGES = 4, TOKEN = 9 };
enum { BASE = 0x100000, DISTANCE = 0x100000, NOW = 1000 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct qp qp;
	uint32_t pd, key[REGIONS], read_only;
	struct {
		struct wqe w;
		struct sge sge[SGES];
	} list;
	struct moves moves;
	struct holds holds;
	uint8_t nic[PAGES * PAGE_BYTES];
} s;

static uint64_t address(unsigned region)
{
	return BASE + (uint64_t)region * DISTANCE;
}

static void register_all(void)
{
	struct mr_attr mr = {.pd = s.pd,
			     .length = PAGES * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	for (unsigned i = 0; i < REGIONS; i++) {
		mr.addr = mr.iova = address(i);
		assert_int_equal(mr_register(s.mem, &mr, &s.key[i]), 0);
	}
	mr.access = 0;
	assert_int_equal(mr_register(s.mem, &mr, &s.read_only), 0);
}

static int setup(void **state)
{
	struct qp_config cfg = {.qpn = QPN, .transport = &transport_rc};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 8, true);
	s.x.now = NOW;
	s.x.strategies = strategy_set(STRATEGY_REDIRECT);
	s.pd = cfg.pd = (uint32_t)pd_alloc(s.mem);
	register_all();
	assert_int_equal(qp_init(&s.qp, &s.x, &cfg), 0);
	return 0;
}

static int teardown(void **state)
{
	dma_release(s.mem, &s.holds, 0, true, 0);
	qp_fini(&s.qp);
	for (unsigned i = 0; i < REGIONS; i++)
		assert_int_equal(mr_free(s.mem, s.key[i]), 0);
	assert_int_equal(mr_free(s.mem, s.read_only), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static void pages_come(unsigned region, unsigned pages)
{
	spt_map(s.mem, page_of(address(region)), pages, true, 0);
}

/* So many bytes of a region are next on the list. */
static void add(unsigned region, uint32_t len)
{
	s.list.sge[s.list.w.num_sge++] = (struct sge){address(region), len,
						      s.key[region]};
	s.list.w.length += len;
}

static enum verdict walk(uint64_t off, uint32_t len, uint64_t rest, bool write)
{
	return sge_walk(&s.qp, &s.list.w, off, len, rest, write, s.nic, TOKEN,
			&s.qp.req.wait, &s.moves, &s.holds);
}

/* Move @i is of @len bytes at @off of @region, and @nic of NIC memory. */
static void check_move(unsigned i, unsigned region, uint64_t off, uint32_t len,
		       uint32_t nic)
{
	const struct move *m = &s.moves.m[i];

	assert_true(i < s.moves.num);
	assert_int_equal(m->addr, address(region) + off);
	assert_int_equal(m->len, len);
	assert_ptr_equal(m->nic, s.nic + nic);
	assert_int_equal(m->token, TOKEN);
	assert_int_equal(s.holds.num, s.moves.num);
}

/* --- rights ------------------------------------------------------------------ */

static void qp_strategies__its_own_or_the_nics(void **state)
{
	(void)state;
	assert_int_equal(qp_strategies(&s.qp), s.x.strategies);
	s.qp.fault = STRATEGY_DROP;
	assert_int_equal(qp_strategies(&s.qp), strategy_set(STRATEGY_DROP));
	assert_int_not_equal(qp_strategies(&s.qp), s.x.strategies);
}

static bool allowed(uint8_t opcode)
{
	const struct pkt p = {.op = opcode_info(opcode)->flags,
			      .opcode = opcode};

	return request_allowed(&s.qp, &p);
}

static void request_allowed__each_by_its_right(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
	} requests[] = {{OP_WRITE_FIRST, ACCESS_REMOTE_WRITE},
			{OP_WRITE_MIDDLE, ACCESS_REMOTE_WRITE},
			{OP_WRITE_ONLY_IMM, ACCESS_REMOTE_WRITE},
			{OP_READ_REQ, ACCESS_REMOTE_READ},
			{OP_CMP_SWP, ACCESS_REMOTE_ATOMIC},
			{OP_FETCH_ADD, ACCESS_REMOTE_ATOMIC},
			{OP_SEND_ONLY, 0},
			{OP_SEND_LAST_INV, 0}};
	static const uint32_t rights[] = {
		0, ACCESS_LOCAL_WRITE, ACCESS_REMOTE_WRITE, ACCESS_REMOTE_READ,
		ACCESS_REMOTE_ATOMIC};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
		const uint32_t right = requests[i].right;

		for (size_t k = 0; k < ARRAY_SIZE(rights); k++) {
			s.qp.attr.access = rights[k];
			assert_int_equal(allowed(requests[i].opcode),
					 !right || rights[k] == right);
		}
	}
}

static void remote_dma__of_a_qp(void **state)
{
	static const uint32_t needs[] = {
		ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE, ACCESS_REMOTE_ATOMIC};

	(void)state;
	s.qp.fault = STRATEGY_DROP;
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		const struct dma d = remote_dma(&s.qp, 3, BASE, 5, needs[i]);

		assert_true(d.remote);
		assert_int_equal(d.write, needs[i] != ACCESS_REMOTE_READ);
		assert_int_equal(d.need, needs[i]);
		assert_int_equal(d.pd, s.pd);
		assert_int_equal(d.qpn, QPN);
		assert_int_equal(d.key, 3);
		assert_int_equal(d.iova, BASE);
		assert_int_equal(d.len, 5);
		assert_int_equal(d.set, strategy_set(STRATEGY_DROP));
	}
}

static void sge_dma__and_the_rest_of_it(void **state)
{
	struct {
		struct wqe wqe;
		struct sge sge[2];
	} w = {.wqe.op = WR_SEND, .sge[1] = {BASE, 100, 3}};
	struct receive_source shared = {.pd = s.pd + 1};
	struct dma d = sge_dma(&s.qp, &w.wqe, 1, 30, 50, false);

	(void)state;
	assert_false(d.remote || d.write);
	assert_int_equal(d.need, 0);
	assert_int_equal(d.pd, s.pd);
	assert_int_equal(d.key, 3);
	assert_int_equal(d.iova, BASE + 30);
	assert_int_equal(d.len, 50);
	assert_int_equal(d.ahead, 20);
	d = sge_dma(&s.qp, &w.wqe, 1, 30, 70, true);
	assert_true(d.write);
	assert_int_equal(d.pd, s.pd);
	assert_int_equal(d.need, ACCESS_LOCAL_WRITE);
	assert_int_equal(d.ahead, 0);
	/* a receive is of its queue's protection domain */
	s.qp.cfg.receives = &shared;
	w.wqe.op = WR_RECV;
	assert_int_equal(sge_dma(&s.qp, &w.wqe, 1, 30, 70, true).pd, s.pd + 1);
}

/* --- lists ------------------------------------------------------------------- */

static void sge_walk__over_several(void **state)
{
	(void)state;
	pages_come(0, 1);
	pages_come(1, 1);
	add(0, 100);
	add(1, 0);
	add(1, 200);
	add(0, 300);
	assert_int_equal(walk(0, 600, 0, true), V_OK);
	assert_int_equal(s.moves.num, 3);
	check_move(0, 0, 0, 100, 0);
	check_move(1, 1, 0, 200, 100);
	check_move(2, 0, 0, 300, 300);
	assert_int_equal(s.moves.m[0].kind, MOVE_SCATTER);
}

static void sge_walk__from_the_middle(void **state)
{
	(void)state;
	pages_come(0, 1);
	pages_come(1, 1);
	add(0, 100);
	add(1, 200);
	assert_int_equal(walk(99, 2, 0, false), V_OK);
	check_move(0, 0, 99, 1, 0);
	check_move(1, 1, 0, 1, 1);
	assert_int_equal(s.moves.m[0].kind, MOVE_GATHER);
	assert_int_equal(walk(100, 200, 0, false), V_OK);
	check_move(2, 1, 0, 200, 0);
	assert_int_equal(walk(299, 1, 0, false), V_OK);
	check_move(3, 1, 199, 1, 0);
	assert_int_equal(s.moves.num, 4);
}

static void sge_walk__of_nothing(void **state)
{
	(void)state;
	assert_int_equal(walk(0, 0, 0, true), V_OK);
	add(0, 100);
	assert_int_equal(walk(100, 0, 0, true), V_OK);
	assert_int_equal(s.moves.num, 0);
}

static void sge_walk__more_than_there_is(void **state)
{
	(void)state;
	assert_int_equal(walk(0, 1, 0, true), V_LENGTH);
	pages_come(0, 1);
	add(0, 100);
	assert_int_equal(walk(0, 101, 0, true), V_LENGTH);
	assert_int_equal(walk(100, 1, 0, true), V_LENGTH);
	assert_int_equal(walk(0, 100, 0, true), V_OK);
}

/* Payload is gathered by the send: there is no NIC memory. */
static void sge_walk__without_nic_memory(void **state)
{
	(void)state;
	pages_come(0, 1);
	add(0, 100);
	add(0, 100);
	assert_int_equal(sge_walk(&s.qp, &s.list.w, 0, 200, 0, false, NULL,
				  TOKEN, NULL, &s.moves, &s.holds),
			 V_OK);
	assert_null(s.moves.m[0].nic);
	assert_null(s.moves.m[1].nic);
}

static void sge_walk__without_the_right(void **state)
{
	(void)state;
	pages_come(0, 1);
	pages_come(1, PAGES);
	add(0, 100);
	add(1, 100);
	s.list.sge[1].lkey = s.read_only;
	assert_int_equal(walk(0, 100, 0, true), V_OK);
	assert_int_equal(walk(0, 101, 0, true), V_PROT);
	assert_int_equal(walk(0, 200, 0, false), V_OK);
	s.list.sge[1].addr = address(1) + PAGES * PAGE_BYTES - 99;
	assert_int_equal(walk(100, 99, 0, false), V_OK);
	assert_int_equal(walk(100, 100, 0, false), V_PROT);
}

/* --- missing pages ----------------------------------------------------------- */

/* Pagers bring all that was asked for. Return: how many pages of each region, a bit
 * each. */
static void served(uint32_t asked[REGIONS])
{
	struct ticket_req req;
	struct list woken;

	asked[0] = asked[1] = 0;
	list_init(&woken);
	while (ticket_next(s.mem, &req)) {
		for (unsigned r = 0; r < REGIONS; r++)
			for (unsigned i = 0; i < PAGES; i++)
				if (page_of(address(r)) + i - req.vpn <
				    req.pages)
					asked[r] |= 1U << i;
		spt_map(s.mem, req.vpn, req.pages, true, s.x.now);
		ticket_done(s.mem, req.id, req.pages, false, true, 0, 0, 1,
			    s.x.now, &woken);
	}
	wake_all(&woken);
}

static void sge_walk__waits_for_a_page(void **state)
{
	uint32_t asked[REGIONS];

	(void)state;
	pages_come(0, 1);
	add(0, 100);
	add(1, 100);
	assert_int_equal(walk(0, 200, 0, true), V_WAIT);
	served(asked);
	assert_int_equal(asked[0], 0);
	assert_int_equal(asked[1], 1);
	dma_release(s.mem, &s.holds, 0, false, 0);
	moves_reset(&s.moves);
	assert_int_equal(walk(0, 200, 0, true), V_OK);
	check_move(1, 1, 0, 100, 100);
}

static void check_asked(uint64_t rest, uint32_t pages)
{
	uint32_t asked[REGIONS];

	assert_int_equal(walk(0, PAGE_BYTES, rest, true), V_WAIT);
	served(asked);
	assert_int_equal(asked[0], pages);
}

/* Of a connection the rest of the message will follow: its pages are fetched, too. */
static void sge_walk__fetches_ahead(void **state)
{
	(void)state;
	add(0, 4 * PAGE_BYTES);
	check_asked(0, 0xf);
}

/* A datagram is all that there is, however large the receive. */
static void sge_walk__of_a_datagram(void **state)
{
	(void)state;
	s.qp.connected = false;
	add(0, 4 * PAGE_BYTES);
	check_asked(PAGE_BYTES, 0x3);
}

/* Only pages that were asked for in this round are there. */
static void others_go(const uint32_t asked[REGIONS])
{
	for (unsigned r = 0; r < REGIONS; r++)
		if (!asked[r])
			assert_int_equal(
				spt_unmap(s.mem, page_of(address(r)), 1), 0);
}

/* Each page goes while the other comes, until both are asked for together. */
static void sge_walk__pages_that_go_in_turn(void **state)
{
	enum { ROUNDS = 50 };
	uint32_t asked[REGIONS];
	int rounds = 0;

	(void)state;
	add(0, 100);
	add(1, 100);
	while (walk(0, 200, 0, true) == V_WAIT && rounds++ < ROUNDS) {
		dma_release(s.mem, &s.holds, 0, false, 0);
		moves_reset(&s.moves);
		served(asked);
		others_go(asked);
	}
	assert_in_range(rounds, 4, ROUNDS - 1);
	check_move(0, 0, 0, 100, 0);
	check_move(1, 1, 0, 100, 100);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(qp_strategies__its_own_or_the_nics),
		T(request_allowed__each_by_its_right),
		T(remote_dma__of_a_qp),
		T(sge_dma__and_the_rest_of_it),
		T(sge_walk__over_several),
		T(sge_walk__from_the_middle),
		T(sge_walk__of_nothing),
		T(sge_walk__more_than_there_is),
		T(sge_walk__without_nic_memory),
		T(sge_walk__without_the_right),
		T(sge_walk__waits_for_a_page),
		T(sge_walk__fetches_ahead),
		T(sge_walk__of_a_datagram),
		T(sge_walk__pages_that_go_in_turn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
