/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* icrc.c: the CRC of standard packets (IBTA A17.3.3) and the shorter one of
 * extension packets (doc/wire.md). Where the bytes come from, and what happens
 * to a packet that fails, is the caller's.
 *
 * Theory of operation
 *
 * The ICRC is the Ethernet CRC-32, stored little-endian, of: 8 bytes of ones
 * (in place of InfiniBand's local header), the IP header with the fields that
 * routers change taken as ones (IPv4: TOS, TTL, checksum; IPv6: class, flow,
 * hop limit), the UDP header with its checksum as ones, the BTH with byte 4 as
 * ones, and everything up to the trailer.
 *
 * The IPv4 identification is covered as it was sent, but a UDP socket does not
 * show it. The CRC is affine in it: let d be (received) xor (computed with
 * identification 0), L the number of bytes behind the identification. If only
 * the identification differs, d = m(x) * x^32 * x^(8 L) mod P, with m the 16 bits
 * of the identification as a polynomial of degree < 16. P is irreducible and x
 * has an inverse, so m = d * x^-(8 L + 32) mod P, and the packet is good iff
 * that has degree < 16. Of corrupted packets 2^-16 pass instead of 2^-32, which
 * is what there is without a raw socket.
 *
 * Polynomials are reflected as in the CRC register: bit 31 is x^0, bit 0 x^31.
 */
#include "wire/icrc.h"
#include "base/be.h"
#include "base/check.h"
#include "wire/hdr.h"
#include "wire/iphdr.h"
#include "wire/psn.h"
#include "wire/roce.h"

#include <isa-l/crc.h>
#include <string.h>

/* ISA-L's AVX-512 code (256 bytes and up) returns with the upper halves of
 * vector registers in use. Until they are cleared every phase of SSE code pays
 * for it: measured 190 instead of 30 ns for 1 KiB and a small memset, and the
 * program's own SSE code would go on paying. An #if outside os/ because there
 * is no portable way to say it, and nothing else depends on it.
 */
#ifdef __x86_64__
__attribute__((target("avx"))) static inline void vector_state_clean(void)
{
	__builtin_ia32_vzeroupper();
}
#define VECTOR_STATE_DIRTY() __builtin_cpu_supports("avx")
#else
static inline void vector_state_clean(void)
{
}
#define VECTOR_STATE_DIRTY() 0
#endif

/* ISA-L's CRC-32: reflected 0xedb88320, init and final xor ones; can be continued. */
static uint32_t crc32_add(uint32_t crc, const void *p, size_t len)
{
	crc = crc32_gzip_refl(crc, p, len);
	if (VECTOR_STATE_DIRTY())
		vector_state_clean();
	return crc;
}

enum {
	IPPROTO_UDP_NUM = 17,
	IP4_VERSION_IHL = 0x45,
	IP4_DF = 0x4000,
	UDP_PAYLOAD_MAX = UINT16_MAX - 20 - 8, /* IPv4 */
};

#define IP6_VERSION_AND_ONES UINT32_C(0x6fffffff)
#define CRC_POLY	     UINT32_C(0xedb88320)

/* Everything that is not taken from the packet as it is. */
struct pseudo {
	uint8_t b[8 + sizeof(struct ip6_hdr) + sizeof(struct udp_hdr) +
		  BTH_BYTES];
	unsigned len;
};

static void icrc_add(struct pseudo *ps, const void *p, size_t len)
{
	memcpy(ps->b + ps->len, p, len);
	ps->len += (unsigned)len;
}

static bool path_is_v4(const struct path *path)
{
	return ipaddr_is_v4(&path->src) && ipaddr_is_v4(&path->dst);
}

static void add_ip4(struct pseudo *ps, const struct path *path, uint16_t ident,
		    size_t udp_len)
{
	struct ip4_hdr ip = {
		.version_ihl = IP4_VERSION_IHL,
		.tos = 0xff,
		.len = be16_put((uint16_t)(sizeof(ip) + udp_len)),
		.ident = be16_put(ident),
		.frag = be16_put(IP4_DF),
		.ttl = 0xff,
		.proto = IPPROTO_UDP_NUM,
		.check = be16_put(0xffff),
	};

	memcpy(ip.src, path->src.b + 12, sizeof(ip.src));
	memcpy(ip.dst, path->dst.b + 12, sizeof(ip.dst));
	icrc_add(ps, &ip, sizeof(ip));
}

static void add_ip6(struct pseudo *ps, const struct path *path, size_t udp_len)
{
	struct ip6_hdr ip = {
		.version_class_flow = be32_put(IP6_VERSION_AND_ONES),
		.len = be16_put((uint16_t)udp_len),
		.next = IPPROTO_UDP_NUM,
		.hops = 0xff,
	};

	memcpy(ip.src, path->src.b, sizeof(ip.src));
	memcpy(ip.dst, path->dst.b, sizeof(ip.dst));
	icrc_add(ps, &ip, sizeof(ip));
}

/* CRC of all that precedes the byte behind the BTH at @bth. */
static uint32_t crc_headers(const struct path *path, uint16_t ident,
			    const void *bth, size_t total)
{
	const size_t udp_len = sizeof(struct udp_hdr) + total;
	const struct udp_hdr udp = {
		be16_put(path->sport), be16_put(path->dport),
		be16_put((uint16_t)udp_len), be16_put(0xffff)};
	struct bth masked = *(const struct bth *)bth;
	static const uint8_t lrh[8] = {0xff, 0xff, 0xff, 0xff,
				       0xff, 0xff, 0xff, 0xff};
	struct pseudo ps;

	ps.len = 0;
	icrc_add(&ps, lrh, sizeof(lrh));
	if (path_is_v4(path))
		add_ip4(&ps, path, ident, udp_len);
	else
		add_ip6(&ps, path, udp_len);
	icrc_add(&ps, &udp, sizeof(udp));
	masked.resv8a = 0xff;
	icrc_add(&ps, &masked, sizeof(masked));
	return crc32_add(0, ps.b, ps.len);
}

uint32_t icrc(const struct path *path, uint16_t ident, const struct span *iov,
	      unsigned n)
{
	size_t total = ICRC_BYTES;
	uint32_t crc;

	CHECK(n > 0 && iov[0].len >= BTH_BYTES);
	for (unsigned i = 0; i < n; i++)
		total += iov[i].len;
	crc = crc_headers(path, ident, iov[0].p, total);
	crc = crc32_add(crc, (const uint8_t *)iov[0].p + BTH_BYTES,
			iov[0].len - BTH_BYTES);
	for (unsigned i = 1; i < n; i++)
		crc = crc32_add(crc, iov[i].p, iov[i].len);
	return crc;
}

void icrc_store(uint32_t crc, uint8_t trailer[ICRC_BYTES])
{
	for (int i = 0; i < ICRC_BYTES; i++)
		trailer[i] = (uint8_t)(crc >> 8 * i);
}

uint32_t icrc_load(const uint8_t trailer[ICRC_BYTES])
{
	be32_t v;

	memcpy(&v, trailer, sizeof(v));
	return __builtin_bswap32(be32_get(v));
}

/* a * b mod P. Branch-free: the bits are random, a branch would be guessed
 * wrong half of the time.
 */
static uint32_t poly_mul(uint32_t a, uint32_t b)
{
	uint32_t product = 0;

	for (int i = 31; i >= 0; i--) {
		product ^= b & -(a >> i & 1);
		b = b >> 1 ^ (CRC_POLY & -(b & 1));
	}
	return product;
}

/* [k][n - 1]: x^-(8 n 16^k) mod P */
static const uint32_t x_inverse[4][15] = {
	{0x6567cb95, 0xd7125358, 0x1f81b6e1, 0x5b358fd3, 0xeb21cebf, 0x2ff880c5,
	 0x97fc423c, 0x2e9bb40b, 0x2fb98a7d, 0xd6f6fa3c, 0x2059d4a0, 0x36511375,
	 0x525983aa, 0x31619cb3, 0x0f125cae},
	{0x12a59a49, 0x8df9403d, 0x9d764201, 0x5139de12, 0x17958e0b, 0xdb1c4863,
	 0xc31ec6b9, 0xba340226, 0x6b85d37b, 0x0ba861bc, 0x39b0d61c, 0xfb844d1f,
	 0xc9771684, 0x8073ef0c, 0xc3f881be},
	{0x29c45641, 0x12fbc105, 0x8b712bc1, 0xecd30c55, 0x930588dc, 0x3c4c471a,
	 0x25cd5760, 0x3755ebd8, 0xe264a9e0, 0xc3a68b42, 0x219c9d64, 0x75cc86fa,
	 0xebcce135, 0x84773a36, 0x4e1b970f},
	{0x24ee460c, 0x23783fcf, 0xea8683d0, 0x479933fc, 0x1e25ac62, 0x6523628c,
	 0x3704e154, 0xa39442a5, 0x4ff1fa8c, 0xbc26806e, 0x1b2888be, 0x7910287d,
	 0xb8721901, 0x7bea74c8, 0x655ffa6b},
};

/* Can an identification alone explain @diff? See above. */
static bool ident_explains(uint32_t diff, size_t total)
{
	/* behind the identification, and 4 for x^32; < 16^4 */
	size_t bytes = sizeof(struct ip4_hdr) - offsetof(struct ip4_hdr, frag) +
		       sizeof(struct udp_hdr) + total - ICRC_BYTES + 4;

	for (int k = 0; bytes; k++, bytes >>= 4)
		if (bytes & 15)
			diff = poly_mul(diff, x_inverse[k][(bytes & 15) - 1]);
	return (diff & 0xffff) == 0;
}

bool icrc_ok(const struct path *path, const uint8_t *pkt, size_t total)
{
	struct span whole;
	uint32_t diff;

	if (total < BTH_BYTES + ICRC_BYTES || total > UDP_PAYLOAD_MAX)
		return false;
	whole = (struct span){pkt, total - ICRC_BYTES};
	diff = icrc(path, 0, &whole, 1) ^ icrc_load(pkt + whole.len);
	return !diff || (path_is_v4(path) && ident_explains(diff, total));
}

uint32_t xcrc(const uint8_t *hdr, size_t hdr_len)
{
	return crc32_add(0, hdr, hdr_len);
}

bool xcrc_ok(const uint8_t *hdr, size_t hdr_len,
	     const uint8_t trailer[ICRC_BYTES])
{
	return xcrc(hdr, hdr_len) == icrc_load(trailer);
}

/* [k]: what it does to the CRC of the headers of an extension data packet when
 * the last k + 1 bits of the PSN are inverted, which is what counting does. */
static const uint32_t psn_carry[24] = {
	0x6307d924, 0xa5086b6c, 0xf26609bd, 0x5cbacc1f, 0xda72411a, 0x0c925d51,
	0x7a236386, 0x97411e28, 0xab21fd20, 0xd3e03b30, 0x2263b710, 0x1a15a911,
	0x6af99513, 0x8b21ed17, 0x93e01b5e, 0xa263f7cc, 0xac841f1d, 0xb14bcebf,
	0x8ad46dfb, 0xfdeb2b73, 0x1395a663, 0x1419ba02, 0x1b0182c0, 0x0531f344,
};

uint32_t xcrc_next(uint32_t crc, psn_t psn)
{
	return crc ^ psn_carry[psn ? __builtin_ctz(psn) : 23];
}
