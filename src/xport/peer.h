/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.h: another NIC that QPs of ours talk to. Made and freed by nic/peers.c;
 * all QPs towards the same address and port share one.
 */
#ifndef NOPIN_XPORT_PEER_H
#define NOPIN_XPORT_PEER_H

#include "base/addr.h"
#include "base/list.h"
#include "base/timerq.h"
#include "xport/spare.h"

/**
 * enum peer_kind - What we know of it.
 * PROBING: the hello is out; requests wait, packets from it are answered in the
 *   format they came in. Left by peer_answered().
 * NOPIN: it answered, or a connection with it is open (open.h).
 * STANDARD: it did not; nothing but HELLO and OPEN is said to its own port.
 * Which packets a QP sends follows from qp.open.
 */
enum peer_kind { PEER_NONE, PEER_PROBING, PEER_NOPIN, PEER_STANDARD };

enum { PATHS_MAX = 8 };

/**
 * struct lateness - Of what goes between a peer and us.
 * @wait_ns:	a packet that others overtook is lost after so long; 0: at once
 * @most_ns:	how late one was at most, of the last @gaps
 */
struct lateness {
	uint64_t wait_ns, most_ns;
	unsigned gaps;
};

/**
 * struct peer_path - The way to a peer.
 * @line:	quicker ways there for extension packets (os_connect()), the first
 *		@lines of them; bursts with payload take @next and go in turn
 * @gso:	several packets a send
 * @too_large:	IP packets of so many bytes could not be sent
 * @told_mtu:	the interface's, when the log said so last
 */
struct peer_path {
	int line[PATHS_MAX];
	unsigned lines, next;
	uint32_t too_large, told_mtu;
	bool gso;
};

/**
 * struct peer_flow - What may be on its way to a peer, and back (flow.c).
 * @budget:	bytes of its receive buffer that we may fill
 * @in_flight:	bytes charged for what we sent and it has not accepted
 *		== sum of req.charge.charged of the QPs towards it
 * @even:	packets that it accepted since it missed one, up to EVEN_MIN
 * @granted:	what it was told last that it may fill of ours
 * @shrinks:	it is to be told less
 */
struct peer_flow {
	uint32_t budget, in_flight, even, granted;
	bool shrinks;
};

/**
 * struct peer_lend - Slots of our pool that a peer may fill (credit.c).
 * @slots:	of the redirect pool that hold packets from it
 * @lent:	slots that it may fill with packets beyond the first of each QP, as far
 *		as it may believe
 * @filled:	that it has filled of these
 * @firsts:	slots that hold first packets of its QPs, of those for such
 * @told, @serial: what it was told last, and the number of that
 * @echoed:	the last number that it echoed
 * @wants:	it is to have more when there is
 * @reminded:	how often it was told that, and did not echo it
 */
struct peer_lend {
	uint32_t slots, lent, filled, firsts, told, serial, echoed;
	unsigned reminded;
	bool wants;
};

/**
 * struct peer_quota - Slots of its pool that a peer lends us (credit.c).
 * @slots, @serial: what it lent us last, and the number of that
 * @of:		the nonce of the NIC that did
 * @kept:	the number of the quota that we keep to
 * @out:	requests sent and not placed, beyond the first of each QP
 * @unasked:	it was taken for a standard one, and what was sent then may be more
 *		than it lent
 */
struct peer_quota {
	uint32_t slots, serial, of, kept, out;
	bool unasked;
};

/**
 * struct peer_acks - What is owed to a peer (owe.c, ack.c).
 * @owed:	QPs (qp.on.owed) with an ACK owed to it
 * @link:	on xport.work.ack_peers while @owed is not empty
 * @out:	bursts with ACKs to it that are planned and not committed
 * @due_ns:	when the oldest owed ACK must leave
 * @after_ns:	the socket was full: no burst of ACKs before
 */
struct peer_acks {
	struct list owed, link;
	unsigned out;
	uint64_t due_ns, after_ns;
};

/**
 * struct peer_hello - Asking a peer what it is (nic/peers.c).
 * @timer:	it is asked again; once it is known: told its quota again
 * @tell_ns:	how long after that once more
 * @tries:	how often it was asked
 * @asked_ns:	when the last HELLO went out
 * @insist:	a request needs a nopin, and nothing but silence says that it is none:
 *		it is to be asked for longer; @denied: it was, or nothing is there
 */
struct peer_hello {
	struct timer timer;
	uint64_t tell_ns, asked_ns;
	unsigned tries;
	bool insist, denied;
};

/**
 * struct peer
 * @ep:		where datagrams for it go
 * @asked:	the port its QPN names: where HELLO, OPEN and extension packets go
 * @local:	our address towards it, and @port: index of our port
 * @mark:	of what is no QP's, and of path.line: that of the first QP towards it
 * @nonce:	what our HELLOs to it must carry; 0: it answered none yet
 * @datagrams:	only datagrams go there; it has no share of anything
 * @here:	it is a process of this host
 * @read_chunk: packets of one READ request of its at most
 * @quiet:	of a standard one: it let a request end, and was not heard of since
 * @late:	how late packets come that others overtook (reorder.c)
 * @shares:	of tickets and pagers, one in each PD that has QPs towards it
 * @stalled:	QPs (qp.on.waiting) that wait for budget
 * @opens:	how often QPs asked by OPEN since it was heard to know an epoch of ours
 * @probes:	and for its state since anything came from it to a QP
 * @probed_ns:	when any asked it last
 */
struct peer {
	struct list link;
	struct endpoint ep, asked;
	struct ipaddr local;
	int port;
	struct ip_mark mark;
	enum peer_kind kind;
	uint32_t nonce, features, read_chunk;
	bool datagrams, here, quiet;
	unsigned refs;
	struct spared opens, probes;
	uint64_t probed_ns;
	struct peer_path path;
	struct peer_flow flow;
	struct peer_lend lend;
	struct peer_quota quota;
	struct peer_acks acks;
	struct peer_hello hello;
	struct lateness late;
	struct list shares, stalled;
};

void peer_init(struct peer *p, const struct endpoint *ep,
	       const struct ipaddr *local);

#endif
