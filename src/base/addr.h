/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* addr.h: an IP address as RoCEv2 GIDs have it: IPv6, or IPv4 as
 * ::ffff:a.b.c.d.
 */
#ifndef NOPIN_BASE_ADDR_H
#define NOPIN_BASE_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct ipaddr {
	uint8_t b[16];
};

/**
 * struct ip_mark - What a sender chooses of an IP header besides addresses.
 * @tclass:	traffic class (IPv4: type of service)
 * @hops:	hop limit (time to live), 0: as the host has it
 */
struct ip_mark {
	uint8_t tclass, hops;
};

static inline bool ip_mark_eq(struct ip_mark a, struct ip_mark b)
{
	return a.tclass == b.tclass && a.hops == b.hops;
}

/** struct endpoint - Where a NIC receives: an address and a UDP port. */
struct endpoint {
	struct ipaddr ip;
	uint16_t port; /* host order */
	uint32_t scope; /* interface index of a link-local address, or 0 */
};

static inline bool ipaddr_eq(const struct ipaddr *a, const struct ipaddr *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static inline bool ipaddr_is_v4(const struct ipaddr *a)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

	return memcmp(a->b, mapped, sizeof(mapped)) == 0;
}

static inline bool ipaddr_is_any(const struct ipaddr *a)
{
	static const struct ipaddr zero;

	return ipaddr_eq(a, &zero);
}

/** endpoint_eq() - Are address and port the same? The scope is only a routing hint. */
static inline bool endpoint_eq(const struct endpoint *a,
			       const struct endpoint *b)
{
	return a->port == b->port && ipaddr_eq(&a->ip, &b->ip);
}

#endif
