/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* grh_test.c: what a program finds in front of a datagram, byte for byte. */
#include "wire/grh.h"
#include "wire_test.h"

/* Of 5 bytes of payload with immediate data: 3 of pad. */
static struct pkt datagram(const struct ipaddr *src, const struct ipaddr *dst)
{
	return (struct pkt){.fwd_src.ip = *src,
			    .fwd_dst = *dst,
			    .hdr_len = 24,
			    .payload_len = 5,
			    .pad = 3};
}

static void grh_build__ipv4(void **state)
{
	static const struct ipaddr
		src = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
		dst = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 2}};
	/* 20 of IP, 8 of UDP, 24, 8 and the ICRC; the sum was made by hand */
	static const uint8_t want[GRH_BYTES] = {
		[20] = 0x45, 0,	   0,  64, 0, 0, 0x40, 0, 64, 17,
		0x26,	     0xab, 10, 0,  0, 1, 10,   0, 0,  2};
	const struct pkt p = datagram(&src, &dst);
	uint8_t got[GRH_BYTES];

	(void)state;
	memset(got, 0xee, sizeof(got));
	grh_build(&p, got);
	assert_memory_equal(got, want, sizeof(want));
}

static void grh_build__ipv6(void **state)
{
	static const struct ipaddr src = {{0xfd, [15] = 1}},
				   dst = {{0xfd, [15] = 2}};
	static const uint8_t want[GRH_BYTES] = {
		0x60, 0, 0, 0, 0, 44, 17, 64, 0xfd, [23] = 1, 0xfd, [39] = 2};
	const struct pkt p = datagram(&src, &dst);
	uint8_t got[GRH_BYTES];

	(void)state;
	memset(got, 0xee, sizeof(got));
	grh_build(&p, got);
	assert_memory_equal(got, want, sizeof(want));
}

/* As the sender chose them, where they are known. */
static void grh_build__marks(void **state)
{
	static const struct ipaddr
		v4 = {{[10] = 0xff, [11] = 0xff, 10, 0, 0, 1}},
		v6 = {{0xfd, [15] = 1}};
	struct pkt p = datagram(&v4, &v4);
	uint8_t got[GRH_BYTES];
	uint32_t sum = 0;

	(void)state;
	p.fwd_mark = (struct ip_mark){106, 7};
	grh_build(&p, got);
	assert_int_equal(got[21], 106);
	assert_int_equal(got[28], 7);
	for (unsigned i = 20; i < GRH_BYTES; i += 2)
		sum += (uint32_t)(got[i] << 8 | got[i + 1]);
	assert_int_equal((sum & 0xffff) + (sum >> 16), 0xffff);
	p = datagram(&v6, &v6);
	p.fwd_mark = (struct ip_mark){106, 7};
	grh_build(&p, got);
	assert_int_equal(got[0], 0x66);
	assert_int_equal(got[1], 0xa0);
	assert_int_equal(got[7], 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grh_build__ipv4),
		cmocka_unit_test(grh_build__ipv6),
		cmocka_unit_test(grh_build__marks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
