/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* burst.c: packets collected for one send call. UDP_SEGMENT cuts a send into
 * pieces of one size, so every packet but the last must be equally long; a
 * shorter one ends the burst.
 */
#include "xport/impl.h"

void burst_reset(struct burst *b, struct qp *qp, struct peer *peer, bool ext)
{
	b->qp = qp;
	b->peer = peer;
	b->ext = ext;
	b->request = b->roce = false;
	b->nsegs = 0;
	b->seg_len = b->total = 0;
	b->epoch = 0;
	b->bytes_used = 0;
	moves_reset(&b->gathers);
	b->holds.num = 0;
}

bool burst_full(const struct burst *b)
{
	const struct seg *last;

	if (!b->nsegs)
		return false;
	if (b->nsegs == BURST_SEGS || !b->peer->gso)
		return true;
	last = &b->seg[b->nsegs - 1];
	return last->hdr_len + last->payload_len + last->trailer_len <
	       b->seg_len;
}

struct seg *burst_seg(struct burst *b, struct pkt *pkt, const uint8_t *inl)
{
	uint8_t hdr[PKT_HDR_MAX];
	unsigned n = pkt_build(pkt, hdr);
	uint32_t inl_len = inl ? pkt->payload_len : 0;
	uint32_t trailer = pkt->pad + ICRC_BYTES;
	uint32_t len = n + pkt->payload_len + trailer;
	struct seg *s = &b->seg[b->nsegs];
	uint8_t *out = b->bytes + b->bytes_used;

	if (burst_full(b) || (b->nsegs && len > b->seg_len) ||
	    b->total + len > BURST_MAX ||
	    b->bytes_used + n + inl_len + trailer > BURST_BYTES)
		return NULL;
	memcpy(out, hdr, n);
	if (inl_len)
		memcpy(out + n, inl, inl_len);
	memset(out + n + inl_len, 0, trailer);
	if (b->ext)
		icrc_store(xcrc(out, n), out + n + inl_len);
	*s = (struct seg){.hdr = b->bytes_used,
			  .hdr_len = (uint16_t)(n + inl_len),
			  .trailer_len = (uint16_t)trailer,
			  .move = (uint16_t)b->gathers.num,
			  .payload_len = pkt->payload_len - inl_len};
	if (!b->nsegs)
		b->seg_len = len;
	b->nsegs++;
	b->total += len;
	b->bytes_used += n + inl_len + trailer;
	return s;
}

void burst_unseg(struct burst *b, uint32_t hold)
{
	struct seg *s = &b->seg[--b->nsegs];

	b->total -= s->hdr_len + s->payload_len + s->trailer_len;
	b->bytes_used = s->hdr;
	b->gathers.num = s->move;
	if (b->qp)
		dma_release(b->qp->x->mem, &b->holds, hold, false, 0);
	b->holds.num = hold;
	if (!b->nsegs)
		b->seg_len = 0;
}
