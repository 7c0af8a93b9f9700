/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wqe.h: what a work request is, and which PSNs it has. */
#ifndef NOPIN_XPORT_WQE_H
#define NOPIN_XPORT_WQE_H

#include "wire/pkt.h"
#include "wire/psn.h"

struct pkt;
struct qp;
struct wqe;

/** wqe_packets() - Count the PSNs that the message of @w takes. */
uint32_t wqe_packets(const struct qp *qp, const struct wqe *w);

/** wqe_is_read() - Is @w answered with data, as a READ or an atomic is? */
bool wqe_is_read(const struct wqe *w);
bool wqe_is_atomic(const struct wqe *w);

/** wqe_end() - Return the PSN behind its last. */
psn_t wqe_end(const struct wqe *w);

/**
 * wqe_offset() - Count the PSNs from the first of @w to @at; negative: @at is before it.
 * A message may take half of all PSNs (2 GiB at path MTU 256), too many for psn_diff().
 * @at:	at most REQ_PSNS_AHEAD (2^21) before its beginning or behind its end
 */
int32_t wqe_offset(const struct wqe *w, psn_t at);

/** wqe_passed() - Are all its PSNs before @at? */
bool wqe_passed(const struct wqe *w, psn_t at);

/** req_wqe_at() - Find the @index of the started WQE that @psn belongs to. Return: false:
 * none. */
bool req_wqe_at(const struct qp *qp, psn_t psn, uint32_t *index);

/** request_psns() - Count the PSNs that a request packet takes: for a READ as many as its
 * answer has packets of @mtu bytes, up to 2^24, however much it may ask for. */
uint32_t request_psns(const struct pkt *p, uint32_t mtu);

#endif
