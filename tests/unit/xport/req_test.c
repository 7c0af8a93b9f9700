/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* req_test.c: work requests as the packets that their peer reads, and what ends or keeps
 * back a burst.
 */
#include "requests.h"
#include "xport/retry.h"

#include <errno.h>

enum { MANY = 40, COMPARE = 1111, SWAP = 2222, INVALID_KEY = 0x77 };

static bool standard(void)
{
	return !s.qp.open.theirs;
}

/* The packets that leave until the QP has no more to say. */
static struct {
	struct pkt pkt[2 * MANY];
	uint64_t from[2 * MANY]; /* address of the payload */
	unsigned num, bursts;
} sent;

/* All payload of a burst, packet by packet, from the pieces that it gathers. */
static void note_burst(void)
{
	uint32_t at = 0, piece = 0;

	for (unsigned i = 0; i < b.nsegs; i++) {
		const struct pkt p = sent_packet(&b, i);
		uint32_t left = b.seg[i].payload_len;

		assert_true(sent.num < ARRAY_SIZE(sent.pkt));
		if (left && piece < b.gathers.num)
			sent.from[sent.num] = b.gathers.m[piece].addr + at;
		while (left && piece < b.gathers.num) {
			uint32_t n = MIN(left, b.gathers.m[piece].len - at);

			left -= n;
			at += n;
			if (at == b.gathers.m[piece].len) {
				at = 0;
				piece++;
			}
		}
		assert_int_equal(left, 0);
		sent.pkt[sent.num++] = p;
	}
	assert_int_equal(piece, b.gathers.num);
	sent.bursts++;
}

static unsigned send_all(void)
{
	memset(&sent, 0, sizeof(sent));
	while (qp_tx(&s.qp, &b)) {
		note_burst();
		qp_tx_commit(&b, 0);
	}
	return sent.num;
}

static void check_packet(unsigned i, uint8_t opcode, psn_t psn, uint32_t len)
{
	const struct pkt *p = &sent.pkt[i];

	assert_true(i < sent.num);
	assert_int_equal(p->opcode, opcode);
	assert_int_equal(p->psn, psn);
	assert_int_equal(p->payload_len, len);
	assert_int_equal(p->qpn, DEST);
	if (!standard())
		assert_int_equal(p->epoch, BENCH_THEIRS);
}

static void ends(enum wc_status status, uint64_t id)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.status, status);
	assert_int_equal(e.wr_id, id);
}

/* --- packets ----------------------------------------------------------------- */

static void req__one_packet_up_to_the_mtu(void **state)
{
	static const uint32_t len[] = {0, 1, MTU - 1, MTU};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		post(WR_SEND, i, len[i]);
		assert_int_equal(send_all(), 1);
		check_packet(0, OP_SEND_ONLY, psn_add(PSN, (int32_t)i), len[i]);
		if (len[i])
			assert_true(sent.from[0] == bench_page(i));
		assert_true(sent.pkt[0].ack_req);
		assert_false(sent.pkt[0].solicited);
	}
}

static void req__first_middle_last(void **state)
{
	(void)state;
	make(WR_SEND_IMM, 3, 3 * MTU + 1)->imm = 5;
	posted();
	assert_int_equal(send_all(), 4);
	check_packet(0, OP_SEND_FIRST, PSN, MTU);
	check_packet(1, OP_SEND_MIDDLE, psn_add(PSN, 1), MTU);
	check_packet(2, OP_SEND_MIDDLE, psn_add(PSN, 2), MTU);
	check_packet(3, OP_SEND_LAST_IMM, psn_add(PSN, 3), 1);
	for (unsigned i = 0; i < 4; i++)
		assert_true(sent.from[i] == bench_page(3) + i * MTU);
	assert_int_equal(sent.pkt[3].imm, 5);
}

static void req__last_without_a_byte_more(void **state)
{
	(void)state;
	post(WR_WRITE, 1, 2 * MTU);
	assert_int_equal(send_all(), 2);
	check_packet(0, OP_WRITE_FIRST, PSN, MTU);
	check_packet(1, OP_WRITE_LAST, psn_add(PSN, 1), MTU);
	assert_true(sent.pkt[0].va == BENCH_BASE);
	assert_int_equal(sent.pkt[0].rkey, s.key);
	assert_int_equal(sent.pkt[0].dma_len, 2 * MTU);
}

/* Only the last packet tells the peer's program. */
static void req__solicited(void **state)
{
	(void)state;
	make(WR_SEND, 1, 2 * MTU)->flags |= WQE_SOLICITED;
	posted();
	assert_int_equal(send_all(), 2);
	assert_false(sent.pkt[0].solicited);
	assert_true(sent.pkt[1].solicited);
}

static void req__inline(void **state)
{
	struct wqe *w = make(WR_SEND, 1, 32);

	(void)state;
	w->flags |= WQE_INLINE;
	w->num_sge = 0;
	memset(wqe_inline(w), 0x5a, 32);
	posted();
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(b.seg[0].inl_len, 32);
	assert_int_equal(b.gathers.num, 0);
	for (unsigned i = 0; i < 32; i++)
		assert_int_equal(
			b.bytes[b.seg[0].hdr + b.seg[0].hdr_len - 32 + i],
			0x5a);
	qp_tx_commit(&b, 0);
}

/* A standard peer acknowledges what asks for it: the end of a message and of a burst, and
 * one in sixteen packets. */
static void req__asks_a_standard_peer_for_acks(void **state)
{
	(void)state;
	post(WR_WRITE, 0, MANY * MTU);
	assert_int_equal(send_all(), MANY);
	for (unsigned i = 15; i < MANY; i += 16)
		assert_true(sent.pkt[i].ack_req);
	assert_true(sent.pkt[MANY - 1].ack_req);
	assert_false(sent.pkt[0].ack_req && sent.pkt[1].ack_req);
}

static void req__atomics(void **state)
{
	static const uint8_t op[] = {WR_CMP_SWP, WR_FETCH_ADD};
	static const uint8_t opcode[] = {OP_CMP_SWP, OP_FETCH_ADD};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct wqe *w = make(op[i], i, ATOMIC_BYTES);

		w->compare = COMPARE;
		w->swap_add = SWAP;
		posted();
		assert_int_equal(send_all(), 1);
		check_packet(0, opcode[i], psn_add(PSN, (int32_t)i), 0);
		assert_true(sent.pkt[0].ack_req);
		assert_true(sent.pkt[0].va == BENCH_BASE);
		assert_true(sent.pkt[0].swap_add == SWAP);
		if (op[i] == WR_CMP_SWP)
			assert_true(sent.pkt[0].compare == COMPARE);
	}
}

/* A READ is asked for in chunks, each with its own range. */
static void req__read_in_chunks(void **state)
{
	const uint32_t chunk = 8, len = chunk * MTU + 1;

	(void)state;
	s.qp.req.reads.chunk = chunk;
	post(WR_READ, 0, len);
	assert_int_equal(send_all(), 2);
	check_packet(0, OP_READ_REQ, PSN, 0);
	check_packet(1, OP_READ_REQ, psn_add(PSN, (int32_t)chunk), 0);
	assert_true(sent.pkt[0].va == BENCH_BASE);
	assert_int_equal(sent.pkt[0].dma_len, chunk * MTU);
	assert_true(sent.pkt[1].va == BENCH_BASE + (uint64_t)chunk * MTU);
	assert_int_equal(sent.pkt[1].dma_len, 1);
	assert_int_equal(s.qp.req.reads.out, 2);
	assert_int_equal(s.qp.req.psn.max, psn_add(PSN, (int32_t)chunk + 1));
}

/* --- what keeps requests back -------------------------------------------------- */

static void req__as_many_reads_as_the_peer_takes(void **state)
{
	(void)state;
	s.qp.attr.max_rd_atomic = 2;
	post(WR_READ, 0, 1);
	post(WR_FETCH_ADD, 1, ATOMIC_BYTES);
	post(WR_READ, 2, 1);
	post(WR_SEND, 3, 1);
	assert_int_equal(send_all(), 2);
	check_packet(1, OP_FETCH_ADD, psn_add(PSN, 1), 0);
	s.qp.req.reads.out--; /* one was answered */
	assert_int_equal(send_all(), 2);
	check_packet(0, OP_READ_REQ, psn_add(PSN, 2), 0);
	check_packet(1, OP_SEND_ONLY, psn_add(PSN, 3), 1);
	post(WR_FETCH_ADD, 4, ATOMIC_BYTES);
	assert_int_equal(send_all(), 0);
}

/* IBTA 10.8.3.3: a fence waits for READs and atomics before it. */
static void req__fence(void **state)
{
	(void)state;
	post(WR_READ, 0, 1);
	make(WR_SEND, 1, 1)->flags |= WQE_FENCE;
	posted();
	assert_int_equal(send_all(), 1);
	assert_int_equal(s.qp.req.psn.max, psn_add(PSN, 1));
}

static void req__no_fence_behind_a_send(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	make(WR_SEND, 1, 1)->flags |= WQE_FENCE;
	posted();
	assert_int_equal(send_all(), 2);
}

/* In SQD what began goes on, and nothing begins (IBTA 10.3.1). */
static void req__drained(void **state)
{
	(void)state;
	s.peer.flow.budget = MTU;
	post(WR_SEND, 0, 2 * MTU);
	post(WR_SEND, 1, 1);
	assert_true(qp_tx(&s.qp, &b));
	assert_int_equal(b.nsegs, 1);
	qp_tx_commit(&b, 0);
	s.qp.state = QPS_SQD;
	s.peer.flow.budget = BUDGET;
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_SEND_LAST, psn_add(PSN, 1), MTU);
	s.qp.state = QPS_RTS;
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_SEND_ONLY, psn_add(PSN, 2), 1);
}

/* What moves into the program's memory can be seen there, and what was posted since may
 * answer it: that leaves with headers that say so. A READ answers nothing. */
static void req__an_answer_waits_for_the_commit(void **state)
{
	static uint8_t data[MTU];
	static struct pkt p; /* until the run is committed */

	(void)state;
	bench_receive(&s, 7, 8, MTU);
	p = bench_pkt(&s, OP_SEND_ONLY, PSN);
	p.payload_len = 1;
	qp_rx(&s.qp, &p, (struct payload){.at = data}, &s.run);
	assert_true(s.qp.rx_moving);
	post(WR_READ, 0, 1);
	post(WR_SEND, 1, 1);
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_READ_REQ, PSN, 0);
	s.run.moves.done = s.run.moves.num;
	qp_rx_commit(&s.run);
	assert_true(send_all() > 0);
	check_packet(0, OP_SEND_ONLY, psn_add(PSN, 1), 1);
	assert_int_equal(sent.pkt[0].placed_to, PSN);
}

/* The page of one packet is missing: what is before it leaves, and it does when the page
 * came. */
static void req__page_that_is_missing(void **state)
{
	struct ticket_req asked;
	const uint32_t before = PAGE_BYTES / MTU;

	(void)state;
	spt_unmap(s.mem, page_of(bench_page(1)), 1);
	post(WR_WRITE, 0, PAGE_BYTES + 1);
	assert_int_equal(send_all(), before);
	check_packet(before - 1, OP_WRITE_MIDDLE,
		     psn_add(PSN, (int32_t)before - 1), MTU);
	assert_int_equal(s.qp.req.park_psn, s.qp.req.psn.snd);
	assert_true(ticket_next(s.mem, &asked));
	assert_int_equal(asked.vpn, page_of(bench_page(1)));
	assert_int_equal(send_all(), 0);
	assert_int_equal(s.cnt.v[CNT_retransmits], 0);
	{
		struct list woken;

		list_init(&woken);
		spt_map(s.mem, asked.vpn, asked.pages, true, s.x.now);
		ticket_done(s.mem, asked.id, asked.pages, false, true, 0, 0, 1,
			    s.x.now, &woken);
		wake_all(&woken);
	}
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_WRITE_LAST, psn_add(PSN, (int32_t)before), 1);
}

/* --- what is refused ----------------------------------------------------------- */

/* A key that names nothing: the requests before it go on, those behind it never leave. */
static void req__source_that_may_not_be_read(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	wqe_sge(make(WR_SEND, 1, 1))->lkey = INVALID_KEY;
	posted();
	post(WR_SEND, 2, 1);
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_SEND_ONLY, PSN, 1);
	assert_int_equal(s.qp.state, QPS_RTS);
	assert_true(s.qp.req.failure.known);
	assert_int_equal(s.qp.req.failure.wqe, 1);
	assert_int_equal(s.qp.req.failure.status, WC_LOC_PROT_ERR);
	assert_int_equal(send_all(), 0);
}

static void req__oldest_that_may_not_be_read(void **state)
{
	(void)state;
	wqe_sge(make(WR_SEND, 4, 1))->lkey = INVALID_KEY;
	posted();
	assert_int_equal(send_all(), 0);
	assert_int_equal(s.qp.state, QPS_ERR);
	ends(WC_LOC_PROT_ERR, 4);
}

/* Half of a message leaves when only its end may not be read. */
static void req__end_that_may_not_be_read(void **state)
{
	struct wqe *w = make(WR_SEND, 0, 2 * MTU);
	struct sge *g = wqe_sge(w);

	(void)state;
	w->num_sge = 2;
	g[0].len = MTU;
	g[1] = (struct sge){bench_page(1), MTU, INVALID_KEY};
	posted();
	assert_int_equal(send_all(), 0);
	assert_int_equal(s.qp.state, QPS_ERR);
	ends(WC_LOC_PROT_ERR, 0);
}

static void req__atomic_without_room(void **state)
{
	(void)state;
	post(WR_FETCH_ADD, 1, ATOMIC_BYTES - 1);
	assert_int_equal(send_all(), 0);
	assert_int_equal(s.qp.state, QPS_ERR);
	ends(WC_LOC_LEN_ERR, 1);
}

static void req__invalidates_a_key_of_ours(void **state)
{
	struct mr_attr mr = {.addr = BENCH_BASE,
			     .iova = BENCH_BASE,
			     .length = PAGE_BYTES,
			     .pd = s.pd,
			     .access = ACCESS_LOCAL_WRITE};
	uint32_t key;

	(void)state;
	assert_int_equal(mr_register(s.mem, &mr, &key), 0);
	make(WR_LOCAL_INV, 1, 0)->imm = key;
	posted();
	assert_int_equal(send_all(), 0);
	ends(WC_SUCCESS, 1);
	make(WR_LOCAL_INV, 2, 0)->imm = key;
	posted();
	assert_int_equal(send_all(), 0);
	assert_int_equal(s.qp.state, QPS_ERR);
	ends(WC_MW_BIND_ERR, 2);
	assert_int_equal(mr_free(s.mem, key), 0);
}

/* --- sent again ------------------------------------------------------------------ */

/* After going back each packet is the same, and is counted as sent again, but owed to
 * nobody twice. */
static void req__the_same_again(void **state)
{
	static struct pkt first[5];
	static uint64_t from[5];
	uint32_t out;

	(void)state;
	post(WR_WRITE, 2, 4 * MTU + 5);
	assert_int_equal(send_all(), 5);
	memcpy(first, sent.pkt, sizeof(first));
	memcpy(from, sent.from, sizeof(from));
	out = s.qp.req.charge.out;
	retry_rewind(&s.qp, FLIGHT_TIMEOUT);
	assert_int_equal(s.qp.req.psn.snd, PSN);
	assert_int_equal(send_all(), 5);
	for (unsigned i = 0; i < 5; i++) {
		check_packet(i, first[i].opcode, first[i].psn,
			     first[i].payload_len);
		assert_true(sent.from[i] == from[i]);
	}
	assert_int_equal(s.cnt.v[CNT_retransmits], 5);
	assert_int_equal(s.qp.req.charge.out, out);
	assert_int_equal(s.qp.req.psn.max, psn_add(PSN, 5));
}

/* READs behind one that is executed again are to be executed after it: what came of them
 * is forgotten (IBTA 10.8). */
static void req__reads_behind_one_that_is_read_again(void **state)
{
	static uint8_t data[MTU];
	struct req *r = &s.qp.req;
	struct pkt p;

	(void)state;
	post(WR_READ, 0, MTU);
	post(WR_READ, 1, MTU);
	assert_int_equal(send_all(), 2);
	p = bench_pkt(&s, OP_READ_RESP_ONLY, psn_add(PSN, 1));
	p.payload_len = MTU;
	p.syndrome = AETH_ACK | AETH_CREDIT_INVALID;
	qp_rx(&s.qp, &p, (struct payload){.at = data}, &s.run);
	assert_false(list_empty(&r->win.waiting));
	retry_rewind(&s.qp, FLIGHT_TIMEOUT);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, 0);
	assert_true(list_empty(&r->win.waiting));
	assert_int_equal(r->reads.last_again_to, psn_add(PSN, 2));
}

/* The socket was full: nothing leaves until it has had time, and then from there on. */
static void req__pause_when_the_socket_is_full(void **state)
{
	(void)state;
	post(WR_SEND, 0, 1);
	assert_true(qp_tx(&s.qp, &b));
	qp_tx_commit(&b, -EAGAIN);
	assert_int_equal(send_all(), 0);
	s.x.now += PAUSE_FULL_NS - 1;
	qp_timeout(&s.qp);
	assert_int_equal(send_all(), 0);
	s.x.now++;
	timerq_set(&s.x.timers, &s.qp.timer, TIME_NEVER);
	qp_timeout(&s.qp);
	assert_int_equal(send_all(), 1);
	check_packet(0, OP_SEND_ONLY, PSN, 1);
	assert_int_equal(s.cnt.v[CNT_retransmits], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		BOTH(req__one_packet_up_to_the_mtu),
		BOTH(req__first_middle_last),
		BOTH(req__last_without_a_byte_more),
		BOTH(req__solicited),
		BOTH(req__inline),
		STANDARD(req__asks_a_standard_peer_for_acks),
		BOTH(req__atomics),
		BOTH(req__read_in_chunks),
		BOTH(req__as_many_reads_as_the_peer_takes),
		BOTH(req__fence),
		BOTH(req__no_fence_behind_a_send),
		NOPIN(req__drained),
		NOPIN(req__an_answer_waits_for_the_commit),
		BOTH(req__page_that_is_missing),
		BOTH(req__source_that_may_not_be_read),
		BOTH(req__oldest_that_may_not_be_read),
		BOTH(req__end_that_may_not_be_read),
		BOTH(req__atomic_without_room),
		BOTH(req__invalidates_a_key_of_ours),
		BOTH(req__the_same_again),
		NOPIN(req__reads_behind_one_that_is_read_again),
		BOTH(req__pause_when_the_socket_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
