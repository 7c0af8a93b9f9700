/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exec.h: the checks and the plan of one request at the head of the window. */
#ifndef NOPIN_XPORT_EXEC_H
#define NOPIN_XPORT_EXEC_H

#include "base/base.h"
#include "mem/dma.h"

struct pkt;
struct qp;
struct rx_run;

/** remote_dma() - The peer's access by R_Key, with the right that it needs. */
struct dma remote_dma(const struct qp *qp, uint32_t key, uint64_t va,
		      uint64_t len, uint32_t need);

/* EXEC_FULL: commit the run first; EXEC_WAIT: a page is missing */
enum exec_result {
	EXEC_OK,
	EXEC_FULL,
	EXEC_WAIT,
	EXEC_RNR,
	EXEC_NAK,
	EXEC_DROP, /* no room: as if it had been lost */
};

/** request_allowed() - Does the QP allow it at all? */
bool request_allowed(const struct qp *qp, const struct pkt *p);
enum exec_result resp_execute(struct qp *qp, const struct pkt *pkt,
			      const uint8_t *payload, struct rx_run *run,
			      uint64_t now_ns);

#endif
