/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c: reliable connections for the programs of bench/, through nothing but
 * the verbs. How the two sides tell each other their addresses is theirs.
 */
#include "bench.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <string.h>

enum {
	FIRST_PSN = 0x123456,
	ACK_TIMEOUT = 20 /* 4 s: under valgrind, too */,
	RETRIES = 7,
	DEPTH_RD = 1
};

void dev_open(struct dev *d, int cqes)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_port_attr port;
	union ibv_gid gid;

	if (!list || !list[0])
		die(errno, "no verbs device");
	d->ctx = ibv_open_device(list[0]);
	if (!d->ctx)
		die(errno, "ibv_open_device");
	ibv_free_device_list(list);
	if (ibv_query_port(d->ctx, 1, &port) ||
	    ibv_query_gid(d->ctx, 1, 0, &gid))
		die(errno, "port 1 of the device");
	d->mtu = (uint32_t)port.active_mtu;
	memcpy(d->gid, gid.raw, sizeof(d->gid));
	d->pd = ibv_alloc_pd(d->ctx);
	d->cq = ibv_create_cq(d->ctx, cqes, NULL, NULL, 0);
	if (!d->pd || !d->cq)
		die(errno, "ibv_alloc_pd, ibv_create_cq");
}

struct ibv_mr *dev_reg(struct dev *d, void *addr, size_t bytes)
{
	return ibv_reg_mr(d->pd, addr, bytes,
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				  IBV_ACCESS_REMOTE_READ);
}

static struct ibv_qp *make_qp(struct dev *d, struct ibv_srq *srq,
			      uint32_t send_wr, uint32_t recv_wr)
{
	struct ibv_qp_init_attr init = {
		.send_cq = d->cq,
		.recv_cq = d->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send_wr,
			.max_recv_wr = recv_wr,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	if (!qp)
		die(errno, "ibv_create_qp");
	return qp;
}

struct ibv_qp *dev_qp(struct dev *d, uint32_t send_wr, uint32_t recv_wr)
{
	return make_qp(d, NULL, send_wr, recv_wr);
}

struct ibv_qp *dev_srq_qp(struct dev *d, uint32_t send_wr, uint32_t recv_wr)
{
	struct ibv_srq_init_attr init = {
		.attr = {.max_wr = recv_wr, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(d->pd, &init);

	if (!srq)
		die(errno, "ibv_create_srq");
	return make_qp(d, srq, send_wr, recv_wr);
}

struct addr dev_addr(const struct dev *d, const struct ibv_qp *qp,
		     const struct ibv_mr *mr)
{
	struct addr a = {.qpn = qp->qp_num};

	if (mr) {
		a.va = (uintptr_t)mr->addr;
		a.rkey = mr->rkey;
	}
	memcpy(a.gid, d->gid, sizeof(a.gid));
	return a;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		   const char *what)
{
	int err = ibv_modify_qp(qp, attr, mask);

	if (err)
		die(err, "ibv_modify_qp to %s", what);
}

void dev_connect(const struct dev *d, struct ibv_qp *qp,
		 const struct addr *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
		.path_mtu = (enum ibv_mtu)d->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = FIRST_PSN,
		.sq_psn = FIRST_PSN,
		.max_dest_rd_atomic = DEPTH_RD,
		.max_rd_atomic = DEPTH_RD,
		.min_rnr_timer = 1,
		.timeout = ACK_TIMEOUT,
		.retry_cnt = RETRIES,
		.rnr_retry = RETRIES,
		.ah_attr = {.is_global = 1,
			    .port_num = 1,
			    .grh = {.hop_limit = 64}},
	};

	memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
	modify(qp, &attr,
	       IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		       IBV_QP_ACCESS_FLAGS,
	       "INIT");
	attr.qp_state = IBV_QPS_RTR;
	modify(qp, &attr,
	       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
		       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		       IBV_QP_MIN_RNR_TIMER,
	       "RTR");
	attr.qp_state = IBV_QPS_RTS;
	modify(qp, &attr,
	       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		       IBV_QP_MAX_QP_RD_ATOMIC,
	       "RTS");
}

static void post(struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	int err = ibv_post_send(qp, wr, &bad);

	if (err)
		die(err, "ibv_post_send");
}

static struct ibv_sge whole(const struct ibv_mr *mr, uint32_t bytes)
{
	return (struct ibv_sge){(uintptr_t)mr->addr, bytes, mr->lkey};
}

void dev_write(struct ibv_qp *qp, const struct ibv_mr *from, uint32_t bytes,
	       const struct addr *to, uint64_t offset)
{
	struct ibv_sge sge = whole(from, bytes);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {.remote_addr = to->va + offset, .rkey = to->rkey},
	};

	post(qp, &wr);
}

void dev_send(struct ibv_qp *qp, const struct ibv_mr *from, uint32_t bytes)
{
	struct ibv_sge sge = whole(from, bytes);
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};

	post(qp, &wr);
}

void dev_recv(struct ibv_qp *qp, const struct ibv_mr *to, uint32_t bytes)
{
	struct ibv_sge sge = whole(to, bytes);
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	int err = qp->srq ? ibv_post_srq_recv(qp->srq, &wr, &bad)
			  : ibv_post_recv(qp, &wr, &bad);

	if (err)
		die(err, "ibv_post_recv");
}

unsigned dev_poll(struct dev *d)
{
	struct ibv_wc wc[16];
	int n = ibv_poll_cq(d->cq, (int)ARRAY_SIZE(wc), wc);

	if (n < 0)
		die(0, "ibv_poll_cq");
	for (int i = 0; i < n; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die(0, "completion with error: %s",
			    ibv_wc_status_str(wc[i].status));
	return (unsigned)n;
}
