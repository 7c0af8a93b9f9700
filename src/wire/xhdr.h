/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* xhdr.h: the headers of nopin's own packets behind the BTH (doc/wire.md), as hdr.h has
 * those of IBTA. Private to wire/.
 */
#ifndef NOPIN_WIRE_XHDR_H
#define NOPIN_WIRE_XHDR_H

#include "base/be.h"
#include "wire/hdr.h"
#include "wire/roce.h"

#include <assert.h>
#include <stdint.h>

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

static_assert(BTH_BYTES + sizeof(struct xdata) == XDATA_HDR, "XDATA_HDR");
static_assert(BTH_BYTES + sizeof(struct xdata) + sizeof(struct xatomic) <=
			      PKT_HDR_MAX &&
		      BTH_BYTES + sizeof(struct forward) <= PKT_HDR_MAX,
	      "PKT_HDR_MAX");

#endif
