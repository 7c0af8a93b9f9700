/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* build_test.c: the vectors backwards, byte for byte; and parse(build(x)) == x
 * for random x of every opcode.
 */
#include "base/check.h"
#include "base/rand.h"
#include "wire/ext.h"
#include "wire_test.h"

static struct rnd rnd = {1, 2, 3};

static void pkt_build__vectors(void **state)
{
	FILE *f = vectors_open("packets.txt");
	static struct vector v;
	unsigned num = 0;

	(void)state;
	while (vector_next(f, &v)) {
		uint8_t out[PKT_HDR_MAX + 16];
		struct pkt pkt = v.pkt;

		if (v.drop != CNT_NUM)
			continue;
		memset(out, 0xa5, sizeof(out));
		pkt.op = 0;
		pkt.pkey = 0;
		pkt.pad = 77;
		pkt.hdr_len = 77;
		assert_int_equal(pkt_build(&pkt, out), v.hdr_len);
		if (memcmp(out, v.hdr, v.hdr_len))
			fail_msg("%s: other bytes", v.name);
		assert_int_equal(pkt.hdr_len, v.hdr_len);
		assert_int_equal(pkt.pad, v.pkt.pad);
		for (size_t i = v.hdr_len; i < sizeof(out); i++)
			assert_int_equal(out[i], 0xa5);
		num++;
	}
	fclose(f);
	assert_true(num >= 38);
}

static void random_data_fields(struct pkt *p, uint32_t op)
{
	if (op & (OPF_RETH | OPF_ATOMICETH) || p->ext) {
		p->va = rnd_next(&rnd);
		p->rkey = (uint32_t)rnd_next(&rnd);
	}
	if (op & OPF_RETH || p->ext)
		p->dma_len = (uint32_t)rnd_next(&rnd);
	if (op & OPF_AETH || (p->ext && op & OPF_RESPONSE)) {
		p->syndrome = (uint8_t)rnd_next(&rnd);
		p->aeth_msn = rnd_next(&rnd) & 0xffffff;
	}
	if (op & (OPF_ATOMICETH | OPF_ATOMICACKETH))
		p->swap_add = rnd_next(&rnd);
	if (op & OPF_ATOMICETH)
		p->compare = rnd_next(&rnd);
	if (op & (OPF_IMM | OPF_INV | OPF_NOTIFY))
		p->imm = (uint32_t)rnd_next(&rnd);
	if (op & OPF_DETH) {
		p->qkey = (uint32_t)rnd_next(&rnd);
		p->src_qpn = rnd_next(&rnd) & 0xffffff;
	}
	if (p->ext)
		p->epoch = (uint32_t)rnd_next(&rnd);
	if (p->ext && (op & OPF_REQUEST)) {
		p->placed_to = rnd_next(&rnd) & PSN_MASK;
		p->unanswered = rnd_next(&rnd) % 2;
	}
}

static void random_control_fields(struct pkt *p)
{
	if (p->opcode == OP_X_FORWARD) {
		p->fwd_src.port = (uint16_t)rnd_next(&rnd);
		p->fwd_secret = rnd_next(&rnd);
		for (int i = 0; i < 16; i++) {
			p->fwd_src.ip.b[i] = (uint8_t)rnd_next(&rnd);
			p->fwd_dst.b[i] = (uint8_t)rnd_next(&rnd);
		}
		return;
	}
	if (p->opcode == OP_X_OPEN || p->opcode == OP_X_ACK)
		p->epoch = (uint32_t)rnd_next(&rnd);
	if (p->opcode == OP_X_OPEN) {
		p->my_epoch = (uint32_t)rnd_next(&rnd);
		p->open_flags = rnd_next(&rnd) & OPEN_KNOWN;
		p->src_qpn = rnd_next(&rnd) & 0xffffff;
		return;
	}
	p->credit = (uint32_t)rnd_next(&rnd);
	if (p->opcode == OP_X_ACK) {
		p->syndrome = (uint8_t)rnd_next(&rnd);
		p->aeth_msn = rnd_next(&rnd) & 0xffffff;
		p->accepted = rnd_next(&rnd) & PSN_MASK;
		p->question = (uint16_t)rnd_next(&rnd);
		p->answer = (uint16_t)rnd_next(&rnd);
		p->xack_flags = rnd_next(&rnd) & XACK_KNOWN;
		p->sack = p->xack_flags & XACK_SACK ? rnd_next(&rnd) : 0;
		return;
	}
	p->version = (uint8_t)rnd_next(&rnd);
	p->read_chunk = rnd_next(&rnd) & 0xffffff;
	p->nonce = (uint32_t)rnd_next(&rnd);
	p->features = (uint32_t)rnd_next(&rnd);
	p->my_nonce = (uint32_t)rnd_next(&rnd);
}

static uint32_t random_payload(uint32_t op)
{
	static const uint32_t any[] = {0,   1,	  2,	3,    4,
				       255, 1023, 1024, 4095, 4096};
	static const uint32_t full[] = {256, 512, 1024, 2048, 4096};

	if (!(op & OPF_PAYLOAD))
		return 0;
	if (!(op & OPF_LAST))
		return full[rnd_next(&rnd) % ARRAY_SIZE(full)];
	if (!(op & OPF_FIRST))
		return any[1 + rnd_next(&rnd) % (ARRAY_SIZE(any) - 1)];
	return any[rnd_next(&rnd) % ARRAY_SIZE(any)];
}

static void round_trip(uint8_t wire_opcode)
{
	const struct op_info *info = opcode_info(wire_opcode);
	struct pkt p = {.opcode = wire_opcode, .op = info->flags}, q;
	uint8_t out[PKT_HDR_MAX];
	unsigned n;

	p.ext = info->flags & OPF_EXT;
	p.solicited = rnd_next(&rnd) & 1;
	p.ack_req = rnd_next(&rnd) & 1;
	p.pkey = PKEY_DEFAULT;
	p.qpn = rnd_next(&rnd) & 0xffffff;
	p.psn = rnd_next(&rnd) & PSN_MASK;
	if (wire_opcode >= OP_X_DATA) {
		p.opcode &= 0x1f;
		p.op &= ~(uint32_t)OPF_EXT;
	}
	if (wire_opcode >= OP_X_HELLO && wire_opcode < OP_X_DATA)
		random_control_fields(&p);
	else
		random_data_fields(&p, p.op);
	p.payload_len = random_payload(p.op);

	n = pkt_build(&p, out);
	assert_int_equal(n, p.hdr_len);
	assert_int_equal(
		pkt_parse(out, sizeof(out),
			  p.hdr_len + p.payload_len + p.pad + ICRC_BYTES, &q),
		CNT_NUM);
	assert_pkt_equal(info->name, &q, &p);
}

static void pkt_build__round_trip(void **state)
{
	(void)state;
	for (unsigned op = 0; op < 256; op++)
		for (int i = 0; opcode_info((uint8_t)op)->flags && i < 200; i++)
			round_trip((uint8_t)op);
}

/* GSO needs segments of one size, the last may be smaller: so all packets of
 * an extension message have the same headers, and an ACK may ride behind any.
 */
static void pkt_build__fits_gso(void **state)
{
	uint8_t out[PKT_HDR_MAX];
	unsigned ack;

	(void)state;
	ack = pkt_build(&(struct pkt){.opcode = OP_X_ACK}, out) + ICRC_BYTES;
	assert_int_equal(ack, 36);
	for (uint8_t op = 0; op < 0x20; op++) {
		struct pkt p = {.opcode = op, .ext = true};
		unsigned n;

		if (!opcode_info(OP_X_DATA | op)->flags)
			continue;
		n = pkt_build(&p, out);
		assert_true(n + ICRC_BYTES >= ack);
		if (opcode_info(op)->flags & OPF_PAYLOAD)
			assert_int_equal(n, XDATA_HDR);
	}
}

static void pkt_build__always_migreq_and_default_pkey(void **state)
{
	uint8_t out[PKT_HDR_MAX];

	(void)state;
	for (unsigned op = 0; op < 0xe0; op++) {
		struct pkt p = {.opcode = (uint8_t)op};

		if (!opcode_info((uint8_t)op)->flags)
			continue;
		pkt_build(&p, out);
		assert_int_equal(out[0], op);
		assert_int_equal(out[1], 0x40);
		assert_int_equal(out[2] << 8 | out[3], 0xffff);
		assert_int_equal(out[4], 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pkt_build__vectors),
		cmocka_unit_test(pkt_build__round_trip),
		cmocka_unit_test(pkt_build__fits_gso),
		cmocka_unit_test(pkt_build__always_migreq_and_default_pkey),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
