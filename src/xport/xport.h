/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xport.h: what all QPs of a NIC share.
 *
 * xport/ is reliable connections and datagrams. Packets go in, packets and the next
 * deadline come out; faults and their outcome travel as data. Pure: no clock, no system
 * call, no lock. Every function of xport/ is called with the engine lock held, but moves
 * and sends are executed between a plan and its commit without it. The caller says once
 * in such a section what time it is. LAYERS names the headers that are for others.
 */
#ifndef NOPIN_XPORT_XPORT_H
#define NOPIN_XPORT_XPORT_H

#include "base/counters.h"
#include "base/list.h"
#include "base/rand.h"
#include "base/strategy.h"
#include "base/timerq.h"

struct accepted;
struct mem;
struct qp;

/**
 * struct xport - What all QPs of a NIC share.
 * @strategies:	what may answer a missing page, where QP and region do not
 *		choose
 * @push_budget: bytes of our own receive buffer that peers may push into
 * @granted:	of these told to peers == sum of peer.flow.granted
 * @read_budget: bytes of our own receive buffer that READ responses may fill
 * @read_out:	of these asked for and not yet received
 * @slots:	of the redirect pool that there may be
 * @slots_short: since somebody looked, a peer or a packet found none
 * @lent:	slots that peers were lent == sum of peer.lend.lent
 * @lent_left:	of these not filled: free
 * @firsts:	slots that hold first packets of QPs == sum of peer.lend.firsts
 * @serial:	of the last quota told to any peer
 * @ack_delay_ns: how long an ACK may be owed
 * @checked:	at the end of each call from outside xport/ the QP is asserted to be as it
 *		always is (qp.c)
 * @now:	the time, for all that is called; while timers run: up to when all was heard
 * @sources:	slots that hold datagrams, by a hash of the address they are from
 */
struct xport {
	struct mem *mem;
	struct counters *cnt;
	struct rnd rnd;
	struct accepted *accepted; /* one for each slot of the redirect pool */
	uint32_t slots, lent, lent_left, firsts, serial;
	bool slots_short;
	strategies_t strategies;
	uint32_t push_budget, granted;
	uint32_t read_budget, read_out;
	uint64_t ack_delay_ns;
	uint32_t sources[64];
	struct list runnable; /* QPs with something to send */
	struct list drainable; /* QPs whose slots may be placeable now */
	struct list read_waiters; /* QPs that wait for read_budget */
	struct list idle_waiters; /* and for the moves in a revoked region */
	struct list opens; /* QPs with an OPEN to send (open.c) */
	struct list ack_peers; /* peers with ACKs owed to them */
	struct list fired; /* CQs with an event to deliver */
	struct list raised; /* counters whose waiters are to be told */
	struct list errors; /* QPs with an asynchronous event to deliver */
	struct timerq timers;
	unsigned peers; /* that share push_budget and the redirect pool */
	unsigned plain; /* QPs that nobody answered (open.c) */
	bool checked;
	bool starved; /* a QP found no free ticket */
	uint64_t now; /* of this lock section */
	uint64_t fresh_ns; /* os_fresh_after() of this step */
};

int xport_open(struct xport *x, struct mem *mem, struct counters *cnt,
	       uint32_t slots, const uint64_t seed[2]);

void xport_close(struct xport *x);

/**
 * xport_tickets_free() - After ticket_done(), for every QP while x->starved (a
 * page could not be asked for): try again.
 */
void xport_tickets_free(struct xport *x, struct qp *qp);

#endif
