/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* ud_test.c: datagrams between two NICs in one process, over the host's loopback:
 * what arrives and how, what does not, and what a program's mistakes cost. Missing
 * pages, loss and order are tested in the simulator (tests/sim/ud.c).
 */
#include "nic/completion.h"
#include "nic/nic.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "side.h"
#include "xport/peer.h"

#include <errno.h>
#include <unistd.h>

enum { QKEY = 0x1234, GRH = 40 };

/* Its requests complete in @cq. */
static void ud_qp_to(struct side *s, struct nic_cq *cq)
{
	struct nic_qp_init init = {.max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = SIDE_SGES,
				   .max_recv_sge = SIDE_SGES,
				   .max_inline = 64,
				   .pd = s->pd,
				   .ud = true,
				   .send_cq = cq,
				   .recv_cq = s->cq,
				   .cookie = s};

	assert_int_equal(nic_qp_create(s->nic, NULL, &init, &s->qp, &s->qpn),
			 0);
	assert_int_equal(init.max_message, s->nic->iface.mtu);
}

static void ud_qp(struct side *s)
{
	ud_qp_to(s, s->cq);
}

static int modify(struct side *s, enum qp_state to, uint32_t mask)
{
	const struct qp_attr a = {
		.state = to, .port = 1, .qkey = QKEY, .sq_psn = 0xfffffe};

	return nic_qp_modify(s->qp, &a, QPA_STATE | mask);
}

static void ready(struct side *s)
{
	assert_int_equal(
		modify(s, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY), 0);
	assert_int_equal(modify(s, QPS_RTR, 0), 0);
	assert_int_equal(modify(s, QPS_RTS, QPA_SQ_PSN), 0);
}

static int open_kind(bool standard)
{
	const struct nic_config cfg = {
		.os = {.addr = "lo", .pagers = 2},
		.entries = 1 << 16,
		.scatter = true,
		.pool_bytes = 1 << 20,
		.standard = standard,
		.strategies = strategy_set(STRATEGY_ADAPTIVE)};

	for (int i = 0; i < SIDES; i++) {
		side_open(&side[i], &cfg);
		assert_int_equal(nic_qp_destroy(side[i].qp), 0);
		ud_qp(&side[i]);
		ready(&side[i]);
	}
	/* nobody repeats a datagram that is passed on too early */
	for (int i = 0; standard && i < SIDES; i++)
		while (!side_served(&side[i]))
			usleep(1000);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return open_kind(false);
}

static int setup_standard(void **state)
{
	(void)state;
	return open_kind(true);
}

static struct wqe_to to(const struct side *s, uint32_t qkey)
{
	struct nic_gid gid;

	assert_int_equal(nic_gid(s->nic, 0, &gid), 0);
	return (struct wqe_to){.dgid = gid.ip,
			       .local = gid.ip, /* of both */
			       .qpn = s->qpn,
			       .qkey = qkey};
}

/* From side 0 to side 1. */
static void post(enum wr_op op, uint64_t id, uint32_t qkey, uint8_t *data,
		 uint32_t len)
{
	side_post(&side[0],
		  (struct wqe){.op = op,
			       .wr_id = id,
			       .imm = 0xabcd,
			       .to = to(&side[1], qkey)},
		  data, len);
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* Until side 1 counted it. */
static void wait_count(enum counter c, uint64_t n)
{
	const uint64_t end = os_now(side[1].nic->os) + UINT64_C(10000000000);
	struct counters cnt;
	struct cqe e;

	do {
		assert_int_equal(nic_cq_poll(side[1].cq, 1, &e), 0);
		nic_counters(side[1].nic, &cnt);
		assert_true(os_now(side[1].nic->os) < end);
	} while (cnt.v[c] < n);
	assert_int_equal(cnt.v[c], n);
}

static void check_grh(const uint8_t *grh, uint32_t len)
{
	static const uint8_t none[20], lo[4] = {127, 0, 0, 1};
	const uint8_t *ip = grh + 20;
	uint32_t total = 20 + 8 + 20 + ((len + 3) & ~3u) + 4;

	assert_memory_equal(grh, none, sizeof(none));
	assert_int_equal(ip[0], 0x45);
	assert_int_equal(ip[2] << 8 | ip[3], total);
	assert_int_equal(ip[9], 17);
	assert_memory_equal(ip + 12, lo, 4);
	assert_memory_equal(ip + 16, lo, 4);
}

static void send__arrives_behind_its_grh(void **state)
{
	const uint32_t sizes[] = {0, 1, 3, 4, 63, 1000, side[0].nic->iface.mtu};
	uint8_t *in = side[1].buf + 5;

	(void)state;
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		const uint32_t n = sizes[i];
		struct cqe e;

		fill(side[0].buf, n, i);
		memset(side[1].buf, 0xee, 8192);
		side_recv(&side[1], in, 8000, 1 + i % SIDE_SGES);
		post(WR_SEND, i, QKEY, side[0].buf, n);
		e = side_cqe(&side[0]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.wr_id, i);
		e = side_cqe(&side[1]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_int_equal(e.op, WR_RECV);
		assert_int_equal(e.byte_len, n + GRH);
		assert_int_equal(e.qpn, side[1].qpn);
		assert_int_equal(e.src_qpn, side[0].qpn);
		assert_int_equal(e.flags, CQE_GRH | CQE_IP4);
		check_grh(in, n);
		assert_memory_equal(in + GRH, side[0].buf, n);
		assert_int_equal(in[GRH + n], 0xee);
	}
}

static void send__inline_with_immediate_data(void **state)
{
	struct wqe *slot;
	struct cqe e;

	(void)state;
	side_recv(&side[1], side[1].buf, 100, 1);
	assert_int_equal(nic_send_begin(side[0].qp), 0);
	slot = nic_send_slot(side[0].qp);
	*slot = (struct wqe){.op = WR_SEND_IMM,
			     .flags = WQE_SIGNALED | WQE_INLINE,
			     .imm = 0x11223344,
			     .length = 5,
			     /* with its highest bit set: the QP's own */
			     .to = to(&side[1], UINT32_C(1) << 31)};
	memcpy(wqe_inline(slot), "12345", 5);
	nic_send_publish(side[0].qp);
	nic_send_end(side[0].qp);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	e = side_cqe(&side[1]);
	assert_int_equal(e.byte_len, 45);
	assert_int_equal(e.flags, CQE_GRH | CQE_IP4 | CQE_IMM);
	assert_int_equal(e.imm, 0x11223344);
	assert_memory_equal(side[1].buf + GRH, "12345", 5);
}

/* More than fit one burst, of changing sizes. */
static void send__in_order(void **state)
{
	(void)state;
	for (unsigned i = 0; i < DEPTH; i++)
		side_recv(&side[1], side[1].buf + (size_t)i * 4096, 4096, 1);
	for (unsigned i = 0; i < DEPTH; i++) {
		uint8_t *p = side[0].buf + (size_t)i * 4096;

		fill(p, 1000, i);
		post(WR_SEND, i, QKEY, p, 500 + i * 37 % 500);
	}
	for (unsigned i = 0; i < DEPTH; i++) {
		const uint8_t *p = side[1].buf + (size_t)i * 4096;
		const uint32_t n = 500 + i * 37 % 500;

		assert_int_equal(side_cqe(&side[1]).byte_len, n + GRH);
		assert_memory_equal(p + GRH, side[0].buf + (size_t)i * 4096, n);
		assert_int_equal(side_cqe(&side[0]).wr_id, i);
	}
}

static void send__who_has_the_wrong_key_is_not_heard(void **state)
{
	(void)state;
	side_recv(&side[1], side[1].buf, 100, 1);
	post(WR_SEND, 0, QKEY + 1, side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	wait_count(CNT_drop_qkey, 1);
	post(WR_SEND, 0, QKEY, side[0].buf, 8);
	assert_int_equal(side_cqe(&side[1]).byte_len, 48);
}

static void send__without_a_receive_it_is_lost(void **state)
{
	(void)state;
	post(WR_SEND, 0, QKEY, side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	wait_count(CNT_drop_no_recv, 1);
}

/* And the receive is there for the next one. */
static void send__longer_than_the_receive_it_is_lost(void **state)
{
	struct cqe e;

	(void)state;
	side_recv(&side[1], side[1].buf, GRH + 8, 1);
	memset(side[1].buf, 0xee, 100);
	post(WR_SEND, 0, QKEY, side[0].buf, 9);
	wait_count(CNT_drop_recv_short, 1);
	assert_int_equal(side[1].buf[0], 0xee);
	post(WR_SEND, 0, QKEY, side[0].buf, 8);
	e = side_cqe(&side[1]);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.byte_len, GRH + 8);
}

/* What fails ends sending, not receiving, until the program says so. */
static void send__of_foreign_memory_ends_sending(void **state)
{
	struct wqe wqe = {.op = WR_SEND, .to = to(&side[1], QKEY)};
	const struct sge bad = {(uintptr_t)side[0].buf, 8, ~side[0].key};

	(void)state;
	side_post_sge(&side[0], wqe, bad);
	side_ended(&side[0], WC_LOC_PROT_ERR, CAUSE_ACCESS);
	assert_int_equal(side_query(&side[0]).state, QPS_SQE);
	post(WR_SEND, 7, QKEY, side[0].buf, 8);
	side_ended(&side[0], WC_WR_FLUSH_ERR, CAUSE_ACCESS);
	side_recv(&side[0], side[0].buf, 100, 1);
	side_post(&side[1],
		  (struct wqe){.op = WR_SEND, .to = to(&side[0], QKEY)},
		  side[1].buf, 8);
	assert_int_equal(side_cqe(&side[0]).byte_len, 48);
	assert_int_equal(modify(&side[0], QPS_RTS, 0), 0);
	side_recv(&side[1], side[1].buf, 100, 1);
	post(WR_SEND, 8, QKEY, side[0].buf, 8);
	side_ended(&side[0], WC_SUCCESS, CAUSE_NONE);
	assert_int_equal(modify(&side[0], QPS_ERR, 0), 0);
	post(WR_SEND, 9, QKEY, side[0].buf, 8);
	side_ended(&side[0], WC_WR_FLUSH_ERR, CAUSE_NONE);
}

static void send__to_nowhere_fails(void **state)
{
	struct wqe wqe = {.op = WR_SEND, .to = to(&side[1], QKEY)};

	(void)state;
	wqe.to.dgid = (struct ipaddr){{0}};
	side_post(&side[0], wqe, side[0].buf, 8);
	side_ended(&side[0], WC_LOC_QP_OP_ERR, CAUSE_OPERATION);
	assert_int_equal(side_query(&side[0]).state, QPS_SQE);
}

static void receive__in_foreign_memory_ends_the_qp(void **state)
{
	struct wqe *slot;

	(void)state;
	assert_int_equal(nic_recv_begin(side[1].qp), 0);
	slot = nic_recv_slot(side[1].qp);
	*slot = (struct wqe){.length = 100, .num_sge = 1, .wr_id = 3};
	wqe_sge(slot)[0] = (struct sge){(uintptr_t)side[1].buf, 100,
					~side[1].key};
	nic_recv_publish(side[1].qp);
	nic_recv_end(side[1].qp);
	post(WR_SEND, 0, QKEY, side[0].buf, 8);
	side_ended(&side[1], WC_LOC_PROT_ERR, CAUSE_ACCESS);
	assert_int_equal(side_query(&side[1]).state, QPS_ERR);
}

static void modify__takes_what_datagrams_have(void **state)
{
	struct side *s = &side[0];

	(void)state;
	assert_int_equal(modify(s, QPS_RESET, 0), 0);
	assert_int_equal(modify(s, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT),
			 -EINVAL);
	assert_int_equal(
		modify(s, QPS_INIT,
		       QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY | QPA_ACCESS_FLAGS),
		-EINVAL);
	assert_int_equal(
		modify(s, QPS_INIT, QPA_PKEY_INDEX | QPA_PORT | QPA_QKEY), 0);
	assert_int_equal(modify(s, QPS_RTR, QPA_AV), -EINVAL);
	assert_int_equal(modify(s, QPS_RTR, 0), 0);
	assert_int_equal(modify(s, QPS_RTS, 0), -EINVAL);
	assert_int_equal(modify(s, QPS_RTS, QPA_SQ_PSN), 0);
	assert_int_equal(side_query(s).qkey, QKEY);
	assert_int_equal(side_query(s).sq_psn, 0xfffffe);
	assert_int_equal(modify(s, QPS_SQD, 0), 0);
	assert_int_equal(modify(s, QPS_RTS, 0), 0);
}

/* One NIC is asked once who it is, however often it is sent to. */
static void send__asks_once(void **state)
{
	const struct peer *p;

	(void)state;
	for (int i = 0; i < 3; i++) {
		side_recv(&side[1], side[1].buf, 100, 1);
		post(WR_SEND, 0, QKEY, side[0].buf, 8);
		side_cqe(&side[1]);
		if (i == 1) { /* and its QP is not the same any more */
			side_cqe(&side[0]);
			side_cqe(&side[0]);
			assert_int_equal(nic_qp_destroy(side[0].qp), 0);
			ud_qp(&side[0]);
			ready(&side[0]);
		}
	}
	nic_lock(side[0].nic);
	assert_int_equal(side[0].nic->peers.ndests, 1);
	p = list_entry(side[0].nic->peers.dests.next, struct peer, link);
	assert_int_equal(p->hello.tries, 1);
	assert_int_equal(p->kind, PEER_NOPIN);
	assert_int_equal(side[0].nic->x.peers, 0);
	nic_unlock(side[0].nic);
}

/* What is sent to whole networks costs no more than this. */
static void send__to_many_remembers_some(void **state)
{
	enum { MANY = 600, REMEMBERED = 256 };
	struct wqe wqe = {.op = WR_SEND, .to = to(&side[1], QKEY)};

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		wqe.to.qpn = i << 10 | 5;
		side_post(&side[0], wqe, side[0].buf, 8);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_in_range(side[0].nic->peers.ndests, 2, REMEMBERED);
	side_recv(&side[1], side[1].buf, 100, 1);
	post(WR_SEND, 0, QKEY, side[0].buf, 8);
	assert_int_equal(side_cqe(&side[1]).byte_len, 48);
}

/* Datagrams of one burst complete one after the other. The queue that takes only the
 * first of them ends the QP, and each of the others completes once all the same. */
static void send__of_a_burst_into_a_full_queue(void **state)
{
	enum { BURST = 8 };
	struct nic_cq *small;
	struct cqe e;

	(void)state;
	assert_int_equal(nic_qp_destroy(side[0].qp), 0);
	assert_int_equal(
		nic_cq_create(side[0].nic, NULL, NULL, 1, NULL, &small), 0);
	ud_qp_to(&side[0], small);
	ready(&side[0]);
	assert_int_equal(nic_send_begin(side[0].qp), 0);
	for (unsigned i = 0; i < BURST; i++) {
		struct wqe *w = nic_send_slot(side[0].qp);

		assert_non_null(w);
		*w = (struct wqe){.op = WR_SEND,
				  .wr_id = i,
				  .flags = WQE_SIGNALED,
				  .to = to(&side[1], QKEY)};
		nic_send_publish(side[0].qp);
	}
	nic_send_end(side[0].qp);
	while (side_query(&side[0]).state != QPS_ERR)
		assert_true(nic_cq_poll(side[0].cq, 1, &e) >= 0);
	assert_int_equal(side[0].qp->sq.cons, BURST);
	assert_int_equal(nic_qp_destroy(side[0].qp), 0);
	assert_int_equal(nic_cq_destroy(small), 0);
	ud_qp(&side[0]);
}

#define UD_TEST(f) cmocka_unit_test_setup_teardown(f, setup, sides_close)
#define UD_TEST_STANDARD(f)                                                    \
	cmocka_unit_test_setup_teardown(f, setup_standard, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UD_TEST(send__arrives_behind_its_grh),
		UD_TEST_STANDARD(send__arrives_behind_its_grh),
		UD_TEST(send__inline_with_immediate_data),
		UD_TEST(send__in_order),
		UD_TEST_STANDARD(send__in_order),
		UD_TEST(send__who_has_the_wrong_key_is_not_heard),
		UD_TEST(send__without_a_receive_it_is_lost),
		UD_TEST(send__longer_than_the_receive_it_is_lost),
		UD_TEST(send__of_foreign_memory_ends_sending),
		UD_TEST(send__to_nowhere_fails),
		UD_TEST(send__of_a_burst_into_a_full_queue),
		UD_TEST(receive__in_foreign_memory_ends_the_qp),
		UD_TEST(modify__takes_what_datagrams_have),
		UD_TEST(send__asks_once),
		UD_TEST_STANDARD(send__to_many_remembers_some),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
