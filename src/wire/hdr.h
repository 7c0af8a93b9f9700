/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hdr.h: every header as it is on the wire. Fields are bytes or be-types,
 * which have alignment 1, so the structs have no padding and may be laid over
 * any address; the assertions prove it. IBTA volume 1, 9.2 to 9.3 (BTH and
 * extended headers); nopin's own: doc/wire.md. Private to wire/.
 */
#ifndef NOPIN_WIRE_HDR_H
#define NOPIN_WIRE_HDR_H

#include "base/be.h"
#include "wire/wire.h"

#include <assert.h>

#define ASSERT_HDR(type, size)                                                 \
	static_assert(sizeof(struct type) == (size) &&                         \
			      _Alignof(struct type) == 1,                      \
		      #type)
#define ASSERT_AT(type, field, at)                                             \
	static_assert(offsetof(struct type, field) == (at), #type "." #field)

enum {
	BTH_SOLICITED = 1 << 7, /* flags */
	BTH_MIGREQ = 1 << 6,
	BTH_PAD_SHIFT = 4,
	BTH_PAD_MASK = 3,
	BTH_VERSION_MASK = 0xf,
	BTH_ACK_REQ = 1 << 7, /* ack */
};

/** struct bth - Base transport header. */
struct bth {
	uint8_t opcode;
	uint8_t flags; /* solicited, MigReq, pad count, transport version */
	be16_t pkey;
	uint8_t resv8a; /* RoCEv2: FECN, BECN; ones in the ICRC */
	be24_t qpn;
	uint8_t ack; /* AckReq; reserved */
	be24_t psn;
};
ASSERT_HDR(bth, BTH_BYTES);
ASSERT_AT(bth, pkey, 2);
ASSERT_AT(bth, resv8a, 4);
ASSERT_AT(bth, qpn, 5);
ASSERT_AT(bth, ack, 8);
ASSERT_AT(bth, psn, 9);

struct deth {
	be32_t qkey;
	uint8_t resv;
	be24_t src_qpn;
};
ASSERT_HDR(deth, 8);
ASSERT_AT(deth, src_qpn, 5);

struct reth {
	be64_t va;
	be32_t rkey;
	be32_t dma_len;
};
ASSERT_HDR(reth, 16);
ASSERT_AT(reth, rkey, 8);
ASSERT_AT(reth, dma_len, 12);

struct atomiceth {
	be64_t va;
	be32_t rkey;
	be64_t swap_add;
	be64_t compare;
};
ASSERT_HDR(atomiceth, 28);
ASSERT_AT(atomiceth, rkey, 8);
ASSERT_AT(atomiceth, swap_add, 12);
ASSERT_AT(atomiceth, compare, 20);

struct aeth {
	uint8_t syndrome;
	be24_t msn;
};
ASSERT_HDR(aeth, 4);
ASSERT_AT(aeth, msn, 1);

struct atomicacketh {
	be64_t original;
};
ASSERT_HDR(atomicacketh, 8);

/** struct immdt - Opaque: its memory image is what the program gets. */
struct immdt {
	uint8_t data[4];
};
ASSERT_HDR(immdt, 4);

struct ieth {
	be32_t rkey;
};
ASSERT_HDR(ieth, 4);

/**
 * struct xdata - In every extension data packet, behind the BTH; the four bytes
 * @imm_or_aeth are a struct immdt, ieth (of the counter that it raises, too) or
 * aeth, or zero. @placed and @flags are of requests, else zero.
 */
enum { XDATA_UNANSWERED = 1 << 0 };
struct xdata {
	be32_t epoch;
	be64_t va;
	be32_t rkey;
	be32_t dma_len;
	uint8_t imm_or_aeth[4];
	uint8_t flags;
	be24_t placed;
};
ASSERT_HDR(xdata, 28);
ASSERT_AT(xdata, va, 4);
ASSERT_AT(xdata, rkey, 12);
ASSERT_AT(xdata, dma_len, 16);
ASSERT_AT(xdata, imm_or_aeth, 20);
ASSERT_AT(xdata, flags, 24);
ASSERT_AT(xdata, placed, 25);

/** struct xatomic - Behind struct xdata in CMP_SWP and FETCH_ADD. */
struct xatomic {
	be64_t swap_add;
	be64_t compare;
};
ASSERT_HDR(xatomic, 16);
ASSERT_AT(xatomic, compare, 8);

/**
 * struct xack - OP_X_ACK behind the BTH; with XACK_SACK a be64_t follows, then
 * with XACK_SUSPEND a be32_t.
 */
struct xack {
	be32_t epoch;
	struct aeth aeth;
	be24_t accepted;
	uint8_t flags;
	be32_t credit;
	be16_t question, answer;
};
ASSERT_HDR(xack, 20);
ASSERT_AT(xack, aeth, 4);
ASSERT_AT(xack, accepted, 8);
ASSERT_AT(xack, flags, 11);
ASSERT_AT(xack, credit, 12);
ASSERT_AT(xack, question, 16);
ASSERT_AT(xack, answer, 18);

/**
 * struct open_hdr - OP_X_OPEN behind the BTH.
 * @flags:	enum open_flag
 */
struct open_hdr {
	be32_t epoch;
	be32_t my_epoch;
	uint8_t flags;
	be24_t src_qpn;
};
ASSERT_HDR(open_hdr, 12);
ASSERT_AT(open_hdr, my_epoch, 4);
ASSERT_AT(open_hdr, flags, 8);
ASSERT_AT(open_hdr, src_qpn, 9);

/** struct hello - OP_X_HELLO and OP_X_HELLO_REPLY behind the BTH. */
struct hello {
	uint8_t version;
	be24_t read_chunk;
	be32_t features;
	be32_t nonce;
	be32_t my_nonce;
	be32_t credit;
	be32_t slots, serial, echo;
};
ASSERT_HDR(hello, 32);
ASSERT_AT(hello, features, 4);
ASSERT_AT(hello, nonce, 8);
ASSERT_AT(hello, my_nonce, 12);
ASSERT_AT(hello, credit, 16);
ASSERT_AT(hello, slots, 20);
ASSERT_AT(hello, serial, 24);
ASSERT_AT(hello, echo, 28);

/** struct forward - OP_X_FORWARD behind the BTH. */
struct forward {
	uint8_t src[16];
	be16_t sport;
	uint8_t dst[16];
	be64_t secret;
};
ASSERT_HDR(forward, 42);
ASSERT_AT(forward, sport, 16);
ASSERT_AT(forward, dst, 18);
ASSERT_AT(forward, secret, 34);

/* IP and UDP headers, for the ICRC only */
struct ip4_hdr {
	uint8_t version_ihl;
	uint8_t tos;
	be16_t len;
	be16_t ident;
	be16_t frag;
	uint8_t ttl;
	uint8_t proto;
	be16_t check;
	uint8_t src[4];
	uint8_t dst[4];
};
ASSERT_HDR(ip4_hdr, 20);
ASSERT_AT(ip4_hdr, ident, 4);
ASSERT_AT(ip4_hdr, ttl, 8);
ASSERT_AT(ip4_hdr, src, 12);

struct ip6_hdr {
	be32_t version_class_flow;
	be16_t len;
	uint8_t next;
	uint8_t hops;
	uint8_t src[16];
	uint8_t dst[16];
};
ASSERT_HDR(ip6_hdr, 40);
ASSERT_AT(ip6_hdr, len, 4);
ASSERT_AT(ip6_hdr, src, 8);

struct udp_hdr {
	be16_t sport;
	be16_t dport;
	be16_t len;
	be16_t check;
};
ASSERT_HDR(udp_hdr, 8);

static_assert(BTH_BYTES + sizeof(struct xdata) == XDATA_HDR, "XDATA_HDR");
static_assert(BTH_BYTES + sizeof(struct xdata) + sizeof(struct xatomic) <=
			      PKT_HDR_MAX &&
		      BTH_BYTES + sizeof(struct forward) <= PKT_HDR_MAX,
	      "PKT_HDR_MAX");

#endif
