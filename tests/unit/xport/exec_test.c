/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exec_test.c: the checks on one request of the peer and its moves; a request that waits or
 * fails leaves no moves behind.
 */
#include "base/be.h"
#include "bench.h"
#include "mem/eventcount.h"
#include "ring/cqe.h"
#include "xport/exec.h"
#include "xport/life.h"
#include "xport/replay.h"

enum { MTU = BENCH_MTU, PSN = PSN_MASK - 1, PKTS = RUN_PKTS + 1 };
enum {
	INVALID = AETH_NAK | NAK_INVALID_REQUEST,
	ACCESS = AETH_NAK | NAK_REMOTE_ACCESS,
	OPERATION = AETH_NAK | NAK_REMOTE_OPERATION,
};

static struct bench s;
static struct pkt pkt[PKTS];
static unsigned pkts;
static uint8_t payload[MTU + 1];
static uint64_t word;
static struct eventcount counter;

static int setup(void **state)
{
	(void)state;
	bench_open(&s, PEER_NOPIN, PSN);
	for (unsigned i = 0; i < BENCH_PAGES; i++)
		bench_page_comes(&s, i);
	s.qp.attr.dest_qpn = 3;
	word = pkts = 0;
	assert_int_equal(eventcount_init(s.mem, &counter, s.pd, &word), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	assert_int_equal(word, 0); /* nothing is raised before it is placed */
	eventcount_fini(s.mem, &counter);
	bench_close(&s);
	return 0;
}

static struct pkt *next(uint8_t opcode, uint32_t len)
{
	struct pkt *p = &pkt[pkts];

	assert_true(pkts < PKTS);
	*p = bench_pkt(&s, opcode, s.qp.resp.plan);
	p->payload_len = len;
	p->dma_len = len;
	return p;
}

static enum exec_result run_it(void)
{
	const enum exec_result res = resp_execute(
		&s.qp, &pkt[pkts], payload_of_step(payload), &s.run);

	if (res == EXEC_OK) {
		pkts++;
		s.qp.resp.win.next = s.qp.resp.plan;
	}
	return res;
}

/* Commit the run. */
static void end_run(void)
{
	dma_release(s.mem, &s.run.holds, 0, true, s.x.now);
	rx_run_init(&s.run);
	s.qp.rx_moving = false;
	pkts = 0;
}

static enum exec_result request(uint8_t opcode, uint32_t len)
{
	next(opcode, len);
	return run_it();
}

/* A packet of a WRITE of @all bytes; only the first has address and key. */
static enum exec_result write_part(uint8_t opcode, uint32_t len, uint32_t all)
{
	struct pkt *p = next(opcode, len);

	p->dma_len = all;
	if (!(p->op & OPF_FIRST))
		p->va = p->rkey = 0;
	return run_it();
}

/* It failed: check the NAK and what the program is told. */
static void failed(uint8_t nak, uint8_t status, uint8_t event, uint16_t cause)
{
	struct resp *r = &s.qp.resp;

	assert_true(r->dead);
	assert_int_equal(r->ack.nak.syndrome, nak);
	assert_int_equal(r->ack.nak.psn, pkt[pkts].psn);
	assert_int_equal(r->failure.status, status);
	assert_int_equal(r->failure.event, event);
	assert_int_equal(r->failure.cause, cause);
	resp_not_failed(r);
}

static void failed_as_invalid(void)
{
	failed(INVALID, WC_WR_FLUSH_ERR, QP_EVENT_REQ_ERR,
	       CAUSE_NAKED | INVALID);
}

static void failed_as_forbidden(void)
{
	failed(ACCESS, WC_WR_FLUSH_ERR, QP_EVENT_ACCESS_ERR,
	       CAUSE_NAKED | ACCESS);
}

/* Move @i is of the payload, to application memory. */
static void moves(unsigned i, uint64_t addr, uint32_t len)
{
	const struct move *m = &s.run.moves.m[i];

	assert_true(i < s.run.moves.num);
	assert_int_equal(m->kind, MOVE_SCATTER);
	assert_true(m->addr == addr);
	assert_int_equal(m->len, len);
	assert_ptr_equal(m->nic, payload);
}

/* --- WRITE ------------------------------------------------------------------ */

static void write__of_one_packet(void **state)
{
	(void)state;
	s.qp.resp.msg.msn = PSN_MASK;
	next(OP_WRITE_ONLY, 5)->va = BENCH_BASE + 3;
	assert_int_equal(run_it(), EXEC_OK);
	moves(0, BENCH_BASE + 3, 5);
	assert_int_equal(s.run.num, 1);
	assert_ptr_equal(s.run.qp, &s.qp);
	assert_false(s.run.responses);
	assert_true(s.qp.rx_moving);
	assert_int_equal(s.run.pkt[0].move_end, 1);
	assert_null(s.run.pkt[0].recv.wqe);
	assert_int_equal(s.qp.resp.plan, psn_add(PSN, 1));
	assert_int_equal(s.qp.resp.msg.msn, 0); /* 24 bits */
	assert_int_equal(s.run.pkt[0].before.msn, PSN_MASK);
}

/* All but the first name no address. PSNs wrap. */
static void write__of_several_packets(void **state)
{
	const uint32_t all = 2 * MTU + 1;

	(void)state;
	assert_int_equal(write_part(OP_WRITE_FIRST, MTU, all), EXEC_OK);
	assert_int_equal(write_part(OP_WRITE_MIDDLE, MTU, 0), EXEC_OK);
	assert_int_equal(write_part(OP_WRITE_LAST, 1, 0), EXEC_OK);
	moves(0, BENCH_BASE, MTU);
	moves(1, BENCH_BASE + MTU, MTU);
	moves(2, BENCH_BASE + 2 * MTU, 1);
	assert_int_equal(s.qp.resp.plan, 1);
	assert_int_equal(s.qp.resp.msg.msn, 1);
	assert_int_equal(s.run.pkt[2].before.left, 1);
}

static void write__of_nothing(void **state)
{
	(void)state;
	next(OP_WRITE_ONLY, 0)->rkey = 0;
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.moves.num, 0);
	assert_int_equal(s.run.num, 1);
}

static void write__lengths_of_the_first(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len, all;
		enum exec_result res;
	} t[] = {
		{OP_WRITE_ONLY, MTU, MTU, EXEC_OK},
		{OP_WRITE_ONLY, MTU + 1, MTU + 1, EXEC_NAK},
		{OP_WRITE_ONLY, MTU - 1, MTU, EXEC_NAK},
		{OP_WRITE_ONLY, 1, 0, EXEC_NAK},
		{OP_WRITE_FIRST, MTU, MTU + 1, EXEC_OK},
		{OP_WRITE_FIRST, MTU, MTU, EXEC_NAK},
		{OP_WRITE_FIRST, MTU - 1, MTU + 1, EXEC_NAK},
		{OP_WRITE_FIRST, MTU + 1, 2 * MTU, EXEC_NAK},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(write_part(t[i].opcode, t[i].len, t[i].all),
				 t[i].res);
		if (t[i].res == EXEC_NAK)
			failed_as_invalid();
		end_run();
		s.qp.resp.msg.op = 0;
	}
}

/* Behind a first packet of MTU bytes, of a message of two MTUs. */
static void write__lengths_of_the_rest(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t len;
		enum exec_result res;
	} t[] = {
		{OP_WRITE_LAST, MTU, EXEC_OK},
		{OP_WRITE_LAST, MTU - 1, EXEC_NAK},
		{OP_WRITE_LAST, MTU + 1, EXEC_NAK},
		{OP_WRITE_MIDDLE, MTU, EXEC_NAK}, /* it is the last */
		{OP_WRITE_MIDDLE, MTU - 1, EXEC_NAK},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		assert_int_equal(write_part(OP_WRITE_FIRST, MTU, 2 * MTU),
				 EXEC_OK);
		assert_int_equal(write_part(t[i].opcode, t[i].len, 0),
				 t[i].res);
		if (t[i].res == EXEC_NAK)
			failed_as_invalid();
		end_run();
		s.qp.resp.msg.op = 0;
	}
}

/* All of the message is checked with its first packet. */
static void write__beyond_the_region(void **state)
{
	const uint64_t end = bench_page(BENCH_PAGES);

	(void)state;
	for (unsigned over = 0; over < 2; over++) {
		struct pkt *p = next(OP_WRITE_FIRST, MTU);

		p->dma_len = 2 * MTU;
		p->va = end - 2 * MTU + over;
		assert_int_equal(run_it(), over ? EXEC_NAK : EXEC_OK);
		if (over)
			failed_as_forbidden();
		end_run();
		s.qp.resp.msg.op = 0;
	}
}

static void write__with_a_wrong_key(void **state)
{
	(void)state;
	next(OP_WRITE_ONLY, 1)->rkey ^= 1;
	assert_int_equal(run_it(), EXEC_NAK);
	failed_as_forbidden();
	assert_int_equal(s.run.num, 0);
	assert_int_equal(s.qp.resp.plan, PSN);
}

/* The payload is in place already: no move. */
static void write__received_in_place(void **state)
{
	struct pkt *p = next(OP_WRITE_FIRST, MTU);

	(void)state;
	p->dma_len = MTU + 1;
	p->placed = true;
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.moves.num, 0);
	assert_int_equal(write_part(OP_WRITE_LAST, 1, 0), EXEC_OK);
	moves(0, BENCH_BASE + MTU, 1);
}

/* A request that waits leaves no moves behind, and is executed whole later. */
static void write__to_a_missing_page(void **state)
{
	const uint64_t va = bench_page(1) - MTU / 2;

	(void)state;
	assert_int_equal(spt_unmap(s.mem, page_of(bench_page(1)), 1), 0);
	assert_int_equal(request(OP_WRITE_ONLY, 1), EXEC_OK);
	next(OP_WRITE_ONLY, MTU)->va = va;
	assert_int_equal(run_it(), EXEC_WAIT);
	assert_int_not_equal(s.qp.resp.wait.ticket.v, 0);
	assert_int_equal(s.run.num, 1);
	assert_int_equal(s.run.moves.num, 1);
	assert_int_equal(s.run.holds.num, 1);
	assert_int_equal(s.qp.resp.plan, psn_add(PSN, 1));
	assert_int_equal(s.qp.resp.msg.msn, 1);
	pages_brought(s.mem);
	assert_int_equal(run_it(), EXEC_OK);
	moves(1, va, MTU);
}

/* --- sequence, rights, runs ----------------------------------------------------- */

static void resp_execute__in_sequence(void **state)
{
	static const struct {
		uint8_t before, opcode;
		bool ok;
	} t[] = {
		{0, OP_WRITE_MIDDLE, false},
		{0, OP_WRITE_LAST, false},
		{0, OP_SEND_LAST, false},
		{OP_WRITE_FIRST, OP_WRITE_ONLY, false},
		{OP_WRITE_FIRST, OP_WRITE_FIRST, false},
		{OP_WRITE_FIRST, OP_SEND_LAST, false},
		{OP_WRITE_FIRST, OP_READ_REQ, false},
		{OP_WRITE_FIRST, OP_WRITE_LAST, true},
		{OP_WRITE_LAST, OP_WRITE_ONLY, true},
		{OP_WRITE_LAST, OP_WRITE_LAST, false},
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		struct message *m = &s.qp.resp.msg;
		const uint32_t op = opcode_info(t[i].before)->flags;

		m->op = t[i].before && !(op & OPF_LAST) ? op : 0;
		m->left = 1;
		m->va = BENCH_BASE;
		m->rkey = s.key;
		assert_int_equal(request(t[i].opcode, 1),
				 t[i].ok ? EXEC_OK : EXEC_NAK);
		if (!t[i].ok)
			failed_as_invalid();
		end_run();
	}
}

static void resp_execute__as_the_qp_allows(void **state)
{
	static const struct {
		uint8_t opcode;
		uint32_t right;
	} t[] = {{OP_WRITE_ONLY, ACCESS_REMOTE_WRITE},
		 {OP_READ_REQ, ACCESS_REMOTE_READ},
		 {OP_FETCH_ADD, ACCESS_REMOTE_ATOMIC}};
	const uint32_t all = s.qp.attr.access;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		s.qp.attr.access = all & ~t[i].right;
		assert_int_equal(request(t[i].opcode, 0), EXEC_NAK);
		failed_as_invalid();
		s.qp.attr.access = t[i].right;
		assert_int_equal(request(t[i].opcode, 0), EXEC_OK);
		end_run();
	}
}

static void resp_execute__so_many_a_run(void **state)
{
	(void)state;
	for (unsigned i = 0; i < RUN_PKTS; i++)
		assert_int_equal(request(OP_WRITE_ONLY, 0), EXEC_OK);
	assert_int_equal(request(OP_WRITE_ONLY, 0), EXEC_FULL);
	assert_int_equal(s.run.num, RUN_PKTS);
	end_run();
	assert_int_equal(request(OP_WRITE_ONLY, 0), EXEC_OK);
}

/* The next request may use the key that is invalidated. */
static void resp_execute__not_behind_an_invalidation(void **state)
{
	(void)state;
	bench_receive(&s, 0, 0, 1);
	assert_int_equal(request(OP_SEND_ONLY_INV, 1), EXEC_OK);
	assert_int_equal(request(OP_WRITE_ONLY, 1), EXEC_FULL);
	end_run();
	assert_int_equal(request(OP_WRITE_ONLY, 1), EXEC_OK);
}

/* --- SEND ---------------------------------------------------------------------- */

static void send__completes_a_receive(void **state)
{
	struct pkt *p;
	struct cqe *e;

	(void)state;
	bench_receive(&s, 11, 2, PAGE_BYTES);
	assert_int_equal(request(OP_SEND_FIRST, MTU), EXEC_OK);
	assert_null(s.run.pkt[0].recv.wqe);
	p = next(OP_SEND_LAST_IMM, 7);
	p->imm = 0x12345678;
	p->solicited = true;
	assert_int_equal(run_it(), EXEC_OK);
	moves(0, bench_page(2), MTU);
	moves(1, bench_page(2) + MTU, 7);
	assert_non_null(s.run.pkt[1].recv.wqe);
	assert_null(s.qp.resp.msg.recv.wqe);
	e = &s.run.pkt[1].cqe;
	assert_int_equal(e->wr_id, 11);
	assert_int_equal(e->byte_len, MTU + 7);
	assert_int_equal(e->imm, 0x12345678);
	assert_int_equal(e->qpn, s.qp.cfg.qpn);
	assert_int_equal(e->src_qpn, 3);
	assert_int_equal(e->status, WC_SUCCESS);
	assert_int_equal(e->op, WR_RECV);
	assert_int_equal(e->flags, CQE_IMM);
	assert_true(e->solicited);
}

static void send__without_a_receive(void **state)
{
	(void)state;
	assert_int_equal(request(OP_SEND_ONLY, 0), EXEC_RNR);
	assert_false(s.qp.resp.dead);
	assert_int_equal(s.qp.resp.plan, PSN);
	bench_receive(&s, 0, 0, 0);
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.pkt[0].cqe.byte_len, 0);
}

static void send__longer_than_its_receive(void **state)
{
	(void)state;
	bench_receive(&s, 0, 0, MTU + 1);
	bench_receive(&s, 1, 0, MTU + 1);
	assert_int_equal(request(OP_SEND_FIRST, MTU), EXEC_OK);
	assert_int_equal(request(OP_SEND_LAST, 1), EXEC_OK);
	assert_int_equal(request(OP_SEND_FIRST, MTU), EXEC_OK);
	assert_int_equal(request(OP_SEND_LAST, 2), EXEC_NAK);
	assert_int_equal(s.qp.resp.failure.recv->wr_id, 1);
	failed(INVALID, WC_LOC_LEN_ERR, QP_NO_EVENT, CAUSE_LENGTH);
}

static void send__longer_than_an_mtu(void **state)
{
	(void)state;
	bench_receive(&s, 0, 0, PAGE_BYTES);
	assert_int_equal(request(OP_SEND_ONLY, MTU + 1), EXEC_NAK);
	failed_as_invalid();
	assert_int_equal(request(OP_SEND_FIRST, MTU - 1), EXEC_NAK);
	failed_as_invalid();
}

/* The program made the mistake, not the peer. */
static void send__to_a_receive_that_is_wrong(void **state)
{
	(void)state;
	bench_receive(&s, 0, BENCH_PAGES, 1);
	assert_int_equal(request(OP_SEND_ONLY, 1), EXEC_NAK);
	assert_int_equal(s.qp.resp.failure.recv->wr_id, 0);
	failed(OPERATION, WC_LOC_PROT_ERR, QP_NO_EVENT, CAUSE_ACCESS);
}

/* Keep the receive while waiting, and count the fault in its completion alone. */
static void send__to_a_missing_page(void **state)
{
	(void)state;
	bench_receive(&s, 0, 0, 1);
	bench_receive(&s, 1, 1, 1);
	assert_int_equal(spt_unmap(s.mem, page_of(bench_page(0)), 1), 0);
	assert_int_equal(request(OP_SEND_ONLY, 1), EXEC_WAIT);
	s.x.now += BENCH_MS;
	pages_brought(s.mem);
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.pkt[0].cqe.wr_id, 0);
	assert_int_equal(s.run.pkt[0].cqe.met.faults, 1);
	assert_int_equal(request(OP_SEND_ONLY, 1), EXEC_OK);
	assert_int_equal(s.run.pkt[1].cqe.wr_id, 1);
	assert_int_equal(s.run.pkt[1].cqe.met.faults, 0);
	moves(1, bench_page(1), 1);
}

/* A receive of two pieces of 4 bytes, of which the page of the second is missing: the first
 * is not to be moved twice. */
static void send__to_two_pages_of_which_one_is_missing(void **state)
{
	struct wqe *w;

	(void)state;
	bench_receive(&s, 0, 0, 4);
	w = wq_at(&s.rq.wq, 0);
	w->num_sge = 2;
	w->length = 8;
	wqe_sge(w)[1] = (struct sge){bench_page(3), 4, s.key};
	assert_int_equal(spt_unmap(s.mem, page_of(bench_page(3)), 1), 0);
	assert_int_equal(request(OP_SEND_ONLY, 8), EXEC_WAIT);
	assert_int_equal(s.run.moves.num, 0);
	assert_int_equal(s.run.holds.num, 0);
	pages_brought(s.mem);
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.moves.num, 2);
	moves(0, bench_page(0), 4);
	assert_true(s.run.moves.m[1].addr == bench_page(3));
	assert_ptr_equal(s.run.moves.m[1].nic, payload + 4);
}

/* --- WRITEs that say something ------------------------------------------------ */

static void write_imm__completes_a_receive(void **state)
{
	(void)state;
	assert_int_equal(write_part(OP_WRITE_FIRST, MTU, MTU + 1), EXEC_OK);
	next(OP_WRITE_LAST_IMM, 1)->imm = 9;
	assert_int_equal(run_it(), EXEC_RNR);
	bench_receive(&s, 4, 0, 0); /* of no length */
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.pkt[1].cqe.wr_id, 4);
	assert_int_equal(s.run.pkt[1].cqe.byte_len, MTU + 1);
	assert_int_equal(s.run.pkt[1].cqe.op, WR_RECV_IMM);
	assert_int_equal(s.run.pkt[1].cqe.imm, 9);
	assert_false(s.run.pkt[1].notifies);
}

/* Immediate data of a standard sender names a counter. */
static void write_imm__names_a_counter(void **state)
{
	const be32_t wire = be32_put(counter.id);

	(void)state;
	s.qp.counts = true;
	memcpy(&next(OP_WRITE_ONLY_IMM, 1)->imm, &wire, sizeof(wire));
	assert_int_equal(run_it(), EXEC_OK);
	assert_true(s.run.pkt[0].notifies);
	assert_int_equal(s.run.pkt[0].counter, counter.id);
	assert_null(s.run.pkt[0].recv.wqe);
	assert_null(s.qp.resp.msg.recv.wqe);
}

/* The counter is raised only when all is placed. */
static void write_notify__names_a_counter(void **state)
{
	(void)state;
	next(OP_WRITE_ONLY_NOTIFY, 1)->imm = counter.id;
	assert_int_equal(run_it(), EXEC_OK);
	assert_true(s.run.pkt[0].notifies);
	assert_int_equal(s.run.pkt[0].counter, counter.id);
	assert_int_equal(counter.value, 0);
	assert_int_equal(request(OP_WRITE_ONLY, 1), EXEC_OK);
	assert_false(s.run.pkt[1].notifies);
}

static void write_notify__of_no_counter(void **state)
{
	(void)state;
	next(OP_WRITE_ONLY_NOTIFY, 1)->imm = counter.id ^ 1;
	assert_int_equal(run_it(), EXEC_NAK);
	failed_as_forbidden();
}

/* --- READs and atomics --------------------------------------------------------- */

static void read__takes_its_psns(void **state)
{
	static const struct {
		uint32_t len, psns;
	} t[] = {{0, 1}, {1, 1}, {MTU, 1}, {MTU + 1, 2}, {4 * MTU, 4}};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++) {
		const psn_t at = s.qp.resp.plan;
		struct pkt *p = next(OP_READ_REQ, 0);

		p->dma_len = t[i].len;
		assert_int_equal(run_it(), EXEC_OK);
		assert_int_equal(s.qp.resp.plan, psn_add(at, t[i].psns));
		assert_int_equal(s.qp.resp.replay.coming, i + 1);
	}
	assert_int_equal(s.run.moves.num, 0);
}

/* 2^31 bytes are the longest message; there is no region of so many here. */
static void read__lengths(void **state)
{
	(void)state;
	next(OP_READ_REQ, 0)->dma_len = UINT32_C(1) << 31;
	assert_int_equal(run_it(), EXEC_NAK);
	failed_as_forbidden();
	next(OP_READ_REQ, 0)->dma_len = (UINT32_C(1) << 31) + 1;
	assert_int_equal(run_it(), EXEC_NAK);
	failed_as_invalid();
}

/* Those in the run count as those that are being answered. */
static void read__no_more_than_agreed(void **state)
{
	const struct pkt p = bench_pkt(&s, OP_READ_REQ, PSN);

	(void)state;
	s.qp.attr.max_dest_rd_atomic = 3;
	replay_add(&s.qp, &p, 0);
	assert_int_equal(request(OP_READ_REQ, 0), EXEC_OK);
	assert_int_equal(request(OP_FETCH_ADD, 0), EXEC_OK);
	assert_int_equal(request(OP_FETCH_ADD, 0), EXEC_NAK);
	failed_as_invalid();
	assert_int_equal(request(OP_WRITE_ONLY, 1), EXEC_OK);
}

/* Repeated answers take room beyond the agreed number: the oldest give theirs up. */
static void read__without_room(void **state)
{
	struct resp_replay *r = &s.qp.resp.replay;

	(void)state;
	for (r->next = 0; r->next < RESOURCES_MAX - 1; r->next++)
		r->res[r->next] = (struct resource){
			.used = true, .again = true, .num = 1};
	assert_int_equal(request(OP_READ_REQ, 0), EXEC_OK);
	assert_int_equal(r->at, 0);
	for (unsigned i = 1; i < RD_ATOMIC_MAX; i++) {
		assert_int_equal(request(OP_READ_REQ, 0), EXEC_OK);
		assert_int_equal(r->at, i);
		replay_check(&s.qp);
	}
	assert_int_equal(request(OP_READ_REQ, 0), EXEC_NAK);
}

static void atomic__moves(void **state)
{
	const struct move *m = s.run.moves.m;
	struct pkt *p;

	(void)state;
	p = next(OP_FETCH_ADD, 0);
	p->swap_add = 5;
	assert_int_equal(run_it(), EXEC_OK);
	p = next(OP_CMP_SWP, 0);
	p->va += 8;
	p->swap_add = 6;
	p->compare = 7;
	assert_int_equal(run_it(), EXEC_OK);
	assert_int_equal(s.run.moves.num, 2);
	assert_int_equal(m[0].kind, MOVE_FETCH_ADD);
	assert_true(m[0].addr == BENCH_BASE);
	assert_int_equal(m[0].operand, 5);
	assert_int_equal(m[1].kind, MOVE_CMP_SWP);
	assert_true(m[1].addr == BENCH_BASE + 8);
	assert_int_equal(m[1].operand, 6);
	assert_int_equal(m[1].compare, 7);
	assert_int_equal(m[1].token, 1);
	assert_int_equal(s.qp.resp.replay.coming, 2);
}

static void atomic__aligned_and_in_the_region(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 8; i++) {
		next(OP_FETCH_ADD, 0)->va += i;
		assert_int_equal(run_it(), EXEC_NAK);
		failed_as_invalid();
	}
	next(OP_FETCH_ADD, 0)->va = bench_page(BENCH_PAGES) - 8;
	assert_int_equal(run_it(), EXEC_OK);
	next(OP_FETCH_ADD, 0)->va = bench_page(BENCH_PAGES);
	assert_int_equal(run_it(), EXEC_NAK);
	failed_as_forbidden();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(write__of_one_packet),
		T(write__of_several_packets),
		T(write__of_nothing),
		T(write__lengths_of_the_first),
		T(write__lengths_of_the_rest),
		T(write__beyond_the_region),
		T(write__with_a_wrong_key),
		T(write__received_in_place),
		T(write__to_a_missing_page),
		T(resp_execute__in_sequence),
		T(resp_execute__as_the_qp_allows),
		T(resp_execute__so_many_a_run),
		T(resp_execute__not_behind_an_invalidation),
		T(send__completes_a_receive),
		T(send__without_a_receive),
		T(send__longer_than_its_receive),
		T(send__longer_than_an_mtu),
		T(send__to_a_receive_that_is_wrong),
		T(send__to_a_missing_page),
		T(send__to_two_pages_of_which_one_is_missing),
		T(write_imm__completes_a_receive),
		T(write_imm__names_a_counter),
		T(write_notify__names_a_counter),
		T(write_notify__of_no_counter),
		T(read__takes_its_psns),
		T(read__lengths),
		T(read__no_more_than_agreed),
		T(read__without_room),
		T(atomic__moves),
		T(atomic__aligned_and_in_the_region),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
