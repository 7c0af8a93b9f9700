/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* parse.c: bytes to struct pkt. Every length is checked here, once (IBTA 9.6.1,
 * packet header validation); behind it no code looks at header bytes again.
 * Left to others: ICRC, nonce and epoch (icrc.c, nic/), P_Key, QP, peer, PSN, opcode
 * sequence and payload length against the path MTU (xport/).
 */
#include "base/be.h"
#include "base/check.h"
#include "wire/ext.h"
#include "wire/hdr.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/roce.h"
#include "wire/xhdr.h"

#include <string.h>

/** struct cursor - What of the headers was not read yet. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

/* That @n bytes are there was checked against op_info.hdr_bytes. */
static const void *parse_take(struct cursor *c, size_t n)
{
	const uint8_t *p = c->at;

	CHECK(n <= c->left);
	c->at += n;
	c->left -= n;
	return p;
}

#define TAKE(c, type)                                                          \
	((const struct type *)parse_take((c), sizeof(struct type)))

static void parse_aeth(const struct aeth *h, struct pkt *pkt)
{
	pkt->syndrome = h->syndrome;
	pkt->aeth_msn = be24_get(h->msn);
}

static void parse_bth(const struct bth *h, struct pkt *pkt)
{
	pkt->opcode = h->opcode;
	pkt->solicited = h->flags & BTH_SOLICITED;
	pkt->pad = h->flags >> BTH_PAD_SHIFT & BTH_PAD_MASK;
	pkt->pkey = be16_get(h->pkey);
	pkt->qpn = be24_get(h->qpn);
	pkt->ack_req = h->ack & BTH_ACK_REQ;
	pkt->psn = be24_get(h->psn);
}

static void parse_atomiceth(const struct atomiceth *h, struct pkt *pkt)
{
	pkt->va = be64_get(h->va);
	pkt->rkey = be32_get(h->rkey);
	pkt->swap_add = be64_get(h->swap_add);
	pkt->compare = be64_get(h->compare);
}

static void parse_reth(const struct reth *h, struct pkt *pkt)
{
	pkt->va = be64_get(h->va);
	pkt->rkey = be32_get(h->rkey);
	pkt->dma_len = be32_get(h->dma_len);
}

static void parse_std(struct cursor *c, struct pkt *pkt)
{
	if (pkt->op & OPF_DETH) {
		const struct deth *h = TAKE(c, deth);

		pkt->qkey = be32_get(h->qkey);
		pkt->src_qpn = be24_get(h->src_qpn);
	}
	if (pkt->op & OPF_RETH)
		parse_reth(TAKE(c, reth), pkt);
	if (pkt->op & OPF_ATOMICETH)
		parse_atomiceth(TAKE(c, atomiceth), pkt);
	if (pkt->op & OPF_AETH)
		parse_aeth(TAKE(c, aeth), pkt);
	if (pkt->op & OPF_ATOMICACKETH)
		pkt->swap_add = be64_get(TAKE(c, atomicacketh)->original);
	if (pkt->op & OPF_IMM)
		memcpy(&pkt->imm, TAKE(c, immdt)->data, sizeof(pkt->imm));
	if (pkt->op & OPF_INV)
		pkt->imm = be32_get(TAKE(c, ieth)->rkey);
}

static void parse_xdata(struct cursor *c, struct pkt *pkt)
{
	const struct xdata *h = TAKE(c, xdata);
	const void *tail = h->imm_or_aeth;

	pkt->epoch = be32_get(h->epoch);
	pkt->va = be64_get(h->va);
	pkt->rkey = be32_get(h->rkey);
	pkt->dma_len = be32_get(h->dma_len);
	if (pkt->op & OPF_RESPONSE)
		parse_aeth(tail, pkt);
	else if (pkt->op & OPF_IMM)
		memcpy(&pkt->imm, tail, sizeof(pkt->imm));
	else if (pkt->op & (OPF_INV | OPF_NOTIFY))
		pkt->imm = be32_get(((const struct ieth *)tail)->rkey);
	if (pkt->op & OPF_REQUEST) {
		pkt->placed_to = be24_get(h->placed);
		pkt->unanswered = h->flags & XDATA_UNANSWERED;
	}
	if (pkt->op & OPF_ATOMICETH) {
		const struct xatomic *a = TAKE(c, xatomic);

		pkt->swap_add = be64_get(a->swap_add);
		pkt->compare = be64_get(a->compare);
	}
	if (pkt->op & OPF_ATOMICACKETH)
		pkt->swap_add = be64_get(TAKE(c, atomicacketh)->original);
}

static void parse_hello(const struct hello *h, struct pkt *pkt)
{
	pkt->version = h->version;
	pkt->read_chunk = be24_get(h->read_chunk);
	pkt->features = be32_get(h->features);
	pkt->nonce = be32_get(h->nonce);
	pkt->my_nonce = be32_get(h->my_nonce);
	pkt->credit = be32_get(h->credit);
	pkt->slots = be32_get(h->slots);
	pkt->serial = be32_get(h->serial);
	pkt->echo = be32_get(h->echo);
}

static void parse_open(const struct open_hdr *h, struct pkt *pkt)
{
	pkt->epoch = be32_get(h->epoch);
	pkt->my_epoch = be32_get(h->my_epoch);
	pkt->open_flags = h->flags & OPEN_KNOWN;
	pkt->src_qpn = be24_get(h->src_qpn);
}

static void parse_forward(const struct forward *h, struct pkt *pkt)
{
	memcpy(pkt->fwd_src.ip.b, h->src, sizeof(h->src));
	pkt->fwd_src.port = be16_get(h->sport);
	memcpy(pkt->fwd_dst.b, h->dst, sizeof(h->dst));
	pkt->fwd_secret = be64_get(h->secret);
}

/* Return: false if it is cut off. */
static bool parse_xack_tail(struct cursor *c, struct pkt *pkt)
{
	const bool sack = pkt->xack_flags & XACK_SACK;
	const bool suspend = pkt->xack_flags & XACK_SUSPEND;

	if (c->left <
	    (sack ? sizeof(be64_t) : 0) + (suspend ? sizeof(be32_t) : 0))
		return false;
	if (sack)
		pkt->sack = be64_get(
			*(const be64_t *)parse_take(c, sizeof(be64_t)));
	if (suspend)
		pkt->hold_us = be32_get(
			*(const be32_t *)parse_take(c, sizeof(be32_t)));
	return true;
}

/* The only header whose length depends on its content. */
static bool parse_xack(struct cursor *c, struct pkt *pkt)
{
	const struct xack *h = TAKE(c, xack);

	pkt->epoch = be32_get(h->epoch);
	parse_aeth(&h->aeth, pkt);
	pkt->accepted = be24_get(h->accepted);
	pkt->xack_flags = h->flags & XACK_KNOWN;
	pkt->credit = be32_get(h->credit);
	pkt->question = be16_get(h->question);
	pkt->answer = be16_get(h->answer);
	return parse_xack_tail(c, pkt);
}

/**
 * check_payload() - Check that what follows the headers fits the opcode.
 * @rest:	bytes of payload and pad
 * Sets pkt->payload_len. Return: as pkt_parse().
 */
static enum counter check_payload(struct pkt *pkt, size_t rest)
{
	const size_t max = pkt->opcode == OP_X_FORWARD
				   ? PKT_HDR_MAX + MTU_MAX + ICRC_BYTES
				   : MTU_MAX;

	/* FIRST and MIDDLE are full packets, extension packets never pad. */
	if (pkt->pad && (pkt->ext || !(pkt->op & OPF_PAYLOAD) ||
			 !(pkt->op & OPF_LAST) || pkt->pad > rest))
		return CNT_drop_pad;
	if (!pkt->ext && rest % 4)
		return CNT_drop_length;
	rest -= pkt->pad;
	if (rest > (pkt->op & OPF_PAYLOAD ? max : 0))
		return CNT_drop_length;
	/* Only a message of one packet may be empty. */
	if (!rest && (pkt->op & OPF_PAYLOAD) &&
	    (pkt->op & (OPF_FIRST | OPF_LAST)) != (OPF_FIRST | OPF_LAST))
		return CNT_drop_length;
	pkt->payload_len = (uint32_t)rest;
	return CNT_NUM;
}

/* The headers behind the BTH. Return: false if they are cut off. */
static bool parse_ext_headers(struct cursor *c, struct pkt *pkt)
{
	switch (pkt->opcode) {
	case OP_X_HELLO:
	case OP_X_HELLO_REPLY:
		parse_hello(TAKE(c, hello), pkt);
		return true;
	case OP_X_OPEN:
		parse_open(TAKE(c, open_hdr), pkt);
		return true;
	case OP_X_FORWARD:
		parse_forward(TAKE(c, forward), pkt);
		return true;
	case OP_X_ACK:
		return parse_xack(c, pkt);
	default:
		pkt->opcode &= ~OP_X_DATA;
		pkt->op &= ~(uint32_t)OPF_EXT;
		parse_xdata(c, pkt);
		return true;
	}
}

enum counter pkt_parse(const uint8_t *hdr, size_t hdr_avail, size_t total,
		       struct pkt *pkt)
{
	const struct op_info *info;
	const struct bth *bth;
	struct cursor c;

	if (total < BTH_BYTES + ICRC_BYTES || hdr_avail < BTH_BYTES)
		return CNT_drop_short;
	c = (struct cursor){hdr, MIN(hdr_avail, total - ICRC_BYTES)};
	bth = (const struct bth *)hdr;
	if (bth->flags & BTH_VERSION_MASK)
		return CNT_drop_version;
	info = opcode_info(bth->opcode);
	if (!info->flags)
		return bth->opcode >= OP_X_HELLO ? CNT_drop_ext
						 : CNT_drop_opcode;
	if (info->hdr_bytes > c.left)
		return CNT_drop_short;

	*pkt = (struct pkt){.op = info->flags, .ext = info->flags & OPF_EXT};
	parse_bth(TAKE(&c, bth), pkt);
	if (!pkt->ext)
		parse_std(&c, pkt);
	else if (!parse_ext_headers(&c, pkt))
		return CNT_drop_short;
	pkt->hdr_len = (uint16_t)(c.at - hdr);
	return check_payload(pkt, total - ICRC_BYTES - pkt->hdr_len);
}
