/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* req.h: the requester. */
#ifndef NOPIN_XPORT_REQ_H
#define NOPIN_XPORT_REQ_H

#include "base/base.h"
#include "mem/dma.h"
#include "wire/wire.h"

struct burst;
struct qp;
struct sge;
struct waiter;
struct wqe;

bool req_tx(struct qp *qp, struct burst *b, uint64_t now_ns);
void req_reset(struct qp *qp);

/** req_unsent() - A burst of requests never left: go back. */
void req_unsent(struct qp *qp, const struct burst *b, int error,
		uint64_t now_ns);

/** req_wqe_at() - The started WQE that @psn belongs to. false: none. */
bool req_wqe_at(const struct qp *qp, psn_t psn, uint32_t *index);

/** sge_dma() - The access to [off, off + len) of an SGE. */
struct dma sge_dma(const struct qp *qp, const struct sge *s, uint64_t off,
		   uint32_t len, bool write);

/**
 * sge_walk() - Resolve [off, off + len) of a WQE's SGEs into moves.
 * @rest:	bytes that will be written behind them, as far as is known
 */
enum verdict sge_walk(struct qp *qp, const struct wqe *w, uint64_t off,
		      uint32_t len, uint64_t rest, bool write, uint8_t *nic,
		      uint16_t token, struct waiter *wait, struct moves *mv,
		      struct holds *h, uint64_t now_ns);

/* PAUSE_FULL_NS: after the socket's send buffer was full */
enum { PAUSE_FULL_NS = 100 * 1000 };
enum { SGE_MAX = 32, REQ_PSNS_AHEAD = 1 << 21 };

#endif
