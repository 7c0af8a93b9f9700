/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_rx.c: datagrams come in (IBTA 9.8.3): whom they are for, which receive each
 * takes, and its completion. From anybody, in any order; nothing is answered and
 * nothing comes again.
 *
 * Theory of operation. A datagram that is taken is numbered by the receive that it
 * takes, so qp.resp.win, which thinks these are PSNs, is the receive ring: [head,
 * plan) moves, [plan, next) waits in slots because a page is missing or because what
 * is before it waits. One that is not taken leaves its receive to the next.
 */
#include "base/account.h"
#include "base/addr.h"
#include "base/counters.h"
#include "base/moves.h"
#include "base/range.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "ring/cqe.h"
#include "ring/receive.h"
#include "ring/wqe.h"
#include "wire/grh.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/access.h"
#include "xport/ahead.h"
#include "xport/attr.h"
#include "xport/control.h"
#include "xport/exec.h"
#include "xport/fault.h"
#include "xport/fault_backup.h"
#include "xport/kept.h"
#include "xport/life.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/resp.h"
#include "xport/responder.h"
#include "xport/run.h"
#include "xport/rx.h"
#include "xport/ud.h"
#include "xport/window.h"
#include "xport/xport.h"

enum { RING_AHEAD = 16 }; /* receives whose pages are asked for ahead of them */

/* CNT_NUM: it may have the next receive. */
static enum counter ud_rx_refuse(const struct qp *qp, const struct pkt *p)
{
	const struct wqe *w = receive_peek(qp->resp.msg.source, 0);

	if (qp->resp.dead)
		return CNT_drop_state;
	if (p->qkey != qp->attr.qkey)
		return CNT_drop_qkey;
	if (!w)
		return CNT_drop_no_recv;
	if (!range_ok(GRH_BYTES, p->payload_len, w->length))
		return CNT_drop_recv_short;
	return CNT_NUM;
}

static enum verdict resolve(struct qp *qp, const struct wqe *w,
			    const struct pkt *p, struct payload payload,
			    struct rx_run *run)
{
	const uint16_t token = (uint16_t)run->num;
	uint8_t *grh = run->grh[run->num];
	enum verdict v;

	grh_build(p, grh);
	v = sge_walk(qp, w, 0, GRH_BYTES, p->payload_len, true, grh, token,
		     &qp->resp.wait, &run->moves, &run->holds);
	if (v != V_OK)
		return v;
	return sge_walk(qp, w, GRH_BYTES, p->payload_len, 0, true, payload.at,
			token, &qp->resp.wait, &run->moves, &run->holds);
}

static uint8_t cqe_flags(const struct pkt *p)
{
	return CQE_GRH | (p->op & OPF_IMM ? CQE_IMM : 0) |
	       (ipaddr_is_v4(&p->fwd_src.ip) ? CQE_IP4 : 0);
}

static void ud_rx_advance(struct qp *qp, const struct receive *recv,
			  const struct pkt *p, struct payload payload,
			  struct rx_run *run)
{
	struct resp *r = &qp->resp;
	struct met met = waiter_met(&r->wait);

	met_add(&met, r->msg.met);
	r->msg.met = (struct met){.ns = 0};
	run->pkt[run->num++] =
		(struct run_pkt){.pkt = p,
				 .payload = payload,
				 .move_end = run->moves.num,
				 .recv = *recv,
				 .cqe = {.wr_id = recv->wqe->wr_id,
					 .byte_len = GRH_BYTES + p->payload_len,
					 .imm = p->imm,
					 .qpn = qp->cfg.qpn,
					 .src_qpn = p->src_qpn,
					 .op = WR_RECV,
					 .flags = cqe_flags(p),
					 .solicited = p->solicited,
					 .met = met}};
	run_begin(run, qp, false);
	r->plan = psn_add(r->plan, 1);
}

/* The datagram with the number resp.plan, which takes @recv. */
static enum exec_result execute(struct qp *qp, const struct pkt *p,
				struct payload payload,
				const struct receive *recv, struct rx_run *run)
{
	const unsigned moves = run->moves.num, holds = run->holds.num;
	enum verdict v;

	if (run->num == RUN_PKTS || moves_room(&run->moves) <= SGE_MAX ||
	    holds + SGE_MAX + 1 > HOLDS_MAX)
		return EXEC_FULL;
	v = resolve(qp, recv->wqe, p, payload, run);
	if (v == V_OK) {
		ud_rx_advance(qp, recv, p, payload, run);
		return EXEC_OK;
	}
	run->moves.num = moves;
	dma_release(qp->x->mem, &run->holds, holds, false, qp->x->now);
	run->holds.num = holds;
	qp->x->starved |= v == V_NO_RESOURCE;
	if (v == V_WAIT || v == V_NO_RESOURCE)
		return EXEC_WAIT;
	/* The program's own mistake: of a class that ends the QP. */
	resp_failed(&qp->resp, recv, WC_LOC_PROT_ERR, QP_NO_EVENT,
		    CAUSE_ACCESS);
	return EXEC_NAK;
}

/* A page of a ring is missing, so those of the receives behind it are likely to
 * be. Each of them will be written, and in this order. */
static void ud_rx_ask_ahead(const struct qp *qp)
{
	const struct resp *r = &qp->resp;
	const struct wqe *w;

	for (uint32_t n = 1; n <= RING_AHEAD; n++) {
		const int32_t free = psn_diff(psn_add(r->plan, n), r->win.next);

		if (free < 0)
			w = win_at(&r->win, psn_add(r->plan, n))->recv.wqe;
		else
			w = receive_peek(r->msg.source, (uint32_t)free);
		if (!w)
			return;
		ahead_sges(qp, w, GRH_BYTES + qp->mtu, true);
	}
}

/* It is kept as win.next, with the receive that it takes. */
static void ud_rx_kept(struct qp *qp, const struct receive *recv)
{
	struct window *w = &qp->resp.win;

	win_at(w, w->next)->recv = *recv;
	w->next = psn_add(w->next, 1);
}

/* It waits behind others. */
static void behind(struct qp *qp, const struct pkt *p, struct payload payload,
		   struct receive *recv)
{
	if (backup_keep(qp, p, payload, qp->resp.win.next)) {
		ud_rx_kept(qp, recv);
		return;
	}
	count(qp->x->cnt, CNT_drop_no_backup);
	receive_untake(recv);
}

static void missing(struct qp *qp, const struct pkt *p, struct payload payload,
		    struct receive *recv)
{
	if (!fault_datagram(qp, p, payload)) {
		receive_untake(recv);
		return;
	}
	ud_rx_kept(qp, recv);
	ud_rx_ask_ahead(qp);
}

enum rx_result ud_rx(struct qp *qp, const struct pkt *p, struct payload payload,
		     struct rx_run *run)
{
	struct resp *r = &qp->resp;
	const enum counter why = ud_rx_refuse(qp, p);
	struct receive recv;

	if (run->qp && run->qp != qp)
		return RX_FULL;
	if (why != CNT_NUM) {
		count(qp->x->cnt, why);
		return RX_NEXT;
	}
	(void)receive_take(r->msg.source, &recv); /* there is one */
	if (r->win.next != r->plan || (qp->rx_moving && !run->qp)) {
		behind(qp, p, payload, &recv);
		return RX_NEXT;
	}
	if (r->wait.ticket.v) {
		missing(qp, p, payload, &recv);
		return RX_NEXT;
	}
	switch (execute(qp, p, payload, &recv, run)) {
	case EXEC_OK:
		r->win.next = r->plan;
		return RX_NEXT;
	case EXEC_FULL:
		receive_untake(&recv);
		return RX_FULL;
	case EXEC_WAIT:
		missing(qp, p, payload, &recv);
		return RX_NEXT;
	default:
		r->msg.recv = recv; /* and is flushed with it */
		resp_settle(qp);
		return RX_NEXT;
	}
}

bool ud_drain(struct qp *qp, struct rx_run *run)
{
	struct resp *r = &qp->resp;
	struct accepted *a;

	while (!r->dead && !r->wait.ticket.v &&
	       (a = win_at(&r->win, r->plan))) {
		enum exec_result res = execute(
			qp, &a->pkt, win_payload(qp->x, a), &a->recv, run);

		if (res == EXEC_WAIT)
			ud_rx_ask_ahead(qp);
		if (res != EXEC_OK)
			break;
	}
	if (!run->num)
		resp_settle(qp);
	return run->num != 0;
}

/* Of the datagrams from @from on, where run->pkt[i] is win.head; newest first. */
static void ud_rx_untake(struct qp *qp, struct rx_run *run, unsigned i,
			 psn_t from)
{
	const struct window *w = &qp->resp.win;

	for (psn_t n = w->next; n != from;) {
		struct accepted *a;

		n = psn_add(n, PSN_MASK);
		a = win_at(w, n);
		receive_untake(
			a ? &a->recv
			  : &run->pkt[i + (uint32_t)psn_diff(n, w->head)].recv);
	}
}

/* run->pkt[i] and later were not placed: they are first in line now. Where one
 * cannot be kept, all behind it are lost with it, for they have its number. */
static void ud_rx_put_back(struct qp *qp, struct rx_run *run, unsigned i)
{
	struct window *w = &qp->resp.win;
	psn_t number = w->head, end = w->next;

	qp->resp.plan = number;
	resp_not_failed(&qp->resp);
	receive_untake(&qp->resp.msg.recv);
	for (unsigned k = i; k < run->num; k++)
		met_add(&qp->resp.msg.met, run->pkt[k].cqe.met);
	for (unsigned k = i; k < run->num; k++, number = psn_add(number, 1)) {
		const struct run_pkt *rp = &run->pkt[k];

		if (rp->payload.kept)
			continue;
		if (backup_keep(qp, rp->pkt, rp->payload, number)) {
			win_at(w, number)->recv = rp->recv;
			continue;
		}
		ud_rx_untake(qp, run, i, number);
		win_truncate(qp->x, w, number);
		count_add(qp->x->cnt, CNT_drop_no_backup,
			  (uint32_t)psn_diff(end, number));
		return;
	}
}

static void ud_rx_placed(struct qp *qp, struct run_pkt *rp)
{
	struct window *w = &qp->resp.win;

	w->head = psn_add(w->head, 1);
	receive_done(&rp->recv);
	if (rp->payload.kept)
		win_placed(qp->x, w, rp->payload.kept);
	qp_push_cqe(qp, qp->cfg.recv_cq, &rp->cqe);
}

void ud_rx_commit(struct rx_run *run)
{
	struct qp *qp = run->qp;
	unsigned i;

	for (i = 0; i < run->num && qp_receives(qp); i++) {
		const struct move *m = &run->moves.m[run->moves.done];

		if (run->pkt[i].move_end > run->moves.done) {
			dma_fault(qp->x->mem, m->addr, m->len);
			ud_rx_put_back(qp, run, i);
			break;
		}
		win_copied(run, i);
		ud_rx_placed(qp, &run->pkt[i]);
	}
	if (qp_receives(qp)) {
		resp_settle(qp);
	} else {
		receive_untake(&qp->resp.msg.recv);
		ud_rx_untake(qp, run, i, qp->resp.win.head);
	}
}
