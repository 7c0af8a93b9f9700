/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* receive_test.c: two QPs that share a source of receives: each message has its own,
 * whatever becomes of those of the other QP.
 */
#include "base/check.h"
#include "base/page.h"
#include "mem/mem.h"
#include "mem/mr.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/receive.h"
#include "ring/rq.h"
#include "ring/wq.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/transport.h"
#include "xport/xport.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { QPS = 2, RECVS = 4, SLOTS = 16, MTU = 256, QKEY = 7, BASE = 0x100000 };

/** struct shared - @ready: the first @num are to be taken, in this order. */
struct shared {
	struct receive_source source;
	struct {
		struct wqe wqe;
		struct sge sge;
		bool done;
	} slot[RECVS];
	struct wqe *ready[RECVS];
	uint32_t num;
};

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq *sq;
	struct cq cq;
	struct peer peer;
	struct shared recvs;
	struct qp qp[QPS];
	struct rx_run run[QPS];
	struct pkt pkt[2 * QPS][QPS];
	unsigned pkts[QPS];
	uint32_t pd, key;
} s;

static const struct wqe *shared_peek(const struct receive_source *source,
				     uint32_t k)
{
	const struct shared *r = container_of(source, const struct shared,
					      source);

	return k < r->num ? r->ready[k] : NULL;
}

static struct wqe *shared_take(struct receive_source *source)
{
	struct shared *r = container_of(source, struct shared, source);
	struct wqe *w = r->ready[0];

	if (!r->num)
		return NULL;
	memmove(r->ready, r->ready + 1, --r->num * sizeof(w));
	return w;
}

static void shared_untake(struct receive_source *source, struct wqe *w)
{
	struct shared *r = container_of(source, struct shared, source);

	memmove(r->ready + 1, r->ready, r->num++ * sizeof(w));
	r->ready[0] = w;
}

static void shared_done(struct receive_source *source, struct wqe *w)
{
	struct shared *r = container_of(source, struct shared, source);

	assert_false(r->slot[w->wr_id].done);
	r->slot[w->wr_id].done = true;
}

static const struct receive_ops shared_ops = {shared_peek, shared_take,
					      shared_untake, shared_done};

static void post_all(void)
{
	struct shared *r = &s.recvs;

	r->source = (struct receive_source){&shared_ops, s.pd};
	for (uint64_t i = 0; i < RECVS; i++) {
		r->slot[i].wqe = (struct wqe){.wr_id = i,
					      .op = WR_RECV,
					      .length = PAGE_BYTES,
					      .num_sge = 1};
		r->slot[i].sge = (struct sge){BASE + i * PAGE_BYTES, PAGE_BYTES,
					      s.key};
		r->ready[r->num++] = &r->slot[i].wqe;
	}
}

static void connect(struct qp *qp, bool ud)
{
	const struct qp_config cfg = {.transport = ud ? &transport_ud
						      : &transport_rc,
				      .mtu = MTU,
				      .pd = s.pd,
				      .sq = s.sq,
				      .receives = &s.recvs.source,
				      .send_cq = &s.cq,
				      .recv_cq = &s.cq};

	connect_receiver(qp, &s.x, &cfg, &s.peer, QKEY);
}

static int setup_as(void **state, bool ud)
{
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = 4791};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	struct mr_attr mr = {.addr = BASE,
			     .iova = BASE,
			     .length = RECVS * PAGE_BYTES,
			     .access = ACCESS_LOCAL_WRITE};

	memset(&s, 0, sizeof(s));
	*state = open_memory_as(&s.mem, &s.x, &s.cnt, SLOTS, 8, true);
	s.x.strategies = strategy_set(ud ? STRATEGY_BACKUP : STRATEGY_REDIRECT);
	s.pd = mr.pd = (uint32_t)pd_alloc(s.mem);
	assert_int_equal(mr_register(s.mem, &mr, &s.key), 0);
	s.sq = aligned_alloc(_Alignof(struct wq), sizeof(*s.sq));
	assert_int_equal(wq_init(s.sq, 1, 1, 64), 0);
	assert_int_equal(timerq_reserve(&s.x.timers, QPS), 0);
	assert_int_equal(cq_init(&s.cq, 2 * RECVS), 0);
	list_init(&s.cq.link);
	peer_init(&s.peer, &ep, &local);
	s.peer.kind = PEER_STANDARD;
	post_all();
	for (unsigned i = 0; i < QPS; i++) {
		connect(&s.qp[i], ud);
		rx_run_init(&s.run[i]);
	}
	return 0;
}

static int setup(void **state)
{
	return setup_as(state, false);
}

static int setup_ud(void **state)
{
	return setup_as(state, true);
}

static int teardown(void **state)
{
	for (unsigned i = 0; i < QPS; i++)
		qp_fini(&s.qp[i]);
	cq_fini(&s.cq);
	wq_fini(s.sq);
	free(s.sq);
	assert_int_equal(mr_free(s.mem, s.key), 0);
	assert_int_equal(pd_dealloc(s.mem, s.pd), 0);
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static void come(unsigned qp, uint8_t opcode)
{
	static uint8_t payload[MTU];
	struct pkt *p = &s.pkt[s.pkts[qp]][qp];

	*p = (struct pkt){.op = opcode_info(opcode)->flags,
			  .opcode = opcode,
			  .psn = s.pkts[qp]++,
			  .qkey = QKEY,
			  .payload_len = MTU};
	assert_int_equal(
		qp_rx(&s.qp[qp], p, payload_of_step(payload), &s.run[qp]),
		RX_NEXT);
}

/* The page of the receive @i is there. */
static void page_comes(uint64_t i)
{
	spt_map(s.mem, (BASE >> PAGE_SHIFT) + i, 1, true, 0);
}

static void commit(unsigned qp, bool ok)
{
	commit_run(&s.run[qp], ok);
}

/* The oldest completion, of receive @i. */
static void received(unsigned qp, uint64_t i, enum wc_status status)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.qpn, s.qp[qp].cfg.qpn);
	assert_int_equal(e.wr_id, i);
	assert_int_equal(e.status, status);
	assert_true(s.recvs.slot[i].done);
}

static void next_is(uint64_t i)
{
	const struct wqe *w = receive_peek(&s.recvs.source, 0);

	assert_non_null(w);
	assert_int_equal(w->wr_id, i);
}

static void of_a_message__while_another_completes(void **state)
{
	(void)state;
	page_comes(0);
	page_comes(1);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	come(1, OP_SEND_ONLY);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
	come(0, OP_SEND_LAST);
	commit(0, true);
	received(0, 0, WC_SUCCESS);
	next_is(2);
}

/* It waits for the page of its own receive, not for that of the next. */
static void of_a_message__that_waits_for_its_page(void **state)
{
	(void)state;
	page_comes(1);
	come(0, OP_SEND_ONLY);
	assert_int_equal(s.run[0].num, 0);
	come(1, OP_SEND_ONLY);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp[0], &s.run[0]));
	commit(0, true);
	received(0, 0, WC_SUCCESS);
}

/* The first keeps its receive, and that of the second is for anybody. */
static void of_messages__that_were_not_placed(void **state)
{
	(void)state;
	for (uint64_t i = 0; i < RECVS; i++)
		page_comes(i);
	come(0, OP_SEND_ONLY);
	come(0, OP_SEND_ONLY);
	assert_int_equal(s.run[0].num, 2);
	next_is(2);
	commit(0, false);
	next_is(1);
	come(1, OP_SEND_ONLY);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
	page_comes(0);
	assert_true(qp_drain(&s.qp[0], &s.run[0]));
	commit(0, true);
	received(0, 0, WC_SUCCESS);
	received(0, 2, WC_SUCCESS);
	next_is(3);
}

/* It uses its receive up; all others are left to the other QP. */
static void of_a_message__whose_qp_fails(void **state)
{
	(void)state;
	page_comes(0);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	qp_error(&s.qp[0]);
	received(0, 0, WC_WR_FLUSH_ERR);
	assert_true(cq_empty(&s.cq));
	next_is(1);
}

/* A run that comes back when its QP has failed leaves what it took, but for what the
 * message had before. */
static void of_a_run__whose_qp_fails(void **state)
{
	(void)state;
	page_comes(0);
	page_comes(1);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	come(0, OP_SEND_LAST);
	come(0, OP_SEND_ONLY);
	next_is(2);
	qp_error(&s.qp[0]);
	assert_true(cq_empty(&s.cq));
	commit(0, true);
	received(0, 0, WC_WR_FLUSH_ERR);
	assert_true(cq_empty(&s.cq));
	next_is(1);
}

/* A receive that is too short is what failed. */
static void of_a_message__that_is_too_long(void **state)
{
	(void)state;
	s.recvs.slot[0].wqe.length = MTU - 1;
	come(0, OP_SEND_ONLY);
	received(0, 0, WC_LOC_LEN_ERR);
	assert_true(cq_empty(&s.cq));
	next_is(1);
}

static void of_a_message__whose_qp_is_reset(void **state)
{
	const struct qp_attr reset = {.state = QPS_RESET};

	(void)state;
	page_comes(0);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	next_is(1);
	assert_int_equal(qp_modify(&s.qp[0], &reset, QPA_STATE, NULL), 0);
	assert_true(cq_empty(&s.cq));
	next_is(0);
}

/* IBV_EVENT_QP_LAST_WQE_REACHED */
enum { LAST_WQE = 1 << 16 };

/* Nobody would hear of it: it is left to the other QP. */
static void of_a_message__whose_qp_is_destroyed(void **state)
{
	(void)state;
	page_comes(0);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	next_is(1);
	qp_abandon(&s.qp[0]);
	assert_true(cq_empty(&s.cq));
	assert_false(s.qp[0].events & LAST_WQE);
	next_is(0);
}

/* It is told when its last completion is there, and not before. */
static void of_a_qp__that_fails(void **state)
{
	(void)state;
	page_comes(0);
	come(0, OP_SEND_FIRST);
	commit(0, true);
	come(0, OP_SEND_LAST);
	qp_error(&s.qp[0]);
	assert_false(s.qp[0].events & LAST_WQE); /* a move is out */
	commit(0, true);
	assert_true(s.qp[0].events & LAST_WQE);
	received(0, 0, WC_WR_FLUSH_ERR);
	s.qp[0].events = 0;
	qp_error(&s.qp[0]);
	assert_int_equal(s.qp[0].events, 0);
	qp_error(&s.qp[1]);
	assert_true(s.qp[1].events & LAST_WQE);
}

/* Payload goes where the guess was that it belongs: the receive is taken by then. */
static void of_a_message__that_comes_in_place(void **state)
{
	static struct moves pieces;
	struct scatter sc = {.pieces = &pieces};
	const struct pkt p = {.op = opcode_info(OP_SEND_FIRST)->flags,
			      .opcode = OP_SEND_FIRST,
			      .ext = true,
			      .payload_len = MTU,
			      .dma_len = 4 * MTU};

	(void)state;
	page_comes(0);
	page_comes(1);
	assert_true(qp_scatter_plan(&s.qp[0], &p, 3, &sc));
	come(1, OP_SEND_ONLY);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
	qp_scatter_done(&sc, true);
	come(0, OP_SEND_ONLY);
	commit(0, true);
	received(0, 0, WC_SUCCESS);
}

static void of_a_datagram__that_waits_for_its_page(void **state)
{
	(void)state;
	page_comes(1);
	page_comes(2);
	come(0, OP_UD_SEND_ONLY);
	come(1, OP_UD_SEND_ONLY);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
	come(0, OP_UD_SEND_ONLY); /* behind the first */
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp[0], &s.run[0]));
	commit(0, true);
	received(0, 0, WC_SUCCESS);
	received(0, 2, WC_SUCCESS);
}

static void of_datagrams__whose_qp_fails(void **state)
{
	(void)state;
	come(0, OP_UD_SEND_ONLY);
	come(0, OP_UD_SEND_ONLY);
	next_is(2);
	qp_error(&s.qp[0]);
	assert_true(cq_empty(&s.cq));
	next_is(0);
}

/* The receive @i lies outside its region: a mistake of the program. */
static void spoil(uint64_t i)
{
	s.recvs.slot[i].sge.addr = BASE + RECVS * PAGE_BYTES;
}

/* It is used up by the request that failed by it, and fails no other QP. */
static void of_a_qp__whose_receive_is_wrong(bool ud)
{
	const uint8_t opcode = ud ? OP_UD_SEND_ONLY : OP_SEND_ONLY;

	spoil(0);
	page_comes(1);
	come(0, opcode);
	assert_int_equal(s.qp[0].state, QPS_ERR);
	received(0, 0, WC_LOC_PROT_ERR);
	come(1, opcode);
	commit(1, true);
	received(1, 1, WC_SUCCESS);
}

static void of_a_message__that_is_wrong(void **state)
{
	(void)state;
	of_a_qp__whose_receive_is_wrong(false);
}

static void of_a_datagram__that_is_wrong(void **state)
{
	(void)state;
	of_a_qp__whose_receive_is_wrong(true);
}

static void of_a_datagram__that_is_wrong_and_waits(void **state)
{
	(void)state;
	page_comes(2);
	spoil(1);
	come(0, OP_UD_SEND_ONLY);
	come(0, OP_UD_SEND_ONLY);
	come(0, OP_UD_SEND_ONLY);
	pages_brought(s.mem);
	assert_true(qp_drain(&s.qp[0], &s.run[0]));
	commit(0, true);
	received(0, 0, WC_SUCCESS);
	received(0, 1, WC_LOC_PROT_ERR);
	assert_true(cq_empty(&s.cq));
	next_is(2);
}

/* The one before it has to be placed again: it has failed by nothing yet. */
static void of_a_datagram__that_is_wrong_behind_another(bool ok)
{
	page_comes(0);
	spoil(1);
	come(0, OP_UD_SEND_ONLY);
	come(0, OP_UD_SEND_ONLY);
	next_is(2);
	if (ok)
		qp_error(&s.qp[0]);
	commit(0, ok);
	next_is(ok ? 0 : 1);
}

static void of_a_datagram__that_is_wrong_and_not_its_turn(void **state)
{
	(void)state;
	of_a_datagram__that_is_wrong_behind_another(false);
	assert_int_equal(s.qp[0].state, QPS_RTR);
}

static void of_a_datagram__that_is_wrong_of_a_qp_that_fails(void **state)
{
	(void)state;
	of_a_datagram__that_is_wrong_behind_another(true);
}

/* The page of what is kept goes while it is copied: it stays where it is kept, once. */
static void of_kept_messages__whose_page_goes(void **state)
{
	struct qp *qp = &s.qp[0];
	struct rx_run *run = &s.run[0];
	const bool ud = !qp->connected;

	(void)state;
	for (int i = 0; i < 2; i++)
		come(0, ud ? OP_UD_SEND_ONLY : OP_SEND_ONLY);
	assert_int_equal(qp->resp.win.num, 2);
	pages_brought(s.mem);
	page_comes(0);
	page_comes(1);
	assert_true(qp_drain(qp, run));
	assert_int_equal(run->num, 2);
	commit(0, false);
	assert_int_equal(qp->resp.win.num, 2);
	for (int i = 0; i < 4; i++) {
		pages_brought(s.mem);
		page_comes(0);
		page_comes(1);
		while (qp_drain(qp, run))
			commit(0, true);
	}
	assert_int_equal(qp->resp.win.num, 0);
	received(0, 0, WC_SUCCESS);
	received(0, 1, WC_SUCCESS);
}

int main(void)
{
#define T(f)  cmocka_unit_test_setup_teardown(f, setup, teardown)
#define UD(f) cmocka_unit_test_setup_teardown(f, setup_ud, teardown)
	const struct CMUnitTest tests[] = {
		T(of_a_message__while_another_completes),
		T(of_a_message__that_waits_for_its_page),
		T(of_messages__that_were_not_placed),
		T(of_a_message__whose_qp_fails),
		T(of_a_run__whose_qp_fails),
		T(of_a_message__that_is_too_long),
		T(of_a_message__whose_qp_is_reset),
		T(of_a_message__whose_qp_is_destroyed),
		T(of_a_qp__that_fails),
		T(of_a_message__that_comes_in_place),
		UD(of_a_datagram__that_waits_for_its_page),
		UD(of_datagrams__whose_qp_fails),
		T(of_a_message__that_is_wrong),
		UD(of_a_datagram__that_is_wrong),
		UD(of_a_datagram__that_is_wrong_and_waits),
		UD(of_a_datagram__that_is_wrong_and_not_its_turn),
		UD(of_a_datagram__that_is_wrong_of_a_qp_that_fails),
		T(of_kept_messages__whose_page_goes),
		UD(of_kept_messages__whose_page_goes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
