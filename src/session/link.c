/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c: requests on QPs that programs made for sessions. */
#include "session/link.h"

#include <errno.h>

int link_check(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int rc = ibv_query_qp(qp, &attr, 0, &init);

	if (rc)
		return rc;
	return init.qp_type == IBV_QPT_RC &&
			       init.cap.max_send_wr >= LINK_DEPTH &&
			       init.cap.max_send_sge >= 1 &&
			       qp->send_cq->cqe >= LINK_DEPTH
		       ? 0
		       : EINVAL;
}

static int posted(struct link *l, int rc)
{
	l->out += !rc;
	return rc;
}

int link_write(struct link *l, const void *from, uint32_t len, uint32_t lkey,
	       uint64_t to, uint32_t rkey, uint32_t counter)
{
	struct ibv_sge sge = {(uintptr_t)from, len, lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = len ? 1 : 0,
					 .opcode = IBV_WR_RDMA_WRITE,
					 .send_flags = IBV_SEND_SIGNALED,
					 .wr.rdma = {to, rkey},
				 };

	if (counter)
		return posted(
			l, nopin_post_write_notify(l->qp, &wr, counter, &bad));
	return posted(l, ibv_post_send(l->qp, &wr, &bad));
}

int link_atomic(struct link *l, struct ibv_send_wr wr, void *old, uint32_t lkey)
{
	struct ibv_sge sge = {(uintptr_t)old, 8, lkey};
	struct ibv_send_wr *bad;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	wr.send_flags = IBV_SEND_SIGNALED;
	return posted(l, ibv_post_send(l->qp, &wr, &bad));
}

void link_reap(struct link *l)
{
	struct ibv_wc wc[LINK_DEPTH];
	int n = ibv_poll_cq(l->qp->send_cq, LINK_DEPTH, wc);

	for (int i = 0; i < n; i++) {
		l->failed |= wc[i].status != IBV_WC_SUCCESS;
		l->out -= l->out > 0;
	}
	l->failed |= n < 0;
}

int link_ask(struct link *l)
{
	return link_write(l, NULL, 0, 0, 0, 0, 0);
}

int link_probe(struct link *l)
{
	link_reap(l);
	if (!l->failed && !l->out && link_ask(l))
		link_fail(l);
	return l->failed ? ENOTCONN : 0;
}

void link_fail(struct link *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	l->failed = true;
	ibv_modify_qp(l->qp, &attr, IBV_QP_STATE);
}
