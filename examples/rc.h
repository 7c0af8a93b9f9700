/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rc.h: what no program of verbs is without: a device, and queue pairs of reliable
 * connections, whose two ends tell each other who they are through a socket.
 */
#ifndef NOPIN_EXAMPLES_RC_H
#define NOPIN_EXAMPLES_RC_H

#include <nopin.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WRITABLE = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

#define TRY(what)                                                              \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "failed: %s\n", #what);                \
			exit(1);                                               \
		}                                                              \
	} while (0)

static inline void tell(int fd, const void *what, size_t len)
{
	TRY(send(fd, what, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static inline void hear(int fd, void *what, size_t len)
{
	TRY(recv(fd, what, len, MSG_WAITALL) == (ssize_t)len);
}

static inline void swap(int fd, const void *mine, void *theirs, size_t len)
{
	tell(fd, mine, len);
	hear(fd, theirs, len);
}

/* To be called before the device is opened. @fd: the socket to the other one.
 * Return: 0 in the child. */
static inline int rc_fork(int *fd)
{
	int both[2], child;

	TRY(!socketpair(AF_UNIX, SOCK_STREAM, 0, both));
	child = !fork();
	*fd = both[child];
	close(both[!child]);
	return !child;
}

static inline struct ibv_pd *rc_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	TRY(list && list[0]);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	TRY(ctx);
	return ibv_alloc_pd(ctx);
}

static inline void rc_states(struct ibv_qp *qp, struct ibv_qp_attr *a)
{
	a->qp_state = IBV_QPS_INIT;
	TRY(!ibv_modify_qp(qp, a,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS));
	a->qp_state = IBV_QPS_RTR;
	TRY(!ibv_modify_qp(qp, a,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER));
	a->qp_state = IBV_QPS_RTS;
	TRY(!ibv_modify_qp(qp, a,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC));
}

/* A connection to the process at @fd, which does the same; with a CQ of its own. */
static inline struct ibv_qp *rc_connect(struct ibv_pd *pd, int fd)
{
	struct ibv_cq *cq = ibv_create_cq(pd->context, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 16, .max_send_sge = 1}};
	struct ibv_qp_attr a = {.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_ATOMIC,
				.path_mtu = IBV_MTU_1024,
				.max_rd_atomic = 1,
				.max_dest_rd_atomic = 1,
				.timeout = 14,
				.retry_cnt = 7,
				.ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);
	union ibv_gid gid;

	TRY(qp && !ibv_query_gid(pd->context, 1, 0, &gid));
	tell(fd, &gid, sizeof(gid));
	tell(fd, &qp->qp_num, sizeof(qp->qp_num));
	hear(fd, &a.ah_attr.grh.dgid, sizeof(gid));
	hear(fd, &a.dest_qp_num, sizeof(a.dest_qp_num));
	a.ah_attr.grh.hop_limit = 64;
	rc_states(qp, &a);
	return qp;
}

/* Waits for what was posted last. */
static inline void rc_done(struct ibv_qp *qp)
{
	struct ibv_wc wc;

	while (!ibv_poll_cq(qp->send_cq, 1, &wc))
		;
	TRY(wc.status == IBV_WC_SUCCESS);
}

/* All of @mr to @addr at the other end. */
static inline void rc_write(struct ibv_qp *qp, const struct ibv_mr *mr,
			    uint64_t addr, uint32_t rkey)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, (uint32_t)mr->length,
			      mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {addr, rkey}};

	TRY(!ibv_post_send(qp, &wr, &bad));
	rc_done(qp);
}

#endif
