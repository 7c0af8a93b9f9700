/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ahead.h: pages that will be needed. */
#ifndef NOPIN_XPORT_AHEAD_H
#define NOPIN_XPORT_AHEAD_H

#include <stdbool.h>
#include <stdint.h>

struct pkt;
struct qp;
struct wqe;

/** ahead_sges() - Ask ahead for the pages of the first @len bytes of the SGEs of @w, which
 * will be needed; @write: to be written. */
void ahead_sges(const struct qp *qp, const struct wqe *w, uint64_t len,
		bool write);

/** ahead_request() - Ask ahead for the pages of @p, which came while something before it
 * waits for a page. */
void ahead_request(const struct qp *qp, const struct pkt *p);

/** ahead_sources() - Ask ahead for the sources of the requests behind the one at
 * req.wqe.cur, which waits for its own. */
void ahead_sources(struct qp *qp);

/** ahead_reads() - Ask ahead for the pages that responses to our READs and atomics go to,
 * as one waits for its own; @from: index of the request behind that of the one. */
void ahead_reads(const struct qp *qp, uint32_t from);

/** ahead_responses() - Ask ahead for the sources of READs of the peer, as the answer to
 * one before them waits for its own. */
void ahead_responses(const struct qp *qp);

#endif
