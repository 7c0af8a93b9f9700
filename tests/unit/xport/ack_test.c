/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ack_test.c: ACKs of two QPs as their peer reads them. Requests from PSN 0 on are not
 * placed yet, or (NEXT) not accepted: the last placed one is before the wrap.
 */
#include "mem/mem.h"
#include "memory.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "xport/ack.h"
#include "xport/burst.h"
#include "xport/deadline.h"
#include "xport/lend.h"
#include "xport/owe.h"
#include "xport/requester.h"
#include "xport/resp.h"
#include "xport/tx.h"
#include "xport/window.h"

#include <errno.h>

enum { SLOTS = 8, QPS = 2, MTU = 1024, QPN = 70, DEST = 90, NOW = 50000 };
enum { LAST_PSN = 0xffffff, NEXT = 3, EPOCH = 1234, MSN = 17, LIFE = 2 };

static struct {
	struct mem *mem;
	struct xport x;
	struct counters cnt;
	struct peer peer;
	struct qp qp[QPS];
	struct burst b;
} s;

static int setup(void **state)
{
	const struct endpoint ep = {.port = 1};
	const struct qp_config cfg = {.transport = &transport_rc};

	memset(&s, 0, sizeof(s));
	*state = open_memory(&s.mem, &s.x, &s.cnt, SLOTS);
	s.x.now = NOW;
	s.x.budget.push = 1 << 20;
	s.x.peers = 1;
	assert_int_equal(timerq_reserve(&s.x.timers, QPS), 0);
	peer_init(&s.peer, &ep, &ep.ip);
	s.peer.path.gso = true;
	for (int i = 0; i < QPS; i++) {
		struct qp *qp = &s.qp[i];

		assert_int_equal(qp_init(qp, &s.x, &cfg), 0);
		assert_int_equal(resp_reserve(qp, RD_ATOMIC_MAX), 0);
		qp->cfg.qpn = QPN + i;
		qp->peer = &s.peer;
		qp->state = QPS_RTS;
		qp->mtu = MTU;
		qp->attr.dest_qpn = DEST + i;
		qp->attr.rq_psn = NEXT;
		qp->open.mine = 1;
		qp->open.theirs = EPOCH;
		qp->resp.win.next = NEXT;
		qp->resp.ack.said = LAST_PSN;
		qp->resp.ack.to = LAST_PSN;
		qp->resp.msg.msn = MSN;
		qp->resp.life = LIFE;
	}
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < QPS; i++) {
		owe_check(&s.qp[i]);
		deadline_check(&s.qp[i]);
		s.qp[i].rx_moving = false;
		qp_fini(&s.qp[i]);
	}
	xport_close(&s.x);
	mem_close(s.mem);
	free(*state);
	return 0;
}

static struct resp *resp(int i)
{
	return &s.qp[i].resp;
}

static void standard(int i)
{
	s.qp[i].open.theirs = 0;
}

static struct pkt packet(unsigned i)
{
	return sent_packet(&s.b, i);
}

static bool speaks(void)
{
	return peer_ack_burst(&s.x, &s.peer, &s.b);
}

/* Nothing else is said than the ACK of one QP. */
static struct pkt heard(void)
{
	assert_true(speaks());
	assert_int_equal(s.b.nsegs, 1);
	return packet(0);
}

/* It left, or did not. */
static void commit(int i, int error)
{
	assert_int_equal(s.b.acks.num, 1);
	ack_commit(&s.qp[i], &s.b.acks.v[0], error, true);
}

/* A READ whose response to @psn is the next to leave. */
static void read_waits(psn_t psn, uint32_t num)
{
	struct resp_replay *r = &resp(0)->replay;

	r->res[r->next++] =
		(struct resource){.used = true, .psn = psn, .num = num};
}

/* --- ACKs -------------------------------------------------------------------- */

static void ack__to_a_standard_peer(void **state)
{
	struct pkt p;

	(void)state;
	standard(0);
	ack_owe(&s.qp[0]);
	p = heard();
	assert_int_equal(p.opcode, OP_ACK);
	assert_int_equal(p.qpn, DEST);
	assert_int_equal(p.psn, LAST_PSN);
	assert_int_equal(p.syndrome, AETH_ACK | AETH_CREDIT_INVALID);
	assert_int_equal(p.aeth_msn, MSN);
	assert_int_equal(s.cnt.v[CNT_acks_tx], 1);
	assert_false(resp(0)->ack.owed);
	assert_false(speaks());
}

static void ack__to_a_nopin(void **state)
{
	struct pkt p;

	(void)state;
	ack_owe(&s.qp[0]);
	p = heard();
	assert_int_equal(p.opcode, OP_X_ACK);
	assert_int_equal(p.epoch, EPOCH);
	assert_int_equal(p.psn, LAST_PSN);
	assert_int_equal(p.accepted, NEXT - 1);
	assert_int_equal(p.credit, flow_share(&s.x));
	assert_int_equal(p.xack_flags, 0);
	assert_int_equal(s.x.budget.granted, p.credit);
}

/* Packets of a run that moves may be taken back: they are not accepted. */
static void ack__while_a_run_moves(void **state)
{
	(void)state;
	s.qp[0].rx_moving = true;
	ack_owe(&s.qp[0]);
	assert_int_equal(heard().accepted, LAST_PSN);
}

/* The peer would take nothing without its epoch, and that is not known yet. */
static void ack__to_a_peer_that_opens(void **state)
{
	(void)state;
	standard(0);
	s.qp[0].open.known = true;
	ack_owe(&s.qp[0]);
	assert_false(speaks());
	assert_true(resp(0)->ack.owed);
}

static void ack__of_packets_ahead_of_a_gap(void **state)
{
	static const uint32_t ahead[] = {1, 64, 65};
	struct pkt p = {.op = OPF_READ, .opcode = OP_READ_REQ};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(ahead); i++) {
		p.psn = NEXT + ahead[i];
		assert_int_equal(win_keep(&s.x, &resp(0)->win, &p,
					  (struct payload){.at = NULL}),
				 0);
	}
	ack_owe(&s.qp[0]);
	p = heard();
	assert_int_equal(p.xack_flags, XACK_SACK);
	assert_true(p.sack == (UINT64_C(1) | UINT64_C(1) << 63));
	s.qp[0].rx_moving = true;
	ack_owe(&s.qp[0]);
	assert_int_equal(heard().xack_flags, 0);
}

/* It passes no READ without its answer, and is owed again behind that. */
static void ack__before_a_read(void **state)
{
	struct resp *r = resp(0);

	(void)state;
	read_waits(LAST_PSN - 3, 2);
	read_waits(LAST_PSN - 1, 1);
	ack_owe(&s.qp[0]);
	assert_int_equal(heard().psn, LAST_PSN - 4);
	assert_true(r->ack.rest);
	r->replay.res[0].at = 2;
	ack_rest(&s.qp[0]);
	assert_int_equal(heard().psn, LAST_PSN - 2);
	r->replay.res[1].at = 1;
	ack_rest(&s.qp[0]);
	assert_int_equal(heard().psn, LAST_PSN);
	assert_false(r->ack.rest);
}

/* Nor one whose answer is on its way to the socket: only that it is busy is said. */
static void ack__before_an_answer_that_moves(void **state)
{
	struct resp *r = resp(0);
	struct pkt p;

	(void)state;
	read_waits(LAST_PSN - 3, 2);
	r->replay.res[0].at = 2;
	r->replay.at = r->replay.next;
	r->replay.res[0].burst = r->replay.bursts = 1;
	r->replay.answering = true;
	ack_owe(&s.qp[0]);
	assert_false(speaks());
	ack_answer(&s.qp[0], 5);
	p = heard();
	assert_int_equal(p.psn, LAST_PSN - 4);
	assert_int_equal(p.xack_flags, 0);
	assert_int_equal(p.answer, 5);
	r->replay.answering = false;
	ack_again(&s.qp[0]);
	p = heard();
	assert_int_equal(p.psn, LAST_PSN);
	assert_int_equal(p.xack_flags, XACK_PROBED);
	assert_int_equal(p.answer, 5);
	assert_false(r->ack.owed);
}

static void ack__says_when_it_was(void **state)
{
	struct resp *r = resp(0);

	(void)state;
	ack_repeat(&s.qp[0]);
	r->at[RESP_REPEAT] = NOW + 1;
	qp_rearm(&s.qp[0]);
	heard();
	assert_int_equal(r->ack.said_ns, NOW);
	assert_int_equal(r->at[RESP_REPEAT], TIME_NEVER);
	qp_rearm(&s.qp[0]);
}

/* --- questions --------------------------------------------------------------- */

static void question__the_same_until_it_is_answered(void **state)
{
	struct req *r = &s.qp[0].req;

	(void)state;
	r->probe.question = UINT16_MAX - 1;
	r->psn.snd = 7;
	ack_say(&s.qp[0], XACK_PROBE);
	assert_int_equal(heard().question, UINT16_MAX);
	assert_true(r->probe.asked);
	assert_int_equal(r->probe.max, 7);
	r->psn.snd = 8;
	ack_say(&s.qp[0], XACK_PROBE);
	assert_int_equal(heard().question, UINT16_MAX);
	assert_int_equal(r->probe.max, 7);
	r->probe.asked = false;
	ack_say(&s.qp[0], XACK_PROBE);
	/* none has the number 0 */
	assert_int_equal(heard().question, 1);
	assert_int_equal(r->probe.max, 8);
}

static void question__behind_what_it_asks_about(void **state)
{
	(void)state;
	s.qp[0].tx_moving = true;
	ack_say(&s.qp[0], XACK_PROBE);
	assert_false(speaks());
	assert_false(s.qp[0].req.probe.asked);
	s.qp[0].tx_moving = false;
	ack_again(&s.qp[0]);
	assert_int_equal(heard().xack_flags, XACK_PROBE);
}

/* --- NAKs -------------------------------------------------------------------- */

/* A NAK is said when all before it is placed. */
static void nak__in_its_turn(void **state)
{
	const uint8_t syndrome = AETH_NAK | NAK_REMOTE_ACCESS;
	struct resp *r = resp(0);
	struct pkt p;

	(void)state;
	ack_nak(&s.qp[0], syndrome, 1);
	assert_false(speaks());
	/* but a nopin hears other words meanwhile */
	ack_say(&s.qp[0], XACK_RESUME);
	p = heard();
	assert_int_equal(p.psn, LAST_PSN);
	assert_int_equal(p.syndrome & AETH_KIND_MASK, AETH_ACK);
	assert_true(r->ack.nak.owed && r->ack.owed);
	r->win.head = 1;
	ack_again(&s.qp[0]);
	p = heard();
	assert_int_equal(p.psn, 1);
	assert_int_equal(p.syndrome, syndrome);
	assert_int_equal(s.cnt.v[CNT_naks_tx], 1);
	assert_false(r->ack.nak.owed || r->ack.owed);
	assert_int_equal(r->ack.nak.syndrome, syndrome);
}

/* A standard peer hears once of requests that are placed before it. */
static void nak__behind_placed_requests(void **state)
{
	struct resp *r = resp(0);

	(void)state;
	standard(0);
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_ACCESS, 2);
	assert_false(speaks());
	r->win.head = 1;
	ack_again(&s.qp[0]);
	assert_int_equal(heard().psn, 0);
	commit(0, 0);
	ack_again(&s.qp[0]);
	assert_false(speaks());
	r->win.head = 2;
	ack_again(&s.qp[0]);
	assert_int_equal(heard().psn, 2);
}

/* A QP that failed says why, and acknowledges nothing. */
static void nak__of_a_qp_that_failed(void **state)
{
	(void)state;
	s.qp[0].state = QPS_ERR;
	ack_owe(&s.qp[0]);
	assert_false(speaks());
	ack_page_rnr(&s.qp[0], 1, 0);
	assert_false(speaks());
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_OPERATION, 0);
	assert_int_equal(heard().syndrome, AETH_NAK | NAK_REMOTE_OPERATION);
}

static void page_rnr__costs_a_nopin_nothing(void **state)
{
	struct pkt p;

	(void)state;
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 0);
	ack_page_rnr(&s.qp[0], 9, 0);
	p = heard();
	assert_int_equal(p.psn, 0);
	assert_int_equal(p.syndrome, AETH_RNR | 9);
	assert_int_equal(p.xack_flags, XACK_FAULT);
	assert_false(resp(0)->ack.page_rnr.owed);
	ack_again(&s.qp[0]);
	p = heard();
	assert_int_equal(p.syndrome, AETH_NAK | NAK_PSN_SEQUENCE);
	assert_int_equal(p.xack_flags, 0);
}

static void page_rnr__of_a_page_that_came(void **state)
{
	struct resp *r = resp(0);
	struct pkt p;

	(void)state;
	ack_page_rnr(&s.qp[0], 9, 0);
	r->win.head = 1;
	p = heard();
	assert_int_equal(p.psn, 0);
	assert_int_equal(p.syndrome & AETH_KIND_MASK, AETH_ACK);
	assert_false(r->ack.page_rnr.owed);
}

/* The RNR was to tell the peer to send again: ask for that. */
static void page_rnr__asks_for_what_was_dropped(void **state)
{
	struct resp *r = resp(0);

	(void)state;
	ack_page_rnr(&s.qp[0], 9, 0);
	r->win.head = NEXT;
	r->next = NEXT_FORGOT_RNR;
	/* fault.c will ask */
	assert_int_equal(heard().syndrome & AETH_KIND_MASK, AETH_ACK);
	assert_int_equal(r->next, NEXT_FORGOT);
	ack_page_rnr(&s.qp[0], 9, 0);
	r->next = NEXT_RNR;
	assert_int_equal(heard().syndrome, AETH_NAK | NAK_PSN_SEQUENCE);
	assert_int_equal(packet(0).psn, NEXT);
	assert_int_equal(r->next, NEXT_GAP);
}

/* --- with requests ----------------------------------------------------------- */

static void ack_headers__placed_and_answered(void **state)
{
	struct pkt p = {.psn = 5};

	(void)state;
	ack_headers(&s.qp[0], &p);
	assert_int_equal(p.placed_to, LAST_PSN);
	assert_false(p.unanswered);
	read_waits(LAST_PSN, 1);
	ack_headers(&s.qp[0], &p);
	assert_int_equal(p.placed_to, LAST_PSN);
	assert_true(p.unanswered);
}

/* Requests wait for an ACK to a standard peer, if it can be said. */
static void ack_first__to_a_standard_peer(void **state)
{
	(void)state;
	standard(0);
	assert_false(ack_first(&s.qp[0]));
	ack_owe(&s.qp[0]);
	assert_true(s.peer.acks.due_ns > NOW);
	assert_true(ack_first(&s.qp[0]));
	assert_int_equal(s.peer.acks.due_ns, NOW);
	heard();
	assert_true(ack_first(&s.qp[0]));
	commit(0, 0);
	assert_false(ack_first(&s.qp[0]));
	assert_false(list_empty(&s.qp[0].on.runnable));
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 1);
	assert_false(ack_first(&s.qp[0]));
}

static void ack_first__to_a_nopin(void **state)
{
	(void)state;
	ack_owe(&s.qp[0]);
	assert_false(ack_first(&s.qp[0]));
	resp(0)->ack.out = 1;
	assert_false(ack_first(&s.qp[0]));
	resp(0)->ack.out = 0;
}

/* A QP whose ACK cannot be said has nothing to wait for. */
static void ack_append__that_cannot_be_said(void **state)
{
	(void)state;
	standard(0);
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 1);
	assert_false(speaks());
	assert_false(list_empty(&s.qp[0].on.runnable));
}

/* A request leaves. */
static bool carries(bool ext)
{
	struct pkt p = {.opcode = OP_WRITE_ONLY,
			.ext = ext,
			.payload_len = MTU,
			.dma_len = MTU};

	burst_reset(&s.b, &s.qp[0], &s.peer, ext);
	assert_non_null(burst_seg(&s.b, &p, NULL));
	ack_carry(&s.qp[0], &s.b);
	return s.b.acks.says;
}

/* The peer knows its grant already. */
static void granted(void)
{
	ack_owe(&s.qp[0]);
	heard();
	commit(0, 0);
}

static void ack_carry__a_plain_one(void **state)
{
	(void)state;
	granted();
	resp(0)->win.next = 0;
	assert_false(carries(true));
	ack_owe(&s.qp[0]);
	assert_true(carries(true));
	assert_int_equal(s.cnt.v[CNT_acks_carried], 1);
	assert_false(resp(0)->ack.owed);
	assert_int_equal(s.b.nsegs, 1);
}

static void ack_carry__with_a_new_grant(void **state)
{
	(void)state;
	resp(0)->win.next = 0;
	ack_owe(&s.qp[0]);
	assert_true(carries(true));
	assert_true(resp(0)->ack.owed);
	assert_true(carries(true));
	assert_false(resp(0)->ack.owed);
}

/* Headers do not say all. */
static void ack_carry__more_than_headers_say(void **state)
{
	(void)state;
	granted();
	ack_owe(&s.qp[0]);
	assert_false(carries(true)); /* more is accepted */
	resp(0)->win.next = 0;
	assert_false(carries(false));
	ack_say(&s.qp[0], XACK_RESUME);
	assert_false(carries(true));
	heard();
	commit(0, 0);
	ack_say(&s.qp[0], XACK_PROBE);
	assert_true(carries(true));
	assert_true(resp(0)->ack.owed);
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 0);
	assert_false(carries(true));
	assert_true(resp(0)->ack.owed);
}

/* --- several in a burst ------------------------------------------------------ */

static void ack_append__of_all_qps(void **state)
{
	(void)state;
	ack_owe(&s.qp[0]);
	ack_say(&s.qp[1], XACK_RESUME);
	assert_true(speaks());
	assert_int_equal(s.b.acks.num, QPS);
	assert_int_equal(s.peer.acks.out, 1);
	for (unsigned i = 0; i < QPS; i++) {
		assert_int_equal(packet(i).qpn, DEST + i);
		assert_int_equal(s.b.acks.v[i].qpn, QPN + i);
		assert_int_equal(s.b.acks.v[i].life, LIFE);
		assert_int_equal(s.b.acks.v[i].xack, i ? XACK_RESUME : 0);
		assert_int_equal(resp(i)->ack.out, 1);
		assert_false(resp(i)->ack.owed);
	}
	assert_true(list_empty(&s.x.work.ack_peers));
	assert_int_equal(s.cnt.v[CNT_acks_behind], 0);
}

/* All packets of a burst are marked alike, and of one format. */
static void ack_append__that_differs(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		s.qp[1].attr.traffic_class = i == 0;
		if (i)
			standard(1);
		ack_owe(&s.qp[0]);
		ack_owe(&s.qp[1]);
		assert_int_equal(heard().qpn, DEST);
		assert_int_equal(s.b.way.mark.tclass, 0);
		assert_false(list_empty(&s.peer.acks.link));
		assert_int_equal(heard().qpn, DEST + 1);
		assert_int_equal(s.b.way.mark.tclass, i == 0);
		assert_true(list_empty(&s.peer.acks.link));
	}
}

/* The answer to a question does not stand behind payload. */
static void ack_append__behind_a_request(void **state)
{
	(void)state;
	ack_answer(&s.qp[1], 3);
	ack_owe(&s.qp[0]);
	carries(true);
	assert_true(ack_append(&s.qp[0], &s.b));
	assert_int_equal(s.b.nsegs, 2);
	assert_int_equal(packet(1).qpn, DEST);
	assert_int_equal(s.cnt.v[CNT_acks_behind], 1);
	assert_true(resp(1)->ack.owed);
	assert_int_equal(heard().xack_flags, XACK_PROBED);
}

static void ack_append__as_many_as_fit(void **state)
{
	(void)state;
	s.peer.path.gso = false;
	ack_owe(&s.qp[0]);
	ack_owe(&s.qp[1]);
	assert_int_equal(heard().qpn, DEST);
	assert_true(resp(1)->ack.owed);
	assert_int_equal(heard().qpn, DEST + 1);
}

/* --- the socket -------------------------------------------------------------- */

static void ack_commit__it_left(void **state)
{
	(void)state;
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 0);
	heard();
	assert_int_equal(resp(0)->ack.out, 1);
	commit(0, 0);
	assert_int_equal(resp(0)->ack.out, 0);
	assert_false(resp(0)->ack.owed || resp(0)->ack.nak.owed);
	assert_int_equal(s.peer.acks.after_ns, 0);
	/* a nopin's requests did not wait for it */
	assert_true(list_empty(&s.qp[0].on.runnable));
}

static void ack_commit__the_socket_was_full(void **state)
{
	const uint8_t syndrome = AETH_NAK | NAK_PSN_SEQUENCE;
	struct resp_ack *a = &resp(0)->ack;
	struct pkt p;

	(void)state;
	ack_nak(&s.qp[0], syndrome, 0);
	ack_say(&s.qp[0], XACK_RESUME);
	heard();
	commit(0, -EAGAIN);
	assert_int_equal(a->out, 0);
	assert_int_equal(s.peer.acks.after_ns, NOW + PAUSE_FULL_NS);
	assert_true(a->owed && a->nak.owed);
	p = heard();
	assert_int_equal(p.syndrome, syndrome);
	assert_int_equal(p.xack_flags, XACK_RESUME);
	ack_commit(&s.qp[0], &s.b.acks.v[0], -ENETDOWN, false);
	assert_false(a->owed || a->nak.owed);
	assert_int_equal(a->xack, 0);
}

/* The newer order counts: to hold, or to go on. */
static void ack_commit__an_order_that_did_not_leave(void **state)
{
	(void)state;
	for (int forgot = 0; forgot < 2; forgot++) {
		resp(0)->next = forgot ? NEXT_FORGOT : NEXT_UNSAID;
		for (int i = 0; i < 2; i++) {
			const uint32_t order = i ? XACK_RESUME : XACK_HOLD;
			const bool stands = i != forgot;

			ack_say(&s.qp[0], order);
			heard();
			commit(0, -EAGAIN);
			assert_int_equal(resp(0)->ack.xack, stands ? order : 0);
			resp(0)->ack.xack = 0;
		}
	}
}

/* Requests placed before a NAK are to be acknowledged again, then. */
static void ack_commit__an_ack_before_a_nak(void **state)
{
	(void)state;
	standard(0);
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_ACCESS, 2);
	resp(0)->win.head = 1;
	assert_int_equal(heard().psn, 0);
	commit(0, -EAGAIN);
	assert_int_equal(heard().psn, 0);
}

static void ack_commit__of_a_qp_that_failed(void **state)
{
	(void)state;
	ack_owe(&s.qp[0]);
	heard();
	s.qp[0].state = QPS_ERR;
	commit(0, -EAGAIN);
	assert_false(resp(0)->ack.owed);
	ack_nak(&s.qp[0], AETH_NAK | NAK_REMOTE_ACCESS, 0);
	heard();
	commit(0, -EAGAIN);
	assert_true(resp(0)->ack.owed);
}

/* Another connection has the QP number now. */
static void ack_commit__of_the_life_before(void **state)
{
	struct resp_ack *a = &resp(0)->ack;

	(void)state;
	ack_nak(&s.qp[0], AETH_NAK | NAK_PSN_SEQUENCE, 0);
	heard();
	a->out = 0;
	resp(0)->life++;
	commit(0, -EAGAIN);
	assert_int_equal(a->out, 0);
	assert_false(a->owed || a->nak.owed);
	assert_int_equal(s.peer.acks.after_ns, 0);
}

/* While "hold" is with the socket the region is resumed. */
static void ack_commit__an_order_that_is_over(void **state)
{
	(void)state;
	resp(0)->next = NEXT_FORGOT;
	ack_say(&s.qp[0], XACK_HOLD);
	heard();
	ack_say(&s.qp[0], XACK_RESUME);
	commit(0, -EAGAIN);
	assert_int_equal(resp(0)->ack.xack & (XACK_HOLD | XACK_RESUME),
			 XACK_RESUME);
}

/* The program ends the QP while the RNR NAK of a page is with the socket: a failed QP
 * does not say that. */
static void ack_commit__of_a_page_and_a_qp_that_failed(void **state)
{
	(void)state;
	ack_page_rnr(&s.qp[0], 9, 0);
	heard();
	s.qp[0].state = QPS_ERR;
	commit(0, -EAGAIN);
	assert_false(resp(0)->ack.page_rnr.owed);
	assert_false(resp(0)->ack.owed);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(ack__to_a_standard_peer),
		T(ack__to_a_nopin),
		T(ack__while_a_run_moves),
		T(ack__to_a_peer_that_opens),
		T(ack__of_packets_ahead_of_a_gap),
		T(ack__before_a_read),
		T(ack__before_an_answer_that_moves),
		T(ack__says_when_it_was),
		T(question__the_same_until_it_is_answered),
		T(question__behind_what_it_asks_about),
		T(nak__in_its_turn),
		T(nak__behind_placed_requests),
		T(nak__of_a_qp_that_failed),
		T(page_rnr__costs_a_nopin_nothing),
		T(page_rnr__of_a_page_that_came),
		T(page_rnr__asks_for_what_was_dropped),
		T(ack_headers__placed_and_answered),
		T(ack_first__to_a_standard_peer),
		T(ack_first__to_a_nopin),
		T(ack_append__that_cannot_be_said),
		T(ack_carry__a_plain_one),
		T(ack_carry__with_a_new_grant),
		T(ack_carry__more_than_headers_say),
		T(ack_append__of_all_qps),
		T(ack_append__that_differs),
		T(ack_append__behind_a_request),
		T(ack_append__as_many_as_fit),
		T(ack_commit__it_left),
		T(ack_commit__the_socket_was_full),
		T(ack_commit__an_order_that_did_not_leave),
		T(ack_commit__an_ack_before_a_nak),
		T(ack_commit__of_a_qp_that_failed),
		T(ack_commit__of_the_life_before),
		T(ack_commit__an_order_that_is_over),
		T(ack_commit__of_a_page_and_a_qp_that_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
