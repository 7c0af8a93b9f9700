/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h: runs of packets that were planned. */
#ifndef NOPIN_XPORT_RUN_H
#define NOPIN_XPORT_RUN_H

#include "base/base.h"

struct qp;
struct rx_run;

/** run_begin() - Let the receiving half of @qp move: a run of it was planned. */
void run_begin(struct rx_run *run, struct qp *qp, bool responses);

#endif
