/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* rx.h: what a QP receives: runs of packets, planned and committed. */
#ifndef NOPIN_XPORT_RX_H
#define NOPIN_XPORT_RX_H

#include "base/moves.h"
#include "mem/dma.h"
#include "ring/cqe.h"
#include "ring/receive.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "xport/message.h"
#include "xport/payload.h"

struct accepted;
struct qp;

/**
 * struct run_pkt - One packet of a run.
 * @before:	requests: the responder's place in the message before it
 * @move_end:	moves of the run up to and including this packet
 * @more:	so many packets like it follow it, all received in place
 * @recv:	the receive that it completes, if it does, and @cqe: how
 * @counter:	identifier of the one to raise, if @notifies
 */
struct run_pkt {
	const struct pkt *pkt;
	struct payload payload;
	struct message before;
	unsigned move_end;
	uint32_t more;
	bool notifies;
	uint32_t counter;
	struct receive recv;
	struct cqe cqe;
};

enum { RUN_PKTS = 64 };

/**
 * struct rx_run - Consecutive packets to one half of one QP: planned together,
 * moved together, committed together. qp == NULL: empty.
 * @responses:	for the requester's half
 */
struct rx_run {
	struct qp *qp;
	bool responses;
	unsigned num;
	struct run_pkt pkt[RUN_PKTS];
	struct moves moves;
	struct holds holds;
	uint8_t grh[RUN_PKTS][GRH_BYTES];
};

void rx_run_init(struct rx_run *run);

enum rx_result {
	RX_NEXT, /* packet taken (or dropped, counted); go on with the next */
	RX_FULL, /* not taken: commit the run first, then give it again */
};

/**
 * qp_rx() - Take one packet whose CRC was already verified, and that @qp admits.
 * @payload:	payload_of_step(); stays valid until the run is committed
 * The run collects the moves; the caller executes them when the burst ends or
 * RX_FULL comes, and then calls qp_rx_commit() if run->qp is set.
 */
enum rx_result qp_rx(struct qp *qp, const struct pkt *pkt,
		     struct payload payload, struct rx_run *run);

/**
 * qp_rx_commit() - Commit @run, whose moves went as run->moves.done and .error say, and
 * empty it.
 */
void qp_rx_commit(struct rx_run *run);

/**
 * qp_drain() - Place what waits in slots as far as pages are ready.
 * Return: true: @run has moves to execute and commit; then call again.
 */
bool qp_drain(struct qp *qp, struct rx_run *run);

/**
 * struct scatter - A burst that is about to be received in place.
 * @first:	the header that was peeked at
 * @num:	packets of the burst, from the first, whose payload goes to
 *		@pieces; all but the last of them have the QP's MTU
 * @bytes:	payload of these == sum of the pieces
 */
struct scatter {
	struct qp *qp;
	struct pkt first;
	unsigned num;
	uint32_t bytes;
	struct moves *pieces;
	struct holds holds;
};

/**
 * qp_scatter_plan() - May the burst that begins with @p (at most @max packets)
 * be received in place? true: receive it, then qp_scatter_done(), then give
 * its packets to qp_rx(), those in place with pkt.placed set.
 * @sc: with @pieces set
 */
bool qp_scatter_plan(struct qp *qp, const struct pkt *p, unsigned max,
		     struct scatter *sc);

/** scatter_expects() - Is @p what was guessed to be packet @i? */
bool scatter_expects(const struct scatter *sc, unsigned i, const struct pkt *p);

/**
 * qp_rx_more() - Add to @run the @n packets that came after its last: more of the middle
 * of the same message, all in place, as expected, and as long as the path MTU.
 * Return: false: give them to qp_rx() instead, each.
 */
bool qp_rx_more(struct rx_run *run, uint32_t n);

/** qp_scatter_done() - End the receiving in place of @sc. @ok: false: the pages could not
 * be written. */
void qp_scatter_done(struct scatter *sc, bool ok);

#endif
