/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* access.h: what a QP asks mem/ for. */
#ifndef NOPIN_XPORT_ACCESS_H
#define NOPIN_XPORT_ACCESS_H

#include "base/moves.h"
#include "base/strategy.h"
#include "base/verdict.h"
#include "mem/dma.h"

struct holds;
struct moves;
struct pkt;
struct qp;
struct sge;
struct waiter;
struct wqe;

/** qp_strategies() - Return what may answer a missing page of a region that has no
 * strategy of its own. */
strategies_t qp_strategies(const struct qp *qp);

/** request_allowed() - True if the rights of @qp allow the request @p. */
bool request_allowed(const struct qp *qp, const struct pkt *p);

/** remote_dma() - Return the peer's access by R_Key. @need: the right that it takes */
struct dma remote_dma(const struct qp *qp, uint32_t key, uint64_t va,
		      uint64_t len, uint32_t need);

/** sge_dma() - Return the access to [off, off + len) of the SGE @i of a WQE. */
struct dma sge_dma(const struct qp *qp, const struct wqe *w, unsigned i,
		   uint64_t off, uint32_t len, bool write);

/**
 * sge_walk() - Resolve [off, off + len) of a WQE's SGEs into moves.
 * @rest:	bytes that will be written behind them, as far as is known
 */
enum verdict sge_walk(struct qp *qp, const struct wqe *w, uint64_t off,
		      uint32_t len, uint64_t rest, bool write, uint8_t *nic,
		      uint16_t token, struct waiter *wait, struct moves *mv,
		      struct holds *h);

#endif
