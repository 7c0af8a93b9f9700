/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parse.c: fuzzes pkt_parse(), pkt_build() and the CRCs. The first input byte
 * selects: the rest is a packet as it came; or it fills a struct pkt that is
 * built, sealed with a good CRC, and then damaged as the input says. CRCs are
 * computed for each packet, never switched off, and every buffer is exactly as
 * long as it is said to be. Links with libFuzzer or with random.c.
 */
#include "input.h"
#include "wire/ext.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t eat_u32(struct input *in)
{
	uint32_t v;

	eat(in, &v, sizeof(v));
	return v;
}

static struct path eat_path(struct input *in)
{
	struct path path;

	eat(in, &path, sizeof(path));
	if (eat_u32(in) & 1) {
		static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

		memcpy(path.src.b, mapped, sizeof(mapped));
		memcpy(path.dst.b, mapped, sizeof(mapped));
	}
	return path;
}

static uint8_t *exact(const void *p, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	CHECK(copy);
	memcpy(copy, p, n);
	return copy;
}

static enum counter parse_exact(const uint8_t *p, size_t avail, size_t total,
				struct pkt *pkt)
{
	uint8_t *copy = exact(p, avail);
	enum counter drop;

	drop = pkt_parse(copy, avail, total, pkt);
	free(copy);
	return drop;
}

#define SAME(a, b, field) CHECK((a)->field == (b)->field)

static void check_same(const struct pkt *a, const struct pkt *b)
{
	SAME(a, b, op);
	SAME(a, b, opcode);
	SAME(a, b, ext);
	SAME(a, b, solicited);
	SAME(a, b, ack_req);
	SAME(a, b, placed_to);
	SAME(a, b, unanswered);
	SAME(a, b, pad);
	SAME(a, b, syndrome);
	SAME(a, b, qpn);
	SAME(a, b, psn);
	SAME(a, b, aeth_msn);
	SAME(a, b, va);
	SAME(a, b, rkey);
	SAME(a, b, dma_len);
	SAME(a, b, imm);
	SAME(a, b, swap_add);
	SAME(a, b, compare);
	SAME(a, b, qkey);
	SAME(a, b, src_qpn);
	SAME(a, b, epoch);
	SAME(a, b, my_epoch);
	SAME(a, b, open_flags);
	SAME(a, b, nonce);
	SAME(a, b, accepted);
	SAME(a, b, xack_flags);
	SAME(a, b, credit);
	SAME(a, b, slots);
	SAME(a, b, serial);
	SAME(a, b, echo);
	SAME(a, b, question);
	SAME(a, b, answer);
	SAME(a, b, sack);
	SAME(a, b, version);
	SAME(a, b, features);
	SAME(a, b, read_chunk);
	SAME(a, b, my_nonce);
	SAME(a, b, fwd_src.port);
	SAME(a, b, fwd_src.scope);
	SAME(a, b, hdr_len);
	SAME(a, b, payload_len);
	CHECK(ipaddr_eq(&a->fwd_src.ip, &b->fwd_src.ip));
	CHECK(ipaddr_eq(&a->fwd_dst, &b->fwd_dst));
}

/* What pkt_parse() promises of any bytes. */
static void check_packet(const uint8_t *p, size_t total)
{
	uint8_t again[PKT_HDR_MAX];
	struct pkt pkt, short_pkt, built;
	enum counter drop = parse_exact(p, total, total, &pkt);

	/* Callers show only the headers: same answer. */
	CHECK(parse_exact(p, MIN(total, PKT_HDR_MAX), total, &short_pkt) ==
	      drop);
	if (drop != CNT_NUM) {
		CHECK(drop == CNT_drop_short || drop == CNT_drop_version ||
		      drop == CNT_drop_opcode || drop == CNT_drop_ext ||
		      drop == CNT_drop_pad || drop == CNT_drop_length);
		return;
	}
	check_same(&pkt, &short_pkt);
	CHECK((size_t)pkt.hdr_len + pkt.payload_len + pkt.pad + ICRC_BYTES ==
	      total);
	CHECK(pkt.hdr_len >= opcode_info(p[0])->hdr_bytes);
	/* One byte less of headers is too little. */
	CHECK(parse_exact(p, pkt.hdr_len - 1u, total, &short_pkt) ==
	      CNT_drop_short);

	/* Built again it means the same, whatever reserved bits were set. */
	built = pkt;
	CHECK(pkt_build(&built, again) == pkt.hdr_len);
	CHECK(parse_exact(again, pkt.hdr_len, total, &built) == CNT_NUM);
	built.pkey = pkt.pkey;
	check_same(&pkt, &built);
}

/* A good ICRC is good for any identification; over IPv6 one bit spoils it. */
static void check_icrc(const uint8_t *p, size_t total, struct input *in)
{
	const struct path path = eat_path(in);
	const uint16_t ident = (uint16_t)eat_u32(in);
	struct span all = {p, total - ICRC_BYTES};
	uint8_t *copy = exact(p, total);
	size_t bit = eat_u32(in) % (total * 8);

	icrc_store(icrc(&path, ident, &all, 1), copy + all.len);
	CHECK(icrc_ok(&path, copy, total));
	copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
	if (!ipaddr_is_v4(&path.src) && bit / 8 != 4)
		CHECK(!icrc_ok(&path, copy, total));
	free(copy);
}

static void fuzz_raw(struct input *in)
{
	check_packet(in->at, in->left);
	if (in->left >= BTH_BYTES + ICRC_BYTES)
		check_icrc(in->at, in->left, &(struct input){in->at, in->left});
}

/* Any opcode there is, from a byte. */
static uint8_t some_opcode(uint8_t choice)
{
	for (;; choice++)
		if (opcode_info(choice)->flags)
			return choice;
}

static struct pkt eat_pkt(struct input *in)
{
	const uint8_t opcode = some_opcode((uint8_t)eat_u32(in));
	const uint32_t op = opcode_info(opcode)->flags;
	struct pkt pkt;

	eat(in, &pkt, offsetof(struct pkt, hdr_len));
	/* a bool has two values */
	memset(&pkt.ext, 0, 1);
	memset(&pkt.solicited, 0, 1);
	memset(&pkt.ack_req, 0, 1);
	memset(&pkt.unanswered, 0, 1);
	memset(&pkt.placed, 0, 1);
	pkt.ext = op & OPF_EXT;
	pkt.opcode = opcode >= OP_X_DATA ? opcode & 0x1f : opcode;
	pkt.solicited = pkt.psn & 1;
	pkt.ack_req = pkt.qpn & 1;
	pkt.unanswered = pkt.epoch & 1;
	pkt.xack_flags &= XACK_KNOWN;
	pkt.open_flags &= OPEN_KNOWN;
	pkt.read_chunk &= 0xffffff;
	pkt.payload_len = 0;
	if (op & OPF_PAYLOAD)
		pkt.payload_len = eat_u32(in) % (MTU_MAX + 2);
	return pkt;
}

/* Build, seal, check; then damage and check again. */
static void fuzz_built(struct input *in)
{
	static uint8_t p[PKT_HDR_MAX + MTU_MAX + 8];
	struct pkt pkt = eat_pkt(in);
	uint32_t damages, cut;
	size_t total;

	memset(p, 0x5a, sizeof(p));
	total = pkt_build(&pkt, p);
	total += pkt.payload_len + pkt.pad + ICRC_BYTES;
	if (pkt.ext) {
		icrc_store(xcrc(p, pkt.hdr_len), p + total - ICRC_BYTES);
		CHECK(xcrc_ok(p, pkt.hdr_len, p + total - ICRC_BYTES));
	} else {
		check_icrc(p, total, in);
	}
	check_packet(p, total);

	damages = eat_u32(in) % 8;
	for (uint32_t i = 0; i < damages; i++)
		p[eat_u32(in) % PKT_HDR_MAX] ^= (uint8_t)eat_u32(in);
	check_packet(p, total);
	cut = eat_u32(in) % (uint32_t)(total + 1);
	check_packet(p, total - cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};

	if (!size)
		return 0;
	in.at++;
	in.left--;
	if (data[0] & 1)
		fuzz_built(&in);
	else
		fuzz_raw(&in);
	return 0;
}
