/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* build.c: struct pkt to the bytes of its headers; the mirror of parse.c.
 * Payload, pad and trailer are the caller's to put behind (IBTA 9.2 to 9.3).
 */
#include "base/be.h"
#include "base/check.h"
#include "base/range.h"
#include "wire/ext.h"
#include "wire/hdr.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "wire/xhdr.h"

#include <string.h>

/** struct writer - @at of PKT_HDR_MAX bytes are written. */
struct writer {
	uint8_t *out;
	unsigned at;
};

static void *build_put(struct writer *w, unsigned n)
{
	uint8_t *p = w->out + w->at;

	CHECK(range_ok(w->at, n, PKT_HDR_MAX));
	w->at += n;
	return p;
}

#define PUT(w, type, ...)                                                      \
	(*(struct type *)build_put((w), sizeof(struct type)) =                 \
		 (struct type){__VA_ARGS__})

static void build_bth(struct writer *w, const struct pkt *pkt, uint8_t opcode)
{
	PUT(w, bth, .opcode = opcode,
	    .flags = (uint8_t)((pkt->solicited ? BTH_SOLICITED : 0) |
			       BTH_MIGREQ | pkt->pad << BTH_PAD_SHIFT),
	    .pkey = be16_put(PKEY_DEFAULT), .qpn = be24_put(pkt->qpn),
	    .ack = pkt->ack_req ? BTH_ACK_REQ : 0, .psn = be24_put(pkt->psn));
}

static void build_aeth(struct writer *w, const struct pkt *pkt)
{
	PUT(w, aeth, pkt->syndrome, be24_put(pkt->aeth_msn));
}

static void build_imm_or_inv(struct writer *w, const struct pkt *pkt,
			     uint32_t op)
{
	if (op & OPF_IMM)
		memcpy(build_put(w, sizeof(struct immdt)), &pkt->imm,
		       sizeof(pkt->imm));
	if (op & (OPF_INV | OPF_NOTIFY))
		PUT(w, ieth, be32_put(pkt->imm));
}

static void build_std(struct writer *w, const struct pkt *pkt, uint32_t op)
{
	if (op & OPF_DETH)
		PUT(w, deth, .qkey = be32_put(pkt->qkey),
		    .src_qpn = be24_put(pkt->src_qpn));
	if (op & OPF_RETH)
		PUT(w, reth, be64_put(pkt->va), be32_put(pkt->rkey),
		    be32_put(pkt->dma_len));
	if (op & OPF_ATOMICETH)
		PUT(w, atomiceth, be64_put(pkt->va), be32_put(pkt->rkey),
		    be64_put(pkt->swap_add), be64_put(pkt->compare));
	if (op & OPF_AETH)
		build_aeth(w, pkt);
	if (op & OPF_ATOMICACKETH)
		PUT(w, atomicacketh, be64_put(pkt->swap_add));
	build_imm_or_inv(w, pkt, op);
}

static void build_xdata(struct writer *w, const struct pkt *pkt, uint32_t op)
{
	const unsigned at = w->at + offsetof(struct xdata, imm_or_aeth);
	const unsigned end = w->at + sizeof(struct xdata);
	const bool request = op & OPF_REQUEST;

	PUT(w, xdata, be32_put(pkt->epoch), be64_put(pkt->va),
	    be32_put(pkt->rkey), be32_put(pkt->dma_len), {0},
	    request && pkt->unanswered ? XDATA_UNANSWERED : 0,
	    be24_put(request ? pkt->placed_to : 0));
	w->at = at;
	if (request)
		build_imm_or_inv(w, pkt, op);
	else
		build_aeth(w, pkt);
	w->at = end;
	if (op & OPF_ATOMICETH)
		PUT(w, xatomic, be64_put(pkt->swap_add),
		    be64_put(pkt->compare));
	if (op & OPF_ATOMICACKETH)
		PUT(w, atomicacketh, be64_put(pkt->swap_add));
}

static void build_hello(struct writer *w, const struct pkt *pkt)
{
	PUT(w, hello, pkt->version, be24_put(pkt->read_chunk),
	    be32_put(pkt->features), be32_put(pkt->nonce),
	    be32_put(pkt->my_nonce), be32_put(pkt->credit),
	    be32_put(pkt->slots), be32_put(pkt->serial), be32_put(pkt->echo));
}

static void build_open(struct writer *w, const struct pkt *pkt)
{
	PUT(w, open_hdr, be32_put(pkt->epoch), be32_put(pkt->my_epoch),
	    (uint8_t)pkt->open_flags, be24_put(pkt->src_qpn));
}

static void build_forward(struct writer *w, const struct pkt *pkt)
{
	struct forward *h = build_put(w, sizeof(*h));

	memcpy(h->src, pkt->fwd_src.ip.b, sizeof(h->src));
	h->sport = be16_put(pkt->fwd_src.port);
	memcpy(h->dst, pkt->fwd_dst.b, sizeof(h->dst));
	h->secret = be64_put(pkt->fwd_secret);
}

static void build_xack(struct writer *w, const struct pkt *pkt)
{
	PUT(w, xack, be32_put(pkt->epoch),
	    {pkt->syndrome, be24_put(pkt->aeth_msn)}, be24_put(pkt->accepted),
	    (uint8_t)pkt->xack_flags, be32_put(pkt->credit),
	    be16_put(pkt->question), be16_put(pkt->answer));
	if (pkt->xack_flags & XACK_SACK)
		*(be64_t *)build_put(w, sizeof(be64_t)) = be64_put(pkt->sack);
	if (pkt->xack_flags & XACK_SUSPEND)
		*(be32_t *)build_put(w,
				     sizeof(be32_t)) = be32_put(pkt->hold_us);
}

/* What goes into the BTH: control packets have codes of their own. */
static uint8_t wire_opcode(const struct pkt *pkt)
{
	if (pkt->ext && pkt->opcode < OP_X_HELLO)
		return pkt->opcode | OP_X_DATA;
	return pkt->opcode;
}

unsigned pkt_build(struct pkt *pkt, uint8_t *out)
{
	const uint8_t opcode = wire_opcode(pkt);
	const uint32_t op = opcode_info(opcode)->flags;
	struct writer w = {out, 0};

	CHECK(op && (!pkt->payload_len || op & OPF_PAYLOAD));
	pkt->pad = op & OPF_EXT ? 0 : -pkt->payload_len & 3;
	build_bth(&w, pkt, opcode);
	switch (opcode) {
	case OP_X_HELLO:
	case OP_X_HELLO_REPLY:
		build_hello(&w, pkt);
		break;
	case OP_X_OPEN:
		build_open(&w, pkt);
		break;
	case OP_X_FORWARD:
		build_forward(&w, pkt);
		break;
	case OP_X_ACK:
		build_xack(&w, pkt);
		break;
	default:
		if (op & OPF_EXT)
			build_xdata(&w, pkt, op);
		else
			build_std(&w, pkt, op);
	}
	pkt->hdr_len = (uint16_t)w.at;
	return w.at;
}

void pkt_build_next(uint8_t out[XDATA_HDR + ICRC_BYTES],
		    const uint8_t prev[XDATA_HDR + ICRC_BYTES], uint8_t opcode,
		    psn_t psn)
{
	const struct bth *before = (const struct bth *)prev;
	struct bth *bth = (struct bth *)out;

	memcpy(out, prev, XDATA_HDR);
	bth->opcode = opcode | OP_X_DATA;
	bth->psn = be24_put(psn);
	if (before->opcode == bth->opcode &&
	    psn_add(be24_get(before->psn), 1) == psn)
		icrc_store(xcrc_next(icrc_load(prev + XDATA_HDR), psn),
			   out + XDATA_HDR);
	else
		icrc_store(xcrc(out, XDATA_HDR), out + XDATA_HDR);
}

void pkt_ask_ack(uint8_t *hdr)
{
	((struct bth *)hdr)->ack |= BTH_ACK_REQ;
}
