/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* link.h: a program with one RC connection to itself: two QPs of one device.
 * Only verbs, as any program would. What goes wrong is said, and ends it.
 */
#ifndef NOPIN_TESTS_GUEST_LINK_H
#define NOPIN_TESTS_GUEST_LINK_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define REQUIRE(c)                                                             \
	do {                                                                   \
		if (!(c)) {                                                    \
			fprintf(stderr, "%s:%d: not true: %s (errno %d)\n",    \
				__FILE__, __LINE__, #c, errno);                \
			_exit(1);                                              \
		}                                                              \
	} while (0)

enum { LINK_ENDS = 2, LINK_BYTES = 64 * 1024, LINK_DEPTH = 16, PATIENCE = 20 };

struct link {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq[LINK_ENDS];
	struct ibv_qp *qp[LINK_ENDS];
	struct ibv_mr *mr;
	uint8_t *buf; /* LINK_BYTES of end 0, then of end 1 */
};

static inline struct ibv_context *link_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	REQUIRE(list && list[0]);
	REQUIRE(strcmp(ibv_get_device_name(list[0]), "nopin0") == 0);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx;
}

/* @timeout: as in ibv_qp_attr: 4.096 us * 2^timeout */
static inline void link_connect(struct link *l, int i, uint8_t timeout)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_ATOMIC,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = l->qp[!i]->qp_num,
				.max_dest_rd_atomic = 1,
				.min_rnr_timer = 1,
				.ah_attr = {.is_global = 1, .port_num = 1},
				.timeout = timeout,
				.retry_cnt = 7,
				.rnr_retry = 7,
				.max_rd_atomic = 1};

	a.ah_attr.grh.hop_limit = 1;
	REQUIRE(ibv_query_gid(l->ctx, 1, 0, &a.ah_attr.grh.dgid) == 0);
	REQUIRE(ibv_modify_qp(l->qp[i], &a,
			      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				      IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	REQUIRE(ibv_modify_qp(l->qp[i], &a,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER) == 0);
	a.qp_state = IBV_QPS_RTS;
	REQUIRE(ibv_modify_qp(l->qp[i], &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC) == 0);
}

/* All but l->ctx. */
static inline void link_setup(struct link *l)
{
	l->pd = ibv_alloc_pd(l->ctx);
	REQUIRE(l->pd);
	l->buf = aligned_alloc(4096, 2 * LINK_BYTES);
	REQUIRE(l->buf);
	memset(l->buf, 0, 2 * LINK_BYTES);
	l->mr = ibv_reg_mr(l->pd, l->buf, 2 * LINK_BYTES,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC);
	REQUIRE(l->mr);
	for (int i = 0; i < LINK_ENDS; i++) {
		struct ibv_qp_init_attr init = {
			.cap = {.max_send_wr = LINK_DEPTH,
				.max_recv_wr = LINK_DEPTH,
				.max_send_sge = 1,
				.max_recv_sge = 1},
			.qp_type = IBV_QPT_RC,
			.sq_sig_all = 1};

		l->cq[i] = ibv_create_cq(l->ctx, 64, NULL, NULL, 0);
		REQUIRE(l->cq[i]);
		init.send_cq = init.recv_cq = l->cq[i];
		l->qp[i] = ibv_create_qp(l->pd, &init);
		REQUIRE(l->qp[i]);
	}
	for (int i = 0; i < LINK_ENDS; i++)
		link_connect(l, i, 14);
}

static inline void link_open(struct link *l)
{
	l->ctx = link_device();
	REQUIRE(l->ctx);
	link_setup(l);
}

static inline struct ibv_wc link_wait(struct ibv_cq *cq)
{
	const time_t end = time(NULL) + PATIENCE;
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
		REQUIRE(time(NULL) < end);
	REQUIRE(n == 1);
	return wc;
}

/* Return: what ibv_post_send() did. */
static inline int link_post(struct link *l, int from, uint32_t len)
{
	struct ibv_sge s = {(uintptr_t)l->buf + (size_t)from * LINK_BYTES, len,
			    l->mr->lkey};
	struct ibv_sge r = {(uintptr_t)l->buf + (size_t)!from * LINK_BYTES, len,
			    l->mr->lkey};
	struct ibv_send_wr send = {
		.sg_list = &s, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_recv_wr recv = {.sg_list = &r, .num_sge = 1};
	struct ibv_send_wr *bad_send;
	struct ibv_recv_wr *bad_recv;
	int err = ibv_post_recv(l->qp[!from], &recv, &bad_recv);

	return err ? err : ibv_post_send(l->qp[from], &send, &bad_send);
}

/* A message of @len bytes from end @from to the other, checked. */
static inline void link_send(struct link *l, int from, uint32_t len,
			     uint8_t fill)
{
	memset(l->buf + (size_t)from * LINK_BYTES, fill, len);
	memset(l->buf + (size_t)!from * LINK_BYTES, 0, len);
	REQUIRE(link_post(l, from, len) == 0);
	REQUIRE(link_wait(l->cq[!from]).status == IBV_WC_SUCCESS);
	REQUIRE(link_wait(l->cq[from]).status == IBV_WC_SUCCESS);
	REQUIRE(memcmp(l->buf, l->buf + LINK_BYTES, len) == 0);
}

static inline void link_request(struct link *l, enum ibv_wr_opcode op,
				void *local, void *remote, uint32_t len)
{
	struct ibv_sge s = {(uintptr_t)local, len, l->mr->lkey};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &s,
					 .num_sge = 1,
					 .opcode = op,
				 };

	wr.wr.rdma.remote_addr = (uintptr_t)remote;
	wr.wr.rdma.rkey = l->mr->rkey;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = (uintptr_t)remote;
		wr.wr.atomic.compare_add = 5;
		wr.wr.atomic.rkey = l->mr->rkey;
	}
	REQUIRE(ibv_post_send(l->qp[0], &wr, &bad) == 0);
	REQUIRE(link_wait(l->cq[0]).status == IBV_WC_SUCCESS);
}

/* Also to pages that are not there, if the program may drop them. */
static inline void link_one_sided(struct link *l)
{
	uint8_t *from = l->buf, *to = l->buf + LINK_BYTES;
	uint64_t *old = (uint64_t *)from, *word = (uint64_t *)to;

	for (int i = 0; i < 4; i++) {
		memset(from, 17 + i, LINK_BYTES);
		(void)madvise(to, LINK_BYTES, MADV_DONTNEED);
		link_request(l, IBV_WR_RDMA_WRITE, from, to, LINK_BYTES);
		REQUIRE(memcmp(from, to, LINK_BYTES) == 0);
		memset(from, 0, LINK_BYTES);
		link_request(l, IBV_WR_RDMA_READ, from, to, LINK_BYTES);
		REQUIRE(memcmp(from, to, LINK_BYTES) == 0);
	}
	*word = 1000;
	link_request(l, IBV_WR_ATOMIC_FETCH_AND_ADD, old, word, 8);
	REQUIRE(*old == 1000 && *word == 1005);
}

/* A thread that sleeps is woken. */
static inline void link_event(struct link *l)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(l->ctx);
	struct ibv_recv_wr recv = {.wr_id = 1}, *bad;
	struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr init = {
		.cap = {1, 1, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_wc wc;
	void *context;

	if (!channel && errno == EMFILE)
		return;
	REQUIRE(channel);
	cq = ibv_create_cq(l->ctx, 4, NULL, channel, 0);
	REQUIRE(cq);
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(l->pd, &init);
	REQUIRE(qp && ibv_modify_qp(qp, &err, IBV_QP_STATE) == 0);
	REQUIRE(ibv_req_notify_cq(cq, 0) == 0);
	REQUIRE(ibv_post_recv(qp, &recv, &bad) == 0);
	REQUIRE(ibv_get_cq_event(channel, &cq, &context) == 0);
	REQUIRE(ibv_poll_cq(cq, 1, &wc) == 1 &&
		wc.status == IBV_WC_WR_FLUSH_ERR);
	ibv_ack_cq_events(cq, 1);
	REQUIRE(ibv_destroy_qp(qp) == 0 && ibv_destroy_cq(cq) == 0);
	REQUIRE(ibv_destroy_comp_channel(channel) == 0);
}

/* Some of everything. */
static inline void link_work(struct link *l)
{
	static const uint32_t sizes[] = {1, 1024, 4096, 65536};

	for (uint32_t i = 0; i < 8; i++)
		link_send(l, i & 1, sizes[i % 4], (uint8_t)(i | 1));
	link_one_sided(l);
	link_event(l);
}

static inline void link_close(struct link *l)
{
	for (int i = 0; i < LINK_ENDS; i++)
		REQUIRE(ibv_destroy_qp(l->qp[i]) == 0);
	for (int i = 0; i < LINK_ENDS; i++)
		REQUIRE(ibv_destroy_cq(l->cq[i]) == 0);
	REQUIRE(ibv_dereg_mr(l->mr) == 0 && ibv_dealloc_pd(l->pd) == 0);
	REQUIRE(ibv_close_device(l->ctx) == 0);
	free(l->buf);
}

#endif
