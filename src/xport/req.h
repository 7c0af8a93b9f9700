/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* req.h: requests become packets. */
#ifndef NOPIN_XPORT_REQ_H
#define NOPIN_XPORT_REQ_H

#include <stdbool.h>
#include <stdint.h>

struct burst;
struct qp;

bool req_tx(struct qp *qp, struct burst *b);
void req_reset(struct qp *qp);

/** req_unsent() - A burst of requests never left: go back. */
void req_unsent(struct qp *qp, const struct burst *b, int error);

/** req_timeout() - Time has passed, of whatever the requester waits for. */
void req_timeout(struct qp *qp);

#endif
