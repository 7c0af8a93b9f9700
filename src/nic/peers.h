/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peers.h: other NICs that QPs of ours talk to. */
#ifndef NOPIN_NIC_PEERS_H
#define NOPIN_NIC_PEERS_H

#include "base/addr.h"
#include "base/list.h"
#include "base/timerq.h"

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct nic_qp;
struct os_rx;
struct peer;
struct pkt;
struct qp;
struct qp_attr;

/**
 * struct nic_peers - Other NICs that QPs of ours talk to.
 * @all:	of connections
 * @dests:	those that datagrams go to, the last used first; @ndests: how many
 * @timers:	of HELLOs
 * @standard:	how many are no nopins
 * @lined:	how many have a sending socket of their own; @sprayed: further such sockets
 * @too_large:	a packet was, for some peer (relaxed)
 */
struct nic_peers {
	struct list all, dests;
	struct timerq timers;
	unsigned ndests, standard, lined, sprayed;
	bool too_large;
};

/* What a HELLO says: of other versions nothing is understood (doc/wire.md). */
enum { WIRE_VERSION = 4 };

/**
 * peer_get() - Get the peer that @attr names, which is asked if it is new. The caller
 * hands it to peer_put().
 * Return: 0; -EINVAL, -ENODATA: as gids_path(); -ENOMEM.
 */
int peer_get(struct nic *nic, const struct qp_attr *attr,
	     const struct nic_qp *qp, struct peer **out);
void peer_put(struct nic *nic, struct peer *p);
void peers_hello(struct nic *nic, const struct pkt *p, const struct os_rx *rx);
void peers_timers(struct nic *nic);

/** peer_deny() - Take @p for no nopin, and ask no more: no process has the port that it
 * was asked at, or it was asked often enough, or we are to know no extensions. */
void peer_deny(struct nic *nic, struct peer *p);

/** peers_too_large() - Note that a packet of @bytes, without the IP and UDP headers, to @p
 * could not be sent: the log will say by which interface. */
void peers_too_large(struct nic *nic, struct peer *p, uint32_t bytes);

/** peer_aim() - Aim @qp at the NIC that its next datagram goes to (ud_next()), which is
 * asked whether it is a nopin, if it never was. */
void peer_aim(struct nic *nic, struct qp *qp);

/** peers_lend() - Tell each peer how much of the redirect pool it may fill, if that is
 * news, as after a change of the pool. */
void peers_lend(struct nic *nic);

/** peers_close() - Forget the peers that datagrams went to. No QP is left. */
void peers_close(struct nic *nic);

/** peers_nonce() - Return the nonce of HELLOs from @ep; never 0. */
uint32_t peers_nonce(const struct nic *nic, const struct endpoint *ep);

/** peers_insist() - Ask @p once more, and for longer, if only its silence says that it is
 * no nopin (peer.hello.insist), unless that was done, or is under way. */
void peers_insist(struct nic *nic, struct peer *p);

/** peers_proved() - Note that @p proved that it is a nopin. */
void peers_proved(struct nic *nic, struct peer *p);

/** peers_open() - Take an OPEN that came for @nq (xport/open.c). */
void peers_open(struct nic *nic, struct nic_qp *nq, const struct pkt *p,
		const struct os_rx *rx);

/** peers_say_open() - Send the OPENs that did not leave with data. */
void peers_say_open(struct nic *nic);

#endif
