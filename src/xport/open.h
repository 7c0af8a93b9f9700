/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* open.h: the secret of a connection (open.c): what a QP knows of the epochs of
 * its own life and of its peer's. Part of struct qp.
 */
#ifndef NOPIN_XPORT_OPEN_H
#define NOPIN_XPORT_OPEN_H

#include "base/list.h"

#include <stdint.h>

struct burst;
struct pkt;
struct qp;
struct xport;

/**
 * struct open - Belongs to the holder of the engine lock. A QP is
 *   open:	@theirs is not 0. It takes nothing without @mine, and stays so for
 *		the rest of this life;
 *   standard:	it is not, and @plain is set or its peer's NIC is no nopin: its
 *		requests go out as standard packets;
 *   unknown:	otherwise: its requests wait.
 * The last two take standard packets, too.
 * @mine:	epoch of this life of the QP, 0 before RTR
 * @theirs:	epoch of the peer's life, 0: not known
 * @heard:	what a question that is to be answered said that it is, which proves
 *		nothing
 * @known:	the peer has shown that it knows @mine
 * @plain:	nobody answered for long; counted in xport.plain
 * @insisted:	it was asked once more, as a request needs a nopin
 * @tries:	how often it was asked and nobody answered
 * @ask_at:	then it is asked again, TIME_NEVER: it is not; @ask_ns: and then
 *		after so long
 * @told_ns:	when a question without our epoch was answered last, 0: never
 * @link:	on xport.work.opens while an OPEN is to be sent
 */
struct open {
	uint32_t mine, theirs, heard;
	bool known, plain, insisted;
	unsigned tries;
	uint64_t ask_at, ask_ns, told_ns;
	struct list link;
};

/** open_take() - An OPEN came from where the peer of @qp is.
 * Return: is the connection open by that, and was not before? */
bool open_take(struct qp *qp, const struct pkt *p);

/** open_proved() - A packet with our epoch came: its sender knows it. To be called
 * while open.known is not set. */
void open_proved(struct qp *qp);

/** open_restart() - The peer's NIC is heard of, or a request needs to know: ask as
 * if nobody had asked before. */
void open_restart(struct qp *qp);

/** open_insist() - A request needs a nopin: ask once more, if that was not done.
 * Return: may the answer still come? */
bool open_insist(struct qp *qp);

/** open_next() - The next OPEN that is to be sent.
 * @p: filled with it
 * Return: the QP whose port it leaves from, or NULL: there is none. */
struct qp *open_next(struct xport *x, struct pkt *p);

/** open_begin() - A life of @qp begins: make its epoch, ask for the peer's. */
void open_begin(struct qp *qp);

/** open_end() - And ends. */
void open_end(struct qp *qp);

/** open_fill() - Make the OPEN that is to be sent. @rides: with data. */
void open_fill(struct qp *qp, struct pkt *p, bool rides);

void open_timeout(struct qp *qp);

/** open_append() - Let an OPEN that is to be sent leave with @b, of requests. */
void open_append(struct burst *b);

#endif
