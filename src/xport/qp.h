/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* qp.h: the queue pair. One struct, a block a half: the requester (req.c,
 * comp.c, reply.c, retry.c), the responder (resp.c, replay.c, ack.c) and what both share
 * (qp.c). All of it belongs to the holder of the engine lock, but the poster's
 * side of the rings.
 */
#ifndef NOPIN_XPORT_QP_H
#define NOPIN_XPORT_QP_H

#include "base/account.h"
#include "base/flight.h"
#include "base/list.h"
#include "base/strategy.h"
#include "base/timerq.h"
#include "xport/attr.h"
#include "xport/open.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/ud.h"

struct cq;
struct peer;
struct receive_source;
struct rq;
struct share;
struct transport;
struct wq;
struct xport;

/**
 * struct qp_config - @push_event etc.: none; events travel through qp.events.
 * @rq:		is flushed and reset with the QP; NULL: it shares a source of receives
 * @receives:	where its messages take receives
 * @transport:	what service it is
 * @mtu:	of what has no peer: so long are its datagrams
 */
struct qp_config {
	uint32_t qpn, pd;
	struct wq *sq;
	struct rq *rq;
	struct receive_source *receives;
	struct cq *send_cq, *recv_cq;
	const struct transport *transport;
	bool sq_sig_all;
	uint32_t mtu;
	int port; /* index of the local UDP port */
	void *owner;
};

/**
 * struct qp_links - The lists that a QP is on.
 * @runnable:	xport.work.runnable: it may have something to send
 * @drainable:	xport.work.drainable: what it keeps may be placeable
 * @waiting:	peer.stalled, for budget or slots, or xport.work.read_waiters
 * @idle:	xport.work.idle_waiters: for the moves in a region
 * @owed:	peer.acks.owed: an ACK is owed
 * @errors:	xport.work.errors: an event is to be delivered
 */
struct qp_links {
	struct list runnable, drainable, waiting, idle, owed, errors;
};

/** struct qp */
struct qp {
	struct xport *x;
	struct qp_config cfg;
	struct qp_attr attr;
	enum qp_state state;
	uint16_t cause; /* enum wc_cause: why it failed */
	enum strategy fault; /* NONE: as the NIC */
	struct peer *peer;
	struct qp_links on;
	struct timer timer;
	uint32_t events; /* bit per enum nic_event_type to deliver */
	bool tx_moving, rx_moving;
	bool connected; /* as its transport */
	bool abandoned; /* pushes no completion */
	bool last_told; /* QP_EVENT_LAST_WQE_REACHED, since it is in ERR */
	bool counts; /* immediate data of WRITEs is a counter to raise */
	uint32_t mtu;
	struct open open;
	struct req req;
	struct resp resp;
	struct ud ud;
	struct flight log;
	struct account *account; /* made at its first fault */
	struct share *share; /* of its peer in its PD, while it has one */
	struct list shares; /* datagrams come from anybody: its own */
};

#endif
