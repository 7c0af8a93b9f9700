/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* engine.c: one step of the NIC as plan, move and commit (design D7). The plan
 * and the commit run under the engine lock and do no I/O on application memory;
 * the move runs without a lock and may take as long as a page takes.
 * A driver (progress.c, or the simulator's scheduler) calls, for receiving:
 *     inlet_receive(); while (engine_rx_plan()) { move; commit; }
 * and for everything else:
 *     while (engine_plan()) { move; commit; }
 */
#include "nic/engine.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/moves.h"
#include "base/page.h"
#include "base/timerq.h"
#include "mem/dma.h"
#include "mem/spt.h"
#include "mem/ticket.h"
#include "mem/upcall.h"
#include "mem/waiter.h"
#include "nic/acks.h"
#include "nic/closed.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/due.h"
#include "nic/events.h"
#include "nic/handoff.h"
#include "nic/inlet.h"
#include "nic/lock.h"
#include "nic/peers.h"
#include "nic/posted.h"
#include "nic/prefetch.h"
#include "nic/qp.h"
#include "nic/refresh.h"
#include "nic/reg.h"
#include "nic/roce.h"
#include "nic/scatter.h"
#include "nic/step.h"
#include "nic/txbatch.h"
#include "os/copy.h"
#include "os/net.h"
#include "os/pages.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/open.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/rx.h"
#include "xport/tx.h"
#include "xport/xport.h"

#include <errno.h>

/* --- receiving --------------------------------------------------------------- */

static bool intact(struct nic *nic, const struct pkt *p,
		   const struct os_rx *from, const uint8_t *bytes, uint32_t len)
{
	struct path path = {.src = from->src.ip,
			    .dst = from->dst,
			    .sport = from->src.port,
			    .dport = from->dport};
	if (p->ext ? !xcrc_ok(bytes, p->hdr_len, bytes + len - ICRC_BYTES)
		   : !icrc_ok(&path, bytes, len)) {
		count(&nic->cnt, CNT_drop_icrc);
		return false;
	}
	return true;
}

/* Is it from the peer of @nq, as far as can be told? */
static bool from_peer(struct nic *nic, struct nic_qp *nq, const struct pkt *p,
		      const struct os_rx *from)
{
	struct qp *qp = &nq->qp;

	if (!ipaddr_eq(&qp->attr.dgid, &from->src.ip)) {
		count(&nic->cnt, CNT_drop_peer);
		return false;
	}
	if (!qp_admits(qp, p)) {
		count(&nic->cnt, CNT_drop_epoch);
		return false;
	}
	if (unlikely(p->ext && !qp->open.known)) {
		open_proved(qp);
		peers_proved(nic, qp->peer);
	}
	return true;
}

static enum rx_result to_qp(struct nic *nic, struct step *s, struct pkt *p,
			    const struct os_rx *from, uint8_t *bytes,
			    uint32_t len)
{
	struct nic_qp *nq = demux_find(nic, p->qpn);

	if (!nq && from->port == nic->roce.port && !p->ext) {
		roce_pass_on(nic, p, from, bytes, len);
		return RX_NEXT;
	}
	if (!nq) {
		count(&nic->cnt, CNT_drop_qpn);
		return RX_NEXT;
	}
	if (p->opcode == OP_X_OPEN) {
		peers_open(nic, nq, p, from);
		return RX_NEXT;
	}
	if (!qp_receives(&nq->qp)) {
		/* not noted either: it would push out what led to the error */
		count(&nic->cnt, CNT_drop_state);
		return RX_NEXT;
	}
	if (nq->init.ud) {
		/* from anybody; the program learns from whom */
		p->fwd_src = from->src;
		p->fwd_dst = from->dst;
		p->fwd_mark = from->mark;
	} else if (!from_peer(nic, nq, p, from)) {
		return RX_NEXT;
	}
	flight_note(&nq->qp.log, nic->x.now, FLIGHT_RX, p->psn, p->opcode,
		    p->payload_len);
	return qp_rx(&nq->qp, p, payload_of_step(bytes + p->hdr_len), &s->run);
}

static enum rx_result take_control(struct nic *nic, struct step *s,
				   const struct pkt *p)
{
	if (nic->cfg.standard)
		count(&nic->cnt, CNT_drop_ext);
	else
		peers_hello(nic, p, &s->rx);
	return RX_NEXT;
}

static enum rx_result take_packet(struct nic *nic, struct step *s,
				  const struct os_rx *from, uint8_t *bytes,
				  uint32_t len);

/* A forwarded packet is not forwarded again: no deeper than this.
 * NOLINTNEXTLINE(misc-no-recursion) */
static enum rx_result take_forwarded(struct nic *nic, struct step *s,
				     const struct pkt *p, uint8_t *bytes)
{
	struct os_rx from = s->rx;

	from.src = p->fwd_src;
	from.dst = p->fwd_dst;
	from.mark = (struct ip_mark){0}; /* was not passed on */
	from.dport = ROCE_PORT;
	if (!roce_trusts(nic, p, &s->rx) || bytes[p->hdr_len] >= OP_X_HELLO) {
		count(&nic->cnt, CNT_drop_forward);
		return RX_NEXT;
	}
	return take_packet(nic, s, &from, bytes + p->hdr_len, p->payload_len);
}

/* NOLINTNEXTLINE(misc-no-recursion): see take_forwarded() */
static enum rx_result take_packet(struct nic *nic, struct step *s,
				  const struct os_rx *from, uint8_t *bytes,
				  uint32_t len)
{
	struct pkt *p = &s->pkts[s->npkts];
	enum rx_result res;
	enum counter why = pkt_parse(bytes, len, len, p);

	if (why != CNT_NUM) {
		count(&nic->cnt, why);
		return RX_NEXT;
	}
	if (!intact(nic, p, from, bytes, len))
		return RX_NEXT;
	if (p->opcode == OP_X_HELLO || p->opcode == OP_X_HELLO_REPLY)
		return take_control(nic, s, p);
	if (p->opcode == OP_X_FORWARD)
		return take_forwarded(nic, s, p, bytes);
	if (p->pkey != PKEY_DEFAULT) {
		count(&nic->cnt, CNT_drop_pkey);
		return RX_NEXT;
	}
	res = to_qp(nic, s, p, from, bytes, len);
	if (res == RX_NEXT && s->run.num && s->run.pkt[s->run.num - 1].pkt == p)
		s->npkts++;
	return res;
}

bool engine_rx_plan(struct nic *nic, struct step *s, uint64_t now_ns)
{
	enum rx_result res = RX_NEXT;

	nic_time(nic, now_ns);
	refresh_pages(nic);
	if (!s->taken) {
		s->taken = s->rx.len;
		count(&nic->cnt, CNT_rx_bursts);
		count_add(&nic->cnt, CNT_rx_bytes, s->rx.len);
		nic->cnt.v[CNT_kernel_drops] = s->rx.kernel_drops;
		if (s->rx.len == 0) { /* a datagram of nothing */
			count(&nic->cnt, CNT_rx_packets);
			count(&nic->cnt, CNT_drop_short);
		}
		if (s->scatter.qp)
			scatter_packets(nic, s);
	}
	if (!s->run.qp)
		s->npkts = 0;
	while (s->at < s->rx.len && s->npkts < RUN_PKTS) {
		uint32_t len = MIN(s->rx.seg, s->rx.len - s->at);

		res = take_packet(nic, s, &s->rx, s->buf + s->at, len);
		if (res == RX_FULL)
			break;
		count(&nic->cnt, CNT_rx_packets);
		s->at += len;
	}
	CHECK(res != RX_FULL || s->run.qp);
	events_srqs(nic);
	inlet_rest(nic, s);
	return s->run.qp != NULL || s->at < s->rx.len;
}

/* --- everything else ----------------------------------------------------------- */

static void take_pages(struct nic *nic)
{
	struct os_page_done done[16];
	struct list woken;
	unsigned n;

	list_init(&woken);
	while ((n = os_page_reap(nic->os, done, ARRAY_SIZE(done)))) {
		for (unsigned i = 0; i < n; i++) {
			struct os_page_done *d = &done[i];

			/* copy-on-write again, or soon: page after page */
			d->writable &= !nic->host.forking;
			if (d->by_hand)
				user_only_learn(nic->mem, d->addr, d->bytes);
			if (d->absent)
				spt_absent(nic->mem, page_of(d->addr),
					   (d->bytes >> PAGE_SHIFT) +
						   (d->error != 0));
			if (d->id >= PREFETCH_ID) {
				prefetch_done(nic, d);
				continue;
			}
			ticket_plain(nic->mem,
				     (struct ticket_id){(uint32_t)d->id},
				     d->plain_start, d->plain_end, d->early,
				     nic->x.now);
			if (d->major)
				ticket_major(
					nic->mem,
					(struct ticket_id){(uint32_t)d->id});
			ticket_done(nic->mem,
				    (struct ticket_id){(uint32_t)d->id},
				    d->bytes >> PAGE_SHIFT, d->error != 0,
				    d->writable, d->cheap_start, d->cheap_end,
				    d->service_ns, nic->x.now, &woken);
		}
	}
	moved_take(nic->mem, &woken);
	list_for_each_safe(l, tmp, &woken) {
		struct waiter *w = list_entry(l, struct waiter, link);

		list_del(l);
		if (w->owner)
			qp_wake(w);
		else
			nic_wake_idle(nic);
	}
	if (!nic->x.starved)
		return;
	list_for_each(l, &nic->qps.all)
		xport_tickets_free(&nic->x,
				   &list_entry(l, struct nic_qp, all)->qp);
	nic->x.starved = false;
}

static void ask_pages(struct nic *nic)
{
	struct ticket_req t;

	while (ticket_next(nic->mem, &t)) {
		struct os_page_req req = {.id = t.id.v,
					  .addr = t.vpn << PAGE_SHIFT,
					  .bytes = t.pages << PAGE_SHIFT,
					  .write = t.write,
					  .whole = t.whole,
					  .look = t.look};

		if (os_page_ask(nic->os, &req)) {
			ticket_unsent(nic->mem, t.id);
			break;
		}
	}
	prefetch_ask(nic);
}

/* Timers ask whether an answer came in time: not before what waits in the
 * sockets, or in the hands of a thread that lost its CPU, has been looked at.
 */
static void run_timers(struct nic *nic)
{
	const uint64_t now = nic->x.now;
	struct timer *t;

	if (!nic->cfg.manual)
		nic->x.now = MIN(now, inlet_heard(nic));
	while ((t = timerq_pop(&nic->x.timers, nic->x.now)))
		qp_timeout(container_of(t, struct qp, timer));
	peers_timers(nic);
	nic->x.now = now;
}

static bool plan_drain(struct nic *nic, struct step *s)
{
	struct list *head = &nic->x.work.drainable;

	rx_run_init(&s->run);
	while (!list_empty(head)) {
		struct qp *qp = list_entry(head->next, struct qp, on.drainable);

		list_del(&qp->on.drainable);
		if (qp_drain(qp, &s->run)) {
			s->kind = STEP_DRAIN;
			return true;
		}
	}
	return false;
}

static bool engine_plan_send(struct nic *nic, struct step *s)
{
	struct list *head = &nic->x.work.runnable;

	while (!list_empty(head)) {
		struct qp *qp = list_entry(head->next, struct qp, on.runnable);

		list_del(&qp->on.runnable);
		if (!qp->connected)
			peer_aim(nic, qp);
		if (qp_tx(qp, &s->burst)) {
			s->kind = STEP_SEND;
			return true;
		}
		if (unlikely(qp->peer && qp->peer->hello.insist)) {
			qp->peer->hello.insist = false;
			peers_insist(nic, qp->peer);
		}
	}
	return false;
}

static bool ack_due(const struct peer *p, bool flush, uint64_t now_ns)
{
	return p->acks.after_ns <= now_ns &&
	       (flush || p->acks.due_ns <= now_ns);
}

/* The first peer whose ACKs are due; with @flush any. */
static bool plan_acks(struct nic *nic, struct step *s, bool flush)
{
	list_for_each_safe(l, tmp, &nic->x.work.ack_peers) {
		struct peer *p = list_entry(l, struct peer, acks.link);

		if (ack_due(p, flush, nic->x.now) &&
		    peer_ack_burst(&nic->x, p, &s->burst)) {
			/* no QP that is moving keeps it */
			p->refs++;
			nic->acks.begun++;
			s->kind = STEP_SEND;
			return true;
		}
	}
	return false;
}

static uint64_t next_deadline(const struct nic *nic)
{
	uint64_t at = MIN(timerq_next(&nic->x.timers),
			  timerq_next(&nic->peers.timers));

	list_for_each(l, &nic->x.work.ack_peers) {
		const struct peer *p = list_entry(l, struct peer, acks.link);

		at = MIN(at, MAX(p->acks.due_ns, p->acks.after_ns));
	}
	return at;
}

static bool acks_wait(const struct nic *nic, bool flush)
{
	list_for_each(l, &nic->x.work.ack_peers)
		if (ack_due(list_entry(l, struct peer, acks.link), flush,
			    nic->x.now))
			return true;
	return false;
}

/* Tell everybody when something is due next. */
static void publish(struct nic *nic)
{
	const bool out = nic->acks.begun != nic->acks.ended;

	due_set(nic, nic->dead ? TIME_NEVER : next_deadline(nic), nic->x.now);
	__atomic_store_n(&nic->acks.owed, !list_empty(&nic->x.work.ack_peers),
			 __ATOMIC_RELAXED);
	__atomic_store_n(&nic->acks.due,
			 !nic->dead && (out || acks_wait(nic, false)),
			 __ATOMIC_RELAXED);
}

bool engine_plan(struct nic *nic, struct step *s, bool flush_acks,
		 uint64_t now_ns)
{
	bool found;

	nic_time(nic, now_ns);
	refresh_pages(nic);
	posted_take(nic);
	take_pages(nic);
	if (closed_untold(nic))
		events_died(nic);
	if (!nic->dead)
		run_timers(nic);
	s->kind = STEP_NONE;
	found = !nic->dead && (plan_drain(nic, s) || engine_plan_send(nic, s) ||
			       plan_acks(nic, s, flush_acks));
	peers_say_open(nic);
	ask_pages(nic);
	events_deliver(nic);
	publish(nic);
	return found;
}

bool engine_plan_acks(struct nic *nic, struct step *s, uint64_t now_ns)
{
	nic_time(nic, now_ns);
	s->kind = STEP_NONE;
	return !nic->dead && plan_acks(nic, s, false);
}

bool engine_settled(struct nic *nic, bool flush_acks, uint64_t now_ns)
{
	const struct xport *x = &nic->x;

	nic_time(nic, now_ns);
	if (!list_empty(&x->work.runnable) || !list_empty(&x->work.drainable) ||
	    !list_empty(&x->work.fired) || !list_empty(&x->work.raised) ||
	    !list_empty(&x->work.errors) || !list_empty(&x->work.opens) ||
	    x->starved || os_pages_waiting(nic->os) || ticket_new(nic->mem) ||
	    moved_waiters(nic->mem) || upcalls_news(nic->mem) ||
	    closed_untold(nic) ||
	    __atomic_load_n(&nic->posted, __ATOMIC_RELAXED) ||
	    acks_wait(nic, flush_acks))
		return false;
	publish(nic);
	return true;
}

/* --- move and commit ------------------------------------------------------------ */

void engine_move(struct nic *nic, struct step *s)
{
	struct moves *mv = s->kind == STEP_SEND ? &s->burst.gathers
						: &s->run.moves;
	struct reg_move rm;

	reg_move_begin(nic, mv, &rm);
	if (s->kind == STEP_SEND)
		txbatch_send(nic, s);
	else if (mv->num)
		os_moves(nic->os, mv);
	reg_move_end(nic, mv, &rm);
}

static void commit_acks(struct nic *nic, const struct step *s)
{
	const struct burst *b = &s->burst;
	bool again = b->qp || s->error == -EAGAIN;

	b->peer->acks.out -= b->acks.num != 0;
	for (unsigned i = 0; i < b->acks.num; i++) {
		struct nic_qp *qp = demux_find(nic, b->acks.v[i].qpn);

		if (qp)
			ack_commit(&qp->qp, &b->acks.v[i], s->error, again);
	}
}

void engine_commit(struct nic *nic, struct step *s, uint64_t now_ns)
{
	const struct burst *b = &s->burst;

	nic_time(nic, now_ns);
	if (s->kind == STEP_SEND) {
		count(&nic->cnt, CNT_tx_bursts);
		count_add(&nic->cnt, CNT_tx_bytes, s->burst.total);
		if (s->error == -EBADF)
			closed_note(nic);
		if (s->error == -EMSGSIZE)
			peers_too_large(nic, b->peer,
					b->nsegs > 1 ? b->seg_len : b->total);
		commit_acks(nic, s);
		if (s->burst.qp) {
			qp_tx_commit(&s->burst, s->error);
		} else {
			count_add(&nic->cnt, CNT_tx_packets,
				  s->error ? 0 : s->burst.nsegs);
			__atomic_store_n(&nic->acks.ended, nic->acks.ended + 1,
					 __ATOMIC_RELEASE);
			peer_put(nic, s->burst.peer);
		}
	} else {
		/* whoever sees a completion sees this */
		__atomic_store_n(&nic->acks.due, 1, __ATOMIC_RELAXED);
		qp_rx_commit(&s->run);
	}
	nic_wake_idle(nic);
}
