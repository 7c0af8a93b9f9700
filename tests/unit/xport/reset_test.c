/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* reset_test.c: a QP that is reset and connected again knows nothing of its life before. */
#include "base/check.h"
#include "mem/mem.h"
#include "memory.h"
#include "ring/cq.h"
#include "ring/rq.h"
#include "ring/wq.h"

#include <stdio.h>

enum { MTU = 1024, SLOTS = 16, DIRT = 1 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct wq sq;
	struct rq rq;
	struct cq cq;
	struct peer peer;
	struct qp qp;
	struct req req;
	struct resp resp;
} s;

/** struct field - One of struct req or struct resp, of which padding is no part. */
struct field {
	const char *name;
	size_t at, size;
};

#define F(half, f)                                                             \
	{                                                                      \
#f, offsetof(struct half, f), sizeof(s.half.f)                 \
	}

/* All but rings and lists, and what goes on counting: epoch, life, bursts, questions. */
static const struct field of_req[] = {
	F(req, psn.una),
	F(req, psn.acc),
	F(req, psn.snd),
	F(req, psn.max),
	F(req, psn.placed),
	F(req, park_psn),
	F(req, wqe.cur),
	F(req, wqe.started),
	F(req, wqe.rsp),
	F(req, wqe.asked_to),
	F(req, cwnd),
	F(req, at),
	F(req, loss.lost),
	F(req, loss.resent),
	F(req, loss.gap),
	F(req, loss.gap_since),
	F(req, loss.doubted),
	F(req, loss.left),
	F(req, loss.base),
	F(req, loss.recover),
	F(req, loss.recovering),
	F(req, reads.out),
	F(req, reads.chunk),
	F(req, reads.again_at),
	F(req, reads.again_end),
	F(req, reads.again_to),
	F(req, reads.last_again_to),
	F(req, reads.gap_psn),
	F(req, reads.doubted_psn),
	F(req, reads.gap_since),
	F(req, reads.doubted),
	F(req, reads.gap),
	F(req, reads.missed),
	F(req, reads.ask_again),
	F(req, charge.head),
	F(req, charge.tail),
	F(req, charge.charged),
	F(req, charge.reads),
	F(req, charge.read_twice),
	F(req, charge.out),
	F(req, charge.forgotten),
	F(req, charge.doubt),
	F(req, charge.copies),
	F(req, charge.doubt_at),
	F(req, charge.copies_end),
	F(req, charge.copies_to),
	F(req, charge.read_twice_to),
	F(req, failure.wqe),
	F(req, failure.status),
	F(req, failure.known),
	F(req, failure.too_large),
	F(req, probe.ns),
	F(req, probe.max),
	F(req, probe.asked),
	F(req, probe.spare.gap_ns),
	F(req, suspend_ns),
	F(req, live.left_ns),
	F(req, live.asked_ns),
	F(req, live.una),
	F(req, live.best),
	F(req, live.explained),
	F(req, live.excused),
	F(req, live.window),
	F(req, live.trial),
	F(req, gso.second),
	F(req, gso.armed),
	F(req, gso.doubts),
	F(req, retries),
	F(req, rnr_retries),
	F(req, revoked),
};

static const struct field of_resp[] = {
	F(resp, plan),
	F(resp, at),
	F(resp, next),
	F(resp, dead),
	F(resp, revoked),
	F(resp, established),
	F(resp, failure.recv),
	F(resp, failure.event),
	F(resp, failure.status),
	F(resp, failure.cause),
	F(resp, ack.owed),
	F(resp, ack.rest),
	F(resp, ack.lossy),
	F(resp, ack.received),
	F(resp, ack.busy),
	F(resp, ack.answers),
	F(resp, ack.answer),
	F(resp, ack.xack),
	F(resp, ack.out),
	F(resp, ack.nak.psn),
	F(resp, ack.nak.syndrome),
	F(resp, ack.nak.owed),
	F(resp, ack.page_rnr.psn),
	F(resp, ack.page_rnr.syndrome),
	F(resp, ack.page_rnr.owed),
	F(resp, ack.to),
	F(resp, ack.said),
	F(resp, ack.said_ns),
	F(resp, hold.asked),
	F(resp, hold.resume_ns),
	F(resp, replay.next),
	F(resp, replay.at),
	F(resp, replay.answering),
	F(resp, gso.second),
	F(resp, gso.armed),
	F(resp, gso.doubts),
};

static void connect(void)
{
	struct qp_attr a = {.port = 1,
			    .path_mtu = MTU,
			    .has_grh = true,
			    .dgid = {{0xfd, [15] = 2}},
			    .timeout = 14,
			    .retry_cnt = 7,
			    .rnr_retry = 7,
			    .max_rd_atomic = 1,
			    .max_dest_rd_atomic = 1,
			    .rq_psn = 70,
			    .sq_psn = 80};
	static const uint32_t mask[] = {
		[QPS_INIT] = QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
		[QPS_RTR] = QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN | QPA_RQ_PSN |
			    QPA_MAX_DEST_RD_ATOMIC | QPA_MIN_RNR_TIMER,
		[QPS_RTS] = QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
			    QPA_SQ_PSN | QPA_MAX_RD_ATOMIC};

	for (int to = QPS_INIT; to <= QPS_RTS; to++) {
		a.state = (enum qp_state)to;
		assert_int_equal(
			qp_modify(&s.qp, &a, QPA_STATE | mask[to], &s.peer), 0);
	}
}

static void dirty(void *half, const struct field *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		memset((char *)half + f[i].at, DIRT, f[i].size);
}

static void compare(const void *clean, const void *now, const struct field *f,
		    size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp((const char *)clean + f[i].at,
			   (const char *)now + f[i].at, f[i].size) != 0)
			fail_msg("%s is of the life before", f[i].name);
}

/* What peer and NIC have of it is given back before. */
static void dirty_qp(void)
{
	struct req_charge *c = &s.qp.req.charge;
	struct resp_ack *a = &s.qp.resp.ack;

	dirty(&s.qp.req, of_req, ARRAY_SIZE(of_req));
	dirty(&s.qp.resp, of_resp, ARRAY_SIZE(of_resp));
	c->charged = c->reads = c->out = 0;
	a->owed = false;
}

static void reset__forgets_all(void **state)
{
	const struct qp_attr reset = {.state = QPS_RESET};
	const struct endpoint ep = {.ip.b = {0xfd, [15] = 2}, .port = 4791};
	const struct ipaddr local = {{0xfd, [15] = 1}};
	const struct qp_config cfg = {.transport = &transport_rc,
				      .mtu = MTU,
				      .sq = &s.sq,
				      .rq = &s.rq,
				      .receives = &s.rq.source,
				      .send_cq = &s.cq,
				      .recv_cq = &s.cq};
	void *slots = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);

	(void)state;
	assert_int_equal(wq_init(&s.sq, 1, 1, 64), 0);
	assert_int_equal(rq_init(&s.rq, 1, 1, 0), 0);
	assert_int_equal(timerq_reserve(&s.x.timers, 1), 0);
	assert_int_equal(cq_init(&s.cq, 8), 0);
	list_init(&s.cq.link);
	peer_init(&s.peer, &ep, &local);
	s.peer.kind = PEER_STANDARD;
	assert_int_equal(qp_init(&s.qp, &s.x, &cfg), 0);
	connect();
	s.req = s.qp.req;
	s.resp = s.qp.resp;
	dirty_qp();
	assert_int_equal(qp_modify(&s.qp, &reset, QPA_STATE, NULL), 0);
	assert_null(s.qp.resp.replay.res);
	assert_null(s.qp.resp.win.bare);
	connect();
	compare(&s.req, &s.qp.req, of_req, ARRAY_SIZE(of_req));
	compare(&s.resp, &s.qp.resp, of_resp, ARRAY_SIZE(of_resp));
	assert_int_equal(s.qp.req.psn.epoch, s.req.psn.epoch + 2);
	assert_int_equal(s.qp.resp.life, s.resp.life + 2);
	qp_fini(&s.qp);
	cq_fini(&s.cq);
	rq_fini(&s.rq);
	wq_fini(&s.sq);
	xport_close(&s.x);
	mem_close(s.mem);
	free(slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reset__forgets_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
