/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* txbatch.c: a burst becomes one send call. To a nopin the kernel gathers the
 * payload straight from application memory; to a standard peer it is copied
 * into staging first, so that the ICRC and the wire see the same read of it
 * (design D5), and so it is to anybody with NOPIN_REG=copy. Runs without a lock.
 */
#include "nic/txbatch.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/moves.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/qp.h"
#include "nic/reg.h"
#include "nic/step.h"
#include "os/copy.h"
#include "os/net.h"
#include "wire/icrc.h"
#include "wire/roce.h"
#include "xport/peer.h"
#include "xport/tx.h"

#include <errno.h>

static int send_iov(struct nic *nic, struct step *s, unsigned n)
{
	struct burst *b = &s->burst;
	struct os_tx tx = {.dst = b->way.to,
			   .src = b->peer->local,
			   .mark = b->way.mark,
			   .port = b->qp ? b->qp->cfg.port : b->peer->port,
			   .line = b->way.line,
			   .iov = s->iov,
			   .niov = n,
			   .seg = b->nsegs > 1 ? b->seg_len : 0};

	return os_send(nic->os, &tx);
}

/* Where a burst's payload is used up to: @off bytes of @m. @bounced: from NIC
 * memory. */
struct gather_at {
	const struct move *m;
	uint32_t off;
	bool bounced;
};

static void *payload_at(const struct gather_at *at)
{
	uintptr_t from = at->bounced ? (uintptr_t)at->m->nic
				     : (uintptr_t)at->m->addr;

	return (void *)(from + at->off);
}

/* The next @len bytes, behind @n pieces. Return: how many there are then. */
static unsigned add_payload(struct step *s, unsigned n, struct gather_at *at,
			    uint32_t len)
{
	while (len) {
		uint32_t part = MIN(len, at->m->len - at->off);

		CHECK(n < STEP_IOV);
		s->iov[n++] = (struct iovec){payload_at(at), part};
		len -= part;
		at->off += part;
		if (at->off == at->m->len)
			*at = (struct gather_at){at->m + 1, 0, at->bounced};
	}
	return n;
}

/* Copy all payload to NIC memory. Return: 0 or -EFAULT. */
static int bounce(struct nic *nic, struct step *s)
{
	struct moves *mv = &s->burst.gathers;
	uint32_t at = 0;

	for (unsigned i = 0; i < mv->num; i++) {
		CHECK(mv->m[i].len <= sizeof(s->buf) - at);
		mv->m[i].nic = s->buf + at;
		at += mv->m[i].len;
	}
	if (at)
		os_moves(nic->os, mv);
	if (!mv->error)
		count_atomic(&nic->cnt, CNT_bounced_bytes, at);
	return mv->error;
}

/* A trailer and the headers behind it are one piece: burst.bytes has them in
 * the order they are sent. */
static int send_ext(struct nic *nic, struct step *s)
{
	struct burst *b = &s->burst;
	struct gather_at at = {b->gathers.m, 0, reg_bounces(nic)};
	uint8_t *from = b->bytes, *to;
	unsigned n = 0;
	int err = at.bounced ? bounce(nic, s) : 0;

	if (err)
		return err;
	for (unsigned i = 0; i < b->nsegs; i++) {
		const struct seg *seg = &b->seg[i];

		if (!seg->payload_len)
			continue;
		to = b->bytes + seg->hdr + seg->hdr_len;
		CHECK(n < STEP_IOV);
		s->iov[n++] = (struct iovec){from, (size_t)(to - from)};
		n = add_payload(s, n, &at, seg->payload_len);
		from = to;
	}
	to = b->bytes + b->bytes_used;
	CHECK(n < STEP_IOV);
	s->iov[n++] = (struct iovec){from, (size_t)(to - from)};
	return send_iov(nic, s, n);
}

/* The IPv4 identification that the kernel will write: the segment's index. */
static void seal(const struct step *s, uint8_t *pkt, uint32_t len,
		 unsigned index, uint16_t sport)
{
	const struct peer *peer = s->burst.peer;
	struct path path = {.src = peer->local,
			    .dst = s->burst.way.to.ip,
			    .sport = sport,
			    .dport = s->burst.way.to.port};
	struct span span = {pkt, len - ICRC_BYTES};

	icrc_store(icrc(&path, (uint16_t)index, &span, 1),
		   pkt + len - ICRC_BYTES);
}

static uint16_t source_port(const struct nic *nic, const struct burst *b)
{
	return nic->ports[b->qp ? b->qp->cfg.port : b->peer->port]->number;
}

static int send_std(struct nic *nic, struct step *s)
{
	struct burst *b = &s->burst;
	uint16_t sport = source_port(nic, b);
	struct move *m = b->gathers.m;
	uint8_t *out = s->buf;
	uint32_t at = 0;

	for (unsigned i = 0; i < b->nsegs; i++) {
		struct seg *seg = &b->seg[i];
		const uint8_t *hdr = b->bytes + seg->hdr;
		uint32_t to = at + seg->hdr_len;

		memcpy(out + at, hdr, seg->hdr_len);
		for (uint32_t end = to + seg->payload_len; to < end; m++) {
			m->nic = out + to;
			to += m->len;
		}
		memcpy(out + to, hdr + seg->hdr_len, seg->trailer_len);
		at = to + seg->trailer_len;
	}
	if (b->gathers.num)
		os_moves(nic->os, &b->gathers);
	if (b->gathers.error)
		return b->gathers.error;
	at = 0;
	for (unsigned i = 0; i < b->nsegs; i++) {
		uint32_t len = b->seg[i].hdr_len + b->seg[i].payload_len +
			       b->seg[i].trailer_len;

		seal(s, out + at, len, i, sport);
		at += len;
	}
	s->iov[0] = (struct iovec){out, at};
	return send_iov(nic, s, 1);
}

void txbatch_send(struct nic *nic, struct step *s)
{
	s->error = s->burst.ext ? send_ext(nic, s) : send_std(nic, s);
}
