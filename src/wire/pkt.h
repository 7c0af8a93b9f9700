/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* pkt.h: RoCEv2 packets and nopin's own between bytes and a struct in host order. Pure:
 * no I/O, no state.
 */
#ifndef NOPIN_WIRE_PKT_H
#define NOPIN_WIRE_PKT_H

#include "base/addr.h"
#include "base/counters.h"
#include "wire/psn.h"
#include "wire/roce.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct pkt - One packet in host order. pkt_parse() fills it, pkt_build()
 * reads it. Which fields are valid follows from opcode_info(opcode)->flags;
 * the others are zero after pkt_parse(). In extension data packets @epoch,
 * @va, @rkey and @dma_len are always valid, @syndrome and @aeth_msn in every
 * response, and @placed_to and @unanswered in every request.
 * @opcode:	as in the BTH, but for extension data packets the RC opcode,
 *		with @ext set
 * @ext:	an extension packet: set by pkt_parse() for all of them; to
 *		pkt_build() it matters for RC opcodes only
 * @op:		opcode_info(opcode)->flags of the RC opcode (or of the
 *		extension opcode itself: hello, forward, OP_X_ACK)
 * @aeth_msn:	24 bits
 * @imm:	immediate data as an opaque number whose memory image is the
 *		wire's (what ibv_wc.imm_data wants), or in host order the
 *		R_Key to invalidate, or the counter to raise
 * @epoch:	data, OP_X_ACK and OP_X_OPEN: the secret of the receiving QP
 * @my_epoch, @src_qpn: OP_X_OPEN: those of the sender
 * @nonce:	hello: what proves that the sender was answered
 * @placed_to:	a request: of what the receiver asked its sender for, all up to this
 *		PSN is placed; @unanswered: some responses before are still to leave
 * @accepted:	OP_X_ACK: all PSNs up to and including this are accepted;
 *		BTH.psn and AETH speak of what is placed
 * @hold_us:	XACK_SUSPEND: how long it is expected to take
 * @credit:	OP_X_ACK and hello: bytes of receive budget granted
 * @read_chunk: hello: packets of the longest answer that its sender asks for in one READ
 *		request; 24 bits
 * @slots, @serial: hello: slots of the redirect pool lent, and the number of that
 * @echo:	hello: the number of the receiver's quota that the sender keeps to
 * @placed:	set by nic/: the payload was received in place (scatter.c)
 * @hdr_len:	bytes before the payload
 * @payload_len: bytes of payload, pad excluded
 */
struct pkt {
	uint32_t op;
	uint8_t opcode;
	bool ext;
	bool solicited;
	bool ack_req;
	uint8_t pad;
	uint8_t syndrome;
	uint16_t pkey;
	uint32_t qpn; /* destination */
	psn_t psn;
	uint32_t aeth_msn;
	uint64_t va; /* RETH and AtomicETH */
	uint32_t rkey;
	uint32_t dma_len;
	uint32_t imm;
	uint64_t swap_add; /* AtomicETH; AtomicAckETH: the original value */
	uint64_t compare;
	uint32_t qkey, src_qpn; /* DETH; OP_X_OPEN has the second */
	/* extensions */
	uint32_t epoch, my_epoch, open_flags;
	psn_t placed_to;
	bool unanswered;
	psn_t accepted;
	uint32_t xack_flags;
	uint32_t credit, slots, serial, echo;
	uint16_t question, answer; /* XACK_PROBE, XACK_PROBED: which one */
	uint64_t sack;
	uint32_t hold_us;
	/* hello */
	uint8_t version;
	uint32_t nonce, features, read_chunk;
	uint32_t my_nonce; /* what the receiver is to put into @nonce */
	/* forward: where the packet that follows came from and went to;
	 * datagrams: where this one did, set by nic/ */
	struct endpoint fwd_src;
	struct ipaddr fwd_dst;
	uint64_t fwd_secret; /* of the holder's guests (nic/roce.c) */
	struct ip_mark fwd_mark; /* datagrams: of its IP header */
	/* layout */
	bool placed;
	uint16_t hdr_len;
	uint32_t payload_len;
};

/**
 * pkt_parse() - Check every length and field of a packet's headers.
 * @hdr:	the first @hdr_avail bytes of the UDP payload (>= all headers,
 *		or the whole packet if that is shorter)
 * @total:	length of the whole UDP payload, trailer included
 * @pkt:	written to; of use only if the packet is not dropped
 * Neither ICRC nor nonce or epoch is checked here.
 * Return: CNT_NUM, or the counter (CNT_drop_...) of why it is dropped.
 */
enum counter pkt_parse(const uint8_t *hdr, size_t hdr_avail, size_t total,
		       struct pkt *pkt);

/**
 * pkt_build() - Write the headers for @pkt.
 * @out:	at least PKT_HDR_MAX bytes (OP_X_FORWARD included)
 * Sets pkt->hdr_len and pkt->pad from pkt->payload_len. Which packets have a
 * pad: standard ones; extension packets never do. pkt->op and pkt->pkey are
 * not looked at.
 * Return: bytes written.
 */
unsigned pkt_build(struct pkt *pkt, uint8_t *out);

/**
 * pkt_build_next() - Write the headers, and the trailer behind them, of the packet
 * after @prev (likewise with its trailer) in the middle of the same message.
 * Extension packets without atomic headers only.
 * @opcode:	RC opcode; not one with immediate data, IETH or a counter
 */
void pkt_build_next(uint8_t out[XDATA_HDR + ICRC_BYTES],
		    const uint8_t prev[XDATA_HDR + ICRC_BYTES], uint8_t opcode,
		    psn_t psn);

/** pkt_ask_ack() - Set AckReq in headers that were built; before their CRC. */
void pkt_ask_ack(uint8_t *hdr);

#endif
