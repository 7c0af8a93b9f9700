/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* run.h: runs of packets that were planned. */
#ifndef NOPIN_XPORT_RUN_H
#define NOPIN_XPORT_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct rx_run;

/** run_begin() - Let the receiving half of @qp move: a run of it was planned. */
void run_begin(struct rx_run *run, struct qp *qp, bool responses);

/** run_undo() - Take back what a packet of @qp added that cannot be moved yet: the run
 * had @moves and @holds before. */
void run_undo(struct rx_run *run, const struct qp *qp, unsigned moves,
	      unsigned holds);

#endif
