/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp_api.c: creating, modifying, querying and destroying queue pairs, of reliable
 * connections and of datagrams; the state machine is xport/'s.
 */
#include "verbs/qp_api.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "verbs/event.h"
#include "verbs/object.h"
#include "verbs/post.h"
#include "verbs/verbs.h"

#include <errno.h>
#include <stdlib.h>

/* In the flags of ibv_query_qp_data_in_order() since rdma-core 46, and in what
 * it then returns.
 */
enum {
	IN_ORDER_RETURN_CAPS = 1 << 0,
	IN_ORDER_WHOLE_MSG = 1 << 0,
	IN_ORDER_ALIGNED_128 = 1 << 1,
};

static int check_cap(const struct ibv_qp_cap *cap, bool own_receives)
{
	if (cap->max_send_wr > NIC_MAX_QP_WR ||
	    cap->max_send_sge > NIC_MAX_SGE ||
	    cap->max_inline_data > NIC_MAX_INLINE)
		return EINVAL;
	if (own_receives && (cap->max_recv_wr > NIC_MAX_QP_WR ||
			     cap->max_recv_sge > NIC_MAX_SGE))
		return EINVAL;
	return 0;
}

static int check_init_attr(const struct ibv_qp_init_attr_ex *attr)
{
	const uint32_t known = IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS |
			       IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;

	if (attr->comp_mask & ~known)
		return EOPNOTSUPP;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
	    attr->create_flags)
		return EOPNOTSUPP;
	if (attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UD)
		return EOPNOTSUPP;
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
	    !attr->send_cq || !attr->recv_cq)
		return EINVAL;
	if (attr->send_cq->context != attr->pd->context ||
	    attr->recv_cq->context != attr->pd->context ||
	    (attr->srq && attr->srq->context != attr->pd->context))
		return EINVAL;
	return check_cap(&attr->cap, !attr->srq);
}

static void cap_to_verbs(const struct nic_qp_init *init, struct ibv_qp_cap *cap)
{
	cap->max_send_wr = init->max_send_wr;
	cap->max_recv_wr = init->max_recv_wr;
	cap->max_send_sge = init->max_send_sge;
	cap->max_recv_sge = init->max_recv_sge;
	cap->max_inline_data = init->max_inline;
}

static void vqp_free(struct vqp *q)
{
	pthread_mutex_destroy(&q->base.mutex);
	pthread_cond_destroy(&q->base.cond);
	free(q);
}

static struct vqp *vqp_new(const struct ibv_qp_init_attr_ex *attr)
{
	struct vqp *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->base.context = attr->pd->context;
	q->base.qp_context = attr->qp_context;
	q->base.pd = attr->pd;
	q->base.send_cq = attr->send_cq;
	q->base.recv_cq = attr->recv_cq;
	q->base.srq = attr->srq;
	q->base.qp_type = attr->qp_type;
	q->base.state = IBV_QPS_RESET;
	pthread_mutex_init(&q->base.mutex, NULL);
	pthread_cond_init(&q->base.cond, NULL);
	return q;
}

/* The part that talks to nic/. Return: 0 or an errno. */
static int open_qp(struct vqp *q, struct ibv_qp_init_attr_ex *attr)
{
	struct vctx *ctx = vctx_of(q->base.context);
	struct nic_qp_init init = {
		.pd = attr->pd->handle,
		.send_cq = vcq_of(attr->send_cq)->nic,
		.recv_cq = vcq_of(attr->recv_cq)->nic,
		.srq = attr->srq ? vsrq_of(attr->srq)->nic : NULL,
		.max_send_wr = attr->cap.max_send_wr,
		.max_recv_wr = attr->cap.max_recv_wr,
		.max_send_sge = attr->cap.max_send_sge,
		.max_recv_sge = attr->cap.max_recv_sge,
		.max_inline = attr->cap.max_inline_data,
		.sq_sig_all = attr->sq_sig_all != 0,
		.ud = attr->qp_type == IBV_QPT_UD,
	};
	int rc = -tracked_add(&q->events);

	if (rc)
		return rc;
	init.cookie = q->events.cookie;
	rc = -nic_qp_create(ctx->nic, ctx->async, &init, &q->nic,
			    &q->base.qp_num);
	if (rc) {
		tracked_del(&q->events);
		return rc;
	}
	q->base.handle = q->base.qp_num;
	cap_to_verbs(&init, &attr->cap);
	vobj_add(ctx, &q->obj, VOBJ_QP);
	return 0;
}

struct ibv_qp *create_qp_ext(struct ibv_context *context,
			     struct ibv_qp_init_attr_ex *attr)
{
	int rc = check_init_attr(attr);
	struct vqp *q;

	if (!rc && attr->pd->context != context)
		rc = EINVAL;
	if (!rc && in_child(context))
		rc = ENODEV;
	if (rc)
		return fail(rc);
	q = vqp_new(attr);
	if (!q)
		return fail(ENOMEM);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		rc = wr_api_init(q, attr->send_ops_flags,
				 attr->qp_type == IBV_QPT_UD);
	if (!rc)
		rc = open_qp(q, attr);
	if (rc) {
		vqp_free(q);
		return fail(rc);
	}
	return &q->base;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd,
			     struct ibv_qp_init_attr *qp_init_attr)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = qp_init_attr->qp_context,
		.send_cq = qp_init_attr->send_cq,
		.recv_cq = qp_init_attr->recv_cq,
		.srq = qp_init_attr->srq,
		.cap = qp_init_attr->cap,
		.qp_type = qp_init_attr->qp_type,
		.sq_sig_all = qp_init_attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = create_qp_ext(pd->context, &attr);

	if (qp)
		qp_init_attr->cap = attr.cap;
	return qp;
}

/** ibv_qp_to_qp_ex() - Return @qp extended, or NULL unless created with send_ops_flags. */
struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct vqp *q = vqp_of(qp);

	return q->has_wr_api ? &q->ex : NULL;
}

/* What was last heard of; any thread may ask. No lock: qp->mutex is also wanted
 * between ibv_wr_start() and its end, for which ibv_modify_qp() waits. */
static void note_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	__atomic_store_n(&qp->state, state, __ATOMIC_RELAXED);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	struct qp_attr ours;
	int rc = qp_attr_from_verbs(attr, mask, &ours);

	if (!rc)
		rc = nic_qp_modify(vqp_of(qp)->nic, &ours, (uint32_t)mask);
	if (rc)
		return -rc;
	if (mask & IBV_QP_STATE)
		note_state(qp, attr->qp_state);
	return 0;
}

/** ibv_query_qp() - Fill in all of @attr and @init_attr, also if @mask names less. */
int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		 struct ibv_qp_init_attr *init_attr)
{
	struct nic_qp_init init;
	struct qp_attr ours;
	int rc = nic_qp_query(vqp_of(qp)->nic, &ours, &init);

	(void)mask;
	if (rc)
		return -rc;
	qp_attr_to_verbs(&ours, attr);
	cap_to_verbs(&init, &attr->cap);
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap = attr->cap,
		.qp_type = qp->qp_type,
		.sq_sig_all = init.sq_sig_all,
	};
	note_state(qp, attr->qp_state);
	return 0;
}

/**
 * ibv_destroy_qp() - Destroy @qp, and wait until the program acknowledged every event it
 * got.
 */
int ibv_destroy_qp(struct ibv_qp *qp)
{
	struct vqp *q = vqp_of(qp);

	if (q->obj.ctx) {
		int rc = nic_qp_destroy(q->nic);

		if (rc)
			return -rc;
		tracked_del(&q->events);
		vobj_del(&q->obj);
	}
	tracked_wait(&qp->mutex, &qp->cond, &qp->events_completed,
		     q->events.async);
	vqp_free(q);
	return 0;
}

/**
 * ibv_query_qp_data_in_order() - Say that a WRITE becomes visible in the
 * order it was sent (design I3). Receive buffers and READ destinations may be
 * filled in any order before their completion.
 */
int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	(void)qp;
	if (flags & ~(uint32_t)IN_ORDER_RETURN_CAPS)
		return 0;
	if (op != IBV_WR_RDMA_WRITE && op != IBV_WR_RDMA_WRITE_WITH_IMM)
		return 0;
	if (flags & IN_ORDER_RETURN_CAPS)
		return IN_ORDER_WHOLE_MSG | IN_ORDER_ALIGNED_128;
	return 1;
}
