/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* takeover_test.c: steps of a NIC that overlap, in an order that is chosen here:
 * the NICs are manual, so a thread that is slow is a step that is not called.
 */
#include "nic/impl.h"
#include "xport/impl.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { SIDES = 2, BUF = 1 << 20, DEPTH = 64, LEN = 12 * 4096, TRIES = 2000 };

struct side {
	struct nic *nic;
	struct nic_cq *cq;
	struct nic_qp *qp;
	uint32_t pd, qpn, key;
	uint8_t *buf;
};

static struct side side[SIDES];

static void open_side(struct side *s)
{
	struct nic_config cfg = {.os = {.addr = "lo", .pagers = 1},
				 .entries = 1 << 16,
				 .scatter = true,
				 .manual = true,
				 .pool_bytes = 1 << 20,
				 .strategies = 1u << STRATEGY_REDIRECT};
	struct nic_qp_init init = {.max_send_wr = DEPTH,
				   .max_recv_wr = DEPTH,
				   .max_send_sge = 1,
				   .max_recv_sge = 1};
	struct mr_attr mr = {.length = BUF,
			     .access = ACCESS_LOCAL_WRITE |
				       ACCESS_REMOTE_WRITE |
				       ACCESS_REMOTE_READ};

	assert_int_equal(nic_open(&s->nic, &cfg), 0);
	assert_int_equal(nic_pd_alloc(s->nic, &s->pd), 0);
	assert_int_equal(nic_cq_create(s->nic, NULL, NULL, 256, s, &s->cq), 0);
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->cq;
	assert_int_equal(nic_qp_create(s->nic, NULL, &init, &s->qp, &s->qpn),
			 0);
	s->buf = aligned_alloc(4096, BUF);
	memset(s->buf, 0, BUF);
	mr.pd = s->pd;
	mr.addr = mr.iova = (uintptr_t)s->buf;
	assert_int_equal(nic_mr_reg(s->nic, &mr, &s->key), 0);
}

static void connect_side(struct side *s, const struct side *peer)
{
	struct qp_attr a = {.state = QPS_INIT,
			    .port = 1,
			    .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
			    .path_mtu = 4096,
			    .dest_qpn = peer->qpn,
			    .has_grh = true,
			    .max_rd_atomic = 4,
			    .max_dest_rd_atomic = 4,
			    .retry_cnt = 7,
			    .rnr_retry = 7,
			    .min_rnr_timer = 1};
	const uint32_t mask[] = {QPA_PKEY_INDEX | QPA_PORT | QPA_ACCESS_FLAGS,
				 QPA_AV | QPA_PATH_MTU | QPA_DEST_QPN |
					 QPA_RQ_PSN | QPA_MAX_DEST_RD_ATOMIC |
					 QPA_MIN_RNR_TIMER,
				 QPA_TIMEOUT | QPA_RETRY_CNT | QPA_RNR_RETRY |
					 QPA_SQ_PSN | QPA_MAX_RD_ATOMIC};
	struct nic_gid gid;

	assert_int_equal(nic_gid(peer->nic, 0, &gid), 0);
	a.dgid = gid.ip;
	for (unsigned i = 0; i < ARRAY_SIZE(mask); i++) {
		a.state = QPS_INIT + i;
		assert_int_equal(nic_qp_modify(s->qp, &a, QPA_STATE | mask[i]),
				 0);
	}
}

/* What the NICs of @s know ages within milliseconds: all is ready again. */
static void know_pages(struct side *s)
{
	engine_refresh(s->nic, os_now(s->nic->os));
	spt_map(s->nic->mem, (uintptr_t)s->buf >> PAGE_SHIFT, BUF >> PAGE_SHIFT,
		true, os_now(s->nic->os));
}

static void plan_move_commit(struct nic *nic, struct step *s)
{
	engine_move(nic, s);
	engine_commit(nic, s, os_now(nic->os));
}

static void finish_receive(struct nic *nic, struct step *s)
{
	while (engine_rx_plan(nic, s, os_now(nic->os)))
		plan_move_commit(nic, s);
}

static void send_all(struct side *s)
{
	struct step *step = &s->nic->steps[1];

	while (engine_plan(s->nic, step, true, os_now(s->nic->os)))
		plan_move_commit(s->nic, step);
}

/* All that @s can do now, but what another step is at. */
static void pump(struct side *s)
{
	struct step *step = &s->nic->steps[1];

	while (engine_receive(s->nic, step))
		finish_receive(s->nic, step);
	send_all(s);
}

static struct cqe wait_cqe(struct side *s)
{
	struct cqe e;

	for (int i = 0; i < TRIES; i++) {
		for (int k = 0; k < SIDES; k++)
			pump(&side[k]);
		if (nic_cq_poll(s->cq, 1, &e) == 1)
			return e;
		os_wait(s->nic->os, OS_WAIT_PACKETS,
			os_now(s->nic->os) + 1000000, -1);
	}
	fail_msg("no completion");
	return e;
}

static void post(struct side *s, enum wr_op op, uint32_t len)
{
	const struct side *to = &side[s == side];
	struct wqe *w;

	assert_int_equal(nic_send_begin(s->qp), 0);
	w = nic_send_slot(s->qp);
	assert_non_null(w);
	*w = (struct wqe){.op = op,
			  .flags = WQE_SIGNALED,
			  .length = len,
			  .num_sge = 1,
			  .raddr = (uintptr_t)to->buf + BUF / 2,
			  .rkey = to->key};
	wqe_sge(w)[0] = (struct sge){(uintptr_t)s->buf, len, s->key};
	nic_send_publish(s->qp);
	nic_send_end(s->qp);
}

/* Connected, and the peers know each other. */
static int setup(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++)
		open_side(&side[i]);
	for (int i = 0; i < SIDES; i++)
		connect_side(&side[i], &side[!i]);
	for (int i = 0; i < 2 * SIDES; i++) {
		post(&side[i & 1], i & 2 ? WR_READ : WR_WRITE, LEN);
		assert_int_equal(wait_cqe(&side[i & 1]).status, WC_SUCCESS);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++) {
		struct side *s = &side[i];

		if (s->qp)
			assert_int_equal(nic_qp_destroy(s->qp), 0);
		assert_int_equal(nic_cq_destroy(s->cq), 0);
		assert_int_equal(nic_mr_dereg(s->nic, s->key), 0);
		assert_int_equal(nic_pd_dealloc(s->nic, s->pd), 0);
		nic_close(s->nic);
		free(s->buf);
	}
	return 0;
}

/* @s has a burst received in place by a thread that then sleeps; meanwhile
 * @from sends the same again and another thread of @s takes it; then the first
 * one wakes. */
static void overtake(struct side *s, struct side *from)
{
	struct step *slow = &s->nic->steps[2];

	know_pages(s);
	s->nic->peek = 1;
	assert_true(engine_receive(s->nic, slow));
	assert_ptr_equal(slow->scatter.qp, &s->qp->qp);
	if (from->qp->qp.req.una != from->qp->qp.req.max)
		retry_rewind(&from->qp->qp, FLIGHT_TIMEOUT, 0);
	else
		replay_duplicate(
			&from->qp->qp,
			&(struct pkt){.op = OPF_READ,
				      .psn = slow->scatter.first.psn,
				      .va = (uintptr_t)from->buf + BUF / 2,
				      .rkey = from->key,
				      .dma_len = LEN},
			0);
	send_all(from);
	pump(s);
	finish_receive(s->nic, slow);
}

static void scatter__request_kept_meanwhile_is_placed(void **state)
{
	(void)state;
	memset(side[0].buf, 0x5a, LEN);
	post(&side[0], WR_WRITE, LEN);
	send_all(&side[0]);
	overtake(&side[1], &side[0]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf + BUF / 2, side[0].buf, LEN);
}

static void scatter__response_kept_meanwhile_is_placed(void **state)
{
	(void)state;
	memset(side[1].buf + BUF / 2, 0xa5, LEN);
	post(&side[0], WR_READ, LEN);
	send_all(&side[0]);
	pump(&side[1]);
	overtake(&side[0], &side[1]);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[0].buf, side[1].buf + BUF / 2, LEN);
}

/* Two READs in one run, their pages go away under the moves, and there is no
 * slot to keep the responses in: both READs are made again. */
static void responses_failed__all_are_asked_for_again(void **state)
{
	struct step *step = &side[0].nic->steps[2];
	struct mem *m = side[0].nic->mem;
	int slot[4096], n = 0;

	(void)state;
	for (int i = 0; i < 2; i++)
		post(&side[0], WR_READ, 8);
	send_all(&side[0]);
	pump(&side[1]);
	know_pages(&side[0]);
	side[0].nic->peek = 0;
	assert_true(engine_receive(side[0].nic, step));
	assert_true(engine_rx_plan(side[0].nic, step, os_now(side[0].nic->os)));
	assert_int_equal(step->run.num, 2);
	while (n < 4096 && (slot[n] = slot_get(m)) >= 0)
		n++;
	assert_int_equal(mprotect(side[0].buf, PAGE_BYTES, PROT_NONE), 0);
	plan_move_commit(side[0].nic, step);
	assert_int_equal(
		mprotect(side[0].buf, PAGE_BYTES, PROT_READ | PROT_WRITE), 0);
	while (n--)
		slot_put(m, slot[n]);
	finish_receive(side[0].nic, step);
	for (int i = 0; i < 2; i++)
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* Else 2^23 WRITEs on, a READ's response would look like one that was taken. */
static void comp_placed__response_window_follows_writes(void **state)
{
	const struct req *r = &side[0].qp->qp.req;

	(void)state;
	for (int i = 0; i < 10; i++) {
		post(&side[0], WR_WRITE, 8);
		assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	}
	assert_int_equal(r->win.next, r->una);
}

/* The last QP towards a peer goes while an ACK for that peer is being sent. */
static void engine_plan__ack_keeps_its_peer(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *step = &nic->steps[2];

	(void)state;
	post(&side[0], WR_WRITE, 8);
	send_all(&side[0]);
	assert_true(engine_receive(nic, step));
	finish_receive(nic, step);
	assert_true(engine_plan(nic, step, true, os_now(nic->os)));
	assert_null(step->burst.qp);
	assert_int_equal(nic_qp_destroy(side[1].qp), 0);
	assert_int_equal(nic->npeers, 1);
	plan_move_commit(nic, step);
	assert_int_equal(nic->npeers, 0);
	side[1].qp = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			scatter__request_kept_meanwhile_is_placed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			scatter__response_kept_meanwhile_is_placed, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			responses_failed__all_are_asked_for_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(engine_plan__ack_keeps_its_peer,
						setup, teardown),
		cmocka_unit_test_setup_teardown(
			comp_placed__response_window_follows_writes, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
