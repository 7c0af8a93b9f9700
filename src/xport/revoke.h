/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* revoke.h: keys that are invalidated while something moves. */
#ifndef NOPIN_XPORT_REVOKE_H
#define NOPIN_XPORT_REVOKE_H

#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct xport;

/**
 * qp_invalidate() - Revoke the region of @key, which no access reaches from now on, and see
 * whether all moves there have ended.
 * @revoked:	the caller's, of one invalidation; false to begin with
 *
 * Return: V_OK; V_WAIT, call again when kicked or drained; V_PROT.
 */
enum verdict qp_invalidate(struct qp *qp, uint32_t key, bool *revoked);

/** qp_moves_ended() - Let the QPs go on that wait for moves in a revoked region. */
void qp_moves_ended(struct xport *x);

#endif
