/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reads.h: what READs may ask for: their responses come into our own socket. */
#ifndef NOPIN_XPORT_READS_H
#define NOPIN_XPORT_READS_H

#include "wire/psn.h"

#include <stdbool.h>
#include <stdint.h>

struct qp;
struct wqe;

bool reads_may_ask(struct qp *qp, uint32_t charge);

/** reads_quiet() - Note that the peer of @qp, a standard one, answered nothing for an ACK
 * timeout, or (not @quiet) that something came from it. While it is quiet READs to it do
 * not wait for the room that those before them hold: nothing may ever fill it, and they
 * would end one budget full after the other. */
void reads_quiet(struct qp *qp, bool quiet);
void reads_asked(struct qp *qp, uint32_t charge);

/** reads_asked_again() - Charge what ends at @to once more: it was asked for again,
 * until it is answered (reads_answered()). */
void reads_asked_again(struct qp *qp, psn_t to, uint32_t charge);
void reads_answered(struct qp *qp, psn_t before);

/** reads_forget() - Forget the charge of all that was asked for: none of it is waited
 * for. */
void reads_forget(struct qp *qp);
void reads_done(struct qp *qp, uint32_t charge);

/** reads_chunk_end() - Return the end of the READ request that asks for packet @k of @w. */
uint32_t reads_chunk_end(const struct qp *qp, const struct wqe *w, uint32_t k);
uint32_t reads_chunk_charge(const struct qp *qp, const struct wqe *w,
			    uint32_t k);

/** reads_check() - Assert what is always so of the charge of READs. */
void reads_check(const struct qp *qp);

#endif
