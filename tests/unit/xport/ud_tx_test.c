/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_tx_test.c: datagrams as packets, and which of them share a burst. */
#include "datagrams.h"
#include "ring/cqe.h"
#include "xport/comp.h"

enum { OTHER_QKEY = 8, DEST = 5 << 10 | 3, MTU = 1024, OWN = 0x80000000U };

static struct peer peer; /* until teardown() */

static const struct ipaddr dgid = {{0xfd, [15] = 2}},
			   local = {{0xfd, [15] = 1}};

static int setup_sender(void **state)
{
	const struct endpoint ep = {.ip = dgid, .port = ROCE_PORT};
	struct qp_attr a = {.state = QPS_RTS, .sq_psn = 0xffffff};

	setup(state);
	peer_init(&peer, &ep, &local);
	peer.kind = PEER_STANDARD;
	peer.path.gso = true;
	assert_int_equal(qp_modify(&s.qp, &a, QPA_STATE | QPA_SQ_PSN, NULL), 0);
	s.qp.cfg.qpn = 70;
	spt_map(s.mem, BASE >> PAGE_SHIFT, RECVS, true, 0);
	return 0;
}

/* One datagram, inline. */
static void send_begins(void)
{
	struct wqe *w = wq_reserve(&s.sq);

	*w = (struct wqe){.op = WR_SEND,
			  .flags = WQE_INLINE | WQE_SIGNALED,
			  .length = 4,
			  .to = {.dgid = dgid, .qpn = 5}};
	wq_publish(&s.sq);
	assert_ptr_equal(ud_next(&s.qp), &w->to);
	assert_null(ud_aim(&s.qp, &w->to, &peer));
	assert_null(ud_next(&s.qp));
	assert_true(qp_tx(&s.qp, &s.burst));
	assert_int_equal(s.burst.nsegs, 1);
}

static void send_ends(void)
{
	struct cqe e;

	s.x.now = SECOND;
	assert_true(qp_tx(&s.qp, &s.burst));
	s.x.now = SECOND;
	qp_tx_commit(&s.burst, 0);
	assert_int_equal(cq_take(&s.cq, 2, &e), 1);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(s.qp.req.psn.snd, 0); /* it has wrapped */
	s.x.now = SECOND;
	assert_false(qp_tx(&s.qp, &s.burst));
}

/* Its source could not be read: nothing was sent, and it is tried again. */
static void tx_commit__what_could_not_be_read_is_not_sent(void **state)
{
	(void)state;
	send_begins();
	qp_tx_commit(&s.burst, -EFAULT);
	assert_true(cq_empty(&s.cq));
	send_ends();
}

static void tx_commit__a_full_socket_is_left_alone_for_a_while(void **state)
{
	(void)state;
	send_begins();
	qp_tx_commit(&s.burst, -EAGAIN);
	assert_true(cq_empty(&s.cq));
	assert_false(qp_tx(&s.qp, &s.burst));
	assert_true(s.qp.timer.at_ns < SECOND);
	s.x.now = s.qp.timer.at_ns;
	qp_timeout(&s.qp);
	send_ends();
}

/* --- datagrams ------------------------------------------------------------------- */

static struct wqe *make(uint64_t id, uint32_t len)
{
	struct wqe *w = wq_reserve(&s.sq);

	assert_non_null(w);
	*w = (struct wqe){.wr_id = id,
			  .op = WR_SEND,
			  .flags = WQE_SIGNALED,
			  .length = len,
			  .num_sge = 1,
			  .to = {.dgid = dgid,
				 .local = local,
				 .qpn = DEST,
				 .qkey = OTHER_QKEY}};
	*wqe_sge(w) = (struct sge){BASE + id * PAGE_BYTES, len, s.key};
	return w;
}

static void posted(void)
{
	wq_publish(&s.sq);
	qp_posted(&s.qp);
}

static void post(uint64_t id, uint32_t len)
{
	make(id, len);
	posted();
}

/* The next burst goes to where the oldest datagram does. Return: its packets. */
static unsigned bursts(void)
{
	const struct wqe_to *to = ud_next(&s.qp);

	if (to)
		(void)ud_aim(&s.qp, to, &peer);
	return qp_tx(&s.qp, &s.burst) ? s.burst.nsegs : 0;
}

static void completes(uint64_t id, enum wc_status status, enum wc_cause cause)
{
	struct cqe e;

	assert_int_equal(cq_take(&s.cq, 1, &e), 1);
	assert_int_equal(e.wr_id, id);
	assert_int_equal(e.status, status);
	assert_int_equal(e.vendor_err, cause);
}

static void ud_tx__to_one_nic_in_one_burst(void **state)
{
	static const uint32_t len[] = {MTU, MTU, 1};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		struct wqe *w = make(i, len[i]);

		w->op = i < 2 ? WR_SEND : WR_SEND_IMM;
		w->imm = 9;
		w->flags |= i == 1 ? WQE_SOLICITED : 0;
		w->to.qpn = DEST + i;
		posted();
	}
	assert_int_equal(bursts(), ARRAY_SIZE(len));
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		const struct pkt p = sent_packet(&s.burst, i);

		assert_int_equal(p.opcode,
				 i < 2 ? OP_UD_SEND_ONLY : OP_UD_SEND_ONLY_IMM);
		assert_int_equal(p.imm, i < 2 ? 0 : 9);
		assert_int_equal(p.psn, psn_add(0xffffff, (int32_t)i));
		assert_int_equal(p.qpn, DEST + i);
		assert_int_equal(p.qkey, OTHER_QKEY);
		assert_int_equal(p.src_qpn, 70);
		assert_int_equal(p.payload_len, len[i]);
		assert_int_equal(p.solicited, i == 1);
	}
	assert_true(cq_empty(&s.cq));
	qp_tx_commit(&s.burst, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++)
		completes(i, WC_SUCCESS, CAUSE_NONE);
}

/* What is longer than the first does not fit its burst. */
static void ud_tx__a_longer_one_behind(void **state)
{
	static const uint32_t len[] = {0, 1, MTU - 1, MTU};

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++)
		post(i, len[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++) {
		assert_int_equal(bursts(), i == 2 ? 2 : 1);
		assert_int_equal(sent_packet(&s.burst, 0).payload_len, len[i]);
		i += i == 2; /* both are MTU bytes long, with the pad */
		qp_tx_commit(&s.burst, 0);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(len); i++)
		completes(i, WC_SUCCESS, CAUSE_NONE);
}

/* IBTA 10.2.5: with the highest bit set it is the QP's own. */
static void ud_tx__own_qkey(void **state)
{
	(void)state;
	make(0, 1)->to.qkey = OWN | OTHER_QKEY;
	posted();
	assert_int_equal(bursts(), 1);
	assert_int_equal(sent_packet(&s.burst, 0).qkey, QKEY);
	qp_tx_commit(&s.burst, 0);
}

/* Somewhere else is another burst: another address of either, port, interface or mark. */
static void ud_tx__somewhere_else(void **state)
{
	for (unsigned i = 0; i < 5; i++) {
		struct wqe *w;

		post(0, 1);
		w = make(1, 1);
		if (i == 0)
			w->to.dgid.b[15]++;
		else if (i == 1)
			w->to.local.b[15]++;
		else if (i == 2)
			w->to.qpn += 1 << 10;
		else if (i == 3)
			w->to.scope = 2;
		else
			w->to.mark.tclass = 4;
		posted();
		for (uint64_t id = 0; id < 2; id++) {
			assert_int_equal(bursts(), 1);
			qp_tx_commit(&s.burst, 0);
			completes(id, WC_SUCCESS, CAUSE_NONE);
		}
		teardown(state);
		setup_sender(state);
	}
}

/* It is not known yet who is there: it waits with the peer. */
static void ud_tx__peer_that_is_asked(void **state)
{
	(void)state;
	peer.kind = PEER_PROBING;
	post(0, 1);
	assert_int_equal(bursts(), 0);
	assert_false(list_empty(&peer.stalled));
	peer.kind = PEER_STANDARD;
	assert_int_equal(bursts(), 1);
	qp_tx_commit(&s.burst, 0);
	list_del(&s.qp.on.waiting);
}

/* A request fails, and all behind it, also what is posted later: all say why. What is
 * before it leaves, and receiving goes on. */
static void fails(enum wc_status status, enum wc_cause cause)
{
	post(2, 1);
	assert_int_equal(bursts(), 1);
	qp_tx_commit(&s.burst, 0);
	completes(0, WC_SUCCESS, CAUSE_NONE);
	assert_int_equal(bursts(), 0);
	assert_int_equal(s.qp.state, QPS_SQE);
	completes(1, status, cause);
	completes(2, WC_WR_FLUSH_ERR, cause);
	post(3, 1);
	completes(3, WC_WR_FLUSH_ERR, cause);
	assert_int_equal(bursts(), 0);
	assert_int_equal(s.rq.wq.cons, 0);
	assert_true(cq_empty(&s.cq));
}

static void ud_tx__longer_than_a_packet(void **state)
{
	(void)state;
	post(0, 1);
	post(1, MTU + 1);
	fails(WC_LOC_LEN_ERR, CAUSE_LENGTH);
}

static void ud_tx__source_that_may_not_be_read(void **state)
{
	(void)state;
	post(0, 1);
	wqe_sge(make(1, 1))->lkey++;
	posted();
	fails(WC_LOC_PROT_ERR, CAUSE_ACCESS);
}

/* What is before it leaves; it does when its page came. */
static void ud_tx__page_that_is_missing(void **state)
{
	(void)state;
	spt_unmap(s.mem, (BASE >> PAGE_SHIFT) + 1, 1);
	for (unsigned i = 0; i < 3; i++)
		post(i, 1);
	assert_int_equal(bursts(), 1);
	qp_tx_commit(&s.burst, 0);
	assert_int_equal(bursts(), 0);
	pages_brought(s.mem);
	assert_int_equal(bursts(), 2);
	assert_int_equal(sent_packet(&s.burst, 0).psn, 0);
	qp_tx_commit(&s.burst, 0);
	for (unsigned i = 0; i < 3; i++)
		completes(i, WC_SUCCESS, CAUSE_NONE);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup_sender, teardown)
	const struct CMUnitTest tests[] = {
		T(tx_commit__what_could_not_be_read_is_not_sent),
		T(tx_commit__a_full_socket_is_left_alone_for_a_while),
		T(ud_tx__to_one_nic_in_one_burst),
		T(ud_tx__a_longer_one_behind),
		T(ud_tx__own_qkey),
		T(ud_tx__somewhere_else),
		T(ud_tx__peer_that_is_asked),
		T(ud_tx__longer_than_a_packet),
		T(ud_tx__source_that_may_not_be_read),
		T(ud_tx__page_that_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
