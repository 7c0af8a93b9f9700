/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hdr.h: the headers of IBTA volume 1, 9.2 to 9.3 (BTH and extended headers), as they
 * are on the wire. Fields are bytes or be-types, which have alignment 1, so the
 * structs have no padding and may be laid over any address; the assertions prove it.
 * Private to wire/.
 */
#ifndef NOPIN_WIRE_HDR_H
#define NOPIN_WIRE_HDR_H

#include "base/be.h"
#include "wire/roce.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
