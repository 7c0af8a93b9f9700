/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault_rnr_test.c: how long a standard peer is told to wait for a page. */
#include "base/check.h"
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/timecode.h"

enum { MTU = 1024, SLOTS = 64, BASE = 0x100000, WRITES = 2, BEGIN = 1000 };
#define MS UINT64_C(1000000)

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq sq;
	struct rq rq;
	struct cq cq;
	struct peer peer;
	struct qp qp;
	struct rx_run run;
	struct pkt pkt[WRITES];
	uint32_t pd, key;
} s;

static int setup(void **state)
{
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = 4791};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	struct mr_attr mr = {.addr = BASE,
			     .iova = BASE,
			     .length = WRITES * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE |
				       ACCESS_REMOTE_WRITE};
	struct qp_config cfg = {.transport = &transport_rc,
				.mtu = MTU,
				.sq = &s.sq,
				.rq = &s.rq,
				.receives = &s.rq.source,
				.send_cq = &s.cq,
				.recv_cq = &s.cq};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 8, true);
	s.x.checked = true;
	s.x.now = BEGIN * MS;
	s.x.strategies = strategy_set(STRATEGY_REDIRECT) |
			 strategy_set(STRATEGY_RNR);
	cfg.pd = mr.pd = s.pd = (uint32_t)pd_alloc(s.mem);
	assert_int_equal(mr_register(s.mem, &mr, &s.key), 0);
	assert_int_equal(wq_init(&s.sq, 1, 1, 64), 0);
	assert_int_equal(rq_init(&s.rq, 1, 1), 0);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	assert_int_equal(cq_init(&s.cq, 8), 0);
	list_init(&s.cq.link);
	peer_init(&s.peer, &ep, &local);
	s.peer.kind = PEER_STANDARD;
	connect_receiver(&s.qp, &s.x, &cfg, &s.peer, 0);
	s.qp.attr.access = ACCESS_REMOTE_WRITE;
	s.qp.attr.min_rnr_timer = 1; /* 10 us */
	rx_run_init(&s.run);
	return 0;
}

static int teardown(void **state)
{
	qp_fini(&s.qp);
	cq_fini(&s.cq);
	rq_fini(&s.rq);
	wq_fini(&s.sq);
	assert_int_equal(mr_free(s.mem, s.key), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

/* A WRITE to the page @i comes, which is not there. */
static void write_comes(unsigned i)
{
	static uint8_t payload[MTU];

	s.pkt[i] = (struct pkt){.op = opcode_info(OP_WRITE_ONLY)->flags,
				.opcode = OP_WRITE_ONLY,
				.psn = i,
				.va = BASE + i * PAGE_BYTES,
				.rkey = s.key,
				.dma_len = MTU,
				.payload_len = MTU};
	assert_int_equal(
		qp_rx(&s.qp, &s.pkt[i], payload_of_step(payload), &s.run),
		RX_NEXT);
}

/* The first page comes, and the WRITE to the second begins to wait for its own. */
static void first_page_comes(void)
{
	struct ticket_req req;
	struct list woken;

	list_init(&woken);
	assert_true(ticket_next(s.mem, &req));
	spt_map(s.mem, page_of(BASE), 1, true, 0);
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
	s.x.now = s.qp.resp.at[RESP_SILENCE] + 1 * MS;
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
	assert_in_range(told_ns(5 * MS), 5 * MS, 8 * MS);
}

/* Timers run as of the time when all was heard, and a thread may have seen the page
 * missed after that. */
static void rnr__of_a_page_missed_since(void **state)
{
	(void)state;
	assert_int_equal(told_ns(-(int64_t)MS / 2), rnr_code_to_ns(1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rnr__as_long_as_the_page_took,
						setup, teardown),
		cmocka_unit_test_setup_teardown(rnr__of_a_page_missed_since,
						setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
