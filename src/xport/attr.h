/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* attr.h: QP states, attributes and their masks. The numbers are those of
 * verbs (checked in tests/abi), the types are ours.
 */
#ifndef NOPIN_XPORT_ATTR_H
#define NOPIN_XPORT_ATTR_H

#include "base/addr.h"

enum qp_state {
	QPS_RESET,
	QPS_INIT,
	QPS_RTR,
	QPS_RTS,
	QPS_SQD,
	QPS_SQE,
	QPS_ERR,
	QPS_NUM
};

enum qp_attr_mask {
	QPA_STATE = 1 << 0,
	QPA_CUR_STATE = 1 << 1,
	QPA_EN_SQD_ASYNC_NOTIFY = 1 << 2,
	QPA_ACCESS_FLAGS = 1 << 3,
	QPA_PKEY_INDEX = 1 << 4,
	QPA_PORT = 1 << 5,
	QPA_QKEY = 1 << 6,
	QPA_AV = 1 << 7,
	QPA_PATH_MTU = 1 << 8,
	QPA_TIMEOUT = 1 << 9,
	QPA_RETRY_CNT = 1 << 10,
	QPA_RNR_RETRY = 1 << 11,
	QPA_RQ_PSN = 1 << 12,
	QPA_MAX_RD_ATOMIC = 1 << 13,
	QPA_ALT_PATH = 1 << 14,
	QPA_MIN_RNR_TIMER = 1 << 15,
	QPA_SQ_PSN = 1 << 16,
	QPA_MAX_DEST_RD_ATOMIC = 1 << 17,
	QPA_PATH_MIG_STATE = 1 << 18,
	QPA_CAP = 1 << 19,
	QPA_DEST_QPN = 1 << 20,
	QPA_RATE_LIMIT = 1 << 25,
};

/**
 * struct qp_attr - What qp_modify() takes and qp_query() gives.
 * @path_mtu:	payload bytes: 256, 512, 1024, 2048 or 4096
 * @timeout:	5-bit code, 4.096 us * 2^timeout, 0: for ever
 * @rnr_retry:	0..7, 7: for ever
 * @qkey:	of datagrams
 * @dgid, @sgid_index, @hop_limit, @traffic_class, @flow_label, @sl, @static_rate:
 *		address vector; Ethernet knows neither of the last two
 */
struct qp_attr {
	enum qp_state state, cur_state;
	uint32_t access;
	uint32_t path_mtu;
	uint32_t rq_psn, sq_psn;
	uint32_t dest_qpn;
	uint32_t qkey;
	uint16_t pkey_index;
	uint8_t port;
	uint8_t sgid_index;
	struct ipaddr dgid;
	uint32_t flow_label;
	uint8_t hop_limit, traffic_class, sl, static_rate;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, timeout, retry_cnt, rnr_retry;
	bool has_grh, sq_draining, en_sqd_async_notify;
};

#endif
