/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* wire.h: façade of wire/: RoCEv2 packets (IBTA volume 1, chapter 9 and annex
 * A17) and nopin's extension packets (doc/wire.md) between bytes and host-order
 * structs. Pure: no I/O, no state.
 */
#ifndef NOPIN_WIRE_WIRE_H
#define NOPIN_WIRE_WIRE_H

#include "base/addr.h"
#include "base/counters.h"
#include "wire/psn.h"

#include <stddef.h>

enum {
	ROCE_PORT = 4791,
	QPN_PORT_BASE = 49152, /* a nopin QPN's upper 14 bits + this = port */
	BTH_BYTES = 12,
	ICRC_BYTES = 4,
	MTU_MIN = 256,
	MTU_MAX = 4096,
	XDATA_HDR = 40, /* headers of an extension packet with payload */
	GRH_BYTES = 40, /* in front of every datagram received */
	PKT_HDR_MAX = 64, /* longest header that pkt_build() makes */
	PKEY_DEFAULT = 0xffff,
};

/* BTH opcodes of reliable connection, and nopin's (manufacturer range). An
 * extension data packet has the opcode OP_X_DATA | the RC opcode. */
enum bth_opcode {
	OP_SEND_FIRST = 0x00,
	OP_SEND_MIDDLE,
	OP_SEND_LAST,
	OP_SEND_LAST_IMM,
	OP_SEND_ONLY,
	OP_SEND_ONLY_IMM,
	OP_WRITE_FIRST,
	OP_WRITE_MIDDLE,
	OP_WRITE_LAST,
	OP_WRITE_LAST_IMM,
	OP_WRITE_ONLY,
	OP_WRITE_ONLY_IMM,
	OP_READ_REQ,
	OP_READ_RESP_FIRST,
	OP_READ_RESP_MIDDLE,
	OP_READ_RESP_LAST,
	OP_READ_RESP_ONLY,
	OP_ACK,
	OP_ATOMIC_ACK,
	OP_CMP_SWP,
	OP_FETCH_ADD,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV = 0x17,
	OP_WRITE_LAST_NOTIFY = 0x18, /* extension packets only, and the next */
	OP_WRITE_ONLY_NOTIFY = 0x19,
	OP_UD_SEND_ONLY = 0x64,
	OP_UD_SEND_ONLY_IMM = 0x65,
	OP_X_HELLO = 0xc0, /* are you a nopin? */
	OP_X_HELLO_REPLY = 0xc1,
	OP_X_FORWARD = 0xc2, /* from the holder of 4791: a packet as it came */
	OP_X_ACK = 0xc3, /* placed, accepted, what is missing, credit */
	OP_X_OPEN = 0xc4, /* is that a QP of yours, connected to me? */
	OP_X_DATA = 0xe0, /* | RC opcode: any RC packet but ACK */
};

/* Properties of an opcode, from opcode.def. */
enum op_flag {
	OPF_REQUEST = 1 << 0,
	OPF_RESPONSE = 1 << 1,
	OPF_FIRST = 1 << 2, /* begins a message (FIRST and ONLY) */
	OPF_LAST = 1 << 3, /* ends a message (LAST and ONLY) */
	OPF_SEND = 1 << 4,
	OPF_WRITE = 1 << 5,
	OPF_READ = 1 << 6, /* READ request or response */
	OPF_ATOMIC = 1 << 7,
	OPF_IMM = 1 << 8,
	OPF_INV = 1 << 9, /* IETH */
	OPF_RETH = 1 << 10,
	OPF_AETH = 1 << 11,
	OPF_ATOMICETH = 1 << 12,
	OPF_ATOMICACKETH = 1 << 13,
	OPF_DETH = 1 << 14,
	OPF_PAYLOAD = 1 << 15, /* may carry payload */
	OPF_EXT = 1 << 16, /* an extension packet */
	OPF_UD = 1 << 17,
	OPF_NOTIFY = 1 << 18, /* raises a counter */
};

/** struct op_info - One row of opcode.def; @flags 0: no such opcode. */
struct op_info {
	const char *name;
	uint32_t flags;
	uint8_t hdr_bytes; /* BTH and all extended headers */
};

/** opcode_info() - Never NULL; for any byte. */
const struct op_info *opcode_info(uint8_t opcode);

/**
 * op_select() - The RC opcode of one packet of a message.
 * @flags:	one of OPF_SEND, OPF_WRITE, OPF_READ (a READ response), with
 *		OPF_FIRST and OPF_LAST as the packet is the message's first or
 *		last; OPF_IMM, OPF_INV or OPF_NOTIFY as the message has it (only the
 *		last packet's opcode shows it); other bits do not matter
 */
uint8_t op_select(uint32_t flags);

/**
 * op_follows() - May a packet with flags @op come after one with @prev, in one
 * direction of one QP? A message must be whole before the next one begins.
 * @prev:	0: there was none yet
 */
bool op_follows(uint32_t prev, uint32_t op);

/* AETH syndrome (IBTA 9.7.5.2.1): two type bits and five of value */
enum aeth_kind { AETH_ACK = 0x00, AETH_RNR = 0x20, AETH_NAK = 0x60 };
enum { AETH_KIND_MASK = 0x60, AETH_VALUE_MASK = 0x1f };
enum { AETH_CREDIT_INVALID = 0x1f }; /* "no end-to-end credits" */
enum nak_code {
	NAK_PSN_SEQUENCE = 0,
	NAK_INVALID_REQUEST = 1,
	NAK_REMOTE_ACCESS = 2,
	NAK_REMOTE_OPERATION = 3,
};

/* Feature bits of a hello. */
enum hello_feature {
	HELLO_GRO = 1 << 0, /* bursts are received whole */
	HELLO_SUSPEND = 1 << 1, /* XACK_SUSPEND is understood */
	HELLO_NOTIFY = 1 << 2, /* and WRITEs that notify are */
};

/* What else an OP_X_OPEN says. */
enum open_flag {
	OPEN_ASK = 1 << 0, /* its sender does not know whether it is known */
	OPEN_SURE = 1 << 1, /* it knows the epoch of the receiver */
	OPEN_KNOWN = OPEN_ASK | OPEN_SURE,
};

/* What else an OP_X_ACK says. */
enum xack_flag {
	XACK_SACK = 1 << 0, /* sack is valid: bit i = accepted + 1 + i came */
	XACK_HOLD = 1 << 1, /* pages of `psn` are being fetched; packets from
			     * there on were forgotten; wait for XACK_RESUME */
	XACK_RESUME = 1 << 2, /* send again from `psn`, now */
	XACK_PROBE = 1 << 3, /* say at once where you are */
	XACK_PROBED = 1 << 4, /* this is the answer */
	XACK_FAULT = 1 << 5, /* RNR because of a page: costs no RNR retry */
	XACK_SUSPEND = 1 << 6, /* we wait for a region of ours: hold_us */
	XACK_TWICE = 1 << 7, /* what had been accepted came once more */
	XACK_KNOWN = XACK_SACK | XACK_HOLD | XACK_RESUME | XACK_PROBE |
		     XACK_PROBED | XACK_FAULT | XACK_SUSPEND | XACK_TWICE,
};

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
 * grh_build() - The global route header that is put in front of a datagram: of
 * IPv6 its own, of IPv4 that in the last 20 bytes (IBTA A17.4.5). Where the mark is not
 * known (datagrams that another NIC passed on) traffic class and hop limit are 0 and 64.
 */
void grh_build(const struct pkt *pkt, uint8_t out[GRH_BYTES]);

/** struct path - What the IP and UDP headers say, for the ICRC. */
struct path {
	struct ipaddr src, dst;
	uint16_t sport, dport; /* host order */
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
 * pkt_build_next() - The headers, and the trailer behind them, of the packet
 * after @prev (likewise with its trailer) in the middle of the same message.
 * Extension packets without atomic headers only.
 * @opcode:	RC opcode; not one with immediate data, IETH or a counter
 */
void pkt_build_next(uint8_t out[XDATA_HDR + ICRC_BYTES],
		    const uint8_t prev[XDATA_HDR + ICRC_BYTES], uint8_t opcode,
		    psn_t psn);

/** pkt_ask_ack() - Set AckReq in headers that were built; before their CRC. */
void pkt_ask_ack(uint8_t *hdr);

/**
 * icrc() - RoCEv2 ICRC of a packet, IPv4 identification taken as @ident.
 * @iov,n:	the UDP payload without its last four bytes, in pieces; the
 *		first piece holds the whole BTH
 */
struct span {
	const void *p;
	size_t len;
};
uint32_t icrc(const struct path *path, uint16_t ident, const struct span *iov,
	      unsigned n);

/** icrc_store() - Put @crc at @trailer as the wire wants it. */
void icrc_store(uint32_t crc, uint8_t trailer[ICRC_BYTES]);
uint32_t icrc_load(const uint8_t trailer[ICRC_BYTES]);

/**
 * icrc_ok() - Is the trailer of @pkt (@total bytes, trailer included) right for
 * some IPv4 identification (see wire/icrc.c), or exactly right for IPv6?
 */
bool icrc_ok(const struct path *path, const uint8_t *pkt, size_t total);

/** xcrc() - Trailer of an extension packet: CRC-32 over its headers only. */
uint32_t xcrc(const uint8_t *hdr, size_t hdr_len);

/**
 * xcrc_next() - Of the XDATA_HDR bytes that only differ from those of @crc in
 * the PSN, which is @psn instead of the one before it.
 */
uint32_t xcrc_next(uint32_t crc, psn_t psn);

/** xcrc_ok() - Does @trailer hold xcrc() of these headers? */
bool xcrc_ok(const uint8_t *hdr, size_t hdr_len,
	     const uint8_t trailer[ICRC_BYTES]);

/** rnr_code_to_ns() - 5-bit RNR timer code (IBTA table 45) in ns. */
uint64_t rnr_code_to_ns(uint8_t code);

/** rnr_ns_to_code() - The smallest code that is at least @ns (or the largest). */
uint8_t rnr_ns_to_code(uint64_t ns);

/** ack_timeout_to_ns() - 4.096 us * 2^code, code 0 (no timeout): UINT64_MAX. */
uint64_t ack_timeout_to_ns(uint8_t code);

#endif
