/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* mr_test.c: rights and PD of a region that is in use are changed, and PDs that are
 * in use are not deallocated.
 */
#include "mem/dma.h"
#include "mem/mr.h"
#include "mem/waiter.h"
#include "nic/event_counter.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/progress.h"
#include "nic/suspension.h"
#include "side.h"

#include <errno.h>

enum {
	ALL = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
	      ACCESS_REMOTE_ATOMIC
};

static int setup(void **state)
{
	(void)state;
	sides_open_usual();
	return 0;
}

static struct wqe write_to(const struct side *s)
{
	return (struct wqe){
		.op = WR_WRITE, .raddr = (uintptr_t)s->buf, .rkey = s->key};
}

static void change__holds_for_those_who_know_the_key(void **state)
{
	struct side *s = &side[1];
	uint32_t pd;

	(void)state;
	assert_int_equal(
		nic_mr_change(s->nic, s->key, s->pd, ALL & ~ACCESS_REMOTE_READ),
		0);
	side_post(&side[0], write_to(s), side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(nic_pd_alloc(s->nic, &pd), 0);
	assert_int_equal(nic_mr_change(s->nic, s->key, pd, ALL), 0);
	assert_int_equal(nic_pd_dealloc(s->nic, pd), -EBUSY);
	side_post(&side[0], write_to(s), side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
	assert_int_equal(nic_mr_change(s->nic, s->key, s->pd, ALL), 0);
	assert_int_equal(nic_pd_dealloc(s->nic, pd), 0);
	assert_int_equal(nic_mr_change(s->nic, s->key ^ 0x100, s->pd, ALL),
			 -ENOENT);
	assert_int_equal(nic_mr_change(s->nic, s->key, s->pd, 1 << 30),
			 -EINVAL);
}

/* A move of ours that lasts as long as we like. */
struct moving {
	struct moves moves;
	struct holds holds;
	struct waiter wait;
};

static void move_begin(struct side *s, struct moving *m)
{
	const struct dma d = {.pd = s->pd,
			      .key = s->key,
			      .iova = (uintptr_t)s->buf,
			      .len = 8,
			      .need = ACCESS_REMOTE_WRITE,
			      .write = true,
			      .remote = true,
			      .set = STRATEGY_BIT(STRATEGY_INLINE)};
	const uint64_t now = os_now(s->nic->os);
	static uint8_t from[8];

	*m = (struct moving){.holds.num = 0};
	s->buf[0] = 1;
	nic_lock(s->nic);
	waiter_init(&m->wait, &s->qp->qp);
	moves_reset(&m->moves);
	while (dma_resolve(s->nic->mem, &d, from, 0, now, 0, &m->wait,
			   &m->moves, &m->holds) == V_WAIT) {
		nic_unlock(s->nic);
		os_relax();
		nic_lock(s->nic);
	}
	assert_int_equal(m->holds.num, 1);
	nic_unlock(s->nic);
}

static void move_end(struct side *s, struct moving *m)
{
	nic_lock(s->nic);
	dma_release(s->nic->mem, &m->holds, 0, true, os_now(s->nic->os));
	nic_wake_idle(s->nic);
	nic_unlock(s->nic);
}

static bool taken;

static void *takes_rights(void *arg)
{
	const struct side *s = arg;

	assert_int_equal(
		nic_mr_change(s->nic, s->key, s->pd, ACCESS_LOCAL_WRITE), 0);
	__atomic_store_n(&taken, true, __ATOMIC_RELEASE);
	return NULL;
}

static bool suspended(const struct side *s)
{
	struct nic_suspension out;

	assert_int_equal(nic_mr_suspension(s->nic, s->key, &out), 0);
	return out.suspended;
}

static uint32_t rights(const struct side *s)
{
	struct mr_attr attr;

	assert_int_equal(nic_mr_query(s->nic, s->key, &attr), 0);
	return attr.access;
}

/* It ends when the move has ended, and who came meanwhile waited. */
static void change__waits_for_moves(void **state)
{
	struct side *s = &side[1];
	struct moving m;
	pthread_t thread;

	(void)state;
	move_begin(s, &m);
	pthread_create(&thread, NULL, takes_rights, s);
	while (!suspended(s) && !__atomic_load_n(&taken, __ATOMIC_ACQUIRE))
		os_relax();
	assert_int_equal(rights(s), ALL);
	move_end(s, &m);
	pthread_join(thread, NULL);
	assert_false(suspended(s));
	assert_int_equal(rights(s), ACCESS_LOCAL_WRITE);
	side_post(&side[0], write_to(s), side[0].buf, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
}

/* A suspension of the program's own goes on. */
static void change__of_a_suspended_region(void **state)
{
	struct side *s = &side[1];

	(void)state;
	assert_int_equal(nic_mr_suspend(s->nic, s->key, 0), 0);
	assert_int_equal(
		nic_mr_change(s->nic, s->key, s->pd, ALL & ~ACCESS_REMOTE_READ),
		0);
	assert_true(suspended(s));
	side_post(&side[0], write_to(s), side[0].buf, 8);
	assert_int_equal(nic_mr_resume(s->nic, s->key), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

/* Its number could be given to another one, whose QPs would have what is in it. */
static void dealloc__busy_with_whatever_is_in_it(void **state)
{
	struct nic *nic = side[0].nic;
	struct nic_qp_init init = {.max_send_wr = 1,
				   .max_recv_wr = 1,
				   .send_cq = side[0].cq,
				   .recv_cq = side[0].cq};
	struct mr_attr mr = {.addr = 1, .iova = 1, .length = 1};
	struct nic_counter *counter;
	struct nic_qp *qp;
	uint32_t pd, key, qpn;

	(void)state;
	assert_int_equal(nic_pd_alloc(nic, &pd), 0);
	mr.pd = init.pd = pd;
	assert_int_equal(nic_mr_reg(nic, &mr, &key), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), -EBUSY);
	assert_int_equal(nic_mr_dereg(nic, key), 0);
	assert_int_equal(nic_qp_create(nic, NULL, &init, &qp, &qpn), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), -EBUSY);
	assert_int_equal(nic_qp_destroy(qp), 0);
	assert_int_equal(nic_counter_create(nic, pd, NULL, NULL, &counter), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), -EBUSY);
	assert_int_equal(nic_counter_free(counter), 0);
	assert_int_equal(nic_pd_dealloc(nic, pd), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, sides_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(change__holds_for_those_who_know_the_key),
		TEST(change__waits_for_moves),
		TEST(change__of_a_suspended_region),
		TEST(dealloc__busy_with_whatever_is_in_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
