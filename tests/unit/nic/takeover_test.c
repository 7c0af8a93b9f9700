/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* takeover_test.c: steps of a NIC that overlap: what was planned or received in
 * place by a thread that then sleeps, while others go on.
 */
#include "base/page.h"
#include "mem/spt.h"
#include "nic/demux.h"
#include "nic/engine.h"
#include "nic/inlet.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "owed.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/control.h"
#include "xport/flow.h"
#include "xport/kick.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/replay.h"
#include "xport/reply.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/rx.h"
#include "xport/tx.h"
#include "xport/window.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/* What waits for @s is received in place, and not planned yet. A stranger's packet,
 * from a test that had our port before, may be first. */
static void receive_in_place(struct side *s, struct step *step)
{
	know_pages(s);
	for (;;) {
		s->nic->rx.peek = 1;
		assert_true(inlet_receive(s->nic, step));
		if (step->scatter.qp)
			break;
		finish_receive(s->nic, step);
	}
	assert_ptr_equal(step->scatter.qp, &s->qp->qp);
}

/* @s has a burst received in place by a thread that then sleeps; meanwhile
 * @from sends the same again and another thread of @s takes it; then the first
 * one wakes. */
static void overtake(struct side *s, struct side *from)
{
	struct step *slow = &s->nic->steps.v[2];

	receive_in_place(s, slow);
	if (from->qp->qp.req.psn.una != from->qp->qp.req.psn.max)
		retry_rewind(&from->qp->qp, FLIGHT_TIMEOUT);
	else
		replay_duplicate(
			&from->qp->qp,
			&(struct pkt){.op = OPF_READ,
				      .psn = slow->scatter.first.psn,
				      .va = (uintptr_t)from->buf + BUF / 2,
				      .rkey = from->key,
				      .dma_len = LEN});
	send_all(from);
	pump(s);
	finish_receive(s->nic, slow);
}

static void scatter__request_kept_meanwhile_is_placed(void **state)
{
	(void)state;
	memset(side[0].buf, 0x5a, LEN);
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	overtake(&side[1], &side[0]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf + BUF / 2, side[0].buf, LEN);
}

static void scatter__response_kept_meanwhile_is_placed(void **state)
{
	(void)state;
	memset(side[1].buf + BUF / 2, 0xa5, LEN);
	post(&side[0], WR_READ, LEN);
	send_all(&side[0]);
	pump(&side[1]);
	overtake(&side[0], &side[1]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[0].buf, side[1].buf + BUF / 2, LEN);
}

static void scatter__counts_a_burst_once(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[2];
	uint64_t bursts = nic->cnt.v[CNT_rx_bursts];
	uint64_t bytes = nic->cnt.v[CNT_rx_bytes], len;

	(void)state;
	post(&side[0], WR_WRITE, 4 * LEN);
	send_all(&side[0]);
	receive_in_place(&side[1], step);
	len = step->rx.len;
	finish_receive(nic, step);
	assert_int_equal(nic->cnt.v[CNT_rx_bursts] - bursts, 1);
	assert_int_equal(nic->cnt.v[CNT_rx_bytes] - bytes, len);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

static void *destroy(void *arg)
{
	struct side *s = arg;

	assert_int_equal(nic_qp_destroy(s->qp), 0);
	s->qp = NULL;
	return NULL;
}

/* The program destroys a QP while a burst for it is received in place. Nothing
 * of that burst is taken any more, so no run is committed. */
static void scatter__destroy_waits_and_goes_on(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *slow = &nic->steps.v[2];
	pthread_t thread;
	bool waits = false;

	(void)state;
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	receive_in_place(&side[1], slow);
	assert_int_equal(pthread_create(&thread, NULL, destroy, &side[1]), 0);
	while (!waits) {
		nic_lock(nic);
		waits = nic->idle.waiters;
		nic_unlock(nic);
	}
	nic_lock(nic);
	finish_receive(nic, slow);
	nic_unlock(nic);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static bool left_it;

static void *flush(void *arg)
{
	struct side *s = arg;

	nic_flush(s->nic);
	nic_lock(s->nic);
	left_it = s->qp->qp.rx_moving;
	nic_unlock(s->nic);
	return NULL;
}

/* The program sees a burst that another thread received in place, and exits. */
static void scatter__exit_waits(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *slow = &nic->steps.v[2];
	pthread_t thread;

	(void)state;
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	receive_in_place(&side[1], slow);
	assert_int_equal(pthread_create(&thread, NULL, flush, &side[1]), 0);
	usleep(20000); /* it looks */
	nic_lock(nic);
	finish_receive(nic, slow);
	nic_unlock(nic);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_false(left_it);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Two READs in one run, their pages go away under the moves, and there is no
 * slot to keep the responses in: both READs are made again. */
static void responses_failed__all_are_asked_for_again(void **state)
{
	struct step *step = &side[0].nic->steps.v[2];
	int slot[4096];
	unsigned n;

	(void)state;
	for (int i = 0; i < 2; i++)
		post(&side[0], WR_READ, 8);
	send_all(&side[0]);
	know_pages(&side[1]);
	pump(&side[1]);
	know_pages(&side[0]);
	side[0].nic->rx.peek = 0;
	assert_true(inlet_receive(side[0].nic, step));
	assert_true(engine_rx_plan(side[0].nic, step, os_now(side[0].nic->os)));
	assert_int_equal(step->run.num, 2);
	n = take_slots(side[0].nic, slot, ARRAY_SIZE(slot));
	assert_int_equal(mprotect(side[0].buf, PAGE_BYTES, PROT_NONE), 0);
	plan_move_commit(side[0].nic, step);
	assert_int_equal(
		mprotect(side[0].buf, PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
	give_slots(side[0].nic, slot, n);
	finish_receive(side[0].nic, step);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Of a READ whose last responses are lost only those are asked for and sent. */
static void replay__the_tail_only(void **state)
{
	enum { CAME = 4, LOST = LEN / 4096 - CAME };
	const uint64_t *sent = &side[1].nic->cnt.v[CNT_tx_packets];
	struct step *step = &side[0].nic->steps.v[2];
	uint64_t before;

	(void)state;
	post(&side[0], WR_READ, LEN);
	send_all(&side[0]);
	pump(&side[1]);
	know_pages(&side[0]);
	side[0].nic->rx.peek = 0;
	assert_true(inlet_receive(side[0].nic, step));
	assert_true(step->rx.len >= (CAME + LOST) * step->rx.seg);
	step->rx.len = CAME * step->rx.seg;
	finish_receive(side[0].nic, step);
	retry_ask_again(&side[0].qp->qp, side[0].qp->qp.req.psn.una,
			side[0].qp->qp.req.psn.snd);
	send_all(&side[0]);
	before = *sent;
	pump(&side[1]);
	/* and an ACK */
	assert_in_range(*sent - before, LOST, LOST + 1);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Else 2^23 WRITEs on, a READ's response would look like one that was taken. */
static void comp_placed__response_window_follows_writes(void **state)
{
	const struct req *r = &side[0].qp->qp.req;

	(void)state;
	for (int i = 0; i < 10; i++) {
		post(&side[0], WR_WRITE, 8);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_int_equal(r->win.next, r->psn.una);
}

/* The last QP towards a peer goes while an ACK for that peer is being sent. */
static void engine_plan__ack_keeps_its_peer(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[2];

	(void)state;
	write_comes();
	assert_true(engine_plan(nic, step, true, os_now(nic->os)));
	assert_null(step->burst.qp);
	assert_int_equal(nic_qp_destroy(side[1].qp), 0);
	assert_int_equal(nic->x.peers, 1);
	plan_move_commit(nic, step);
	assert_int_equal(nic->x.peers, 0);
	side[1].qp = NULL;
}

static uint64_t next_ack(const struct nic *nic)
{
	const struct list *l = nic->x.work.ack_peers.next;

	assert_false(list_empty(&nic->x.work.ack_peers));
	return list_entry(l, struct peer, acks.link)->acks.due_ns;
}

/* An ACK that is due is something to do. */
static void engine_settled__not_while_an_ack_is_due(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[2];
	uint64_t now;

	(void)state;
	write_comes();
	now = next_ack(nic);
	assert_true(engine_settled(nic, false, now - 1));
	assert_false(engine_settled(nic, true, now - 1));
	assert_false(engine_settled(nic, false, now));
	assert_true(engine_plan(nic, step, false, now));
	plan_move_commit(nic, step);
	assert_true(engine_settled(nic, true, now));
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* While a burst comes in place one packet of it comes again, and is kept. */
static void scatter__repeated_in_part(void **state)
{
	struct step *slow = &side[1].nic->steps.v[2];
	struct req *r = &side[0].qp->qp.req;

	(void)state;
	memset(side[0].buf, 0x3c, LEN);
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	receive_in_place(&side[1], slow);
	r->loss.base = r->psn.acc;
	r->loss.lost = 1 << 5;
	qp_kick(&side[0].qp->qp);
	send_all(&side[0]);
	pump(&side[1]);
	assert_int_equal(side[1].qp->qp.resp.win.num, 1);
	finish_receive(side[1].nic, slow);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf + BUF / 2, side[0].buf, LEN);
}

/* A burst that came whole in place says nothing of what is behind it. */
static void scatter__sockets_are_not_empty(void **state)
{
	struct nic *nic = side[1].nic;
	uint64_t now, before;

	(void)state;
	post(&side[0], WR_WRITE, 4 * LEN);
	send_all(&side[0]);
	know_pages(&side[1]);
	nic->rx.peek = 1;
	before = nic->rx.heard;
	now = os_now(nic->os);
	assert_true(progress_receive(nic, &now));
	assert_true(nic->cnt.v[CNT_rx_scattered] > 0);
	assert_int_equal(nic->rx.heard, before);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Nor does a datagram of nothing. */
static void receive__of_nothing(void **state)
{
	struct nic *nic = side[1].nic;
	const struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons(nic->ports[0]->number),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	const uint64_t before = nic->rx.heard;
	uint64_t now = os_now(nic->os);

	(void)state;
	nic->rx.peek = 0;
	assert_int_equal(sendto(sock, "", 0, 0, (const void *)&to, sizeof(to)),
			 0);
	assert_true(progress_receive(nic, &now));
	assert_int_equal(nic->cnt.v[CNT_drop_short], 1);
	assert_int_equal(nic->rx.heard, before);
	close(sock);
}

static void next_burst(struct side *s, struct step *step)
{
	const uint64_t end = os_now(s->nic->os) + 1000000000;

	for (;;) {
		know_pages(s);
		if (engine_plan(s->nic, step, false, os_now(s->nic->os))) {
			if (step->burst.qp)
				return;
			plan_move_commit(s->nic, step);
		}
		assert_true(os_now(s->nic->os) < end);
	}
}

/* The tail of one READ is answered again in front of the middle of another:
 * every response says how long its own READ is. */
static void replay__headers_are_of_their_own_read(void **state)
{
	enum { A = 2 * 4096, B = 3 * 4096, AT_B = BUF / 4 };
	const uint32_t want[] = {A, B, B};
	struct resp *r = &side[1].qp->qp.resp;
	struct side *s = &side[1];
	struct step *step = &s->nic->steps.v[2];
	const struct resource *a, *b;
	struct pkt p;

	(void)state;
	post(&side[0], WR_READ, A);
	post_at(&side[0], WR_READ, AT_B, B);
	send_all(&side[0]);
	while (inlet_receive(s->nic, step))
		finish_receive(s->nic, step);
	a = &r->replay.res[r->replay.at % RESOURCES_MAX];
	b = &r->replay.res[(r->replay.at + 1) % RESOURCES_MAX];
	know_pages(s);
	spt_unmap(s->nic->mem,
		  page_of((uintptr_t)s->buf + BUF / 2 + AT_B + 4096), 1);
	assert_true(engine_plan(s->nic, step, false, os_now(s->nic->os)));
	assert_int_equal(a->at, 2);
	assert_int_equal(b->at, 1);
	plan_move_commit(s->nic, step);
	replay_duplicate(&s->qp->qp, &(struct pkt){.op = OPF_READ,
						   .psn = psn_add(a->psn, 1),
						   .va = a->va + 4096,
						   .rkey = s->key,
						   .dma_len = 4096});
	next_burst(s, step);
	assert_true(step->burst.nsegs >= ARRAY_SIZE(want));
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		const struct seg *g = &step->burst.seg[i];

		assert_int_equal(
			pkt_parse(step->burst.bytes + g->hdr, g->hdr_len,
				  g->hdr_len + g->payload_len + ICRC_BYTES, &p),
			CNT_NUM);
		assert_int_equal(p.dma_len, want[i]);
	}
	plan_move_commit(s->nic, step);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* A page is missing and there is no slot to keep the packet in: the requester
 * is told to wait, and told when it may go on. It would wait for ever here. */
static void fault__resume_ends_the_hold(void **state)
{
	const uint64_t vpn = page_of((uintptr_t)side[1].buf + BUF / 2);
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[2];
	struct req *r = &side[0].qp->qp.req;
	int slot[4096];
	unsigned n;

	(void)state;
	nic->x.strategies |= 1u << STRATEGY_RESUME;
	nic->rx.peek = 0;
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	know_pages(&side[1]);
	spt_unmap(nic->mem, vpn, 1);
	n = take_slots(nic, slot, ARRAY_SIZE(slot));
	assert_true(inlet_receive(nic, step));
	finish_receive(nic, step);
	assert_true(engine_plan(nic, step, true, os_now(nic->os)));
	plan_move_commit(nic, step);
	pump(&side[0]);
	assert_true(req_held(r));
	r->at[REQ_HOLD] = TIME_NEVER - 1;
	give_slots(nic, slot, n);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf + BUF / 2, side[0].buf, LEN);
}

/* What the peer may fill of our pool, or that it keeps to that, was lost. */
static void peers__a_quota_is_told_again(void **state)
{
	struct nic *nic = side[0].nic;
	struct peer *p = side[0].qp->qp.peer;

	(void)state;
	assert_true(credit_settled(p));
	assert_int_equal(p->lend.lent, nic->x.pool.slots / 2);
	assert_int_equal(side[1].qp->qp.peer->quota.slots, p->lend.lent);
	p->lend.echoed = p->lend.serial - 1;
	timerq_set(&nic->peers.timers, &p->hello.timer, os_now(nic->os));
	settle_quotas();
	assert_true(credit_settled(p));
}

/* A peer turns out to be of another kind while a burst to it is being sent. */
static void engine_move__where_it_was_planned_to(void **state)
{
	struct step *step = &side[0].nic->steps.v[2];
	struct peer *p = side[0].qp->qp.peer;
	struct endpoint was = p->ep;

	(void)state;
	post(&side[0], WR_WRITE, 8);
	assert_true(
		engine_plan(side[0].nic, step, false, os_now(side[0].nic->os)));
	p->ep.port = ROCE_PORT;
	engine_move(side[0].nic, step);
	p->ep = was;
	engine_commit(side[0].nic, step, os_now(side[0].nic->os));
	assert_true(inlet_receive(side[1].nic, &side[1].nic->steps.v[2]));
	finish_receive(side[1].nic, &side[1].nic->steps.v[2]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Packets for a QP that is gone must not find a new one. */
static void demux__a_qpn_rests(void **state)
{
	enum { RESTS = 200, MADE = 5 * 1024 };
	struct nic_qp_init init = side[0].qp->init;
	static uint32_t qpn[MADE];
	struct nic_qp *qp;

	(void)state;
	for (int i = 0; i < MADE; i++) {
		assert_int_equal(
			nic_qp_create(side[0].nic, NULL, &init, &qp, &qpn[i]),
			0);
		assert_int_not_equal(qpn[i], side[0].qpn);
		for (int k = i - 1; k >= 0 && i - k <= RESTS; k--)
			assert_int_not_equal(qpn[i], qpn[k]);
		assert_int_equal(nic_qp_destroy(qp), 0);
	}
}

/* What is at @at comes from a disk at the next touch. false: not here. */
static bool make_cold(void *at, size_t len)
{
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	unsigned char in[(8 << 20) / PAGE_BYTES];
	bool cold;

	if (fd < 0)
		return false;
	cold = write(fd, at, len) == (ssize_t)len && !fsync(fd) &&
	       mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		    0) == at &&
	       !posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) &&
	       !mincore(at, len, in);
	close(fd);
	for (size_t i = 0; cold && i < len / PAGE_BYTES; i++)
		cold = !(in[i] & 1);
	return cold;
}

/* A burst comes in place where a page is not there after all. */
static void engine_majflt__in_place(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps.v[2];
	uint64_t faults;

	(void)state;
	nic->cfg.account = nic->cfg.account_own = true;
	if (!make_cold(side[1].buf + BUF / 2, BUF / 2))
		skip();
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	receive_in_place(&side[1], step);
	faults = nic->cnt.v[CNT_engine_majflt];
	finish_receive(nic, step);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_true(faults > 0);
	assert_int_equal(nic->cnt.v[CNT_own_majflt], 0);
}

/* The NIC's own memory was swapped out. */
static void own_majflt__steps(void **state)
{
	const size_t bytes = STEPS_MAX * sizeof(struct step);
	struct nic *nic = side[1].nic;
	uint64_t now = os_now(nic->os);

	(void)state;
	nic->cfg.account = nic->cfg.account_own = true;
	post(&side[0], WR_WRITE, 8);
	send_all(&side[0]);
	if (!make_cold(nic->steps.v,
		       DIV_ROUND_UP(bytes, PAGE_BYTES) * PAGE_BYTES))
		skip();
	assert_true(progress_receive(nic, &now));
	assert_true(nic->cnt.v[CNT_own_majflt] > 0);
	assert_int_equal(nic->cnt.v[CNT_engine_majflt], 0);
}

/* The flight recorder of a QP in error keeps what led there, whatever its peer
 * goes on to send.
 */
static void flight__is_not_pushed_out(void **state)
{
	const struct qp *qp = &side[1].qp->qp;
	struct qp_attr a = {.state = QPS_ERR};
	uint64_t next;

	(void)state;
	assert_int_equal(nic_qp_modify(side[1].qp, &a, QPA_STATE), 0);
	next = qp->log.next;
	for (int i = 0; i < 20; i++)
		post(&side[0], WR_WRITE, 8);
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
	assert_true(side[1].nic->cnt.v[CNT_drop_state] > 0);
	assert_int_equal(qp->log.next, next);
}

/* As much as the peer's socket may hold. Return: how many WRITEs. */
static unsigned fill_socket(const struct peer_flow *f)
{
	unsigned n = 0;

	for (; f->in_flight + flow_charge(false, 1, 4096) <= f->budget; n++) {
		post_at(&side[0], WR_WRITE, 0,
			f->budget - f->in_flight > 100000 ? 14 * 4096 : 4096);
		send_all(&side[0]);
	}
	return n;
}

static void hear_hold(struct qp *qp, psn_t psn)
{
	const struct pkt hold = {.opcode = OP_X_ACK,
				 .op = OPF_EXT | OPF_RESPONSE | OPF_AETH,
				 .ext = true,
				 .syndrome = AETH_ACK | AETH_CREDIT_INVALID,
				 .psn = psn,
				 .accepted = psn,
				 .credit = qp->peer->flow.budget,
				 .xack_flags = XACK_HOLD};
	struct rx_run run;

	rx_run_init(&run);
	qp_rx(qp, &hold, payload_of_step(NULL), &run);
	assert_true(req_held(&qp->req));
}

/* A HOLD of before comes again while all that there is to send is on its way; then
 * all is answered. Other QPs go on. */
static void flow__late_hold_charges_nobody(void **state)
{
	struct side b[SIDES] = {side[0], side[1]};
	struct qp *qp = &side[0].qp->qp;
	unsigned n;

	(void)state;
	for (int i = 0; i < SIDES; i++)
		side_qp(&b[i], 256, NULL, NULL);
	for (int i = 0; i < SIDES; i++)
		side_connect(&b[i], &b[!i]);
	know_pages(&side[0]);
	side[1].nic->x.budget.push = 212992 / 100 * 45; /* a default buffer */
	post(&side[0], WR_WRITE, 8);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	know_pages(&side[0]);
	n = fill_socket(&qp->peer->flow);
	hear_hold(qp, psn_add(qp->req.psn.una, PSN_MASK));
	while (n--)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	side[0].nic->x.now = qp->req.at[REQ_HOLD];
	if (req_held(&qp->req))
		qp_timeout(qp);
	assert_int_equal(qp->peer->flow.in_flight, 0);
	for (int i = 0; i < SIDES; i++)
		side_qp_close(&b[i]);
}

/* What is behind a gap is kept however far its sender may be: it was lent a slot, and
 * if it were dropped all of it would be sent again. */
static void resp__keeps_what_is_far_behind_a_gap(void **state)
{
	const struct qp *qp = &side[1].qp->qp;
	const struct resp *r = &qp->resp;
	const uint32_t reads = qp->attr.max_dest_rd_atomic;
	const uint32_t far = qp->peer->lend.lent + 1 + reads +
			     qp->peer->read_chunk * reads;
	const uint32_t ahead[] = {1, far / 4, far / 2, far - 1};
	struct pkt p = {.opcode = OP_X_DATA | OP_WRITE_ONLY,
			.op = OPF_REQUEST | OPF_WRITE | OPF_FIRST | OPF_LAST,
			.ext = true,
			.payload_len = 1,
			.dma_len = 1,
			.va = (uintptr_t)side[1].buf,
			.rkey = side[1].key};
	uint8_t byte = 1;
	struct rx_run run;

	(void)state;
	rx_run_init(&run);
	for (size_t i = 0; i < ARRAY_SIZE(ahead); i++) {
		p.psn = psn_add(r->win.next, ahead[i]);
		nic_tick(side[1].nic);
		qp_rx(&side[1].qp->qp, &p, payload_of_step(&byte), &run);
		assert_true(win_has(&r->win, p.psn));
	}
}

/* The peer may still be sending what it was asked for: then its answer says nothing,
 * and it is asked again soon, however rarely it was asked by then. */
static void comp__page_of_a_response_came(void **state)
{
	struct qp *qp = &side[0].qp->qp;
	const uint64_t now = os_now(side[0].nic->os);
	enum { MS = 1000 * 1000 };

	(void)state;
	qp->req.reads.missed = true;
	qp->req.probe.ns = 50 * MS;
	qp->req.at[REQ_PROBE] = now + 50 * MS;
	side[0].nic->x.now = now;
	reply_page_came(qp);
	assert_int_equal(qp->req.at[REQ_PROBE], now + MS);
	assert_int_equal(qp->req.probe.ns, MS);
}

/* The answer to our question is late: by then we were told less, and keep to it. */
static void peers__late_answer_lends_no_more(void **state)
{
	struct nic *nic = side[0].nic;
	struct peer *p = side[0].qp->qp.peer;
	const struct os_rx rx = {
		.src = p->asked, .dst = p->local, .port = p->port};
	struct pkt m = {.opcode = OP_X_HELLO_REPLY,
			.ext = true,
			.version = 4,
			.nonce = peers_nonce(nic, &p->asked),
			.my_nonce = p->nonce,
			.credit = p->flow.budget,
			.slots = p->quota.slots,
			.serial = p->quota.serial};
	struct pkt less = m;

	(void)state;
	less.opcode = OP_X_HELLO;
	less.slots = 8;
	less.serial++;
	/* as it was before any answer came */
	p->kind = PEER_PROBING;
	p->nonce = p->quota.slots = p->quota.serial = p->quota.kept = 0;
	nic_tick(nic);
	peers_hello(nic, &less, &rx);
	assert_int_equal(p->quota.slots, 8);
	assert_int_equal(credit_echo(p), less.serial); /* it is believed */
	nic_tick(nic);
	peers_hello(nic, &m, &rx);
	assert_int_equal(p->kind, PEER_NOPIN);
	assert_int_equal(p->quota.slots, 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(flight__is_not_pushed_out,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			scatter__request_kept_meanwhile_is_placed, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			scatter__response_kept_meanwhile_is_placed, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(scatter__counts_a_burst_once,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			scatter__destroy_waits_and_goes_on, setup, sides_close),
		cmocka_unit_test_setup_teardown(scatter__exit_waits, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(
			responses_failed__all_are_asked_for_again, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(replay__the_tail_only, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(engine_plan__ack_keeps_its_peer,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			comp_placed__response_window_follows_writes, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(
			engine_settled__not_while_an_ack_is_due, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(fault__resume_ends_the_hold,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(peers__a_quota_is_told_again,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			engine_move__where_it_was_planned_to, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(engine_majflt__in_place, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(own_majflt__steps, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(demux__a_qpn_rests, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(scatter__sockets_are_not_empty,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(receive__of_nothing, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(scatter__repeated_in_part,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			replay__headers_are_of_their_own_read, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(flow__late_hold_charges_nobody,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			resp__keeps_what_is_far_behind_a_gap, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(comp__page_of_a_response_came,
						setup, sides_close),
		cmocka_unit_test_setup_teardown(
			peers__late_answer_lends_no_more, setup, sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
