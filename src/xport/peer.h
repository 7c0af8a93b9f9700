/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* peer.h: another NIC that QPs of ours talk to. Made and freed by nic/peers.c;
 * all QPs towards the same address and port share one.
 */
#ifndef NOPIN_XPORT_PEER_H
#define NOPIN_XPORT_PEER_H

#include "base/addr.h"
#include "base/list.h"
#include "base/timerq.h"

/**
 * enum peer_kind - What we know of it.
 * PROBING: the hello is out; requests wait, packets from it are answered in the
 *   format they came in. Left by peer_answered().
 * NOPIN: it answered, or a connection with it is open (open.h).
 * STANDARD: it did not; nothing but HELLO and OPEN is said to its own port.
 * Which packets a QP sends follows from qp.open.
 */
enum peer_kind { PEER_NONE, PEER_PROBING, PEER_NOPIN, PEER_STANDARD, PEER_NUM };

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
 * struct peer
 * @ep:		where datagrams for it go
 * @asked:	the port its QPN names: where HELLO, OPEN and extension packets go
 * @local:	our address towards it
 * @mark:	of what is no QP's, and of @line: that of the first QP towards it
 * @nonce:	what our HELLOs to it must carry; 0: it answered none yet
 * @insist:	a request needs a nopin, and nothing but silence says that it is none:
 *		it is to be asked for longer; @denied: it was, or nobody is there
 * @line:	quicker ways there for extension packets (os_connect()), the first
 *		@lines of them; bursts with payload take @path and go in turn
 * @gso:	several packets a send
 * @datagrams:	only datagrams go there; it has no share of anything
 * @here:	it is a process of this host
 * @read_chunk: packets of one READ request of its at most
 * @budget:	bytes of its receive buffer that we may fill
 * @in_flight:	bytes charged for what we sent and it has not accepted
 *		== sum of req.charge.flight charges of the QPs towards it
 * @even:	packets that it accepted since it missed one, up to EVEN_MIN
 * @slots:	of the redirect pool that hold packets from it
 * @lent:	slots of our pool that it may fill with packets beyond the first
 *		of each QP, as far as it may believe (credit.c)
 * @filled:	that it has filled of these
 * @firsts:	slots that hold first packets of its QPs, of those for such
 * @told, @serial: what it was told last, and the number of that
 * @echoed:	the last number that it echoed
 * @wants:	it is to have more when there is
 * @reminded:	how often it was told that, and did not echo it
 * @quota, @quota_serial: what it lent us last, and the number of that
 * @quota_of:	the nonce of the NIC that did
 * @kept_serial: and of what we keep to
 * @out:	requests sent and not placed, beyond the first of each QP
 * @unasked:	it was taken for a standard one, and what was sent then may be more
 *		than it lent
 * @quiet:	of a standard one: it let a request end, and was not heard of since
 * @late:	how late packets come that others overtook (reorder.c)
 * @shares:	of tickets and pagers, one in each PD that has QPs towards it
 * @stalled:	QPs (qp.peer_link) that wait for budget
 * @owed:	QPs (qp.ack_link) with an ACK owed to it
 * @ack_link:	on xport.ack_peers while @owed is not empty
 * @acks_out:	bursts with ACKs to it that are planned and not committed
 * @heard_ns:	when anything came from it to a QP; @probed_ns: when any asked it
 * @ack_due_ns:	when the oldest owed ACK must leave
 * @ack_after_ns: the socket was full: no burst of ACKs before
 */
struct peer {
	struct list link;
	struct endpoint ep, asked;
	struct ipaddr local;
	struct ip_mark mark;
	enum peer_kind kind;
	uint32_t nonce;
	uint32_t features, read_chunk;
	bool gso, datagrams, insist, denied;
	int line[PATHS_MAX];
	unsigned lines, path;
	unsigned refs;
	uint32_t budget, in_flight, even;
	uint32_t slots;
	uint32_t lent, filled, firsts, told, serial, echoed;
	uint32_t quota, quota_serial, quota_of, kept_serial, out;
	bool wants, unasked, here, quiet;
	struct lateness late;
	struct list shares;
	struct list stalled;
	struct list owed, ack_link;
	unsigned acks_out;
	uint64_t ack_due_ns, ack_after_ns, heard_ns, probed_ns;
	/* nic/peers.c */
	struct timer hello; /* once it is known: tell it its quota again */
	uint64_t tell_ns;
	unsigned hello_tries, reminded;
	int port;
	uint64_t asked_ns; /* when the last hello went out */
	uint32_t too_large; /* IP packets of so many bytes could not be sent */
	uint32_t told_mtu; /* the interface's, when the log said so last */
	uint32_t granted; /* what it was told last that it may fill */
	bool shrinks; /* it is to be told less */
};

void peer_init(struct peer *p, const struct endpoint *ep,
	       const struct ipaddr *local);

#endif
