/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* post.c: work requests as programs have them, into the slots of our queues.
 * Fast path: no allocation. What depends on the QP's state or on keys is left
 * to nic/ and xport/; it ends in a completion.
 */
#include "nic/post.h"
#include "base/range.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "ring/wr_op.h"
#include "verbs/ah.h"
#include "verbs/object.h"
#include "verbs/post.h"
#include "verbs/verbs.h"

#include <errno.h>

/* WR_NONE: no operation of ours, or not implemented. */
static enum wr_op op_from_verbs(enum ibv_wr_opcode opcode)
{
	static const uint8_t ops[] = {
		[IBV_WR_RDMA_WRITE] = WR_WRITE,
		[IBV_WR_RDMA_WRITE_WITH_IMM] = WR_WRITE_IMM,
		[IBV_WR_SEND] = WR_SEND,
		[IBV_WR_SEND_WITH_IMM] = WR_SEND_IMM,
		[IBV_WR_RDMA_READ] = WR_READ,
		[IBV_WR_ATOMIC_CMP_AND_SWP] = WR_CMP_SWP,
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = WR_FETCH_ADD,
		[IBV_WR_LOCAL_INV] = WR_LOCAL_INV,
		[IBV_WR_SEND_WITH_INV] = WR_SEND_INV,
	};

	return (unsigned)opcode < ARRAY_SIZE(ops) ? ops[opcode] : WR_NONE;
}

int wqe_flags(unsigned int send_flags)
{
	int flags = 0;

	/* that it is inline its data says; checksums are nobody's to offload */
	if (send_flags &
	    ~(unsigned int)(IBV_SEND_SIGNALED | IBV_SEND_SOLICITED |
			    IBV_SEND_FENCE | IBV_SEND_INLINE))
		return -EINVAL;
	if (send_flags & IBV_SEND_SIGNALED)
		flags |= WQE_SIGNALED;
	if (send_flags & IBV_SEND_SOLICITED)
		flags |= WQE_SOLICITED;
	if (send_flags & IBV_SEND_FENCE)
		flags |= WQE_FENCE;
	return flags;
}

/* Does @wqe's operation take data: @inl: from the program, at once? */
static bool takes_data(const struct wqe *wqe, bool inl)
{
	return wr_op_is(wqe->op, inl ? WRO_INLINE : WRO_SGES);
}

int wqe_set_sges(struct wqe *wqe, const struct ibv_sge *sge, size_t num,
		 uint32_t max)
{
	struct sge *out = wqe_sge(wqe);
	uint64_t length = 0;
	uint16_t used = 0;

	if (num > max)
		return EINVAL;
	for (size_t i = 0; i < num; i++) {
		if (sge[i].length == 0)
			continue;
		out[used++] = (struct sge){
			.addr = sge[i].addr,
			.len = sge[i].length,
			.lkey = sge[i].lkey,
		};
		length += sge[i].length;
	}
	if (length > NIC_MAX_MESSAGE || (used && !takes_data(wqe, false)))
		return EINVAL;
	wqe->flags &= (uint8_t)~WQE_INLINE;
	wqe->num_sge = used;
	wqe->length = length;
	return 0;
}

int wqe_add_inline(struct wqe *wqe, const void *from, size_t bytes,
		   uint32_t max)
{
	if (!takes_data(wqe, true))
		return EINVAL;
	if (!(wqe->flags & WQE_INLINE)) {
		wqe->flags |= WQE_INLINE;
		wqe->num_sge = 0;
		wqe->length = 0;
	}
	if (!range_ok(wqe->length, bytes, max))
		return EINVAL;
	memcpy(wqe_inline(wqe) + wqe->length, from, bytes);
	wqe->length += bytes;
	return 0;
}

static int copy_inline(struct wqe *wqe, const struct ibv_send_wr *wr,
		       uint32_t max)
{
	int rc = 0;

	for (int i = 0; i < wr->num_sge && !rc; i++)
		rc = wqe_add_inline(wqe, (void *)(uintptr_t)wr->sg_list[i].addr,
				    wr->sg_list[i].length, max);
	return rc;
}

static void set_remote(struct wqe *wqe, const struct ibv_send_wr *wr)
{
	if (wr_op_is(wqe->op, WRO_ATOMIC)) {
		wqe->raddr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->compare = wr->wr.atomic.compare_add;
		wqe->swap_add = wqe->op == WR_CMP_SWP
					? wr->wr.atomic.swap
					: wr->wr.atomic.compare_add;
		return;
	}
	wqe->raddr = wr->wr.rdma.remote_addr;
	wqe->rkey = wr->wr.rdma.rkey;
}

static int set_data(struct wqe *wqe, const struct ibv_send_wr *wr,
		    const struct nic_qp_init *limits)
{
	int rc = wr->send_flags & IBV_SEND_INLINE
			 ? copy_inline(wqe, wr, limits->max_inline)
			 : wqe_set_sges(wqe, wr->sg_list, (size_t)wr->num_sge,
					limits->max_send_sge);

	/* a datagram is one packet */
	return !rc && wqe->length > limits->max_message ? EINVAL : rc;
}

/* Fill @wqe whole from @wr. Return: 0 or EINVAL. */
static int wqe_from_wr(struct wqe *wqe, const struct ibv_send_wr *wr,
		       struct ibv_qp *qp)
{
	const struct nic_qp_init *limits = nic_qp_limits(vqp_of(qp)->nic);
	const enum wr_op op = op_from_verbs(wr->opcode);
	const int flags = wqe_flags(wr->send_flags);
	int rc = 0;

	if (op == WR_NONE || wr->num_sge < 0 || flags < 0)
		return EINVAL;
	if (limits->ud && !wr_op_is((uint8_t)op, WRO_DATAGRAM))
		return EINVAL;
	*wqe = (struct wqe){
		.wr_id = wr->wr_id,
		.op = (uint8_t)op,
		.flags = (uint8_t)flags,
		.imm = wr->imm_data, /* as on the wire; or a key to invalidate */
	};
	if (limits->sq_sig_all)
		wqe->flags |= WQE_SIGNALED;
	if (limits->ud)
		rc = ah_to_wqe(wr->wr.ud.ah, qp->pd, wr->wr.ud.remote_qpn,
			       wr->wr.ud.remote_qkey, &wqe->to);
	else if (wr_op_is(wqe->op, WRO_REMOTE))
		set_remote(wqe, wr);
	return rc ? rc : set_data(wqe, wr, limits);
}

/* As wqe_from_wr(); with @counter a WRITE that raises that. */
static int wqe_fill(struct wqe *wqe, const struct ibv_send_wr *wr,
		    struct ibv_qp *qp, const uint32_t *counter)
{
	int rc = wqe_from_wr(wqe, wr, qp);

	if (rc || likely(!counter))
		return rc;
	if (wqe->op != WR_WRITE)
		return EINVAL;
	wqe->op = WR_WRITE_NOTIFY;
	wqe->imm = *counter;
	return 0;
}

static int post_post(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     const uint32_t *counter, struct ibv_send_wr **bad)
{
	struct nic_qp *nic = vqp_of(qp)->nic;
	int rc = -nic_send_begin(nic);

	if (rc) {
		*bad = wr;
		return rc;
	}
	for (; wr; wr = wr->next) {
		struct wqe *wqe = nic_send_slot(nic);

		rc = wqe ? wqe_fill(wqe, wr, qp, counter) : ENOMEM;
		if (rc) {
			*bad = wr;
			break;
		}
		nic_send_publish(nic);
	}
	nic_send_end(nic);
	return rc;
}

int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
	      struct ibv_send_wr **bad)
{
	return post_post(qp, wr, NULL, bad);
}

int post_write_notify(struct ibv_qp *qp, struct ibv_send_wr *wr,
		      uint32_t counter, struct ibv_send_wr **bad)
{
	if (nic_qp_limits(vqp_of(qp)->nic)->ud) {
		*bad = wr;
		return EOPNOTSUPP;
	}
	return post_post(qp, wr, &counter, bad);
}

/* @wqe: NULL: the queue is full */
static int wqe_receive(struct wqe *wqe, const struct ibv_recv_wr *wr,
		       uint32_t max_sge)
{
	if (!wqe)
		return ENOMEM;
	*wqe = (struct wqe){.wr_id = wr->wr_id, .op = WR_RECV};
	/* a negative count is over every limit */
	return wqe_set_sges(wqe, wr->sg_list, (size_t)(unsigned)wr->num_sge,
			    max_sge);
}

int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
	      struct ibv_recv_wr **bad)
{
	struct nic_qp *nic = vqp_of(qp)->nic;
	int rc = -nic_recv_begin(nic);

	if (rc) {
		*bad = wr;
		return rc;
	}
	for (; wr; wr = wr->next) {
		rc = wqe_receive(nic_recv_slot(nic), wr,
				 nic_qp_limits(nic)->max_recv_sge);
		if (rc) {
			*bad = wr;
			break;
		}
		nic_recv_publish(nic);
	}
	nic_recv_end(nic);
	return rc;
}

int post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	struct nic_srq *nic = vsrq_of(srq)->nic;
	int rc = -nic_srq_recv_begin(nic);

	if (rc) {
		*bad = wr;
		return rc;
	}
	for (; wr; wr = wr->next) {
		rc = wqe_receive(nic_srq_recv_slot(nic), wr,
				 nic_srq_max_sge(nic));
		if (rc) {
			*bad = wr;
			break;
		}
		nic_srq_recv_publish(nic);
	}
	nic_srq_recv_end(nic);
	return rc;
}
