/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.h: the secret of a connection (open.c): what a QP knows of the epochs of
 * its own life and of its peer's. Part of struct qp.
 */
#ifndef NOPIN_XPORT_OPEN_H
#define NOPIN_XPORT_OPEN_H

#include "base/list.h"
#include "xport/spare.h"

#include <stdint.h>

struct burst;
struct pkt;
struct qp;
struct xport;

/**
 * struct open - Belongs to the holder of the engine lock. A QP is
 *   open:	@theirs is not 0. It takes nothing without @mine, for the rest of this
 *		life;
 *   standard:	@theirs is 0, @known is not set, and the peer's NIC is PEER_STANDARD,
 *		or PEER_NOPIN with @plain set: its requests go out as standard packets;
 *   unknown:	otherwise, also with @plain set: its requests wait (open_waits()).
 * The last two take standard packets, too.
 * @mine:	epoch of this life of the QP, 0 before RTR
 * @theirs:	epoch of the peer's life, 0: not known
 * @heard:	epoch that the sender of an unanswered question gave as its own, 0: none;
 *		it goes into the answer and proves nothing
 * @known:	the peer has shown that it knows @mine
 * @plain:	@tries reached its limit while @theirs was 0; counted in xport.plain
 * @insisted:	open_insist() has begun the asking anew in this life
 * @tries:	timeouts since open_restart(), at which an OPEN was due again
 * @ask_at:	when the next OPEN is due, TIME_NEVER: none; @ask_ns: interval that ends
 *		then, doubled up to a second
 * @told_ns:	when a question without our epoch was answered last, 0: never
 * @link:	on xport.work.opens while an OPEN is to be sent
 * @spare:	what is asked again by the clock
 */
struct open {
	uint32_t mine, theirs, heard;
	bool known, plain, insisted;
	unsigned tries;
	uint64_t ask_at, ask_ns, told_ns;
	struct list link;
	struct spare spare;
};

/** open_take() - Take an OPEN, which nic/peers.c knows to be from the peer's port.
 * Return: true if it opened the connection. */
bool open_take(struct qp *qp, const struct pkt *p);

/** open_proved() - Note that a packet with our epoch came, so that its sender knows it.
 * Only while open.known is not set. */
void open_proved(struct qp *qp);

/** open_restart() - Ask for the peer's epoch now, with count and interval as at first;
 * @plain and @insisted stay. Does nothing on an open QP. */
void open_restart(struct qp *qp);

/** open_insist() - Ask once more, if that was not done: a request needs a nopin.
 * Return: may the answer still come? */
bool open_insist(struct qp *qp);

/** open_next() - Take the next OPEN that is to be sent.
 * @p: filled with it
 * Return: the QP whose port it leaves from, or NULL: there is none. */
struct qp *open_next(struct xport *x, struct pkt *p);

/** open_begin() - Begin a life of @qp: make its epoch, ask for the peer's. */
void open_begin(struct qp *qp);

/** open_end() - End it: nothing is asked or sent any more. */
void open_end(struct qp *qp);

/** open_timeout() - Send the OPEN that is due at open.ask_at, or give up. */
void open_timeout(struct qp *qp);

/** open_append() - Let an OPEN that is to be sent leave with @b, of requests. */
void open_append(struct burst *b);

#endif
