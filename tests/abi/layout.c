/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* layout.c: what we rely on in the installed headers, and where our numbers are
 * theirs. All of it is checked by the compiler; there is nothing to run but the
 * tables that have no constant form. Sizes that grow with rdma-core's version
 * are lower bounds.
 */
#include "nic/async.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "ring/cqe.h"

#include <assert.h>
#include <infiniband/verbs.h>
#include <stdio.h>

#define SIZE(type, size)  static_assert(sizeof(type) == (size), #type)
#define GROWS(type, size) static_assert(sizeof(type) >= (size), #type)
#define AT(type, field, offset)                                                \
	static_assert(offsetof(type, field) == (offset), #type "." #field)
#define SAME(ours, theirs)                                                     \
	static_assert((long long)(ours) == (long long)(theirs), #ours)

/* --- structs that inline functions of programs look into ---------------------- */

SIZE(struct ibv_context, 328);
AT(struct ibv_context, ops, 8);
AT(struct ibv_context, ops.alloc_mw, 64);
AT(struct ibv_context, ops.bind_mw, 72);
AT(struct ibv_context, ops.dealloc_mw, 80);
AT(struct ibv_context, ops.poll_cq, 96);
AT(struct ibv_context, ops.req_notify_cq, 104);
AT(struct ibv_context, ops.post_srq_recv, 168);
AT(struct ibv_context, ops.post_send, 208);
AT(struct ibv_context, ops.post_recv, 216);
AT(struct ibv_context, cmd_fd, 264);
AT(struct ibv_context, async_fd, 268);
AT(struct ibv_context, num_comp_vectors, 272);
AT(struct ibv_context, mutex, 280);
AT(struct ibv_context, abi_compat, 320);

SIZE(struct verbs_context, 648);
AT(struct verbs_context, query_port, 0);
AT(struct verbs_context, advise_mr, 8);
AT(struct verbs_context, create_cq_ex, 200);
AT(struct verbs_context, query_device_ex, 216);
AT(struct verbs_context, create_qp_ex, 264);
AT(struct verbs_context, sz, 312);
AT(struct verbs_context, context, 320);

SIZE(struct ibv_device, 664);
AT(struct ibv_device, node_type, 16);
AT(struct ibv_device, transport_type, 20);
AT(struct ibv_device, name, 24);
AT(struct ibv_device, dev_name, 88);
AT(struct ibv_device, dev_path, 152);
AT(struct ibv_device, ibdev_path, 408);

SIZE(struct ibv_pd, 16);
SIZE(struct ibv_mr, 48);
SIZE(struct ibv_cq, 128);
SIZE(struct ibv_qp, 160);
SIZE(struct ibv_ah, 24);
SIZE(struct ibv_comp_channel, 16);
SIZE(struct ibv_wc, 48);
SIZE(struct ibv_send_wr, 128);
SIZE(struct ibv_recv_wr, 32);
SIZE(struct ibv_device_attr, 232);
SIZE(struct ibv_qp_attr, 144);
SIZE(struct ibv_qp_init_attr, 64);
SIZE(struct ibv_gid_entry, 32);
SIZE(struct ibv_async_event, 16);
GROWS(struct ibv_device_attr_ex, 400);
GROWS(struct ibv_qp_init_attr_ex, 136);
GROWS(struct ibv_cq_init_attr_ex, 56);
GROWS(struct ibv_port_attr, 52);
GROWS(struct ibv_qp_ex, 352);
GROWS(struct ibv_cq_ex, 288);
AT(struct ibv_device_attr_ex, odp_caps, 240);
AT(struct ibv_port_attr, port_cap_flags2, 48);
/* a CQ or QP of either kind begins the same */
AT(struct ibv_qp_ex, qp_base, 0);
AT(struct ibv_cq_ex, comp_mask, sizeof(struct ibv_cq));
AT(struct ibv_cq_ex, async_events_completed,
   offsetof(struct ibv_cq, async_events_completed));
/* what old programs take for the whole ibv_port_attr */
static_assert(offsetof(struct ibv_port_attr, flags) < 48, "48 bytes");
/* ibv_create_qp_ex() of verbs.h passes the one for the other */
AT(struct ibv_qp_init_attr_ex, sq_sig_all,
   offsetof(struct ibv_qp_init_attr, sq_sig_all));

/* --- our numbers are theirs ------------------------------------------------------ */

SAME(WC_SUCCESS, IBV_WC_SUCCESS);
SAME(WC_LOC_LEN_ERR, IBV_WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR, IBV_WC_LOC_QP_OP_ERR);
SAME(WC_LOC_EEC_OP_ERR, IBV_WC_LOC_EEC_OP_ERR);
SAME(WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR, IBV_WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR, IBV_WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR, IBV_WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR, IBV_WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR, IBV_WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
SAME(WC_FATAL_ERR, IBV_WC_FATAL_ERR);
SAME(WC_GENERAL_ERR, IBV_WC_GENERAL_ERR);

SAME(ACCESS_LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ, IBV_ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND, IBV_ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED, IBV_ACCESS_ZERO_BASED);
SAME(ACCESS_ON_DEMAND, IBV_ACCESS_ON_DEMAND);
SAME(ACCESS_RELAXED_ORDERING, IBV_ACCESS_RELAXED_ORDERING);

SAME(NIC_EVENT_CQ_ERR, IBV_EVENT_CQ_ERR);
SAME(NIC_EVENT_QP_FATAL, IBV_EVENT_QP_FATAL);
SAME(NIC_EVENT_QP_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
SAME(NIC_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
SAME(NIC_EVENT_COMM_EST, IBV_EVENT_COMM_EST);
SAME(NIC_EVENT_SQ_DRAINED, IBV_EVENT_SQ_DRAINED);
SAME(NIC_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);

SAME(NIC_PREFETCH, IBV_ADVISE_MR_ADVICE_PREFETCH);
SAME(NIC_PREFETCH_WRITE, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE);
SAME(NIC_PREFETCH_NO_FAULT, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT);

SAME(QPS_RESET, IBV_QPS_RESET);
SAME(QPS_INIT, IBV_QPS_INIT);
SAME(QPS_RTR, IBV_QPS_RTR);
SAME(QPS_RTS, IBV_QPS_RTS);
SAME(QPS_SQD, IBV_QPS_SQD);
SAME(QPS_SQE, IBV_QPS_SQE);
SAME(QPS_ERR, IBV_QPS_ERR);
SAME(QPS_NUM, IBV_QPS_UNKNOWN);

SAME(QPA_STATE, IBV_QP_STATE);
SAME(QPA_CUR_STATE, IBV_QP_CUR_STATE);
SAME(QPA_EN_SQD_ASYNC_NOTIFY, IBV_QP_EN_SQD_ASYNC_NOTIFY);
SAME(QPA_ACCESS_FLAGS, IBV_QP_ACCESS_FLAGS);
SAME(QPA_PKEY_INDEX, IBV_QP_PKEY_INDEX);
SAME(QPA_PORT, IBV_QP_PORT);
SAME(QPA_QKEY, IBV_QP_QKEY);
SAME(QPA_AV, IBV_QP_AV);
SAME(QPA_PATH_MTU, IBV_QP_PATH_MTU);
SAME(QPA_TIMEOUT, IBV_QP_TIMEOUT);
SAME(QPA_RETRY_CNT, IBV_QP_RETRY_CNT);
SAME(QPA_RNR_RETRY, IBV_QP_RNR_RETRY);
SAME(QPA_RQ_PSN, IBV_QP_RQ_PSN);
SAME(QPA_MAX_RD_ATOMIC, IBV_QP_MAX_QP_RD_ATOMIC);
SAME(QPA_ALT_PATH, IBV_QP_ALT_PATH);
SAME(QPA_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
SAME(QPA_SQ_PSN, IBV_QP_SQ_PSN);
SAME(QPA_MAX_DEST_RD_ATOMIC, IBV_QP_MAX_DEST_RD_ATOMIC);
SAME(QPA_PATH_MIG_STATE, IBV_QP_PATH_MIG_STATE);
SAME(QPA_CAP, IBV_QP_CAP);
SAME(QPA_DEST_QPN, IBV_QP_DEST_QPN);
SAME(QPA_RATE_LIMIT, IBV_QP_RATE_LIMIT);

int main(void)
{
	puts("the compiler has checked it");
	return 0;
}
