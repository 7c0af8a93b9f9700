/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* iphdr.h: IP and UDP headers, which the ICRC covers. Private to wire/. */
#ifndef NOPIN_WIRE_IPHDR_H
#define NOPIN_WIRE_IPHDR_H

#include "base/be.h"
#include "wire/hdr.h"

#include <stdint.h>

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

#endif
