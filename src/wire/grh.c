/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* grh.c: the global route header that programs find in front of a datagram (IBTA
 * 9.8.3, A17.4.5). It never was on the wire: it is made of what is known of the IP
 * header that was.
 */
#include "wire/grh.h"
#include "base/be.h"
#include "wire/iphdr.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#include <string.h>

enum { IP4_DF = 0x4000, HOPS = 64, PROTO_UDP = 17 };

static uint16_t ip4_check(const struct ip4_hdr *h)
{
	const be16_t *word = (const be16_t *)h;
	uint32_t sum = 0;

	for (unsigned i = 0; i < sizeof(*h) / sizeof(*word); i++)
		sum += be16_get(word[i]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static uint8_t hops(const struct pkt *p)
{
	return p->fwd_mark.hops ? p->fwd_mark.hops : HOPS;
}

static void build4(const struct pkt *p, uint16_t udp_len, struct ip4_hdr *h)
{
	h->version_ihl = 0x45;
	h->tos = p->fwd_mark.tclass;
	h->len = be16_put((uint16_t)(sizeof(*h) + udp_len));
	h->frag = be16_put(IP4_DF);
	h->ttl = hops(p);
	h->proto = PROTO_UDP;
	memcpy(h->src, p->fwd_src.ip.b + 12, sizeof(h->src));
	memcpy(h->dst, p->fwd_dst.b + 12, sizeof(h->dst));
	h->check = be16_put(ip4_check(h));
}

static void build6(const struct pkt *p, uint16_t udp_len, struct ip6_hdr *h)
{
	h->version_class_flow = be32_put(UINT32_C(6) << 28 |
					 (uint32_t)p->fwd_mark.tclass << 20);
	h->len = be16_put(udp_len);
	h->next = PROTO_UDP;
	h->hops = hops(p);
	memcpy(h->src, p->fwd_src.ip.b, sizeof(h->src));
	memcpy(h->dst, p->fwd_dst.b, sizeof(h->dst));
}

void grh_build(const struct pkt *p, uint8_t out[GRH_BYTES])
{
	const uint16_t udp_len = (uint16_t)(sizeof(struct udp_hdr) +
					    p->hdr_len + p->payload_len +
					    p->pad + ICRC_BYTES);

	memset(out, 0, GRH_BYTES);
	if (ipaddr_is_v4(&p->fwd_src.ip))
		build4(p, udp_len,
		       (struct ip4_hdr *)(out + GRH_BYTES -
					  sizeof(struct ip4_hdr)));
	else
		build6(p, udp_len, (struct ip6_hdr *)out);
}
