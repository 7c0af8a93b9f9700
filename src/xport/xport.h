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
 * struct xport_pool - The redirect pool (window.c, credit.c).
 * @accepted:	one for each slot
 * @slots:	that there may be
 * @short_of:	since the arbiter looked, a peer or a packet found none
 * @lent:	slots that peers were lent == sum of peer.lend.lent
 * @lent_left:	of these not filled: free
 * @firsts:	slots that hold first packets of QPs == sum of peer.lend.firsts
 * @serial:	of the last quota told to any peer
 * @sources:	slots that hold datagrams, by a hash of the address they are from
 */
struct xport_pool {
	struct accepted *accepted;
	uint32_t slots, lent, lent_left, firsts, serial;
	bool short_of;
	uint32_t sources[64];
};

/**
 * struct xport_budget - Our own receive buffer (flow.c, reads.c).
 * @push:	bytes that peers may push into
 * @granted:	of these told to peers == sum of peer.flow.granted
 * @read:	bytes that READ responses may fill
 * @read_out:	of these asked for and not yet received
 */
struct xport_budget {
	uint32_t push, granted, read, read_out;
};

/**
 * struct xport_work - What is to be done, or waits.
 * @runnable:	QPs with something to send
 * @drainable:	QPs whose slots may be placeable now
 * @opens:	QPs with an OPEN to send (open.c)
 * @ack_peers:	peers with ACKs owed to them
 * @fired:	CQs with an event to deliver
 * @raised:	counters whose waiters are to be told
 * @errors:	QPs with an asynchronous event to deliver
 * @read_waiters: QPs that wait for budget.read
 * @idle_waiters: QPs that wait for the moves in a revoked region
 */
struct xport_work {
	struct list runnable, drainable, opens, ack_peers;
	struct list fired, raised, errors;
	struct list read_waiters, idle_waiters;
};

/**
 * struct xport - What all QPs of a NIC share.
 * @strategies:	what may answer a missing page, where QP and region do not
 *		choose
 * @ack_delay_ns: how long an ACK may be owed
 * @peers:	that share receive buffer and redirect pool
 * @plain:	QPs whose peers did not answer (open.c)
 * @starved:	a QP found no free ticket
 * @checked:	at the end of each call from outside xport/ the QP is asserted to be as it
 *		always is (qp.c)
 * @now:	the time in this section under the engine lock, for all that is called;
 *		while timers run: up to when all was heard
 * @fresh_ns:	os_fresh_after() of this step
 */
struct xport {
	struct mem *mem;
	struct counters *cnt;
	struct rnd rnd;
	struct xport_pool pool;
	struct xport_budget budget;
	struct xport_work work;
	struct timerq timers;
	strategies_t strategies;
	uint64_t ack_delay_ns, now, fresh_ns;
	unsigned peers, plain;
	bool starved, checked;
};

int xport_open(struct xport *x, struct mem *mem, struct counters *cnt,
	       uint32_t slots, const uint64_t seed[2]);

void xport_close(struct xport *x);

/**
 * xport_tickets_free() - Let @qp try again to ask for its pages. To be called after
 * ticket_done(), for every QP while x->starved (a page could not be asked for).
 */
void xport_tickets_free(struct xport *x, struct qp *qp);

#endif
