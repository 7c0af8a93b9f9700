/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* shared_test.c: two connections whose receives come from one queue; what is told when few
 * are left, and when a QP has taken its last one.
 */
#include "nic/async.h"
#include "nic/completion.h"
#include "nic/nic.h"
#include "nic/post.h"
#include "nic/shared.h"
#include "nic/srq.h"
#include "nic/suspension.h"
#include "side.h"
#include "wire/aeth.h"

#include <errno.h>
#include <fcntl.h>

enum { PAIRS = 2, WRS = 8, SGES = 2, BYTES = 64 };

/* Of each pair [0] sends, and [1] receives. */
static struct side by[PAIRS][SIDES];
static struct nic_srq *srq;
static struct nic_async *async;
static int async_fd;
static uint32_t pd, key; /* those of the queue */
static int cookie;

/* It is in another protection domain than its QPs. */
static void srq_open(void)
{
	const struct nic_srq_attr attr = {.max_wr = WRS, .max_sge = SGES};
	struct nic *nic = side[1].nic;
	struct mr_attr mr = {.length = BUF,
			     .access = ACCESS_LOCAL_WRITE,
			     .addr = (uintptr_t)side[1].buf,
			     .iova = (uintptr_t)side[1].buf};

	assert_int_equal(nic_async_open(nic, &async, &async_fd), 0);
	assert_int_equal(fcntl(async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	mr.pd = pd;
	assert_int_equal(nic_mr_reg(nic, &mr, &key), 0);
	assert_int_equal(nic_srq_create(nic, async, pd, &attr, &cookie, &srq),
			 0);
}

static void shared_qp(struct side *s)
{
	struct nic_qp_init init = {.max_send_wr = 1,
				   .max_recv_wr = UINT32_MAX,
				   .max_recv_sge = UINT32_MAX,
				   .srq = srq,
				   .pd = s->pd,
				   .cookie = s};

	assert_int_equal(nic_cq_create(s->nic, NULL, NULL, 64, s, &s->cq), 0);
	init.send_cq = init.recv_cq = s->cq;
	assert_int_equal(nic_qp_create(s->nic, async, &init, &s->qp, &s->qpn),
			 0);
	/* it has none of its own */
	assert_int_equal(init.max_recv_wr, 0);
	assert_int_equal(init.max_recv_sge, 0);
}

static void shared_open(void)
{
	srq_open();
	for (int p = 0; p < PAIRS; p++) {
		by[p][0] = side[0];
		by[p][1] = side[1];
		side_qp(&by[p][0], 64, NULL, NULL);
		shared_qp(&by[p][1]);
		side_connect(&by[p][0], &by[p][1]);
		side_connect(&by[p][1], &by[p][0]);
	}
}

static int setup(void **state)
{
	(void)state;
	sides_open_usual();
	shared_open();
	return 0;
}

/* No NIC takes the other for a nopin. */
static int setup_standard(void **state)
{
	const struct nic_config cfg = {
		.os = {.addr = "lo", .pagers = 2},
		.entries = 1 << 16,
		.pool_bytes = 1 << 20,
		.standard = true,
		.strategies = strategy_set(STRATEGY_REDIRECT)};

	(void)state;
	sides_open(&cfg);
	shared_open();
	return 0;
}

static int teardown(void **state)
{
	assert_int_equal(nic_srq_destroy(srq), -EBUSY);
	for (int p = 0; p < PAIRS; p++)
		for (int i = 0; i < SIDES; i++)
			side_qp_close(&by[p][i]);
	assert_int_equal(nic_pd_dealloc(side[1].nic, pd), -EBUSY);
	assert_int_equal(nic_srq_destroy(srq), 0);
	assert_int_equal(nic_mr_dereg(side[1].nic, key), 0);
	assert_int_equal(nic_pd_dealloc(side[1].nic, pd), 0);
	nic_async_close(async);
	return sides_close(state);
}

/* Return: is there room for it? */
static bool post_with(uint64_t id, uint32_t lkey)
{
	struct wqe *w;

	assert_int_equal(nic_srq_recv_begin(srq), 0);
	w = nic_srq_recv_slot(srq);
	if (w) {
		*w = (struct wqe){.wr_id = id,
				  .op = WR_RECV,
				  .length = BYTES,
				  .num_sge = 1};
		wqe_sge(w)[0] = (struct sge){
			(uintptr_t)side[1].buf + id * BYTES, BYTES, lkey};
		nic_srq_recv_publish(srq);
	}
	nic_srq_recv_end(srq);
	return w != NULL;
}

static bool post(uint64_t id)
{
	return post_with(id, key);
}

static void send(int p, uint8_t what)
{
	memset(side[0].buf, what, BYTES);
	side_post(&by[p][0], (struct wqe){.op = WR_SEND}, side[0].buf, BYTES);
}

static void sent(int p)
{
	assert_int_equal(side_cqe(&by[p][0]).status, WC_SUCCESS);
}

/* Through the pair @p, into receive @id. */
static void receives(int p, uint64_t id)
{
	const uint8_t what = (uint8_t)(0x40 + id);
	struct cqe e;

	send(p, what);
	sent(p);
	e = side_cqe(&by[p][1]);
	assert_int_equal(e.status, WC_SUCCESS);
	assert_int_equal(e.wr_id, id);
	assert_int_equal(e.qpn, by[p][1].qpn);
	assert_int_equal(side[1].buf[id * BYTES], what);
	assert_int_equal(side[1].buf[(id + 1) * BYTES - 1], what);
}

static bool told(struct nic_event *ev)
{
	const int rc = nic_async_get(async, ev);

	assert_true(rc == 0 || rc == -EAGAIN);
	return !rc;
}

static void told_of(enum nic_event_type type, const void *whose)
{
	struct nic_event ev;

	assert_true(side_readable(async_fd, -1));
	assert_true(told(&ev));
	assert_int_equal(ev.type, type);
	assert_ptr_equal(ev.cookie, whose);
	assert_false(side_readable(async_fd, 0));
}

static void receives__of_any_qp(void **state)
{
	(void)state;
	for (uint64_t id = 0; id < WRS; id++)
		assert_true(post(id));
	assert_false(post(WRS));
	receives(1, 0);
	receives(0, 1);
	receives(1, 2);
	receives(1, 3);
	for (uint64_t id = 8; id < 12; id++)
		assert_true(post(id));
	assert_false(post(12));
	for (uint64_t id = 4; id < 12; id++)
		receives(id % PAIRS, id);
}

static void receives__none_is_posted(void **state)
{
	struct counters cnt;
	struct cqe e;

	(void)state;
	send(0, 1);
	do {
		assert_int_equal(nic_cq_poll(by[0][1].cq, 1, &e), 0);
		nic_counters(side[1].nic, &cnt);
	} while (!cnt.v[CNT_rnr_tx]);
	assert_true(post(5));
	sent(0);
	assert_int_equal(side_cqe(&by[0][1]).wr_id, 5);
}

/* Of its own RQ it has none, and may post none. */
static void recv_begin__of_a_qp_that_shares(void **state)
{
	(void)state;
	assert_int_equal(nic_recv_begin(by[0][1].qp), -EINVAL);
}

/* The key has to be of the queue's protection domain, not of the QP's. */
static void receive__of_another_domain(void **state)
{
	struct cqe e;

	(void)state;
	assert_true(post_with(0, side[1].key));
	assert_true(post(1));
	send(0, 1);
	e = side_cqe(&by[0][1]);
	assert_int_equal(e.status, WC_LOC_PROT_ERR);
	assert_int_equal(e.wr_id, 0);
	told_of(NIC_EVENT_QP_LAST_WQE_REACHED, &by[0][1]);
	receives(1, 1);
	side_ended(&by[0][0], WC_REM_OP_ERR,
		   CAUSE_NAK | AETH_NAK | NAK_REMOTE_OPERATION);
}

static uint32_t limit(void)
{
	struct nic_srq_attr attr;

	assert_int_equal(nic_srq_query(srq, &attr), 0);
	assert_int_equal(attr.max_wr, WRS);
	assert_int_equal(attr.max_sge, SGES);
	return attr.limit;
}

static void srq_arm__told_once(void **state)
{
	struct nic_event ev;

	(void)state;
	for (uint64_t id = 0; id < 6; id++)
		assert_true(post(id));
	assert_int_equal(nic_srq_arm(srq, WRS + 1), -EINVAL);
	assert_int_equal(nic_srq_arm(srq, 4), 0);
	assert_int_equal(limit(), 4);
	receives(0, 0);
	receives(1, 1); /* 4 are left */
	assert_false(told(&ev));
	assert_int_equal(limit(), 4);
	receives(0, 2);
	told_of(NIC_EVENT_SRQ_LIMIT_REACHED, &cookie);
	assert_int_equal(limit(), 0);
	receives(1, 3);
	assert_false(told(&ev));
	/* armed anew, with as many as are left */
	assert_int_equal(nic_srq_arm(srq, 2), 0);
	assert_false(told(&ev));
	receives(1, 4);
	told_of(NIC_EVENT_SRQ_LIMIT_REACHED, &cookie);
	/* with fewer, and none, it is told at once */
	assert_int_equal(nic_srq_arm(srq, 2), 0);
	assert_int_equal(limit(), 0);
	told_of(NIC_EVENT_SRQ_LIMIT_REACHED, &cookie);
	receives(1, 5);
	assert_int_equal(nic_srq_arm(srq, 1), 0);
	told_of(NIC_EVENT_SRQ_LIMIT_REACHED, &cookie);
	assert_false(told(&ev));
	/* disarmed */
	assert_true(post(6));
	assert_int_equal(nic_srq_arm(srq, 1), 0);
	assert_int_equal(limit(), 1);
	assert_int_equal(nic_srq_arm(srq, 0), 0);
	receives(0, 6);
	assert_false(told(&ev));
}

static void to(struct side *s, enum qp_state state)
{
	const struct qp_attr a = {.state = state};

	assert_int_equal(nic_qp_modify(s->qp, &a, QPA_STATE), 0);
}

/* Exactly once, whatever the cause, and however often it is failed. */
static void last_wqe__told_once(void **state)
{
	struct nic_event ev;
	struct cqe e;

	(void)state;
	assert_true(post(0));
	to(&by[0][1], QPS_ERR);
	told_of(NIC_EVENT_QP_LAST_WQE_REACHED, &by[0][1]);
	to(&by[0][1], QPS_ERR);
	assert_false(told(&ev));
	/* what was posted is not its own to flush */
	assert_int_equal(nic_cq_poll(by[0][1].cq, 1, &e), 0);
	receives(1, 0);
	/* never used, and in ERR again */
	to(&by[0][1], QPS_RESET);
	assert_false(told(&ev));
	to(&by[0][1], QPS_ERR);
	told_of(NIC_EVENT_QP_LAST_WQE_REACHED, &by[0][1]);
	/* and twice before any is fetched */
	for (int i = 0; i < 2; i++) {
		to(&by[0][1], QPS_RESET);
		to(&by[0][1], QPS_ERR);
	}
	for (int i = 0; i < 2; i++) {
		assert_true(told(&ev));
		assert_int_equal(ev.type, NIC_EVENT_QP_LAST_WQE_REACHED);
	}
	assert_false(told(&ev));
	assert_false(side_readable(async_fd, 0));
}

/* One with receives of its own is flushed, and that is how its end is known. */
static void last_wqe__not_of_a_qp_with_its_own(void **state)
{
	struct nic_qp_init init = {.max_recv_wr = 1,
				   .pd = side[1].pd,
				   .send_cq = by[0][1].cq,
				   .recv_cq = by[0][1].cq};
	struct side s = side[1];
	struct nic_event ev;

	(void)state;
	assert_int_equal(nic_qp_create(s.nic, async, &init, &s.qp, &s.qpn), 0);
	to(&s, QPS_ERR);
	assert_false(told(&ev));
	assert_int_equal(nic_qp_destroy(s.qp), 0);
}

/* Of datagrams nothing is sent back, and no thread has anything to do after it. */
static void srq_arm__told_of_datagrams(void **state)
{
	enum { QKEY = 7, GRH = 40 };
	static const uint32_t mask[] = {[QPS_INIT] = QPA_PKEY_INDEX | QPA_PORT |
						     QPA_QKEY,
					[QPS_RTS] = QPA_SQ_PSN};
	struct side ud[SIDES] = {side[0], side[1]};
	struct wqe w = {.op = WR_SEND};
	struct nic_gid gid;
	struct cqe e;

	(void)state;
	for (int i = 0; i < SIDES; i++) {
		struct nic_qp_init init = {.max_send_wr = 1,
					   .max_send_sge = 1,
					   .srq = i ? srq : NULL,
					   .ud = true,
					   .pd = ud[i].pd,
					   .send_cq = by[0][i].cq,
					   .recv_cq = by[0][i].cq};
		struct qp_attr a = {.port = 1, .qkey = QKEY};

		assert_int_equal(nic_qp_create(ud[i].nic, NULL, &init,
					       &ud[i].qp, &ud[i].qpn),
				 0);
		for (a.state = QPS_INIT; a.state <= QPS_RTS; a.state++)
			assert_int_equal(
				nic_qp_modify(ud[i].qp, &a,
					      QPA_STATE | mask[a.state]),
				0);
	}
	assert_true(post(2));
	receives(
		0,
		2); /* so the page is known, and nothing is to be done for it */
	assert_true(post(0));
	assert_true(post(1));
	assert_int_equal(nic_srq_arm(srq, 2), 0);
	assert_int_equal(nic_gid(ud[1].nic, 0, &gid), 0);
	w.to = (struct wqe_to){.dgid = gid.ip,
			       .local = gid.ip,
			       .qpn = ud[1].qpn,
			       .qkey = QKEY};
	side_post(&ud[0], w, side[0].buf, BYTES - GRH);
	told_of(NIC_EVENT_SRQ_LIMIT_REACHED, &cookie);
	sent(0);
	/* the first was lost if its page was not known */
	for (int i = 1; !nic_cq_poll(by[0][1].cq, 1, &e); i++)
		if (i % 1000 == 0) {
			side_post(&ud[0], w, side[0].buf, BYTES - GRH);
			sent(0);
		}
	assert_int_equal(e.byte_len, BYTES);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_qp_destroy(ud[i].qp), 0);
}

enum { MANY = 1000 };

static void many_qp(struct side *s, struct nic_cq *cq, struct nic_srq *from)
{
	struct nic_qp_init init = {.max_send_wr = 1,
				   .max_send_sge = 1,
				   .srq = from,
				   .pd = s->pd,
				   .send_cq = cq,
				   .recv_cq = cq};

	assert_int_equal(nic_qp_create(s->nic, NULL, &init, &s->qp, &s->qpn),
			 0);
}

/* Each QP sends one message at once, and there are just as many receives. */
static void receives__of_a_thousand_qps(void **state)
{
	static struct side s[MANY][SIDES];
	static bool seen[MANY];
	const struct nic_srq_attr attr = {.max_wr = MANY, .max_sge = 1};
	struct nic_srq *ours = srq;
	struct nic_cq *cq[SIDES];

	(void)state;
	memset(seen, 0, sizeof(seen));
	assert_int_equal(
		nic_srq_create(side[1].nic, NULL, pd, &attr, NULL, &srq), 0);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_cq_create(side[i].nic, NULL, NULL, 4096,
					       NULL, &cq[i]),
				 0);
	for (int p = 0; p < MANY; p++) {
		for (int i = 0; i < SIDES; i++) {
			s[p][i] = side[i];
			many_qp(&s[p][i], cq[i], i ? srq : NULL);
		}
		side_connect(&s[p][0], &s[p][1]);
		side_connect(&s[p][1], &s[p][0]);
		assert_true(post((uint64_t)p));
	}
	for (int p = 0; p < MANY; p++)
		side_post(&s[p][0], (struct wqe){.op = WR_SEND}, side[0].buf,
			  8);
	for (int n = 0; n < MANY; n++) {
		struct side ends[SIDES] = {{.cq = cq[0]}, {.cq = cq[1]}};
		struct cqe e;

		assert_int_equal(side_cqe(&ends[0]).status, WC_SUCCESS);
		e = side_cqe(&ends[1]);
		assert_int_equal(e.status, WC_SUCCESS);
		assert_in_range(e.wr_id, 0, MANY - 1);
		assert_false(seen[e.wr_id]);
		seen[e.wr_id] = true;
	}
	for (int p = 0; p < MANY; p++)
		for (int i = 0; i < SIDES; i++)
			assert_int_equal(nic_qp_destroy(s[p][i].qp), 0);
	for (int i = 0; i < SIDES; i++)
		assert_int_equal(nic_cq_destroy(cq[i]), 0);
	assert_int_equal(nic_srq_destroy(srq), 0);
	srq = ours;
}

/* The QPs are of another protection domain, and their peers cannot be asked to hold: a
 * region of the queue's is not suspended for longer than these bear it. */
static void suspension__of_a_region_of_the_queue(void **state)
{
	struct nic_suspension of_queue, of_qps;

	(void)state;
	assert_int_equal(nic_mr_suspension(side[1].nic, key, &of_queue), 0);
	assert_int_equal(nic_mr_suspension(side[1].nic, side[1].key, &of_qps),
			 0);
	assert_true(of_queue.limit_ns < UINT64_MAX);
	assert_int_equal(of_queue.limit_ns, of_qps.limit_ns);
}

static void create__refuses(void **state)
{
	static const struct nic_srq_attr bad[] = {
		{0, 1, 0}, {NIC_MAX_SRQ_WR + 1, 1, 0}, {1, NIC_MAX_SGE + 1, 0}};
	const struct nic_srq_attr most = {NIC_MAX_SRQ_WR, NIC_MAX_SGE, 0};
	struct nic_srq *other;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(nic_srq_create(side[1].nic, NULL, pd, &bad[i],
						NULL, &other),
				 -EINVAL);
	assert_int_equal(
		nic_srq_create(side[1].nic, NULL, pd, &most, NULL, &other), 0);
	assert_int_equal(nic_srq_destroy(other), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(receives__of_any_qp),
		T(receives__none_is_posted),
		T(recv_begin__of_a_qp_that_shares),
		T(receive__of_another_domain),
		T(srq_arm__told_once),
		T(srq_arm__told_of_datagrams),
		T(last_wqe__told_once),
		T(last_wqe__not_of_a_qp_with_its_own),
		T(receives__of_a_thousand_qps),
		T(create__refuses),
		cmocka_unit_test_setup_teardown(
			suspension__of_a_region_of_the_queue, setup_standard,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
