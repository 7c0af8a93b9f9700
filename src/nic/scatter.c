/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* scatter.c: the host side of peek-then-place (xport/scatter.c has the rules):
 * look at the first header, build the list of pieces, receive. Headers and
 * trailers of the packets in place go to step.side: a header, then for each
 * further packet the trailer before it and its header in one piece.
 */
#include "nic/scatter.h"
#include "base/addr.h"
#include "base/check.h"
#include "base/counters.h"
#include "base/flight.h"
#include "base/moves.h"
#include "nic/demux.h"
#include "nic/device.h"
#include "nic/handoff.h"
#include "nic/lock.h"
#include "nic/qp.h"
#include "nic/refresh.h"
#include "nic/reg.h"
#include "nic/step.h"
#include "nic/usage.h"
#include "os/copy.h"
#include "os/net.h"
#include "os/run.h"
#include "wire/icrc.h"
#include "wire/opcode.h"
#include "wire/pkt.h"
#include "wire/psn.h"
#include "wire/roce.h"
#include "xport/control.h"
#include "xport/dialect.h"
#include "xport/rx.h"
#include "xport/tx.h"

#include <errno.h>

/* true: the waiting burst is one that may be received in place. */
static bool peek(struct nic *nic, struct step *s, struct pkt *p)
{
	struct iovec iov = {s->side, PKT_HDR_MAX};
	uint32_t first;

	s->rx = (struct os_rx){.port = -1};
	if (os_recv(nic->os, &iov, 1, &s->rx, OS_PEEK) <= 0)
		return false;
	first = MIN(s->rx.seg, s->rx.len);
	if (s->rx.len > 2 * s->rx.seg && first >= SCATTER_MIN + SIDE_BYTES &&
	    s->rx.len <= BURST_SEGS * s->rx.seg &&
	    pkt_parse(s->side, PKT_HDR_MAX, first, p) == CNT_NUM && p->ext &&
	    p->hdr_len == XDATA_HDR)
		return true;
	__atomic_store_n(&nic->rx.peek, 0, __ATOMIC_RELAXED);
	return false;
}

static bool scatter_plan(struct nic *nic, struct step *s, const struct pkt *p)
{
	unsigned segs = s->rx.len / s->rx.seg;
	struct nic_qp *nq;
	bool ok = false;

	nic_lock(nic);
	refresh_pages(nic);
	nq = demux_find(nic, p->qpn);
	s->scatter.pieces = &s->run.moves;
	if (nq && qp_receives(&nq->qp) && nq->qp.open.known &&
	    ipaddr_eq(&nq->qp.attr.dgid, &s->rx.src.ip) &&
	    qp_admits(&nq->qp, p))
		ok = qp_scatter_plan(&nq->qp, p, segs, &s->scatter);
	handoff_leave(&nic->engine);
	handoff_unlock(&nic->engine);
	return ok;
}

/* One piece list for the whole burst. Return: pieces, 0: too many. */
static unsigned scatter_build(struct step *s)
{
	const struct scatter *sc = &s->scatter;
	uint32_t left = sc->bytes, mtu = s->rx.seg - SIDE_BYTES;
	uint32_t used = sc->bytes + sc->num * SIDE_BYTES;
	const struct move *m = sc->pieces->m;
	uint32_t off = 0;
	unsigned n = 0;

	for (unsigned i = 0; i < sc->num; i++) {
		uint8_t *side = s->side + (size_t)i * SIDE_BYTES;
		uint32_t want = MIN(left, mtu);

		s->iov[n++] = i ? (struct iovec){side - ICRC_BYTES, SIDE_BYTES}
				: (struct iovec){side, XDATA_HDR};
		left -= want;
		while (want) {
			uint32_t len = MIN(want, m->len - off);

			if (n + 3 > STEP_IOV)
				return 0;
			s->iov[n++] = (struct iovec){
				(void *)(uintptr_t)(m->addr + off), len};
			want -= len;
			off += len;
			if (off == m->len) {
				m++;
				off = 0;
			}
		}
	}
	s->iov[n++] = (struct iovec){
		s->side + (size_t)(sc->num - 1) * SIDE_BYTES + XDATA_HDR,
		ICRC_BYTES};
	if (s->rx.len > used)
		s->iov[n++] = (struct iovec){s->buf, s->rx.len - used};
	return n;
}

/* A burst, to where it belongs. Return: as os_recv(). */
static int scatter_fill(struct nic *nic, struct step *s, unsigned n)
{
	const struct moves *mv = s->scatter.pieces;
	struct os_usage before = usage_begin(nic, CNT_engine_majflt);
	struct reg_move rm;
	int res;

	os_drop(nic->os, mv); /* before it may be locked */
	reg_move_begin(nic, mv, &rm);
	res = os_recv(nic->os, s->iov, n, &s->rx, OS_TAKE);
	reg_move_end(nic, mv, &rm);
	s->majflt = usage_end(nic, CNT_engine_majflt, before, NULL);
	return res;
}

/* Planned: take it. */
static bool scatter_take(struct nic *nic, struct step *s)
{
	struct scatter *sc = &s->scatter;
	uint32_t len, seg;
	unsigned n;
	int res;

	/* A thread that overtook us took the burst: the next one is another. Where
	 * that happens later, s->lost tells.
	 */
	n = __atomic_load_n(&nic->rx.token, __ATOMIC_RELAXED) == s->token
		    ? scatter_build(s)
		    : 0;
	len = s->rx.len;
	seg = s->rx.seg;
	res = n ? scatter_fill(nic, s, n) : 0;
	s->lost = res != 1 || s->rx.len != len || s->rx.seg != seg;
	s->efault = res == -EFAULT;
	if (res == 0) {
		/* too many pieces, or another thread took it: nothing happened */
		nic_lock(nic);
		qp_scatter_done(sc, true);
		nic_wake_idle(nic);
		handoff_leave(&nic->engine);
		handoff_unlock(&nic->engine);
		moves_reset(&s->run.moves);
		sc->qp = NULL;
		s->lost = false;
		return false;
	}
	return true;
}

bool scatter_receive(struct nic *nic, struct step *s)
{
	struct pkt p;
	bool begun, taken;

	if (!peek(nic, s, &p))
		return false;
	begun = os_step_begin();
	taken = scatter_plan(nic, s, &p) && scatter_take(nic, s);
	os_step_end(begun);
	return taken;
}

/* true: it is the last of the run. */
static bool feed(struct nic *nic, struct step *s, unsigned i)
{
	uint8_t *side = s->side + (size_t)i * SIDE_BYTES;
	uint32_t payload = MIN(s->scatter.bytes - i * s->scatter.qp->mtu,
			       s->scatter.qp->mtu);
	struct pkt *p = &s->pkts[s->npkts];
	enum counter why = pkt_parse(side, XDATA_HDR, SIDE_BYTES + payload, p);

	if (why == CNT_NUM && !xcrc_ok(side, XDATA_HDR, side + XDATA_HDR))
		why = CNT_drop_icrc;
	if (why == CNT_NUM && !scatter_expects(&s->scatter, i, p))
		why = CNT_drop_psn;
	if (why != CNT_NUM) {
		count(&nic->cnt, why);
		return false;
	}
	p->placed = true;
	flight_note(&s->scatter.qp->log, nic->x.now, FLIGHT_RX, p->psn,
		    p->opcode, p->payload_len);
	CHECK(qp_rx(s->scatter.qp, p, payload_of_step(NULL), &s->run) ==
	      RX_NEXT);
	if (!s->run.num || s->run.pkt[s->run.num - 1].pkt != p)
		return false;
	s->npkts++;
	return true;
}

/* How many packets from @i on are the middle packets that follow the one fed
 * last? Their headers are what they have to be, byte for byte: nothing else
 * about them has to be looked at. */
static unsigned followers(const struct step *s, unsigned i)
{
	const struct scatter *sc = &s->scatter;
	const struct pkt *p = &s->pkts[s->npkts - 1];
	uint8_t middle = op_select(p->op & ~(uint32_t)(OPF_FIRST | OPF_LAST));
	const uint8_t *prev = s->side + (size_t)(i - 1) * SIDE_BYTES;
	unsigned whole = sc->bytes / sc->qp->mtu, n = 0;

	for (; !(p->op & OPF_LAST) && i < whole; i++, n++) {
		uint8_t want[SIDE_BYTES];

		pkt_build_next(want, prev, middle, psn_add(p->psn, n + 1));
		prev += SIDE_BYTES;
		if (memcmp(want, prev, SIDE_BYTES) != 0)
			break;
	}
	return n;
}

static void feed_all(struct nic *nic, struct step *s)
{
	unsigned n;

	for (unsigned i = 0; i < s->scatter.num; i++) {
		if (!feed(nic, s, i))
			continue;
		n = followers(s, i + 1);
		if (n && qp_rx_more(&s->run, n))
			i += n;
	}
}

void scatter_packets(struct nic *nic, struct step *s)
{
	struct scatter *sc = &s->scatter;

	qp_scatter_done(sc, !s->efault);
	nic_wake_idle(nic);
	moves_reset(&s->run.moves);
	if (s->lost) {
		/* counted as loss; the sender's next probe tells it */
		count_add(&nic->cnt, CNT_drop_psn, sc->num);
		s->at = s->rx.len;
	} else {
		count(&nic->cnt, CNT_rx_scattered);
		count_add(&nic->cnt, CNT_rx_packets, sc->num);
		feed_all(nic, s);
		s->rx.len -= sc->bytes + sc->num * SIDE_BYTES;
	}
	sc->qp = NULL;
	s->lost = false;
}
