/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* strategy.h: what a fault strategy is to the rest of xport/: one struct, one
 * file (fault_<name>.c). Which ones may answer is a set: the region's, else the
 * QP's, else the NIC's; fault.c asks those of the set in the order of enum
 * strategy until one takes the packet. Where adaptive is among them, the one that
 * it chooses comes first (fault_adaptive.c).
 */
#ifndef NOPIN_XPORT_STRATEGY_H
#define NOPIN_XPORT_STRATEGY_H

#include "base/strategy.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "xport/payload.h"
#include "xport/qp.h"

struct waiter;
struct window;

/*
 * Where a page can be missing.
 * REQUEST: where a request of the peer is to be placed, or its atomic
 * RESPONSE: where a response to our READ or atomic is to be placed
 * SOURCE: what a request of ours is to send
 * READ_SOURCE: what the answer to the peer's READ is to send
 * DATAGRAM: where a datagram is to be received
 */
enum fault_site {
	SITE_NONE,
	SITE_REQUEST,
	SITE_RESPONSE,
	SITE_SOURCE,
	SITE_READ_SOURCE,
	SITE_DATAGRAM,
	SITE_NUM
};

/**
 * struct fault - An access that met a missing page; a pager was asked.
 * @wait:	the waiter of this access
 * @pkt, @payload: REQUEST, RESPONSE, DATAGRAM: the packet
 * @psn:	of it, or of the packet that is to be sent
 */
struct fault {
	struct qp *qp;
	enum fault_site site;
	const struct waiter *wait;
	const struct pkt *pkt;
	struct payload payload;
	psn_t psn;
};

/** fault_window() - Return the window that its packet would wait in. */
static inline struct window *fault_window(const struct fault *f)
{
	return f->site == SITE_RESPONSE ? &f->qp->req.win : &f->qp->resp.win;
}

/*
 * NEXT: not me, not now; nothing was changed.
 * KEPT: the packet is safe; FORGOTTEN: it is to come again; or (sources) what is
 * to be sent waits.
 */
enum fault_answer { FAULT_NEXT, FAULT_KEPT, FAULT_FORGOTTEN };

/**
 * struct strategy_ops - One strategy. Those that take effect in the move have none: they
 * never see a packet.
 * @answer:	try to answer @f
 */
struct strategy_ops {
	enum fault_answer (*answer)(const struct fault *f);
};

extern const struct strategy_ops fault_park, fault_backup, fault_redirect,
	fault_replay, fault_resume, fault_rnr, fault_drop;

/**
 * struct known - What is known of a fault where adaptive chooses.
 * @site:	where it is
 * @asks:	the peer can be asked to send something again at once: a nopin
 * @shared:	there are other QPs whose packets may need the redirect pool
 * @fault_ns:	how long the page is to take
 * @coming:	packets that will have to wait in the pool until then, as far as
 *		is known: what waits of this QP, and the rest of the message
 * @room:	slots that this QP may have in all
 */
struct known {
	enum fault_site site;
	bool asks, shared;
	uint64_t fault_ns;
	uint32_t coming, room;
};

/** adaptive_rule() - Return the strategy that is the best there. */
enum strategy adaptive_rule(const struct known *k);

/** fault_adaptive() - Return the strategy that is the best for @f. */
enum strategy fault_adaptive(const struct fault *f);

/** fault_note() - Note in the flight recorder and the accounts that @s answered @f. */
void fault_note(const struct fault *f, enum strategy s);

#endif
