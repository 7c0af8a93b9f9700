/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* step.h: one plan, its moves and its commit. */
#ifndef NOPIN_NIC_STEP_H
#define NOPIN_NIC_STEP_H

#include "os/net.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/rx.h"
#include "xport/tx.h"

struct iovec;
struct nic;

enum {
	STEPS_MAX = 9,
	BACKGROUND_STEP = 0, /* never in steps_free */
	/* A wake-up is lost if the program closes our descriptors: our threads
	 * sleep no longer than this. */
	SLEEP_MAX_NS = 1000 * 1000 * 1000,
	STEP_BUF = 66 * 1024,
	STEP_IOV = OS_IOV_MAX,
};

enum {
	SIDE_BYTES = XDATA_HDR + ICRC_BYTES,
	SCATTER_MIN = 1024, /* payload below this goes through staging */
};

enum step_kind { STEP_NONE, STEP_RX, STEP_DRAIN, STEP_SEND };

/**
 * struct step - One plan, its moves and its commit. Lives in NIC memory, so
 * that moves can name its parts.
 * @buf:	received bytes (RX), or staged payload of standard packets (SEND)
 * @at:		RX: offset of the next segment in @buf
 * @taken:	RX: bytes that came, also those in place; 0 before the first plan
 * @token:	RX: what nic.rx.token is while nobody has overtaken us
 * @majflt:	major faults on application memory, of the last move or receive
 * @npkts:	RX: parsed packets that the run refers to
 * @error:	SEND: what os_send() said
 */
struct step {
	enum step_kind kind;
	int index;
	uint64_t token;
	struct os_rx rx;
	uint32_t at;
	unsigned npkts;
	struct pkt pkts[RUN_PKTS];
	struct rx_run run;
	struct burst burst;
	int error;
	uint64_t majflt;
	struct scatter scatter;
	uint32_t taken;
	bool lost, efault; /* of a burst that was received in place */
	uint8_t side[BURST_SEGS * SIDE_BYTES]; /* scattered: CRC and header */
	struct iovec iov[STEP_IOV];
	uint8_t buf[STEP_BUF];
};

#endif
