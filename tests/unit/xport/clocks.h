/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* clocks.h: a requester on clocks of its own, with packets [10, 14) on their way, and a peer
 * that says what it is told to say.
 */
#ifndef NOPIN_TESTS_UNIT_XPORT_CLOCKS_H
#define NOPIN_TESTS_UNIT_XPORT_CLOCKS_H

#include "base/check.h"
#include "ring/wq.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/attr.h"
#include "xport/comp.h"
#include "xport/control.h"
#include "xport/deadline.h"
#include "xport/life.h"
#include "xport/live.h"
#include "xport/owe.h"
#include "xport/peer.h"
#include "xport/qp.h"
#include "xport/requester.h"
#include "xport/responder.h"
#include "xport/retry.h"
#include "xport/transport.h"
#include "xport/waits.h"
#include "xport/xport.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
/* timeout 14 is less than what is asked of the first silence, and of others */
#define FIRST_NS (2000 * MS)
#define NEXT_NS	 (250 * MS)

enum { UNA = 10, MAX_PSN = 14, RETRIES = 3, MINE = 5, THEIRS = 6 };

static struct {
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp;
	struct wq *sq;
} s;

static inline void open_qp(enum peer_kind kind)
{
	const struct endpoint ep = {.port = 1};
	const struct ipaddr ip = {.b = {0}};
	struct req *r = &s.qp.req;

	memset(&s, 0, sizeof(s));
	s.x.now = 1000 * MS;
	s.x.cnt = &s.cnt;
	list_init(&s.x.work.runnable);
	list_init(&s.x.work.read_waiters);
	list_init(&s.x.work.ack_peers);
	timerq_init(&s.x.timers);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	peer_init(&s.peer, &ep, &ip);
	s.peer.kind = kind;
	assert_int_equal(
		qp_init(&s.qp, &s.x,
			&(struct qp_config){.transport = &transport_rc}),
		0);
	s.sq = aligned_alloc(_Alignof(struct wq), sizeof(*s.sq));
	assert_non_null(s.sq);
	memset(s.sq, 0, sizeof(*s.sq));
	s.sq->prod = 1; /* one is posted and not begun */
	s.qp.cfg.sq = s.sq;
	s.qp.peer = &s.peer;
	s.qp.open.theirs = kind == PEER_NOPIN;
	s.qp.mtu = 1024;
	s.qp.state = QPS_RTS;
	s.qp.attr = (struct qp_attr){.timeout = 14, .retry_cnt = RETRIES};
	deadlines_none(r->at, REQ_DEADLINES);
	deadlines_none(s.qp.resp.at, RESP_DEADLINES);
	r->psn.una = r->psn.acc = r->psn.placed = UNA;
	r->psn.snd = r->psn.max = MAX_PSN;
	live_reset(r);
	comp_reload(&s.qp);
	live_start(&s.qp);
}

static inline void close_qp(void)
{
	ack_cancel(&s.qp);
	s.qp.state = QPS_ERR;
	qp_rearm(&s.qp);
	list_del(&s.qp.on.runnable);
	timerq_fini(&s.x.timers);
	free(s.sq);
}

/* What engine and socket do: what is to be sent again is, and questions leave. */
static inline void serve(void)
{
	struct req *r = &s.qp.req;

	if (live_repeats(r))
		live_repeated(&s.qp);
	if (!(s.qp.resp.ack.xack & XACK_PROBE))
		return;
	if (!r->probe.asked)
		r->probe.question++;
	r->probe.asked = true;
	s.qp.resp.ack.xack = 0;
	live_asked(&s.qp);
}

/* Timers run and questions leave, @ns long. */
static inline void pass(uint64_t ns)
{
	const uint64_t end = s.x.now + ns;

	while (timerq_next(&s.x.timers) <= end) {
		s.x.now = MAX(s.x.now, timerq_next(&s.x.timers));
		if (live_timeout(&s.qp))
			retry_rewind(&s.qp, FLIGHT_TIMEOUT);
		qp_rearm(&s.qp);
		serve();
	}
	s.x.now = end;
}

static inline void waits(enum live_wait wait, uint64_t in_ns)
{
	uint64_t at;

	assert_int_equal(live_waits(&s.qp, &at), wait);
	assert_int_equal(at, in_ns == TIME_NEVER ? in_ns : s.x.now + in_ns);
}

/* The newest question is answered: @accepted is the last PSN of those. */
static inline void answer(psn_t placed, psn_t accepted, uint32_t flags)
{
	struct req *r = &s.qp.req;
	const struct pkt p = {.opcode = OP_X_ACK,
			      .ext = true,
			      .syndrome = AETH_ACK,
			      .psn = placed,
			      .accepted = accepted,
			      .answer = r->probe.question,
			      .xack_flags = XACK_PROBED | flags};

	assert_true(r->probe.asked);
	s.peer.probes.heard_ns = s.x.now;
	r->psn.acc = psn_add(accepted, 1);
	r->probe.asked = false;
	if (live_moved(&s.qp))
		live_progress(&s.qp);
	else
		live_heard(&s.qp, &p, true);
	/* none is answered twice */
	live_ask(&s.qp);
	serve();
}

static inline void answer_all(uint64_t ns, uint32_t flags)
{
	for (uint64_t end = s.x.now + ns; s.x.now < end;) {
		pass(MIN(20 * MS, end - s.x.now));
		answer(UNA - 1, UNA - 1, flags);
	}
}

#endif
