/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strings.c: verbs' numbers in words, for people. */
#include "base/check.h"
#include "verbs/verbs.h"

/* Tables may have holes: numbers that nobody uses. */
static const char *word(const char *const *table, size_t size, unsigned i)
{
	return i < size && table[i] ? table[i] : "unknown";
}

const char *ibv_node_type_str(enum ibv_node_type type)
{
	static const char *const words[] = {
		[IBV_NODE_CA] = "channel adapter",
		[IBV_NODE_SWITCH] = "switch",
		[IBV_NODE_ROUTER] = "router",
		[IBV_NODE_RNIC] = "iWARP adapter",
		[IBV_NODE_USNIC] = "usNIC",
		[IBV_NODE_USNIC_UDP] = "usNIC over UDP",
		[IBV_NODE_UNSPECIFIED] = "unspecified",
	};

	return word(words, ARRAY_SIZE(words), (unsigned)type);
}

const char *ibv_port_state_str(enum ibv_port_state state)
{
	static const char *const words[] = {
		[IBV_PORT_NOP] = "PORT_NOP",
		[IBV_PORT_DOWN] = "PORT_DOWN",
		[IBV_PORT_INIT] = "PORT_INIT",
		[IBV_PORT_ARMED] = "PORT_ARMED",
		[IBV_PORT_ACTIVE] = "PORT_ACTIVE",
		[IBV_PORT_ACTIVE_DEFER] = "PORT_ACTIVE_DEFER",
	};

	return word(words, ARRAY_SIZE(words), (unsigned)state);
}

const char *ibv_event_type_str(enum ibv_event_type event)
{
	static const char *const words[] = {
		[IBV_EVENT_CQ_ERR] = "completion queue overflowed",
		[IBV_EVENT_QP_FATAL] = "queue pair failed",
		[IBV_EVENT_QP_REQ_ERR] = "peer sent an invalid request",
		[IBV_EVENT_QP_ACCESS_ERR] = "peer violated access rights",
		[IBV_EVENT_COMM_EST] = "communication established",
		[IBV_EVENT_SQ_DRAINED] = "send queue drained",
		[IBV_EVENT_PATH_MIG] = "path migrated",
		[IBV_EVENT_PATH_MIG_ERR] = "path migration failed",
		[IBV_EVENT_DEVICE_FATAL] = "device failed",
		[IBV_EVENT_PORT_ACTIVE] = "port became active",
		[IBV_EVENT_PORT_ERR] = "port went down",
		[IBV_EVENT_LID_CHANGE] = "LID changed",
		[IBV_EVENT_PKEY_CHANGE] = "P_Key table changed",
		[IBV_EVENT_SM_CHANGE] = "subnet manager changed",
		[IBV_EVENT_SRQ_ERR] = "shared receive queue failed",
		[IBV_EVENT_SRQ_LIMIT_REACHED] =
			"shared receive queue below its limit",
		[IBV_EVENT_QP_LAST_WQE_REACHED] =
			"queue pair took its last receive",
		[IBV_EVENT_CLIENT_REREGISTER] = "clients must register again",
		[IBV_EVENT_GID_CHANGE] = "GID table changed",
		[IBV_EVENT_WQ_FATAL] = "work queue failed",
	};

	return word(words, ARRAY_SIZE(words), (unsigned)event);
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	static const char *const words[] = {
		[IBV_WC_SUCCESS] = "success",
		[IBV_WC_LOC_LEN_ERR] = "local length error",
		[IBV_WC_LOC_QP_OP_ERR] = "local QP operation error",
		[IBV_WC_LOC_EEC_OP_ERR] = "local EE context operation error",
		[IBV_WC_LOC_PROT_ERR] = "local protection error",
		[IBV_WC_WR_FLUSH_ERR] = "flushed: the QP is in error",
		[IBV_WC_MW_BIND_ERR] = "memory window bind error",
		[IBV_WC_BAD_RESP_ERR] = "bad response from the peer",
		[IBV_WC_LOC_ACCESS_ERR] = "local access error",
		[IBV_WC_REM_INV_REQ_ERR] = "peer: invalid request",
		[IBV_WC_REM_ACCESS_ERR] = "peer: access error",
		[IBV_WC_REM_OP_ERR] = "peer: operation error",
		[IBV_WC_RETRY_EXC_ERR] = "no answer: retries exceeded",
		[IBV_WC_RNR_RETRY_EXC_ERR] =
			"peer not ready: RNR retries exceeded",
		[IBV_WC_LOC_RDD_VIOL_ERR] = "local RDD violation",
		[IBV_WC_REM_INV_RD_REQ_ERR] = "peer: invalid RD request",
		[IBV_WC_REM_ABORT_ERR] = "aborted by the peer",
		[IBV_WC_INV_EECN_ERR] = "invalid EE context number",
		[IBV_WC_INV_EEC_STATE_ERR] = "invalid EE context state",
		[IBV_WC_FATAL_ERR] = "fatal error",
		[IBV_WC_RESP_TIMEOUT_ERR] = "response timed out",
		[IBV_WC_GENERAL_ERR] = "general error",
		[IBV_WC_TM_ERR] = "tag matching error",
		[IBV_WC_TM_RNDV_INCOMPLETE] = "tag matching: rendezvous needed",
	};

	return word(words, ARRAY_SIZE(words), (unsigned)status);
}

const char *ibv_wr_opcode_str(enum ibv_wr_opcode opcode)
{
	static const char *const words[] = {
		[IBV_WR_RDMA_WRITE] = "RDMA WRITE",
		[IBV_WR_RDMA_WRITE_WITH_IMM] = "RDMA WRITE with immediate",
		[IBV_WR_SEND] = "SEND",
		[IBV_WR_SEND_WITH_IMM] = "SEND with immediate",
		[IBV_WR_RDMA_READ] = "RDMA READ",
		[IBV_WR_ATOMIC_CMP_AND_SWP] = "COMPARE and SWAP",
		[IBV_WR_ATOMIC_FETCH_AND_ADD] = "FETCH and ADD",
		[IBV_WR_LOCAL_INV] = "local invalidate",
		[IBV_WR_BIND_MW] = "bind memory window",
		[IBV_WR_SEND_WITH_INV] = "SEND with invalidate",
		[IBV_WR_TSO] = "TSO",
		[IBV_WR_DRIVER1] = "driver specific",
		[IBV_WR_ATOMIC_WRITE] = "ATOMIC WRITE",
	};

	return word(words, ARRAY_SIZE(words), (unsigned)opcode);
}
