/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pair.h: two connected QPs of one NIC, for tests of nopin.h. */
#ifndef NOPIN_TESTS_UNIT_EXT_PAIR_H
#define NOPIN_TESTS_UNIT_EXT_PAIR_H

#include "device.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

enum { PAIR_BUF = 1 << 16 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[2];
static uint8_t buf[PAIR_BUF] __attribute__((aligned(4096)));
static uint8_t pair_retries = 7; /* of QPs that are connected from now on */

static struct ibv_qp *pair_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr init = {.send_cq = cq,
					.recv_cq = cq,
					.qp_type = type,
					.cap = {.max_send_wr = 64,
						.max_recv_wr = 64,
						.max_send_sge = 1,
						.max_recv_sge = 1}};
	struct ibv_qp *q = ibv_create_qp(pd, &init);

	assert_non_null(q);
	return q;
}

static void pair_connect(struct ibv_qp *q, uint32_t to)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
				.port_num = 1,
				.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
						   IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_ATOMIC,
				.path_mtu = IBV_MTU_1024,
				.dest_qp_num = to,
				.max_rd_atomic = 4,
				.max_dest_rd_atomic = 4,
				.timeout = 14,
				.retry_cnt = pair_retries,
				.rnr_retry = 7,
				.ah_attr = {.is_global = 1, .port_num = 1}};

	assert_int_equal(ibv_query_gid(ctx, 1, 0, &a.ah_attr.grh.dgid), 0);
	assert_int_equal(ibv_modify_qp(q, &a,
				       IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT |
					       IBV_QP_ACCESS_FLAGS),
			 0);
	a.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(q, &a,
				       IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER),
			 0);
	a.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		ibv_modify_qp(q, &a,
			      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				      IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				      IBV_QP_MAX_QP_RD_ATOMIC),
		0);
}

static inline int pair_open(void **state)
{
	(void)state;
	ctx = open_device();
	pd = ibv_alloc_pd(ctx);
	assert_non_null(pd);
	cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	assert_non_null(cq);
	memset(buf, 0, sizeof(buf));
	mr = ibv_reg_mr(pd, buf, sizeof(buf),
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_ATOMIC);
	assert_non_null(mr);
	for (int i = 0; i < 2; i++)
		qp[i] = pair_qp(IBV_QPT_RC);
	for (int i = 0; i < 2; i++)
		pair_connect(qp[i], qp[!i]->qp_num);
	return 0;
}

static inline int pair_close(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(ctx), 0);
	return 0;
}

/**
 * struct pair_ends - Two more QPs, connected, each with a CQ as homes and owners want
 * it: the member's or user's, and theirs.
 */
struct pair_ends {
	struct ibv_cq *cq[2];
	struct ibv_qp *qp[2];
};

static inline void pair_ends_open(struct pair_ends *e)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 8, .max_send_sge = 1}};

	for (int i = 0; i < 2; i++) {
		e->cq[i] = ibv_create_cq(ctx, 8, NULL, NULL, 0);
		init.send_cq = init.recv_cq = e->cq[i];
		e->qp[i] = ibv_create_qp(pd, &init);
		assert_non_null(e->qp[i]);
	}
	for (int i = 0; i < 2; i++)
		pair_connect(e->qp[i], e->qp[!i]->qp_num);
}

static inline void pair_ends_close(struct pair_ends *e)
{
	for (int i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(e->qp[i]), 0);
		assert_int_equal(ibv_destroy_cq(e->cq[i]), 0);
	}
}

/* Nobody gets a descriptor from now on. Return: for setrlimit(). */
static inline struct rlimit pair_no_descriptors(void)
{
	struct rlimit was, none;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return was;
}

static inline void pair_break(struct ibv_qp *q)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_ERR};

	assert_int_equal(ibv_modify_qp(q, &a, IBV_QP_STATE), 0);
}

/* The status of the next completion. */
static inline enum ibv_wc_status pair_status(struct ibv_wc *wc)
{
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)))
		;
	assert_int_equal(n, 1);
	return wc->status;
}

#endif
