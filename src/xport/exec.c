/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exec.c: responder: the checks on one request, in the order of IBTA 9.7.4
 * (op_seq, op_valid, resource, length, R_Key), then its moves. Runs on the
 * packet at resp.plan, whether it just came or waited in a slot. Advances the
 * message; resp_commit() makes it final, or puts run_pkt.before back.
 */
#include "xport/exec.h"
#include "base/account.h"
#include "base/be.h"
#include "base/flight.h"
#include "base/moves.h"
#include "base/range.h"
#include "base/verdict.h"
#include "mem/account.h"
#include "mem/dma.h"
#include "mem/eventcount.h"
#include "mem/mr.h"
#include "ring/cqe.h"
#include "ring/receive.h"
#include "ring/wqe.h"
#include "wire/aeth.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/access.h"
#include "xport/life.h"
#include "xport/message.h"
#include "xport/owe.h"
#include "xport/qp.h"
#include "xport/replay.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/run.h"
#include "xport/rx.h"
#include "xport/wqe.h"
#include "xport/xport.h"

#include <string.h>

/* A failed check: what to NAK with, what the consumed receive says, and
 * which asynchronous event the program gets. */
struct failure {
	uint8_t nak;
	uint8_t recv_status;
	uint8_t event;
	uint16_t cause;
};

#define READ_BYTES_MAX (UINT32_C(1) << 31) /* IBTA 9.7.2 */

static const struct failure invalid_request = {
	AETH_NAK | NAK_INVALID_REQUEST, WC_WR_FLUSH_ERR, QP_EVENT_REQ_ERR,
	CAUSE_NAKED | AETH_NAK | NAK_INVALID_REQUEST};
static const struct failure too_long = {AETH_NAK | NAK_INVALID_REQUEST,
					WC_LOC_LEN_ERR, QP_NO_EVENT,
					CAUSE_LENGTH};
static const struct failure remote_access = {
	AETH_NAK | NAK_REMOTE_ACCESS, WC_WR_FLUSH_ERR, QP_EVENT_ACCESS_ERR,
	CAUSE_NAKED | AETH_NAK | NAK_REMOTE_ACCESS};
static const struct failure recv_buffer = {AETH_NAK | NAK_REMOTE_OPERATION,
					   WC_LOC_PROT_ERR, QP_NO_EVENT,
					   CAUSE_ACCESS};

static enum exec_result exec_fail(struct qp *qp, const struct pkt *p,
				  const struct failure *f)
{
	struct resp *r = &qp->resp;

	resp_failed(r, &r->msg.recv, f->recv_status, f->event, f->cause);
	flight_note(&qp->log, qp->x->now, FLIGHT_ERROR, p->psn, f->nak,
		    p->opcode);
	ack_nak(qp, f->nak, p->psn);
	return EXEC_NAK;
}

static bool write_with_imm(const struct pkt *p)
{
	return (p->op & (OPF_WRITE | OPF_IMM)) == (OPF_WRITE | OPF_IMM);
}

static bool takes_receive(const struct qp *qp, const struct pkt *p)
{
	return (p->op & OPF_SEND) || (write_with_imm(p) && !qp->counts);
}

static uint32_t imm_number(const struct pkt *p)
{
	be32_t wire;

	memcpy(&wire, &p->imm, sizeof(wire));
	return be32_get(wire);
}

/* Does @p raise a counter? Of a standard sender immediate data names it. */
static bool notifies(const struct qp *qp, const struct pkt *p, uint32_t *id)
{
	if (p->op & OPF_NOTIFY)
		*id = p->imm;
	else if (write_with_imm(p) && qp->counts)
		*id = imm_number(p);
	else
		return false;
	return true;
}

/* The message keeps the receive, even if @p is not taken now. false: none is posted. */
static bool exec_receive(struct qp *qp, const struct pkt *p)
{
	struct message *m = &qp->resp.msg;

	return !takes_receive(qp, p) || m->recv.wqe ||
	       receive_take(m->source, &m->recv);
}

/* Is there a resource for @p, or does it need none? */
static bool check_resource(struct qp *qp, const struct pkt *p)
{
	if (!(p->op & (OPF_READ | OPF_ATOMIC)))
		return true;
	return replay_pending(qp) + qp->resp.replay.coming <
		       qp->attr.max_dest_rd_atomic &&
	       replay_make_room(qp);
}

static bool length_ok(const struct qp *qp, const struct pkt *p)
{
	const struct message *m = &qp->resp.msg;
	uint64_t left = p->op & OPF_FIRST ? p->dma_len : m->left;

	if (p->op & OPF_ATOMIC)
		return !(p->va & 7);
	if (p->op & OPF_READ)
		return p->dma_len <= READ_BYTES_MAX &&
		       request_psns(p, qp->mtu) <= PSN_AHEAD_MAX;
	if (!(p->op & OPF_LAST) && p->payload_len != qp->mtu)
		return false;
	if (p->payload_len > qp->mtu)
		return false;
	if (!(p->op & OPF_WRITE))
		return true;
	return p->op & OPF_LAST ? p->payload_len == left
				: p->payload_len < left;
}

static enum verdict exec_plan_write(struct qp *qp, const struct pkt *p,
				    struct payload payload, struct rx_run *run)
{
	struct message *m = &qp->resp.msg;
	struct dma d;
	uint32_t id;

	if (notifies(qp, p, &id) &&
	    !eventcount_find(qp->x->mem, qp->cfg.pd, id))
		return V_PROT;
	if (p->op & OPF_FIRST) {
		d = remote_dma(qp, p->rkey, p->va, p->dma_len,
			       ACCESS_REMOTE_WRITE);
		if (dma_check(qp->x->mem, &d) != V_OK)
			return V_PROT;
		m->va = p->va;
		m->rkey = p->rkey;
		m->left = p->dma_len;
		m->done = 0;
	}
	if (p->placed)
		return V_OK;
	d = remote_dma(qp, m->rkey, m->va, p->payload_len, ACCESS_REMOTE_WRITE);
	d.ahead = d.follow = m->left - p->payload_len;
	return dma_resolve(qp->x->mem, &d, payload.at, (uint16_t)run->num,
			   qp->x->now, qp->x->fresh_ns, &qp->resp.wait,
			   &run->moves, &run->holds);
}

/* Bytes of a SEND behind this packet: nopins say, others do not. */
static uint64_t send_rest(const struct pkt *p, const struct message *m)
{
	uint64_t end = m->done + p->payload_len;

	return p->ext && p->dma_len > end ? p->dma_len - end : 0;
}

static enum verdict exec_plan_send(struct qp *qp, const struct pkt *p,
				   struct payload payload, struct rx_run *run)
{
	struct message *m = &qp->resp.msg;

	if (p->op & OPF_FIRST)
		m->done = 0;
	if (!range_ok(m->done, p->payload_len, m->recv.wqe->length))
		return V_LENGTH;
	if (p->placed)
		return V_OK;
	return sge_walk(qp, m->recv.wqe, m->done, p->payload_len,
			send_rest(p, m), true, payload.at, (uint16_t)run->num,
			&qp->resp.wait, &run->moves, &run->holds);
}

static enum verdict plan_atomic(struct qp *qp, const struct pkt *p,
				struct rx_run *run)
{
	struct dma d = remote_dma(qp, p->rkey, p->va, 8, ACCESS_REMOTE_ATOMIC);

	return dma_resolve_atomic(
		qp->x->mem, &d,
		p->opcode == OP_CMP_SWP ? MOVE_CMP_SWP : MOVE_FETCH_ADD,
		p->swap_add, p->compare, (uint16_t)run->num, qp->x->now,
		qp->x->fresh_ns, &qp->resp.wait, &run->moves, &run->holds);
}

static enum verdict exec_plan(struct qp *qp, const struct pkt *p,
			      struct payload payload, struct rx_run *run)
{
	struct dma d;

	if (p->op & OPF_WRITE)
		return exec_plan_write(qp, p, payload, run);
	if (p->op & OPF_SEND)
		return exec_plan_send(qp, p, payload, run);
	if (p->op & OPF_ATOMIC)
		return plan_atomic(qp, p, run);
	d = remote_dma(qp, p->rkey, p->va, p->dma_len, ACCESS_REMOTE_READ);
	return dma_check(qp->x->mem, &d);
}

/* The completion of a receive, if this packet makes one. */
static void note_completion(struct qp *qp, const struct pkt *p,
			    struct run_pkt *rp)
{
	struct message *m = &qp->resp.msg;

	if (!(p->op & OPF_LAST) || !takes_receive(qp, p))
		return;
	rp->recv = m->recv;
	m->recv.wqe = NULL;
	rp->cqe = (struct cqe){.wr_id = rp->recv.wqe->wr_id,
			       .byte_len = (uint32_t)m->done,
			       .imm = p->imm,
			       .qpn = qp->cfg.qpn,
			       .src_qpn = qp->attr.dest_qpn,
			       .op = p->op & OPF_SEND ? WR_RECV : WR_RECV_IMM,
			       .flags = (p->op & OPF_IMM ? CQE_IMM : 0) |
					(p->op & OPF_INV ? CQE_INV : 0),
			       .solicited = p->solicited,
			       .met = m->met};
}

static void exec_advance(struct qp *qp, const struct pkt *p,
			 struct payload payload, const struct message *before,
			 struct rx_run *run)
{
	struct run_pkt *rp = &run->pkt[run->num];
	struct message *m = &qp->resp.msg;

	*rp = (struct run_pkt){.pkt = p,
			       .payload = payload,
			       .before = *before,
			       .move_end = run->moves.num};
	rp->notifies = notifies(qp, p, &rp->counter);
	m->done += p->payload_len;
	if (p->op & OPF_WRITE) {
		m->va += p->payload_len;
		m->left -= p->payload_len;
	}
	note_completion(qp, p, rp);
	m->op = p->op & OPF_LAST ? 0 : p->op;
	if (p->op & OPF_LAST) {
		m->msn = (m->msn + 1) & PSN_MASK;
		m->met = (struct met){.ns = 0};
	}
	if (p->op & (OPF_READ | OPF_ATOMIC))
		replay_planned(qp);
	run_begin(run, qp, false);
	run->num++;
	qp->resp.plan = psn_add(p->psn, request_psns(p, qp->mtu));
}

enum exec_result resp_execute(struct qp *qp, const struct pkt *p,
			      struct payload payload, struct rx_run *run)
{
	struct message before;
	unsigned moves = run->moves.num, holds = run->holds.num;
	enum verdict v;

	if (run->num && (run->pkt[run->num - 1].pkt->op & OPF_INV))
		return EXEC_FULL; /* it may have to wait */
	if (run->num == RUN_PKTS || moves_room(&run->moves) <= SGE_MAX ||
	    holds + SGE_MAX > HOLDS_MAX)
		return EXEC_FULL;
	if (!op_follows(qp->resp.msg.op, p->op) || !request_allowed(qp, p))
		return exec_fail(qp, p, &invalid_request);
	if (!exec_receive(qp, p))
		return EXEC_RNR;
	before = qp->resp.msg;
	if (!check_resource(qp, p) || !length_ok(qp, p))
		return exec_fail(qp, p, &invalid_request);
	v = exec_plan(qp, p, payload, run);
	if (v == V_OK) {
		met_add(&qp->resp.msg.met, waiter_met(&qp->resp.wait));
		exec_advance(qp, p, payload, &before, run);
		return EXEC_OK;
	}
	qp->resp.msg = before;
	run_undo(run, qp, moves, holds);
	qp->x->starved |= v == V_NO_RESOURCE;
	if (v == V_WAIT || v == V_NO_RESOURCE)
		return EXEC_WAIT;
	if (v == V_LENGTH)
		return exec_fail(qp, p, &too_long);
	return exec_fail(qp, p,
			 p->op & OPF_SEND ? &recv_buffer : &remote_access);
}
