/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead.h: pages that will be needed. */
#ifndef NOPIN_XPORT_AHEAD_H
#define NOPIN_XPORT_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct qp;
struct wqe;

/** ahead_sges() - The first @len bytes of a list will be needed. */
void ahead_sges(const struct qp *qp, const struct wqe *w, uint64_t len,
		bool write);

/** ahead_request() - @p came, and something before it waits for a page. */
void ahead_request(const struct qp *qp, const struct pkt *p);

/** ahead_sources() - The request at req.wqe.cur waits for its source. */
void ahead_sources(struct qp *qp);

/** ahead_reads() - A response waits; @from: index of the next request. */
void ahead_reads(const struct qp *qp, uint32_t from);

/** ahead_responses() - The answer to a READ waits for its source. */
void ahead_responses(const struct qp *qp);

#endif
