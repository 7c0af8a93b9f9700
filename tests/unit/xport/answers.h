/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answers.h: a QP that answers READs and atomics, and what it sends. */
#ifndef NOPIN_TESTS_UNIT_XPORT_ANSWERS_H
#define NOPIN_TESTS_UNIT_XPORT_ANSWERS_H

#include "bench.h"
#include "ring/cqe.h"
#include "xport/burst.h"
#include "xport/replay.h"
#include "xport/tx.h"

#include <errno.h>

enum { MTU = BENCH_MTU, PSN = PSN_MASK - 1, MSN = 9, LONG = 4 * MTU };

static struct bench s;
static struct burst b;
static struct pkt got[BURST_SEGS]; /* packets sent */

static inline int setup_as(enum peer_kind kind)
{
	bench_open(&s, kind, PSN);
	s.peer.path.gso = true; /* several packets a burst */
	s.qp.resp.msg.msn = MSN;
	for (unsigned i = 0; i < BENCH_PAGES; i++)
		bench_page_comes(&s, i);
	return 0;
}

static inline int setup(void **state)
{
	(void)state;
	return setup_as(PEER_NOPIN);
}

static inline int setup_standard(void **state)
{
	(void)state;
	return setup_as(PEER_STANDARD);
}

static inline int teardown(void **state)
{
	(void)state;
	bench_close(&s);
	return 0;
}

static inline struct pkt read_of(psn_t psn, uint64_t va, uint32_t len)
{
	struct pkt p = bench_pkt(&s, OP_READ_REQ, psn);

	p.va = va;
	p.dma_len = len;
	return p;
}

static inline void add_read(psn_t psn, uint32_t len)
{
	const struct pkt p = read_of(psn, BENCH_BASE, len);

	replay_add(&s.qp, &p, 0);
}

static inline void add_atomic(psn_t psn, uint64_t original)
{
	const struct pkt p = bench_pkt(&s, OP_FETCH_ADD, psn);

	replay_add(&s.qp, &p, original);
}

/* Repeat the READ of @len bytes at @psn from packet @k on. */
static inline void repeat_read(psn_t psn, uint32_t len, uint32_t k)
{
	const struct pkt p = read_of(psn_add(psn, k), BENCH_BASE + k * MTU,
				     len - k * MTU);

	replay_duplicate(&s.qp, &p);
}

static inline void repeat_atomic(psn_t psn)
{
	const struct pkt p = bench_pkt(&s, OP_FETCH_ADD, psn);

	replay_duplicate(&s.qp, &p);
}

/* Parse the packets of the burst into got[], from @n on. Return: the next index. */
static inline unsigned collect(unsigned n)
{
	for (unsigned i = 0; i < b.nsegs; i++) {
		assert_true(n < ARRAY_SIZE(got));
		got[n++] = sent_packet(&b, i);
	}
	return n;
}

/* Give a burst to the socket. Return: how many packets. */
static inline unsigned make(void)
{
	if (!replay_tx(&s.qp, &b))
		return 0;
	s.qp.tx_moving = true;
	replay_check(&s.qp);
	return collect(0);
}

/* The burst left, or did not for @error. */
static inline void commit(int error)
{
	dma_release(s.mem, &b.holds, 0, !error, s.x.now);
	if (error)
		replay_unsent(&s.qp, &b, error);
	s.qp.resp.replay.answering = s.qp.tx_moving = false;
	replay_check(&s.qp);
}

static inline unsigned send(void)
{
	const unsigned n = make();

	if (n)
		commit(0);
	return n;
}

/* The same in as many bursts as it takes. */
static inline unsigned send_all(void)
{
	unsigned n = 0;

	while (replay_tx(&s.qp, &b)) {
		s.qp.tx_moving = true;
		n = collect(n);
		commit(0);
	}
	return n;
}

/* Packet @i is @opcode, with so much payload. */
static inline void check(unsigned i, uint8_t opcode, psn_t psn, uint32_t len)
{
	const struct pkt *p = &got[i];

	assert_int_equal(p->opcode, opcode);
	assert_int_equal(p->psn, psn);
	assert_int_equal(p->payload_len, len);
	if (opcode != OP_READ_RESP_MIDDLE || p->ext)
		assert_int_equal(p->aeth_msn, MSN);
}

static inline uint32_t pending(void)
{
	return replay_pending(&s.qp);
}

static inline uint32_t room(void)
{
	const struct resp_replay *r = &s.qp.resp.replay;

	return r->size - (r->next - r->at);
}

#endif
