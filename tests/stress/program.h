/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* program.h: what a verbs program does to its queue pairs: make them, connect
 * them, post a few requests at once. Nothing here calls into nopin.
 */
#ifndef NOPIN_TESTS_STRESS_PROGRAM_H
#define NOPIN_TESTS_STRESS_PROGRAM_H

#include "common.h"

#include <infiniband/verbs.h>
#include <stdbool.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum {
	SIDES = 2,
	DEPTH = 32,
	BATCH = 3, /* most requests of one post */
	INLINE = 64,
	REGION = 64 * 1024,
	MAX_LEN = 20000,
	RIGHTS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	WR_OPS = IBV_QP_EX_WITH_RDMA_WRITE |
		 IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND |
		 IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ |
		 IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
		 IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD,
};

/** struct place - A region of REGION bytes and one of its keys. */
struct place {
	uint64_t addr;
	uint32_t key;
};

struct request {
	struct ibv_send_wr wr;
	struct ibv_sge sge;
};

static inline struct ibv_context *device_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	REQUIRE(list && list[0]);
	ctx = ibv_open_device(list[0]);
	REQUIRE(ctx);
	ibv_free_device_list(list);
	return ctx;
}

static inline struct ibv_mr *region_reg(struct ibv_pd *pd, void *at)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, at, REGION, RIGHTS);

	REQUIRE(mr);
	return mr;
}

/* --- queue pairs ------------------------------------------------------------- */

/* @wr_api: with the ibv_wr_ functions. Return: NULL on failure */
static inline struct ibv_qp *qp_try(struct ibv_pd *pd, struct ibv_cq *cq,
				    bool wr_api)
{
	const struct ibv_qp_cap cap = {.max_send_wr = DEPTH,
				       .max_recv_wr = DEPTH,
				       .max_send_sge = 2,
				       .max_recv_sge = 2,
				       .max_inline_data = INLINE};
	struct ibv_qp_init_attr_ex ex = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = WR_OPS,
	};
	struct ibv_qp_init_attr plain = {.send_cq = cq,
					 .recv_cq = cq,
					 .cap = cap,
					 .qp_type = IBV_QPT_RC};

	return wr_api ? ibv_create_qp_ex(pd->context, &ex)
		      : ibv_create_qp(pd, &plain);
}

static inline struct ibv_qp *qp_make(struct ibv_pd *pd, struct ibv_cq *cq,
				     bool wr_api)
{
	struct ibv_qp *qp = qp_try(pd, cq, wr_api);

	REQUIRE(qp);
	return qp;
}

static inline int qp_set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state};

	return ibv_modify_qp(qp, &attr, IBV_QP_STATE);
}

/* From RESET to RTS, to a QP of the same device. Return: 0, or what the first
 * step that failed said. */
static inline int qp_connect(struct ibv_qp *qp, uint32_t to, uint32_t psn)
{
	static const struct {
		enum ibv_qp_state state;
		int mask;
	} steps[] = {
		{IBV_QPS_INIT,
		 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
		{IBV_QPS_RTR,
		 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
		{IBV_QPS_RTS, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC},
	};
	struct ibv_qp_attr attr = {.port_num = 1,
				   .qp_access_flags = RIGHTS,
				   .dest_qp_num = to,
				   .rq_psn = psn,
				   .sq_psn = psn,
				   .max_dest_rd_atomic = 4,
				   .max_rd_atomic = 4,
				   .min_rnr_timer = 1,
				   .timeout = 14,
				   .retry_cnt = 7,
				   .rnr_retry = 7,
				   .ah_attr = {.is_global = 1, .port_num = 1}};
	struct ibv_port_attr port;
	int err = 0;

	REQUIRE(ibv_query_port(qp->context, 1, &port) == 0);
	REQUIRE(ibv_query_gid(qp->context, 1, 0, &attr.ah_attr.grh.dgid) == 0);
	attr.path_mtu = port.active_mtu;
	for (size_t i = 0; i < ARRAY_SIZE(steps) && !err; i++) {
		attr.qp_state = steps[i].state;
		err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | steps[i].mask);
	}
	return err;
}

/* --- requests ----------------------------------------------------------------- */

/* One in a while leaves its region. */
static inline uint32_t random_offset(uint32_t *seed)
{
	return rnd(seed, 20000) ? rnd(seed, REGION - MAX_LEN) & ~7u
				: REGION - 4;
}

static inline void request_random(struct request *r, uint64_t id,
				  struct place from, struct place to,
				  uint32_t *seed)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND,	   IBV_WR_SEND_WITH_IMM,
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE_WITH_IMM,
		IBV_WR_RDMA_READ,  IBV_WR_ATOMIC_FETCH_AND_ADD,
		IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP,
	};
	static char constant[INLINE];
	const enum ibv_wr_opcode op = ops[rnd(seed, ARRAY_SIZE(ops))];
	const uint32_t len = rnd(seed, rnd(seed, 4) ? 300 : MAX_LEN);

	*r = (struct request){
		.wr = {.wr_id = id,
		       .sg_list = &r->sge,
		       .num_sge = 1,
		       .opcode = op,
		       .send_flags = IBV_SEND_SIGNALED},
		.sge = {from.addr + random_offset(seed), len, from.key},
	};
	to.addr += random_offset(seed);
	if (rnd(seed, 3) == 0)
		r->wr.send_flags |= IBV_SEND_SOLICITED;
	if (rnd(seed, 20) == 0)
		r->wr.send_flags |= IBV_SEND_FENCE;
	if (op == IBV_WR_ATOMIC_FETCH_AND_ADD ||
	    op == IBV_WR_ATOMIC_CMP_AND_SWP) {
		r->sge.length = 8;
		r->wr.wr.atomic.remote_addr = to.addr;
		r->wr.wr.atomic.rkey = to.key;
		return;
	}
	r->wr.wr.rdma.remote_addr = to.addr;
	r->wr.wr.rdma.rkey = to.key;
	/* not from memory that peers write to meanwhile: we read this one */
	if (op != IBV_WR_RDMA_READ && len <= INLINE) {
		r->wr.send_flags |= IBV_SEND_INLINE;
		r->sge.addr = (uintptr_t)constant;
	}
}

static inline void request_build(struct ibv_qp_ex *qp,
				 const struct ibv_send_wr *wr)
{
	const uint64_t addr = wr->wr.rdma.remote_addr;
	const struct ibv_sge *sge = wr->sg_list;
	const uint32_t rkey = wr->wr.rdma.rkey;

	qp->wr_id = wr->wr_id;
	qp->wr_flags = wr->send_flags & ~(unsigned)IBV_SEND_INLINE;
	if (wr->opcode == IBV_WR_SEND)
		ibv_wr_send(qp);
	else if (wr->opcode == IBV_WR_SEND_WITH_IMM)
		ibv_wr_send_imm(qp, wr->imm_data);
	else if (wr->opcode == IBV_WR_RDMA_WRITE)
		ibv_wr_rdma_write(qp, rkey, addr);
	else if (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		ibv_wr_rdma_write_imm(qp, rkey, addr, wr->imm_data);
	else if (wr->opcode == IBV_WR_RDMA_READ)
		ibv_wr_rdma_read(qp, rkey, addr);
	else if (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		ibv_wr_atomic_fetch_add(qp, wr->wr.atomic.rkey,
					wr->wr.atomic.remote_addr, 1);
	else
		ibv_wr_atomic_cmp_swp(qp, wr->wr.atomic.rkey,
				      wr->wr.atomic.remote_addr, 0, 1);
	if (wr->send_flags & IBV_SEND_INLINE)
		ibv_wr_set_inline_data(qp, (void *)(uintptr_t)sge->addr,
				       sge->length);
	else
		ibv_wr_set_sge(qp, sge->lkey, sge->addr, sge->length);
}

/* The ibv_wr_ way: all or none. Return: how many were posted */
static inline int requests_build(struct ibv_qp_ex *qp, struct request *r, int n,
				 bool give_up)
{
	ibv_wr_start(qp);
	for (int i = 0; i < n; i++)
		request_build(qp, &r[i].wr);
	if (!give_up)
		return ibv_wr_complete(qp) ? 0 : n;
	ibv_wr_abort(qp);
	return 0;
}

/* Return: how many were posted */
static inline int requests_post(struct ibv_qp *qp, struct request *r, int n)
{
	struct ibv_send_wr *bad = NULL;
	int done = 0;

	for (int i = 0; i < n - 1; i++)
		r[i].wr.next = &r[i + 1].wr;
	if (ibv_post_send(qp, &r->wr, &bad) == 0)
		return n;
	while (done < n && bad != &r[done].wr)
		done++;
	REQUIRE(done < n);
	return done;
}

/* Return: how many were posted */
static inline int receives_post(struct ibv_qp *qp, uint64_t id, struct place to,
				int n)
{
	struct ibv_sge sge = {to.addr, MAX_LEN, to.key};
	struct ibv_recv_wr wr[BATCH], *bad = NULL;
	int done = 0;

	for (int i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = id,
					     .next = i < n - 1 ? &wr[i + 1]
							       : NULL,
					     .sg_list = &sge,
					     .num_sge = 1};
	if (ibv_post_recv(qp, wr, &bad) == 0)
		return n;
	while (done < n && bad != &wr[done])
		done++;
	REQUIRE(done < n);
	return done;
}

#endif
