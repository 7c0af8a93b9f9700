/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.c: a reliable connection, as in every verbs program. */
#include "demo.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
	SEND_DEPTH = 512,
	RD_DEPTH = 16,
	/* 0.5 s. A thread that could run may wait that long for a CPU when all
	 * of them are busy; no demo should fail of that. */
	ACK_TIMEOUT = 17,
	RETRIES = 7,
};

static void arm(const struct dev *d)
{
	int err = ibv_req_notify_cq(d->cq, 0);

	if (err)
		die(err, "ibv_req_notify_cq");
}

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
	memcpy(d->gid, gid.raw, sizeof(d->gid));
	d->mtu = port.active_mtu;
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd)
		die(errno, "ibv_alloc_pd");
	d->channel = ibv_create_comp_channel(d->ctx);
	if (!d->channel)
		die(errno, "ibv_create_comp_channel");
	d->cq = ibv_create_cq(d->ctx, cqes, NULL, d->channel, 0);
	if (!d->cq)
		die(errno, "ibv_create_cq");
	arm(d);
}

void dev_close(struct dev *d)
{
	int err = ibv_destroy_cq(d->cq);

	if (!err)
		err = ibv_destroy_comp_channel(d->channel);
	if (!err)
		err = ibv_dealloc_pd(d->pd);
	if (!err)
		err = ibv_close_device(d->ctx);
	if (err)
		die(err, "cannot close the device");
}

struct ibv_qp *dev_qp(struct dev *d, struct hello *mine)
{
	struct ibv_qp_init_attr init = {
		.send_cq = d->cq,
		.recv_cq = d->cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = {.max_send_wr = SEND_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(d->pd, &init);

	if (!qp)
		die(errno, "ibv_create_qp");
	memcpy(mine->gid, d->gid, sizeof(mine->gid));
	mine->qpn = qp->qp_num;
	mine->psn = (uint32_t)now_ns() & 0xffffff;
	return qp;
}

static void modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int err = ibv_modify_qp(qp, attr, IBV_QP_STATE | mask);

	if (err)
		die(err, "ibv_modify_qp to state %d", (int)attr->qp_state);
}

void dev_connect(const struct dev *d, struct ibv_qp *qp,
		 const struct hello *mine, const struct hello *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
		.path_mtu = d->mtu,
		.dest_qp_num = peer->qpn,
		.rq_psn = peer->psn,
		.sq_psn = mine->psn,
		.max_dest_rd_atomic = RD_DEPTH,
		.max_rd_atomic = RD_DEPTH,
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
	       IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	attr.qp_state = IBV_QPS_RTR;
	modify(qp, &attr,
	       IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
		       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	attr.qp_state = IBV_QPS_RTS;
	modify(qp, &attr,
	       IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		       IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

int dev_poll(struct dev *d, int n, struct ibv_wc *wc)
{
	int got = ibv_poll_cq(d->cq, n, wc);

	if (got < 0)
		die(errno, "ibv_poll_cq");
	for (int i = 0; i < got; i++)
		if (wc[i].status != IBV_WC_SUCCESS)
			die(0, "a request failed: %s",
			    ibv_wc_status_str(wc[i].status));
	return got;
}

void dev_wait(const struct dev *d, uint64_t until)
{
	struct pollfd fd = {.fd = d->channel->fd, .events = POLLIN};
	const uint64_t now = now_ns();
	const struct timespec left = {
		.tv_sec = (time_t)((until - now) / (1000 * MS)),
		.tv_nsec = (long)((until - now) % (1000 * MS)),
	};
	struct ibv_cq *cq;
	void *cookie;

	if (now >= until || ppoll(&fd, 1, &left, NULL) != 1)
		return;
	if (ibv_get_cq_event(d->channel, &cq, &cookie))
		die(errno, "ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	arm(d);
}

void post(struct ibv_qp *qp, enum ibv_wr_opcode op, uint64_t id,
	  const struct ibv_sge *local, uint64_t va, uint32_t rkey)
{
	struct ibv_sge sge = *local;
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = id,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = op,
			.wr.rdma = {.remote_addr = va, .rkey = rkey},
		};
	int err = ibv_post_send(qp, &wr, &bad);

	if (err)
		die(err, "ibv_post_send");
}
