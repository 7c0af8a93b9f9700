/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* any_test.c: all that can happen to one connection, in any order: its peer, which may
 * lie, its program, pages, a region that is suspended, and bursts and runs that are under
 * way at the same time. What is asserted of a QP at the end of each call has to hold; the
 * simulator, where peers are honest, says whether the bytes are right.
 *     xport_any_test SEED: that one alone, in this process, to be debugged
 */
#include "bench.h"
#include "mem/suspend.h"
#include "ring/cqe.h"
#include "ring/wqe.h"
#include "ring/wr_op.h"
#include "xport/ack.h"
#include "xport/burst.h"
#include "xport/reads.h"
#include "xport/replay.h"
#include "xport/req.h"
#include "xport/requester.h"
#include "xport/tx.h"
#include "xport/wqe.h"

#include "base/rand.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MTU = BENCH_MTU, SEEDS = 400, STEPS = 4000, RUN_MAX = 60, ASKED = 64 };

/* @run, @sent, @said: a run, a burst of the QP, one of ACKs is under way. */
static struct {
	struct rnd rnd;
	struct burst burst, acks;
	bool run, sent, said, suspended;
	uint8_t data[2 * MTU];
	struct pkt pkt[ASKED];
	unsigned pkts;
	struct ticket_req asked[ASKED];
	unsigned tickets;
} a;

static struct bench s;

/* A number below @n. */
static uint32_t any(uint32_t n)
{
	return (uint32_t)(rnd_next(&a.rnd) >> 32) % n;
}

/* --- the host ----------------------------------------------------------------- */

static void wake(struct list *woken)
{
	list_for_each_safe(l, tmp, woken) {
		list_del(l);
		qp_wake(list_entry(l, struct waiter, link));
	}
}

static void wake_moved(void)
{
	struct list woken;

	list_init(&woken);
	moved_take(s.mem, &woken);
	wake(&woken);
}

/* A page comes, or is said to, or is asked for. */
static void pager(void)
{
	struct ticket_req req;
	struct list woken;
	unsigned i;

	while (a.tickets < ASKED && ticket_next(s.mem, &req))
		a.asked[a.tickets++] = req;
	list_init(&woken);
	if (a.tickets && any(2)) {
		i = any(a.tickets);
		req = a.asked[i];
		a.asked[i] = a.asked[--a.tickets];
		if (any(20))
			spt_map(s.mem, req.vpn, req.pages, true, s.x.now);
		ticket_done(s.mem, req.id, req.pages, false, true, 0, 0, 1000,
			    s.x.now, &woken);
	}
	wake(&woken);
	wake_moved();
}

static void page_goes(void)
{
	(void)spt_unmap(s.mem, page_of(bench_page(any(BENCH_PAGES))), 1);
	wake_moved();
}

static void time_passes(void)
{
	const uint64_t due = s.qp.timer.at_ns;

	s.x.now += any(any(3) ? 1000 : 3 * BENCH_MS);
	if (due != TIME_NEVER && !any(3))
		s.x.now = MAX(s.x.now, due);
	if (due > s.x.now)
		return;
	timerq_set(&s.x.timers, &s.qp.timer, TIME_NEVER);
	qp_timeout(&s.qp);
}

/* --- the program --------------------------------------------------------------- */

static void post(void)
{
	static const uint8_t ops[] = {WR_WRITE, WR_WRITE, WR_READ, WR_SEND,
				      WR_FETCH_ADD};
	struct wqe *w = wq_reserve(&s.sq);
	const uint8_t op = ops[any(ARRAY_SIZE(ops))];
	const uint32_t len = op == WR_FETCH_ADD ? 8 : any(any(4) ? 5 * MTU : 2);

	if (!w)
		return;
	*w = (struct wqe){.op = op,
			  .flags = (uint8_t)(any(8) ? 0 : WQE_FENCE),
			  .length = len,
			  .num_sge = 1,
			  .raddr = BENCH_BASE,
			  .rkey = s.key};
	*wqe_sge(w) = (struct sge){bench_page(any(BENCH_PAGES - 3)), len,
				   s.key};
	wq_publish(&s.sq);
	qp_posted(&s.qp);
}

static void suspend_or_resume(void)
{
	if (a.suspended) {
		mr_resume(s.mem, s.key, s.x.now);
		a.suspended = false;
		wake_moved();
	} else {
		a.suspended = mr_suspend(s.mem, s.key,
					 any(2) ? 0 : any(BENCH_MS),
					 s.x.now) == 0;
	}
}

static void program(void)
{
	static const enum strategy how[] = {STRATEGY_REDIRECT, STRATEGY_RESUME,
					    STRATEGY_RNR, STRATEGY_ADAPTIVE,
					    STRATEGY_DROP};
	const struct qp_attr end = {.state = QPS_ERR};

	if (!any(4))
		suspend_or_resume();
	else if (!any(300))
		qp_modify(&s.qp, &end, QPA_STATE, &s.peer);
	else if (!any(4))
		s.x.strategies = strategy_set(how[any(ARRAY_SIZE(how))]);
	else if (s.qp.state != QPS_ERR && wq_reserve(&s.rq.wq))
		bench_receive(&s, 1, any(4), MTU);
}

/* --- runs and bursts ------------------------------------------------------------ */

static void run_ends(void)
{
	struct moves *m = &s.run.moves;

	a.run = false;
	if (!s.run.qp)
		return;
	m->done = m->num;
	m->error = 0;
	if (m->num && !any(8)) {
		m->done = any(m->num);
		m->error = -EFAULT;
	}
	qp_rx_commit(&s.run);
}

static enum rx_result take(const struct pkt *p)
{
	const struct payload payload = {.at = p->payload_len ? a.data : NULL};

	a.pkt[a.pkts] = *p;
	return qp_rx(&s.qp, &a.pkt[a.pkts++], payload, &s.run);
}

static void comes(const struct pkt *p)
{
	if (p->ext != (s.qp.open.theirs != 0) || (a.run && a.pkts >= RUN_MAX))
		return;
	if (!a.run)
		a.pkts = 0;
	if (take(p) == RX_FULL) {
		run_ends();
		a.pkts = 0;
		take(p);
	}
	a.run = s.run.qp != NULL;
	if (any(3))
		run_ends();
}

static void drain(void)
{
	if (!a.run) {
		a.pkts = 0;
		a.run = qp_drain(&s.qp, &s.run);
	}
	if (any(2))
		run_ends();
}

static void acks_end(struct burst *b, int error)
{
	b->peer->acks.out -= b->acks.num != 0;
	for (unsigned i = 0; i < b->acks.num; i++)
		ack_commit(&s.qp, &b->acks.v[i], error,
			   b->qp || error == -EAGAIN);
}

static void send(void)
{
	const int error = any(3) ? 0 : any(2) ? -EAGAIN : -EFAULT;

	if (!a.sent) {
		a.sent = qp_tx(&s.qp, &a.burst);
		return;
	}
	a.sent = false;
	a.burst.gathers.done = a.burst.gathers.num;
	acks_end(&a.burst, error);
	qp_tx_commit(&a.burst, error);
}

static void say(void)
{
	if (a.said)
		acks_end(&a.acks, any(2) ? 0 : -EAGAIN);
	a.said = !a.said && !list_empty(&s.peer.acks.link) &&
		 peer_ack_burst(&s.x, &s.peer, &a.acks);
}

/* --- the peer ------------------------------------------------------------------- */

/* Mostly what is next, and else before, ahead or far from it. */
static psn_t some_request(void)
{
	const psn_t next = s.qp.resp.win.next;

	switch (any(12)) {
	case 0:
		return psn_add(next, 1 + any(3));
	case 1:
		return psn_add(next, PSN_MASK - any(40));
	case 2:
		return s.qp.resp.win.head;
	case 3:
		return psn_add(next, any(2) ? any(100) : any(PSN_MASK));
	default:
		return next;
	}
}

/* So many READs and atomics an honest peer has under way, as @p would be one more. */
static bool too_many(void)
{
	uint32_t n = replay_pending(&s.qp) + s.qp.resp.replay.coming;

	list_for_each(l, &s.qp.resp.win.waiting) {
		const struct accepted *w = list_entry(l, struct accepted, link);

		n += (w->pkt.op & (OPF_READ | OPF_ATOMIC)) != 0;
	}
	return n + 3 >= RD_ATOMIC_MAX;
}

static uint8_t some_opcode(void)
{
	static const uint8_t ops[] = {
		OP_WRITE_ONLY, OP_WRITE_ONLY, OP_WRITE_ONLY, OP_WRITE_FIRST,
		OP_SEND_ONLY,  OP_SEND_ONLY,  OP_READ_REQ,   OP_READ_REQ,
		OP_READ_REQ,   OP_FETCH_ADD,  OP_FETCH_ADD};
	const uint8_t op = ops[any(ARRAY_SIZE(ops))];

	if (s.qp.resp.msg.op & OPF_WRITE)
		return s.qp.resp.msg.left > MTU ? OP_WRITE_MIDDLE
						: OP_WRITE_LAST;
	return (op == OP_READ_REQ || op == OP_FETCH_ADD) && too_many()
		       ? OP_WRITE_ONLY
		       : op;
}

static struct pkt some_message(void)
{
	const uint64_t left = s.qp.resp.msg.left;
	struct pkt p = bench_pkt(&s, some_opcode(), some_request());

	p.va = bench_page(any(BENCH_PAGES - 4));
	switch (p.opcode) {
	case OP_READ_REQ:
		p.dma_len = any(any(4) ? 6 * MTU : 3);
		break;
	case OP_WRITE_FIRST:
		p.dma_len = 3 * MTU;
		p.payload_len = MTU;
		break;
	case OP_WRITE_MIDDLE:
		p.payload_len = MTU;
		break;
	case OP_WRITE_LAST:
		p.payload_len = (uint32_t)MIN(left, (uint64_t)MTU);
		break;
	case OP_FETCH_ADD:
		p.va += 8 * any(8);
		p.dma_len = 8;
		break;
	default:
		p.dma_len = p.payload_len = any(MTU + 1);
		break;
	}
	return p;
}

/* A READ from any of its packets on, or an atomic, that was answered. */
static bool repetition(struct pkt *p)
{
	const struct resource *r = &s.qp.resp.replay.res[any(RESOURCES_MAX)];
	const uint32_t k = r->used && !r->atomic ? any(r->num) : 0;

	if (!r->used)
		return false;
	*p = bench_pkt(&s, r->atomic ? OP_FETCH_ADD : OP_READ_REQ,
		       psn_add(r->psn, k));
	p->va = r->va + (uint64_t)k * MTU;
	p->rkey = r->rkey;
	p->dma_len = r->len - k * MTU;
	return true;
}

static void request(void)
{
	struct pkt p;

	if (any(4) || !repetition(&p))
		p = some_message();
	p.ack_req = any(2);
	p.unanswered = !any(4);
	p.placed_to = psn_add(s.qp.req.psn.una, any(4) + PSN_MASK);
	comes(&p);
}

static psn_t some_answer(void)
{
	const struct req *r = &s.qp.req;
	const uint32_t n = (uint32_t)psn_diff(r->psn.max, r->psn.una);

	switch (any(8)) {
	case 0:
		return psn_add(r->psn.una, PSN_MASK - any(3));
	case 1:
		return r->psn.snd;
	case 2:
		return psn_add(r->psn.max, any(2) + PSN_MASK);
	default:
		return psn_add(r->psn.una, any(n + 2) + PSN_MASK);
	}
}

static uint8_t response_opcode(const struct wqe *w, uint32_t k)
{
	const uint32_t chunk = s.qp.req.reads.chunk;
	const bool first = k % chunk == 0,
		   last = k + 1 == w->num_psn || (k + 1) % chunk == 0;

	if (!any(30))
		return OP_READ_RESP_MIDDLE;
	return first && last ? OP_READ_RESP_ONLY
	       : first	     ? OP_READ_RESP_FIRST
	       : last	     ? OP_READ_RESP_LAST
			     : OP_READ_RESP_MIDDLE;
}

static void response(void)
{
	const psn_t psn = any(5) ? s.qp.req.win.next : some_answer();
	const struct wqe *w;
	struct pkt p;
	uint32_t i, k;

	if (!req_wqe_at(&s.qp, psn, &i))
		return;
	w = wq_at(&s.sq, i);
	k = (uint32_t)psn_diff(psn, w->first_psn);
	if (w->op == WR_READ) {
		p = bench_pkt(&s, response_opcode(w, k), psn);
		p.dma_len = (uint32_t)w->length;
		p.payload_len =
			k + 1 == w->num_psn
				? (uint32_t)(w->length - (uint64_t)k * MTU)
				: MTU;
	} else if (w->op == WR_FETCH_ADD) {
		p = bench_pkt(&s, OP_ATOMIC_ACK, psn);
	} else {
		return;
	}
	p.syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	comes(&p);
}

/* What only nopins say. */
static void say_more(struct pkt *p)
{
	p->opcode = OP_X_ACK;
	p->op = opcode_info(OP_X_ACK)->flags & ~(uint32_t)OPF_EXT;
	p->accepted = some_answer();
	p->xack_flags = any(3) ? 0 : any(256) & XACK_KNOWN;
	p->xack_flags |= any(2) ? XACK_PROBED : 0;
	p->sack = any(2) ? any(256) : rnd_next(&a.rnd);
	p->credit = any(8) ? 1 << 20 : any(5000);
	p->question = (uint16_t)(1 + any(UINT16_MAX));
	p->answer = any(2) ? s.qp.req.probe.question : (uint16_t)any(4);
	p->hold_us = any(3) ? any(3000) : 0;
}

static void acknowledge(void)
{
	struct pkt p = bench_pkt(&s, OP_ACK, some_answer());

	if (s.qp.open.theirs)
		say_more(&p);
	p.unanswered = !any(4);
	p.syndrome = !any(8)	 ? AETH_RNR | any(4)
		     : !any(8)	 ? AETH_NAK | NAK_PSN_SEQUENCE
		     : !any(400) ? AETH_NAK | NAK_REMOTE_ACCESS
				 : AETH_ACK | AETH_CREDIT_INVALID;
	comes(&p);
}

/* --- all of it ------------------------------------------------------------------- */

static void step(void)
{
	static void (*const what[])(void) = {
		request, request, request,   response,	  response, acknowledge,
		send,	 send,	  say,	     post,	  pager,    pager,
		drain,	 program, page_goes, time_passes,
	};
	struct cqe e;

	what[any(ARRAY_SIZE(what))]();
	while (cq_take(&s.cq, 1, &e))
		;
}

static void open_any(void)
{
	bench_open(&s, any(3) ? PEER_NOPIN : PEER_STANDARD,
		   PSN_MASK - any(any(2) ? 20 : PSN_MASK));
	s.peer.path.gso = any(4);
	s.peer.features |= HELLO_SUSPEND | HELLO_GRO;
	s.peer.flow.budget = 1 << 20;
	s.peer.quota.slots = any(3) ? BENCH_SLOTS : any(4);
	s.peer.read_chunk = 64;
	s.peer.late.wait_ns = any(3) ? 0 : any(200000);
	s.x.budget.push = s.x.budget.read = 1 << 20;
	s.x.peers = 1;
	s.x.ack_delay_ns = 20000;
	s.qp.attr.rnr_retry = 7;
	s.qp.attr.max_rd_atomic = RD_ATOMIC_MAX;
	s.qp.attr.min_rnr_timer = 1;
	s.qp.attr.sq_psn = PSN_MASK - any(any(2) ? 30 : PSN_MASK);
	req_reset(&s.qp);
}

static void run_seed(uint64_t seed)
{
	memset(&a, 0, sizeof(a));
	a.rnd = (struct rnd){.k0 = seed};
	open_any();
	for (int i = 0; i < STEPS; i++)
		step();
}

/* Each in a process of its own, which an assertion ends. */
static void qp__any_order(void **state)
{
	int status, failed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		pid_t pid = fork();

		if (pid == 0) {
			run_seed(seed);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		if (status != 0)
			print_error("again: xport_any_test %d\n", (int)seed);
		failed += status != 0;
	}
	assert_int_equal(failed, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(qp__any_order),
	};

	if (argc > 1) {
		run_seed(strtoull(argv[1], NULL, 10));
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
