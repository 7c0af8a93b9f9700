/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* burst.c: packets collected for one send call. UDP_SEGMENT cuts a send into
 * pieces of one size, so every packet but the last must be equally long; a
 * shorter one ends the burst.
 *
 * ICRC covers the IPv4 identification, and what the pieces get is a guess (D3):
 * their index, as Linux numbers them. A card may do it in its own way. Then a
 * standard peer sees the first packet of each burst and no other, and what it
 * misses is time and again the second of the burst that began where the last one
 * failed. Three times in a row, and GSO is off for that peer.
 */
#include "xport/burst.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/log.h"
#include "base/moves.h"
#include "base/verdict.h"
#include "mem/dma.h"
#include "mem/waiter.h"
#include "wire/icrc.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/tx.h"
#include "xport/xport.h"

enum { GSO_DOUBTS = 3 };

void burst_mark(struct burst *b, const struct qp *qp)
{
	const struct peer *p = b->peer;

	if (!qp)
		b->way.mark = p->mark;
	else if (!qp->connected)
		b->way.mark = qp->ud.to.mark;
	else
		b->way.mark = (struct ip_mark){qp->attr.traffic_class,
					       qp->attr.hop_limit};
	b->way.line = b->ext && p->path.lines &&
				      ip_mark_eq(b->way.mark, p->mark)
			      ? p->path.line[0]
			      : 0;
}

bool burst_suits(const struct burst *b, const struct qp *qp)
{
	return qp->attr.traffic_class == b->way.mark.tclass &&
	       qp->attr.hop_limit == b->way.mark.hops;
}

void burst_reset(struct burst *b, struct qp *qp, struct peer *peer, bool ext)
{
	b->qp = qp;
	b->peer = peer;
	b->way.to = ext ? peer->asked : peer->ep;
	if (!ext && !peer->datagrams)
		b->way.to.port = ROCE_PORT;
	b->ext = ext;
	burst_mark(b, qp);
	b->request = b->opens = b->narrow = b->acks.says = false;
	b->nsegs = b->acks.num = 0;
	b->seg_len = b->total = b->ahead = 0;
	b->sent.epoch = b->sent.out = 0;
	b->bytes_used = 0;
	moves_reset(&b->gathers);
	b->holds.num = 0;
}

void burst_spray(struct burst *b)
{
	struct peer *p = b->peer;

	if (!b->way.line || p->path.lines < 2)
		return;
	p->path.next = (p->path.next + 1) % p->path.lines;
	b->way.line = p->path.line[p->path.next];
}

bool burst_full(const struct burst *b)
{
	const struct seg *last;

	if (!b->nsegs)
		return false;
	if (b->nsegs == BURST_SEGS || !b->peer->path.gso)
		return true;
	last = &b->seg[b->nsegs - 1];
	return last->hdr_len + last->payload_len + last->trailer_len <
	       b->seg_len;
}

/* @n bytes of headers (payload of @inl_len may be among them), then @gathered
 * bytes, then @trailer. NULL: that does not fit. */
static struct seg *burst_append(struct burst *b, uint32_t n, uint32_t gathered,
				uint32_t trailer)
{
	uint32_t len = n + gathered + trailer;
	struct seg *s = &b->seg[b->nsegs];

	if (burst_full(b) || (b->nsegs && len > b->seg_len) ||
	    b->total + len > BURST_MAX ||
	    b->bytes_used + n + trailer > BURST_BYTES)
		return NULL;
	*s = (struct seg){.hdr = b->bytes_used,
			  .hdr_len = (uint16_t)n,
			  .trailer_len = (uint16_t)trailer,
			  .payload_len = gathered};
	if (!b->nsegs)
		b->seg_len = len;
	b->nsegs++;
	b->total += len;
	b->bytes_used += n + trailer;
	return s;
}

struct seg *burst_seg(struct burst *b, struct pkt *pkt, const uint8_t *inl)
{
	uint8_t hdr[PKT_HDR_MAX];
	unsigned n = pkt_build(pkt, hdr);
	uint32_t inl_len = inl ? pkt->payload_len : 0;
	uint32_t trailer = pkt->pad + ICRC_BYTES;
	struct seg *s = burst_append(b, n + inl_len, pkt->payload_len - inl_len,
				     trailer);
	uint8_t *out;

	if (!s)
		return NULL;
	if (b->nsegs == 2)
		b->second = pkt->psn;
	s->inl_len = (uint16_t)inl_len;
	out = b->bytes + s->hdr;
	memcpy(out, hdr, n);
	if (inl_len)
		memcpy(out + n, inl, inl_len);
	memset(out + n + inl_len, 0, trailer);
	if (b->ext)
		icrc_store(xcrc(out, n), out + n + inl_len);
	return s;
}

struct seg *burst_next(struct burst *b, uint8_t opcode, psn_t psn,
		       uint32_t payload_len)
{
	const uint8_t *prev = b->bytes + b->seg[b->nsegs - 1].hdr;
	struct seg *s = burst_append(b, XDATA_HDR, payload_len, ICRC_BYTES);

	if (s)
		pkt_build_next(b->bytes + s->hdr, prev, opcode, psn);
	return s;
}

uint64_t burst_payload(const struct burst *b)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < b->nsegs; i++)
		bytes += b->seg[i].payload_len + b->seg[i].inl_len;
	return bytes;
}

/* How many bytes of payload may follow in this burst, if all packets are as
 * long as the first? */
static uint64_t burst_room_ahead(const struct burst *b)
{
	uint64_t bytes = BURST_MAX - b->total;

	if (burst_full(b))
		return 0;
	return MIN(bytes, (uint64_t)(BURST_SEGS - b->nsegs) * b->seg_len);
}

enum verdict burst_gather(struct burst *b, const struct dma *d,
			  struct waiter *wait)
{
	struct xport *x = b->qp->x;
	uint16_t token = (uint16_t)(b->nsegs - 1);
	uint64_t more;

	if (b->ahead) {
		CHECK(b->ahead >= d->len);
		b->ahead -= (uint32_t)d->len;
		return V_OK;
	}
	more = MIN(d->ahead, burst_room_ahead(b));
	if (b->ext && more && !b->narrow) {
		struct dma wide = *d;

		wide.len += more;
		wide.ready = true;
		wide.account = &b->qp->account;
		if (dma_resolve(x->mem, &wide, NULL, token, x->now, x->fresh_ns,
				NULL, &b->gathers, &b->holds) == V_OK) {
			waiter_cancel(x->mem, wait);
			b->ahead = (uint32_t)more;
			return V_OK;
		}
		b->narrow = true;
	}
	return dma_resolve(x->mem, d, NULL, token, x->now, x->fresh_ns, wait,
			   &b->gathers, &b->holds);
}

void burst_trim(struct burst *b)
{
	if (b->ahead)
		dma_trim(b->qp->x->mem, b->ahead, &b->gathers, &b->holds);
	b->ahead = 0;
}

void burst_unseg(struct burst *b, uint32_t hold, uint32_t move)
{
	struct seg *s = &b->seg[--b->nsegs];

	b->total -= s->hdr_len + s->payload_len + s->trailer_len;
	b->bytes_used = s->hdr;
	b->gathers.num = move;
	if (b->qp)
		dma_release(b->qp->x->mem, &b->holds, hold, false, 0);
	b->holds.num = hold;
	if (!b->nsegs)
		b->seg_len = 0;
}

void gso_sent(struct gso_watch *g, const struct burst *b)
{
	if (b->ext || b->nsegs < 2 || g->armed)
		return;
	g->second = b->second;
	g->armed = true;
}

void gso_passed(struct gso_watch *g, psn_t reached)
{
	if (!g->armed || psn_diff(reached, g->second) <= 0)
		return;
	g->armed = false;
	g->doubts = 0;
}

void gso_missing(struct qp *qp, struct gso_watch *g, psn_t missing)
{
	int32_t d = psn_diff(missing, g->second);
	struct peer *p = qp->peer;

	if (!g->armed)
		return;
	g->armed = false;
	if (d < 0)
		return; /* nothing of it arrived, which says nothing */
	g->doubts = d == 0 ? g->doubts + 1 : 0;
	if (g->doubts < GSO_DOUBTS || !p->path.gso)
		return;
	p->path.gso = false;
	count(qp->x->cnt, CNT_gso_off);
	log_info("qp 0x%x: only first packets of bursts arrive, GSO is off",
		 qp->cfg.qpn);
}
