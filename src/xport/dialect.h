/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* dialect.h: what may be said to the peer of a QP, and what is to be expected of it. */
#ifndef NOPIN_XPORT_DIALECT_H
#define NOPIN_XPORT_DIALECT_H

#include "wire/pkt.h"
#include "xport/peer.h"
#include "xport/qp.h"

#include <stdbool.h>

/**
 * struct dialect - One way to talk. A standard peer knows nothing of what is here.
 * @ext:	packets are extension packets, with the secret of the connection
 * @answers:	it answers questions of where it is, and so silence is told from a lack of
 *		progress (live.c)
 * @explains:	a side that waits for a page or a region says so, and takes the time it
 *		needs: no RNR and no silence in its place
 * @budgets:	it says how much it takes, and so much may be on its way (flow.c)
 * @carries:	requests say what is placed: they need no ACK before them
 * @forgets:	it may ask for what it had accepted, at no cost of a retry
 */
struct dialect {
	bool ext, answers, explains, budgets, carries, forgets;
};

static const struct dialect dialect_standard = {.ext = false};
static const struct dialect dialect_nopin = {.ext = true,
					     .answers = true,
					     .explains = true,
					     .budgets = true,
					     .carries = true,
					     .forgets = true};

/** qp_open() - Return true if a QP and its peer know each other's secret. */
static inline bool qp_open(const struct qp *qp)
{
	return qp->open.theirs != 0;
}

/** qp_dialect() - Return what a QP may say: that of a nopin once the connection is open. */
static inline const struct dialect *qp_dialect(const struct qp *qp)
{
	return qp_open(qp) ? &dialect_nopin : &dialect_standard;
}

/** open_waits() - Return true if requests wait until it is known what the peer is. */
static inline bool open_waits(const struct qp *qp)
{
	const struct open *o = &qp->open;

	if (o->theirs)
		return false;
	return o->known || qp->peer->kind == PEER_PROBING ||
	       (qp->peer->kind == PEER_NOPIN && !o->plain);
}

/**
 * qp_admits() - Return true if a packet comes from the peer of a QP, of a connection. One
 * with our secret does; one without may, while we do not know better.
 */
static inline bool qp_admits(const struct qp *qp, const struct pkt *p)
{
	return p->ext ? p->epoch == qp->open.mine : !qp_open(qp);
}

#endif
