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

/** req_unsent() - Go back to where @b began, a burst of requests that never left. @error:
 * why; -EAGAIN: pause. */
void req_unsent(struct qp *qp, const struct burst *b, int error);

/** req_timeout() - Do what the deadlines of the requester have due. */
void req_timeout(struct qp *qp);

#endif
