/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* tx.h: what a QP sends: bursts, planned and committed. */
#ifndef NOPIN_XPORT_TX_H
#define NOPIN_XPORT_TX_H

#include "base/addr.h"
#include "base/moves.h"
#include "mem/dma.h"
#include "wire/psn.h"

struct peer;
struct qp;
struct xport;

/** ack_last() - Owe the peer once more what it was told last, if packets of it were lost:
 * @qp will be gone and cannot be asked again. Return: false: nothing is owed. */
bool ack_last(struct qp *qp);

/** ack_leaving() - Is what @qp says on its way to the socket, or waits because
 * that was full? */
bool ack_leaving(const struct qp *qp);

/**
 * struct seg - One packet of a burst. In burst.bytes there are from @hdr on:
 * @hdr_len bytes of headers (with inline payload behind them), then
 * @trailer_len bytes of pad and CRC. Between the two goes the payload, the next
 * @payload_len bytes of burst.gathers.
 * @inl_len:	inline payload
 */
struct seg {
	uint32_t hdr;
	uint16_t hdr_len, trailer_len, inl_len;
	uint32_t payload_len;
};

enum { BURST_SEGS = 64, BURST_MAX = 65000, BURST_BYTES = 16384 };

/**
 * struct burst_ack - One ACK or NAK in a burst.
 * @life:	of @qpn (resp.life)
 * @xack:	resp.ack.xack that it says
 */
struct burst_ack {
	uint32_t qpn, life, xack;
	psn_t psn;
	uint8_t syndrome;
};

/**
 * struct burst_acks - What a burst says to requesters, and for which QPs (ack_commit()).
 * @says:	a request of it carries the ACK of its QP
 */
struct burst_acks {
	struct burst_ack v[BURST_SEGS];
	unsigned num;
	bool says;
};

/**
 * struct burst_way - How a burst gets to its peer.
 * @to:		extension packets: the port that QPNs name; datagrams: where the peer
 *		was when this was planned; all others: UDP 4791
 * @line:	one of peer.path.line then, if that is the way
 * @mark:	of all its packets: as the QP has it that they are of
 */
struct burst_way {
	struct endpoint to;
	int line;
	struct ip_mark mark;
};

/**
 * struct burst_requests - The requests of a burst: what is undone if it did not leave
 * (retry.c).
 * @from:	first PSN
 * @max:	req.max before
 * @charge:	what flow_sent() took, and @out: credit_sent()
 * @epoch:	req.epoch then
 * @again:	what was lost is sent again
 */
struct burst_requests {
	psn_t from, max;
	uint32_t charge, out, epoch;
	bool again;
};

/**
 * struct burst - Packets for one send call, all to one peer; all but the last
 * have equal length.
 * @qp:		NULL when it holds only ACKs
 * @ext:	extension packets: their CRC is in place and the send gathers
 *		the payload; else payload is gathered first, and the ICRCs are
 *		still to be made
 * @opens:	an OPEN is in it
 * @request:	the requester's half (what -EFAULT means for whom)
 * @narrow:	a page of @gathers is missing: packet by packet
 * @seg_len:	bytes of each packet but the last
 * @total:	bytes of all
 * @ahead:	bytes at the end of @gathers that belong to packets still to be
 *		appended; none once the burst is planned
 * @second:	PSN of the second packet, unless that is an extension packet
 * @res:	responses: the resource it began with
 * In a burst of standard packets no gather is for two of them.
 */
struct burst {
	struct qp *qp;
	struct peer *peer;
	struct burst_way way;
	struct burst_requests sent;
	struct burst_acks acks;
	bool ext, request, opens, narrow;
	unsigned nsegs;
	uint32_t seg_len, total, ahead;
	psn_t second;
	uint32_t res;
	struct seg seg[BURST_SEGS];
	struct moves gathers;
	struct holds holds;
	uint32_t bytes_used;
	uint8_t bytes[BURST_BYTES];
};

/**
 * qp_tx() - Plan the next burst of @qp: READ responses and atomics first, then
 * requests; behind them an ACK owed to the same peer.
 * Return: true: @b is to be sent and committed. false: nothing to send now.
 */
bool qp_tx(struct qp *qp, struct burst *b);

/**
 * peer_ack_burst() - Make a burst of the ACKs owed to @peer; for a QP whose
 * burst is on its way, later. qp_tx() already appends one where it fits.
 * Return: false: nothing to send. No commit is needed.
 */
bool peer_ack_burst(struct xport *x, struct peer *peer, struct burst *b);

/**
 * qp_tx_commit() - Commit @b. @error: 0; -EFAULT: nothing was sent, the payload cannot be
 * read; -EAGAIN: nothing was sent, the socket is full; other: as if lost on the way.
 */
void qp_tx_commit(struct burst *b, int error);

/**
 * ack_commit() - Note that the burst that said @a for @qp (or one that had its QPN before)
 * left, or did not (@error). @again: then what is still so is owed again.
 */
void ack_commit(struct qp *qp, const struct burst_ack *a, int error,
		bool again);

/**
 * ack_credit() - Tell the peer of @qp soon what it may have on the way.
 * Return: false: not now, or never, through this QP.
 */
bool ack_credit(struct qp *qp);

#endif
