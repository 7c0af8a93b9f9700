/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cqe.h: how a work request ended. */
#ifndef NOPIN_RING_CQE_H
#define NOPIN_RING_CQE_H

#include "base/account.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers are those of enum ibv_wc_status (checked in tests/abi). */
enum wc_status {
	WC_SUCCESS,
	WC_LOC_LEN_ERR,
	WC_LOC_QP_OP_ERR,
	WC_LOC_EEC_OP_ERR,
	WC_LOC_PROT_ERR,
	WC_WR_FLUSH_ERR,
	WC_MW_BIND_ERR,
	WC_BAD_RESP_ERR,
	WC_LOC_ACCESS_ERR,
	WC_REM_INV_REQ_ERR,
	WC_REM_ACCESS_ERR,
	WC_REM_OP_ERR,
	WC_RETRY_EXC_ERR,
	WC_RNR_RETRY_EXC_ERR,
	WC_FATAL_ERR = 19,
	WC_GENERAL_ERR = 21
};

enum cqe_flag {
	CQE_GRH = 1 << 0,
	CQE_IMM = 1 << 1,
	CQE_INV = 1 << 2,
	CQE_IP4 = 1 << 3, /* with CQE_GRH: it came by IPv4 */
};

/**
 * enum wc_cause - Why a request failed: vendor_err of its completion, and of those
 * that were flushed because of it. nopin(7) says it to programs. What is added to:
 * CAUSE_NAK: the syndrome of the NAK (AETH) that the peer sent; CAUSE_NAKED: that we
 * sent, of a request of its own.
 */
enum wc_cause {
	CAUSE_NONE, /* none failed: the program asked for it */
	CAUSE_NAK = 0,
	CAUSE_ACCESS =
		0x100, /* key, PD, right, bounds, or there is no memory */
	CAUSE_LENGTH, /* too long, or no room */
	CAUSE_OPERATION, /* the peer does not know it, or cannot be reached */
	CAUSE_INVALIDATE, /* the key may not be invalidated */
	CAUSE_RESPONSE, /* is not what was asked for */
	CAUSE_CQ_FULL,
	CAUSE_SILENCE = 0x200, /* nothing was heard */
	CAUSE_STALLED, /* answers, but no progress and no reason */
	CAUSE_SEQUENCE, /* the peer missed the same packet again and again */
	CAUSE_TOO_LARGE, /* for an MTU on the way */
	CAUSE_NAKED = 0x300,
};

/** struct cqe - One completion; @met: page faults of this NIC on its behalf. */
struct cqe {
	uint64_t wr_id;
	uint32_t byte_len;
	uint32_t imm; /* or, CQE_INV: the invalidated R_Key */
	uint32_t qpn;
	uint32_t src_qpn;
	uint16_t vendor_err; /* enum wc_cause */
	uint8_t status; /* enum wc_status */
	uint8_t op; /* enum wr_op */
	uint8_t flags; /* enum cqe_flag */
	bool solicited;
	struct met met;
};

#endif
