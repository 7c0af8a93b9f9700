/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.c: QP attributes, theirs to ours and back. Which of them a transition
 * needs or allows is xport/'s table.
 */
#include "nic/memory.h"
#include "nic/pair.h"
#include "verbs/qp_api.h"
#include "verbs/query.h"
#include "verbs/verbs.h"

#include <errno.h>

enum { SL_MAX = 15 };

static int av_from_verbs(const struct ibv_ah_attr *in, struct qp_attr *out)
{
	if (in->port_num != PORT_NUM || in->sl > SL_MAX)
		return -EINVAL;
	memcpy(&out->dgid, &in->grh.dgid, sizeof(out->dgid));
	out->has_grh = in->is_global;
	out->sgid_index = in->grh.sgid_index;
	out->flow_label = in->grh.flow_label;
	out->hop_limit = in->grh.hop_limit;
	out->traffic_class = in->grh.traffic_class;
	out->sl = in->sl;
	out->static_rate = in->static_rate;
	return 0;
}

static int mtu_from_verbs(enum ibv_mtu mtu, uint32_t *bytes)
{
	if (mtu < IBV_MTU_256 || mtu > IBV_MTU_4096)
		return -EINVAL;
	*bytes = UINT32_C(128) << mtu;
	return 0;
}

/* What programs leave unset is not looked at, so @mask guards what can fail;
 * the rest is copied as it is, for xport/ reads only what the mask names.
 */
int qp_attr_from_verbs(const struct ibv_qp_attr *in, int mask,
		       struct qp_attr *out)
{
	int rc = 0;

	*out = (struct qp_attr){
		.rq_psn = in->rq_psn,
		.sq_psn = in->sq_psn,
		.dest_qpn = in->dest_qp_num,
		.qkey = in->qkey,
		.pkey_index = in->pkey_index,
		.port = in->port_num,
		.max_rd_atomic = in->max_rd_atomic,
		.max_dest_rd_atomic = in->max_dest_rd_atomic,
		.min_rnr_timer = in->min_rnr_timer,
		.timeout = in->timeout,
		.retry_cnt = in->retry_cnt,
		.rnr_retry = in->rnr_retry,
		.en_sqd_async_notify = in->en_sqd_async_notify,
	};
	if (mask & IBV_QP_STATE) {
		if ((unsigned)in->qp_state >= QPS_NUM)
			return -EINVAL;
		out->state = (enum qp_state)in->qp_state;
	}
	if (mask & IBV_QP_CUR_STATE) {
		if ((unsigned)in->cur_qp_state >= QPS_NUM)
			return -EINVAL;
		out->cur_state = (enum qp_state)in->cur_qp_state;
	}
	if (mask & IBV_QP_ACCESS_FLAGS) {
		const uint32_t remote = ACCESS_REMOTE_WRITE |
					ACCESS_REMOTE_READ |
					ACCESS_REMOTE_ATOMIC;

		/* a QP has remote rights only; others are ignored, as ever */
		out->access = in->qp_access_flags & remote;
	}
	if (mask & IBV_QP_PATH_MIG_STATE &&
	    in->path_mig_state != IBV_MIG_MIGRATED)
		return -EINVAL;
	if (mask & IBV_QP_PATH_MTU)
		rc = mtu_from_verbs(in->path_mtu, &out->path_mtu);
	if (!rc && mask & IBV_QP_AV)
		rc = av_from_verbs(&in->ah_attr, out);
	return rc;
}

void qp_attr_to_verbs(const struct qp_attr *in, struct ibv_qp_attr *out)
{
	memset(out, 0, sizeof(*out));
	out->qp_state = (enum ibv_qp_state)in->state;
	out->cur_qp_state = (enum ibv_qp_state)in->state;
	out->path_mtu = mtu_to_verbs(in->path_mtu);
	out->path_mig_state = IBV_MIG_MIGRATED;
	out->qkey = in->qkey;
	out->rq_psn = in->rq_psn;
	out->sq_psn = in->sq_psn;
	out->dest_qp_num = in->dest_qpn;
	out->qp_access_flags = in->access;
	memcpy(&out->ah_attr.grh.dgid, &in->dgid, sizeof(in->dgid));
	out->ah_attr.grh.flow_label = in->flow_label;
	out->ah_attr.grh.sgid_index = in->sgid_index;
	out->ah_attr.grh.hop_limit = in->hop_limit;
	out->ah_attr.grh.traffic_class = in->traffic_class;
	out->ah_attr.sl = in->sl;
	out->ah_attr.static_rate = in->static_rate;
	out->ah_attr.is_global = in->has_grh;
	out->ah_attr.port_num = in->port;
	out->pkey_index = in->pkey_index;
	out->en_sqd_async_notify = in->en_sqd_async_notify;
	out->sq_draining = in->sq_draining;
	out->max_rd_atomic = in->max_rd_atomic;
	out->max_dest_rd_atomic = in->max_dest_rd_atomic;
	out->min_rnr_timer = in->min_rnr_timer;
	out->port_num = in->port;
	out->timeout = in->timeout;
	out->retry_cnt = in->retry_cnt;
	out->rnr_retry = in->rnr_retry;
}
