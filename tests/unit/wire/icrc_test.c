/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* icrc_test.c: packets of real cards, an implementation bit by bit, and
 * identifications that the receiver does not know.
 */
#include "base/check.h"
#include "base/rand.h"
#include "wire/icrc.h"
#include "wire_test.h"

#include <arpa/inet.h>
#include <stddef.h>

static struct rnd rnd = {4, 5, 6};

static uint32_t crc_bits(uint32_t crc, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (int bit = 0; bit < 8; bit++) {
			uint32_t in = p[i] >> bit & 1;

			crc = (crc & 1) != in ? crc >> 1 ^ 0xedb88320
					      : crc >> 1;
		}
	return crc;
}

static uint32_t crc_16(uint32_t crc, unsigned v)
{
	return crc_bits(crc, (uint8_t[]){(uint8_t)(v >> 8), (uint8_t)v}, 2);
}

/* As annex A17.3.3 says it, field by field; for IPv4 with bits flipped in total
 * length, identification and fragment offset.
 */
static uint32_t icrc_flipped(const struct path *path, uint64_t flip,
			     const uint8_t *p, size_t n)
{
	const unsigned udp = (unsigned)n + 4 + 8;
	const uint8_t ones[8] = {255, 255, 255, 255, 255, 255, 255, 255};
	const uint8_t v6[4] = {0x6f, 255, 255, 255}, next[2] = {17, 255};
	uint32_t crc = crc_bits(0xffffffff, ones, 8);

	if (ipaddr_is_v4(&path->src)) {
		crc = crc_16(crc, 0x45ff);
		crc = crc_16(crc, (udp + 20) ^ (flip >> 32 & 0xffff));
		crc = crc_16(crc, flip >> 16 & 0xffff);
		crc = crc_16(crc, 0x4000 ^ (flip & 0xffff));
		crc = crc_16(crc, 0xff00 | 17);
		crc = crc_16(crc, 0xffff);
		crc = crc_bits(crc, path->src.b + 12, 4);
		crc = crc_bits(crc, path->dst.b + 12, 4);
	} else {
		crc = crc_bits(crc, v6, 4);
		crc = crc_16(crc, udp);
		crc = crc_bits(crc, next, 2);
		crc = crc_bits(crc, path->src.b, 16);
		crc = crc_bits(crc, path->dst.b, 16);
	}
	crc = crc_16(crc, path->sport);
	crc = crc_16(crc, path->dport);
	crc = crc_16(crc, udp);
	crc = crc_16(crc, 0xffff);
	crc = crc_bits(crc, p, 4);
	crc = crc_bits(crc, ones, 1);
	return ~crc_bits(crc, p + 5, n - 5);
}

static uint32_t icrc_slow(const struct path *path, uint16_t ident,
			  const uint8_t *p, size_t n)
{
	return icrc_flipped(path, (uint64_t)ident << 16, p, n);
}

static struct ipaddr addr(const char *text)
{
	struct ipaddr a = {{[10] = 0xff, [11] = 0xff}};

	if (strchr(text, ':'))
		assert_int_equal(inet_pton(AF_INET6, text, a.b), 1);
	else
		assert_int_equal(inet_pton(AF_INET, text, a.b + 12), 1);
	return a;
}

/* A packet of @n bytes with its trailer. */
static void make(const struct path *path, uint16_t ident, uint8_t *p, size_t n)
{
	struct span all = {p, n - ICRC_BYTES};

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rnd_next(&rnd);
	icrc_store(icrc(path, ident, &all, 1), p + all.len);
}

static void icrc__vectors(void **state)
{
	FILE *f = vectors_open("icrc.txt");
	static char line[LINE_BYTES], hex[LINE_BYTES];
	static uint8_t p[PKT_BYTES];
	unsigned num = 0;

	(void)state;
	while (vectors_next(f, line)) {
		char name[64], src[64], dst[64];
		unsigned sport, dport, ident;
		uint8_t trailer[ICRC_BYTES];
		struct path path;
		struct span all;
		size_t n;

		assert_int_equal(sscanf(line, "%63s %63s %63s %u %u %u %s",
					name, src, dst, &sport, &dport, &ident,
					hex),
				 7);
		path = (struct path){addr(src), addr(dst), (uint16_t)sport,
				     (uint16_t)dport};
		n = unhex(hex, p, sizeof(p)) - ICRC_BYTES;
		all = (struct span){p, n};
		icrc_store(icrc(&path, (uint16_t)ident, &all, 1), trailer);
		if (memcmp(trailer, p + n, ICRC_BYTES))
			fail_msg("%s: wrong ICRC", name);
		assert_true(icrc_ok(&path, p, n + ICRC_BYTES));
		p[n - 1] ^= 1;
		assert_false(icrc_ok(&path, p, n + ICRC_BYTES));
		num++;
	}
	fclose(f);
	assert_true(num >= 8);
}

static void icrc__bit_by_bit(void **state)
{
	static const char *const addrs[] = {"10.1.2.3", "255.0.0.1",
					    "2001:db8::1", "fe80::1"};
	static const size_t sizes[] = {12,  13,	 16,   28,   255,
				       256, 257, 1040, 4095, 4132};
	static uint8_t p[PKT_BYTES];

	(void)state;
	for (size_t a = 0; a < ARRAY_SIZE(addrs); a += 2)
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
			struct path path = {addr(addrs[a]), addr(addrs[a + 1]),
					    (uint16_t)rnd_next(&rnd),
					    (uint16_t)rnd_next(&rnd)};
			uint16_t ident = (uint16_t)rnd_next(&rnd);
			struct span all = {p, sizes[i]};

			make(&path, 0, p, sizeof(p));
			assert_int_equal(icrc(&path, ident, &all, 1),
					 icrc_slow(&path, ident, p, sizes[i]));
		}
}

static void icrc__pieces(void **state)
{
	static const size_t cuts[][2] = {{12, 0},   {12, 1},	{13, 255},
					 {36, 512}, {300, 700}, {1000, 0}};
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	static uint8_t p[PKT_BYTES];
	struct span whole = {p, 1000};

	(void)state;
	make(&path, 0, p, sizeof(p));
	for (size_t i = 0; i < ARRAY_SIZE(cuts); i++) {
		const size_t a = cuts[i][0], b = cuts[i][1];
		struct span s[3] = {{p, a}, {p + a, b}, {p + a + b, 0}};

		if (a + b > 1000)
			s[1].len = 1000 - a;
		s[2].len = 1000 - a - s[1].len;
		assert_int_equal(icrc(&path, 7, s, 3),
				 icrc(&path, 7, &whole, 1));
	}
}

static void icrc_store__little_endian(void **state)
{
	uint8_t t[4];

	(void)state;
	icrc_store(0x11223344, t);
	assert_memory_equal(t, ((uint8_t[]){0x44, 0x33, 0x22, 0x11}), 4);
}

static void icrc_ok__any_identification(void **state)
{
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	static uint8_t p[PKT_BYTES];

	(void)state;
	for (unsigned ident = 0; ident < 65536; ident++) {
		size_t n = 16 + ident % 23;

		make(&path, (uint16_t)ident, p, n);
		assert_true(icrc_ok(&path, p, n));
	}
	for (size_t n = 16; n <= 4200; n++) {
		make(&path, (uint16_t)rnd_next(&rnd), p, n);
		assert_true(icrc_ok(&path, p, n));
	}
}

static void icrc_ok__corrupted(void **state)
{
	static const size_t sizes[] = {16, 32, 44, 1040, 4132};
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	static uint8_t p[PKT_BYTES];
	unsigned missed = 0;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		const size_t n = sizes[i % (int)ARRAY_SIZE(sizes)];
		size_t at = rnd_next(&rnd) % n;

		at = at == 4 ? 5 : at; /* resv8a is not covered */
		make(&path, (uint16_t)rnd_next(&rnd), p, n);
		p[at] ^= (uint8_t)(1 + rnd_next(&rnd) % 255);
		missed += icrc_ok(&path, p, n);
	}
	/* 2^-16 each is 0.3 of them */
	assert_true(missed <= 3);
}

/* The identification may be anything, the fields beside it may not. */
static void icrc_ok__only_the_identification(void **state)
{
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	uint8_t p[100];

	(void)state;
	for (int bit = 0; bit < 48; bit++) {
		uint64_t flip = UINT64_C(1) << bit ^ UINT64_C(0x12340000);

		make(&path, 0, p, sizeof(p));
		icrc_store(icrc_flipped(&path, flip, p, sizeof(p) - 4),
			   p + sizeof(p) - 4);
		assert_int_equal(icrc_ok(&path, p, sizeof(p)),
				 bit >= 16 && bit < 32);
	}
}

static void icrc_ok__resv8a_not_covered(void **state)
{
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	uint8_t p[64];

	(void)state;
	make(&path, 9, p, sizeof(p));
	p[4] ^= 0xc0;
	assert_true(icrc_ok(&path, p, sizeof(p)));
}

static void icrc_ok__path_covered(void **state)
{
	const struct path good = {addr("10.0.0.1"), addr("10.0.0.2"), 50000,
				  4791};
	struct path bad;
	uint8_t p[64];

	(void)state;
	make(&good, 0, p, sizeof(p));
	bad = good;
	bad.src.b[15] ^= 1;
	assert_false(icrc_ok(&bad, p, sizeof(p)));
	bad = good;
	bad.dst.b[12] ^= 0x80;
	assert_false(icrc_ok(&bad, p, sizeof(p)));
	bad = good;
	bad.sport++;
	assert_false(icrc_ok(&bad, p, sizeof(p)));
	bad = good;
	bad.dport--;
	assert_false(icrc_ok(&bad, p, sizeof(p)));
	assert_false(icrc_ok(&good, p, sizeof(p) - 4));
}

/* Without an identification every flipped bit shows. */
static void icrc_ok__ipv6_exact(void **state)
{
	struct path path = {addr("2001:db8::1"), addr("2001:db8::2"), 50000,
			    4791};
	uint8_t p[300];

	(void)state;
	make(&path, 12345, p, sizeof(p));
	assert_true(icrc_ok(&path, p, sizeof(p)));
	for (size_t bit = 0; bit < sizeof(p) * 8; bit++) {
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(icrc_ok(&path, p, sizeof(p)), bit / 8 == 4);
		p[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void icrc_ok__any_length(void **state)
{
	struct path path = {addr("10.0.0.1"), addr("10.0.0.2"), 50000, 4791};
	uint8_t *p = calloc(1, 70000);

	(void)state;
	assert_non_null(p);
	for (size_t n = 0; n < 16; n++)
		assert_false(icrc_ok(&path, p, n));
	make(&path, 54321, p, 65507);
	assert_true(icrc_ok(&path, p, 65507));
	assert_false(icrc_ok(&path, p, 65508));
	assert_false(icrc_ok(&path, p, 70000));
	free(p);
}

static void xcrc__headers_only(void **state)
{
	uint8_t hdr[64], trailer[ICRC_BYTES];

	(void)state;
	/* the check value of CRC-32 */
	assert_int_equal(xcrc((const uint8_t *)"123456789", 9), 0xcbf43926);
	for (size_t n = 12; n <= sizeof(hdr); n++) {
		for (size_t i = 0; i < n; i++)
			hdr[i] = (uint8_t)rnd_next(&rnd);
		assert_int_equal(xcrc(hdr, n), ~crc_bits(0xffffffff, hdr, n));
		icrc_store(xcrc(hdr, n), trailer);
		assert_true(xcrc_ok(hdr, n, trailer));
		for (size_t bit = 0; bit < n * 8; bit++) {
			hdr[bit / 8] ^= (uint8_t)(1 << bit % 8);
			assert_false(xcrc_ok(hdr, n, trailer));
			hdr[bit / 8] ^= (uint8_t)(1 << bit % 8);
		}
		trailer[n % 4] ^= 1;
		assert_false(xcrc_ok(hdr, n, trailer));
	}
}

static void xcrc_next__counts(void **state)
{
	uint8_t a[XDATA_HDR + ICRC_BYTES], b[sizeof(a)], c[sizeof(a)];
	struct pkt p = {.opcode = OP_WRITE_MIDDLE, .ext = true};

	(void)state;
	p.payload_len = 4096;
	for (unsigned bit = 0; bit <= 24; bit++) {
		p.epoch = (uint32_t)rnd_next(&rnd);
		p.va = rnd_next(&rnd);
		p.rkey = (uint32_t)rnd_next(&rnd);
		p.qpn = (uint32_t)rnd_next(&rnd) & PSN_MASK;
		/* the carry goes up to this bit, 24: around the end */
		p.psn = (1u << bit) - 1;
		assert_int_equal(pkt_build(&p, a), XDATA_HDR);
		icrc_store(xcrc(a, XDATA_HDR), a + XDATA_HDR);
		p.psn = psn_add(p.psn, 1);
		pkt_build(&p, b);
		icrc_store(xcrc(b, XDATA_HDR), b + XDATA_HDR);
		assert_int_equal(xcrc_next(icrc_load(a + XDATA_HDR), p.psn),
				 icrc_load(b + XDATA_HDR));
		pkt_build_next(c, a, OP_WRITE_MIDDLE, p.psn);
		assert_memory_equal(b, c, sizeof(b));
		/* behind a FIRST, and when not counting */
		p.opcode = OP_WRITE_FIRST;
		pkt_build(&p, a);
		pkt_build_next(c, a, OP_WRITE_MIDDLE, psn_add(p.psn, 1));
		assert_true(xcrc_ok(c, XDATA_HDR, c + XDATA_HDR));
		p.opcode = OP_WRITE_MIDDLE;
		pkt_build_next(c, b, OP_WRITE_MIDDLE, psn_add(p.psn, 9));
		assert_true(xcrc_ok(c, XDATA_HDR, c + XDATA_HDR));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(icrc__vectors),
		cmocka_unit_test(icrc__bit_by_bit),
		cmocka_unit_test(icrc__pieces),
		cmocka_unit_test(icrc_store__little_endian),
		cmocka_unit_test(icrc_ok__any_identification),
		cmocka_unit_test(icrc_ok__corrupted),
		cmocka_unit_test(icrc_ok__only_the_identification),
		cmocka_unit_test(icrc_ok__resv8a_not_covered),
		cmocka_unit_test(icrc_ok__path_covered),
		cmocka_unit_test(icrc_ok__ipv6_exact),
		cmocka_unit_test(icrc_ok__any_length),
		cmocka_unit_test(xcrc__headers_only),
		cmocka_unit_test(xcrc_next__counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
