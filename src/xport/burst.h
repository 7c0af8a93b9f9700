/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* burst.h: packets of one send call. */
#ifndef NOPIN_XPORT_BURST_H
#define NOPIN_XPORT_BURST_H

#include "base/verdict.h"
#include "wire/pkt.h"
#include "wire/psn.h"

struct burst;
struct dma;
struct peer;
struct qp;
struct seg;
struct waiter;

/**
 * struct gso_watch - Of a burst to a standard peer whose fate is not known yet.
 * @second:	PSN of its second packet
 * @doubts:	bursts in a row of which only the first packet arrived
 */
struct gso_watch {
	psn_t second;
	bool armed;
	uint8_t doubts;
};

/** burst_payload() - Count the bytes of payload in all packets of @b. */
uint64_t burst_payload(const struct burst *b);
void burst_reset(struct burst *b, struct qp *qp, struct peer *peer, bool ext);

/**
 * burst_seg() - Append a packet. Return: NULL when it does not fit this burst.
 * With @inl the payload is copied behind the header.
 */
struct seg *burst_seg(struct burst *b, struct pkt *pkt, const uint8_t *inl);
bool burst_full(const struct burst *b);

/**
 * burst_mark() - Mark the packets of @b as those of @qp, or (NULL) as those that are of
 * no QP.
 */
void burst_mark(struct burst *b, const struct qp *qp);

/** burst_suits() - Would packets of @qp, a connection, be marked in the same way? */
bool burst_suits(const struct burst *b, const struct qp *qp);

/**
 * burst_spray() - Let @b, of requests or responses, take the next of the paths to its
 * peer. Bursts of ACKs and questions alone always take the same: they are small, go
 * soon, and are of no use when others overtake them.
 */
void burst_spray(struct burst *b);

/**
 * burst_next() - Append the middle packet of a message whose previous packet is
 * the last of @b: extension packets, no inline payload. Return: as burst_seg().
 */
struct seg *burst_next(struct burst *b, uint8_t opcode, psn_t psn,
		       uint32_t payload_len);

/**
 * burst_gather() - Resolve the payload of the packet that was just appended.
 * Of the d->ahead bytes behind it as much is resolved with it as may follow in
 * this burst; burst_trim() gives back what did not.
 */
enum verdict burst_gather(struct burst *b, const struct dma *d,
			  struct waiter *wait);
void burst_trim(struct burst *b);

/** burst_unseg() - Take the last packet back, and what it resolved: the holds
 * from @hold and the moves from @move on. */
void burst_unseg(struct burst *b, uint32_t hold, uint32_t move);

/** gso_sent() - Watch whether @b, which leaves, arrives as a whole. */
void gso_sent(struct gso_watch *g, const struct burst *b);

/** gso_passed() - End the watch without a doubt if the second packet of its burst has
 * arrived: all before @reached has. */
void gso_passed(struct gso_watch *g, psn_t reached);

/** gso_missing() - End the watch, as the peer misses what begins at @missing. When only the
 * first packet of three bursts in a row has arrived, send to it without GSO. */
void gso_missing(struct qp *qp, struct gso_watch *g, psn_t missing);

#endif
