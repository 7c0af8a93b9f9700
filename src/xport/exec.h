/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exec.h: the checks and the plan of one request at the head of the window. */
#ifndef NOPIN_XPORT_EXEC_H
#define NOPIN_XPORT_EXEC_H

#include "mem/dma.h"
#include "xport/payload.h"

struct pkt;
struct qp;
struct rx_run;

/* EXEC_FULL: commit the run first; EXEC_WAIT: a page is missing */
enum exec_result {
	EXEC_OK,
	EXEC_FULL,
	EXEC_WAIT,
	EXEC_RNR,
	EXEC_NAK,
};

enum exec_result resp_execute(struct qp *qp, const struct pkt *pkt,
			      struct payload payload, struct rx_run *run);

#endif
