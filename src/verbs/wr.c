/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wr.c: the ibv_wr_ functions: requests built in place, in the slots behind the
 * last published one, and published all at once or not at all. The send queue
 * is locked from wr_start to wr_complete or wr_abort, as ibv_wr_post(3) says.
 * Builders cannot fail; the first error is kept for wr_complete.
 */
#include "nic/pair.h"
#include "nic/post.h"
#include "verbs/ah.h"
#include "verbs/object.h"
#include "verbs/post.h"
#include "verbs/verbs.h"

#include <errno.h>

enum {
	WR_OPS = IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
		 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
		 IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_SEND_WITH_INV,
	UD_OPS = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
};

/* Where setters write after an error, so that they need not look. */
static struct wqe *nowhere(struct vqp *q, int err)
{
	if (!q->wr_error)
		q->wr_error = err;
	q->wr = NULL;
	return NULL;
}

static struct vqp *wr_of(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct vqp, ex);
}

/* Begin the next request. Return: NULL after an error. */
static struct wqe *wr_build(struct ibv_qp_ex *qp, enum wr_op op, uint64_t needs)
{
	const int flags = wqe_flags(qp->wr_flags);
	struct vqp *q = wr_of(qp);
	struct wqe *wqe;

	if (q->wr_error)
		return NULL;
	if (!(q->wr_ops & needs) || flags < 0)
		return nowhere(q, EINVAL);
	wqe = nic_send_slot_ahead(q->nic, q->wr_num);
	if (!wqe)
		return nowhere(q, ENOMEM);
	*wqe = (struct wqe){
		.wr_id = qp->wr_id,
		.op = (uint8_t)op,
		.flags = (uint8_t)flags,
	};
	if (nic_qp_limits(q->nic)->sq_sig_all)
		wqe->flags |= WQE_SIGNALED;
	q->wr_num++;
	q->wr = wqe;
	return wqe;
}

static void build_rdma(struct ibv_qp_ex *qp, enum wr_op op, uint64_t needs,
		       uint32_t rkey, uint64_t raddr)
{
	struct wqe *wqe = wr_build(qp, op, needs);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->raddr = raddr;
	}
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t raddr)
{
	build_rdma(qp, WR_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, rkey, raddr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t raddr, __be32 imm)
{
	build_rdma(qp, WR_WRITE_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, rkey,
		   raddr);
	if (wr_of(qp)->wr)
		wr_of(qp)->wr->imm = imm;
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t raddr)
{
	build_rdma(qp, WR_READ, IBV_QP_EX_WITH_RDMA_READ, rkey, raddr);
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t raddr, uint64_t compare, uint64_t swap)
{
	struct wqe *wqe = wr_build(qp, WR_CMP_SWP,
				   IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->raddr = raddr;
		wqe->compare = compare;
		wqe->swap_add = swap;
	}
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				uint64_t raddr, uint64_t add)
{
	struct wqe *wqe = wr_build(qp, WR_FETCH_ADD,
				   IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD);

	if (wqe) {
		wqe->rkey = rkey;
		wqe->raddr = raddr;
		wqe->swap_add = add;
	}
}

static void wr_send(struct ibv_qp_ex *qp)
{
	wr_build(qp, WR_SEND, IBV_QP_EX_WITH_SEND);
}

static void build_imm(struct ibv_qp_ex *qp, enum wr_op op, uint64_t needs,
		      uint32_t imm)
{
	struct wqe *wqe = wr_build(qp, op, needs);

	if (wqe)
		wqe->imm = imm;
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	build_imm(qp, WR_SEND_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, imm);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	build_imm(qp, WR_SEND_INV, IBV_QP_EX_WITH_SEND_WITH_INV, rkey);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	build_imm(qp, WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV, rkey);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t num,
			    const struct ibv_sge *sge)
{
	struct vqp *q = wr_of(qp);
	int rc;

	if (!q->wr)
		return;
	rc = wqe_set_sges(q->wr, sge, num, nic_qp_limits(q->nic)->max_send_sge);
	if (!rc && q->wr->length > nic_qp_limits(q->nic)->max_message)
		rc = EINVAL;
	if (rc)
		nowhere(q, rc);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = {addr, length, lkey};

	wr_set_sge_list(qp, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num,
				    const struct ibv_data_buf *buf)
{
	struct vqp *q = wr_of(qp);
	const struct nic_qp_init *limits = nic_qp_limits(q->nic);
	int rc = 0;

	if (!q->wr)
		return;
	(void)wqe_set_sges(q->wr, NULL, 0, 0); /* the last setter counts */
	for (size_t i = 0; i < num && !rc; i++)
		rc = wqe_add_inline(q->wr, buf[i].addr, buf[i].length,
				    limits->max_inline);
	if (!rc && q->wr->length > limits->max_message)
		rc = EINVAL;
	if (rc)
		nowhere(q, rc);
}

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {addr, length};

	wr_set_inline_data_list(qp, 1, &buf);
}

/* EOPNOTSUPP: this kind of QP does not have these, or nopin has none of them. */
static void wr_unsupported(struct ibv_qp_ex *qp)
{
	nowhere(wr_of(qp), EOPNOTSUPP);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	(void)mw;
	(void)rkey;
	(void)info;
	wr_unsupported(qp);
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz,
			uint16_t mss)
{
	(void)hdr;
	(void)hdr_sz;
	(void)mss;
	wr_unsupported(qp);
}

static void wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah,
			   uint32_t qpn, uint32_t qkey)
{
	struct vqp *q = wr_of(qp);

	int rc;

	if (!nic_qp_limits(q->nic)->ud) {
		wr_unsupported(qp);
	} else if (q->wr) {
		rc = ah_to_wqe(ah, q->base.pd, qpn, qkey, &q->wr->to);
		if (rc)
			nowhere(q, rc);
	}
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
	(void)srqn;
	wr_unsupported(qp);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t raddr,
			    const void *value)
{
	(void)rkey;
	(void)raddr;
	(void)value;
	wr_unsupported(qp);
}

/* Nobody else enters, also if the state takes no sends. Only a child gets no
 * lock: there wr_complete must not unlock. */
static void wr_start(struct ibv_qp_ex *qp)
{
	struct vqp *q = wr_of(qp);
	const int rc = nic_send_lock(q->nic);

	q->wr_started = rc == 0;
	q->wr_error = -(rc ? rc : nic_send_ready(q->nic));
	q->wr_num = 0;
	q->wr = NULL;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct vqp *q = wr_of(qp);
	const int rc = q->wr_error;

	if (!q->wr_started)
		return rc;
	q->wr_started = false;
	q->wr = NULL;
	if (!rc && q->wr_num)
		nic_send_publish_many(q->nic, q->wr_num);
	nic_send_end(q->nic);
	return rc;
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	wr_of(qp)->wr_error = ECANCELED;
	wr_complete(qp);
}

int wr_api_init(struct vqp *q, uint64_t ops, bool ud)
{
	struct ibv_qp_ex *qp = &q->ex;

	if (ops & ~(uint64_t)(ud ? UD_OPS : WR_OPS))
		return EOPNOTSUPP;
	q->has_wr_api = true;
	q->wr_ops = ops;
	qp->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	qp->wr_atomic_fetch_add = wr_atomic_fetch_add;
	qp->wr_bind_mw = wr_bind_mw;
	qp->wr_local_inv = wr_local_inv;
	qp->wr_rdma_read = wr_rdma_read;
	qp->wr_rdma_write = wr_rdma_write;
	qp->wr_rdma_write_imm = wr_rdma_write_imm;
	qp->wr_send = wr_send;
	qp->wr_send_imm = wr_send_imm;
	qp->wr_send_inv = wr_send_inv;
	qp->wr_send_tso = wr_send_tso;
	qp->wr_set_ud_addr = wr_set_ud_addr;
	qp->wr_set_xrc_srqn = wr_set_xrc_srqn;
	qp->wr_set_inline_data = wr_set_inline_data;
	qp->wr_set_inline_data_list = wr_set_inline_data_list;
	qp->wr_set_sge = wr_set_sge;
	qp->wr_set_sge_list = wr_set_sge_list;
	qp->wr_start = wr_start;
	qp->wr_complete = wr_complete;
	qp->wr_abort = wr_abort;
	qp->wr_atomic_write = wr_atomic_write;
	return 0;
}
