/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parse_test.c: vectors, and every way in which a packet can be cut short. All
 * packets are parsed in buffers of exactly their size, for ASan.
 */
#include "base/check.h"
#include "wire/ext.h"
#include "wire_test.h"

static enum counter parse_exact(const uint8_t *bytes, size_t avail,
				size_t total, struct pkt *pkt)
{
	uint8_t *copy = malloc(avail ? avail : 1);
	enum counter drop;

	assert_non_null(copy);
	memcpy(copy, bytes, avail);
	memset(pkt, 0xa5, sizeof(*pkt));
	drop = pkt_parse(copy, avail, total, pkt);
	free(copy);
	return drop;
}

static void check_drop(const char *name, enum counter drop, enum counter want)
{
	if (drop != want)
		fail_msg("%s: %s instead of %s", name,
			 drop == CNT_NUM ? "ok" : counter_info[drop].name,
			 want == CNT_NUM ? "ok" : counter_info[want].name);
}

static void pkt_parse__vectors(void **state)
{
	FILE *f = vectors_open("packets.txt");
	static struct vector v;
	struct pkt pkt;
	unsigned num = 0;

	(void)state;
	while (vector_next(f, &v)) {
		check_drop(v.name, parse_exact(v.hdr, v.total, v.total, &pkt),
			   v.drop);
		/* what callers give: the headers only */
		check_drop(v.name,
			   parse_exact(v.hdr, MIN(v.total, PKT_HDR_MAX),
				       v.total, &pkt),
			   v.drop);
		if (v.drop == CNT_NUM)
			assert_pkt_equal(v.name, &pkt, &v.pkt);
		num++;
	}
	fclose(f);
	assert_true(num >= 75);
}

/* However a packet is cut, it is short or malformed, or still legal because
 * only payload went.
 */
static void pkt_parse__truncated(void **state)
{
	FILE *f = vectors_open("packets.txt");
	static struct vector v;
	struct pkt pkt;

	(void)state;
	while (vector_next(f, &v)) {
		if (v.drop != CNT_NUM)
			continue;
		for (size_t n = 0; n < v.total; n++) {
			enum counter drop = parse_exact(v.hdr, n, n, &pkt);

			if (n < v.hdr_len + ICRC_BYTES)
				check_drop(v.name, drop, CNT_drop_short);
			else if (drop == CNT_NUM)
				assert_int_equal(pkt.hdr_len + pkt.payload_len +
							 pkt.pad + ICRC_BYTES,
						 n);
		}
		for (size_t n = 0; n < v.hdr_len; n++)
			check_drop(v.name, parse_exact(v.hdr, n, v.total, &pkt),
				   CNT_drop_short);
		check_drop(v.name, parse_exact(v.hdr, v.hdr_len, v.total, &pkt),
			   CNT_NUM);
	}
	fclose(f);
}

static void pkt_parse__sizes_of_any_payload(void **state)
{
	uint8_t std[PKT_BYTES] = {OP_SEND_ONLY, 0x40};
	uint8_t x[PKT_BYTES] = {OP_X_DATA | OP_WRITE_ONLY, 0x40};
	struct pkt pkt;

	(void)state;
	for (size_t n = 0; n <= MTU_MAX + 8; n++) {
		const size_t pad = -n & 3;

		std[1] = (uint8_t)(0x40 | pad << 4);
		check_drop("std", parse_exact(std, 64, 12 + n + pad + 4, &pkt),
			   n <= MTU_MAX ? CNT_NUM : CNT_drop_length);
		if (n <= MTU_MAX)
			assert_int_equal(pkt.payload_len, n);
		check_drop("x", parse_exact(x, 64, XDATA_HDR + n + 4, &pkt),
			   n <= MTU_MAX ? CNT_NUM : CNT_drop_length);
		if (n <= MTU_MAX)
			assert_int_equal(pkt.payload_len, n);
	}
	check_drop("huge", parse_exact(std, 64, SIZE_MAX, &pkt),
		   CNT_drop_length);
	check_drop("huge x", parse_exact(x, 64, SIZE_MAX, &pkt),
		   CNT_drop_length);
}

/* Any opcode, any pad count, any length: what is accepted adds up. */
static void pkt_parse__all_opcodes_all_lengths(void **state)
{
	uint8_t p[80] = {0};
	struct pkt pkt;
	unsigned accepted = 0;

	(void)state;
	for (unsigned op = 0; op < 256; op++)
		for (unsigned pad = 0; pad < 4; pad++)
			for (size_t n = 0; n <= sizeof(p); n++) {
				enum counter drop;

				p[0] = (uint8_t)op;
				p[1] = (uint8_t)(pad << 4);
				drop = parse_exact(p, n, n, &pkt);
				if (drop != CNT_NUM)
					continue;
				accepted++;
				assert_true(opcode_info(p[0])->flags);
				assert_int_equal(pkt.hdr_len,
						 opcode_info(p[0])->hdr_bytes);
				assert_int_equal(pkt.hdr_len + pkt.payload_len +
							 pad + ICRC_BYTES,
						 n);
			}
	assert_true(accepted > 1000);
}

static void pkt_parse__reserved_bits_ignored(void **state)
{
	FILE *f = vectors_open("packets.txt");
	static struct vector v;
	struct pkt pkt;

	(void)state;
	while (vector_next(f, &v)) {
		if (v.drop != CNT_NUM)
			continue;
		v.hdr[1] ^= 0x40; /* MigReq */
		v.hdr[4] = 0xff; /* FECN, BECN, resv */
		v.hdr[8] ^= 0x7f;
		if (v.pkt.op & OPF_DETH)
			v.hdr[16] = 0xff;
		if (v.pkt.opcode == OP_X_ACK)
			v.hdr[23] |= (uint8_t)~XACK_KNOWN;
		if (v.pkt.opcode == OP_X_OPEN)
			v.hdr[20] |= (uint8_t)~OPEN_KNOWN;
		if (v.pkt.ext && v.pkt.op & OPF_REQUEST &&
		    !(v.pkt.op & (OPF_IMM | OPF_INV | OPF_NOTIFY)))
			memset(v.hdr + 32, 0xff, 4);
		check_drop(v.name, parse_exact(v.hdr, v.hdr_len, v.total, &pkt),
			   CNT_NUM);
		assert_pkt_equal(v.name, &pkt, &v.pkt);
	}
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pkt_parse__vectors),
		cmocka_unit_test(pkt_parse__truncated),
		cmocka_unit_test(pkt_parse__sizes_of_any_payload),
		cmocka_unit_test(pkt_parse__all_opcodes_all_lengths),
		cmocka_unit_test(pkt_parse__reserved_bits_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
