/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cq_test.c: what the work request of a completion met, of both sides. */
#include "mem/spt.h"
#include "nic/lock.h"
#include "nic/progress.h"
#include "steps.h"

#include <errno.h>

static void lose_page(const struct side *s, const uint8_t *at)
{
	spt_unmap(s->nic->mem, page_of((uintptr_t)at), 1);
}

static struct met met_of(const struct side *s, uint64_t back)
{
	struct met met;

	assert_int_equal(nic_cq_met(s->cq, back, &met), 0);
	return met;
}

static void write_64(void)
{
	post(&side[0], WR_WRITE, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

static void nic_cq_met__source_pages(void **state)
{
	struct account *const *a = &side[0].qp->qp.account;
	const uint64_t faults = account_copy(*a).n[ACCT_faults];

	(void)state;
	know_pages(&side[0]);
	know_pages(&side[1]);
	lose_page(&side[0], side[0].buf);
	write_64();
	assert_int_equal(met_of(&side[0], 0).faults, 1);
	assert_true(met_of(&side[0], 0).ns > 0);
	assert_int_equal((*a)->n[ACCT_faults], faults + 1);
	know_pages(&side[0]);
	write_64();
	assert_int_equal(met_of(&side[0], 0).faults, 0);
	assert_int_equal(met_of(&side[0], 0).ns, 0);
	assert_int_equal(met_of(&side[0], 1).faults, 1);
}

static void nic_cq_met__where_a_response_goes(void **state)
{
	(void)state;
	know_pages(&side[0]);
	know_pages(&side[1]);
	lose_page(&side[0], side[0].buf);
	post(&side[0], WR_READ, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(met_of(&side[0], 0).faults, 1);
	assert_true(met_of(&side[0], 0).ns > 0);
}

static void recv_into(struct side *s, uint8_t *at, uint32_t len)
{
	struct wqe *w;

	assert_int_equal(nic_recv_begin(s->qp), 0);
	w = nic_recv_slot(s->qp);
	assert_non_null(w);
	w->wr_id = 77;
	w->num_sge = 1;
	w->length = len;
	wqe_sge(w)[0] = (struct sge){(uintptr_t)at, len, s->key};
	nic_recv_publish(s->qp);
	nic_recv_end(s->qp);
}

/* What the peer's message met is told with the receive, not with the send. */
static void nic_cq_met__receives(void **state)
{
	(void)state;
	know_pages(&side[0]);
	know_pages(&side[1]);
	recv_into(&side[1], side[1].buf + 8192, 64);
	lose_page(&side[1], side[1].buf + 8192);
	post(&side[0], WR_SEND, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(wait_cqe(&side[1]).op, WR_RECV);
	assert_int_equal(met_of(&side[0], 0).faults, 0);
	assert_int_equal(met_of(&side[1], 0).faults, 1);
	assert_true(met_of(&side[1], 0).ns > 0);
	/* and not with the next one */
	know_pages(&side[0]);
	know_pages(&side[1]);
	recv_into(&side[1], side[1].buf + 8192, 64);
	post(&side[0], WR_SEND, 64);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	wait_cqe(&side[1]);
	assert_int_equal(met_of(&side[1], 0).faults, 0);
	assert_int_equal(met_of(&side[1], 1).faults, 1);
}

static void nic_cq_met__not_for_ever(void **state)
{
	struct met met;

	(void)state;
	assert_int_equal(nic_cq_met(side[0].cq, side[0].cq->taken, &met),
			 -ENOENT);
	for (int i = 0; i <= NIC_METS; i++) {
		know_pages(&side[0]);
		know_pages(&side[1]);
		lose_page(&side[0], side[0].buf);
		write_64();
	}
	assert_int_equal(met_of(&side[0], NIC_METS - 1).faults, 1);
	assert_int_equal(nic_cq_met(side[0].cq, NIC_METS, &met), -ENOENT);
}

static void nic_cq_poll__several(void **state)
{
	struct cqe e[4];
	int n = 0;

	(void)state;
	know_pages(&side[0]);
	know_pages(&side[1]);
	for (int i = 0; i < 3; i++) {
		if (i == 1)
			lose_page(&side[0], side[0].buf + 8192);
		post_at(&side[0], WR_WRITE, i == 1 ? 8192 : 0, 64);
	}
	for (int i = 0;
	     i < TRIES && side[0].cq->cq.prod - side[0].cq->cq.cons < 3; i++) {
		pump(&side[0]);
		pump(&side[1]);
		idle(side[0].nic);
	}
	n = nic_cq_poll(side[0].cq, 4, e);
	assert_int_equal(n, 3);
	for (int i = 0; i < n; i++)
		assert_int_equal(met_of(&side[0], (uint64_t)(n - 1 - i)).faults,
				 i == 1);
}

/* What is queued must fit, and stays in order. */
static void nic_cq_resize__as_many_as_are_queued(void **state)
{
	enum { QUEUED = 8 };
	struct cqe e = {.wr_id = 0}, got[QUEUED];
	struct nic_cq *cq;

	(void)state;
	assert_int_equal(
		nic_cq_create(side[0].nic, NULL, NULL, 2 * QUEUED, NULL, &cq),
		0);
	nic_lock(side[0].nic);
	for (; e.wr_id < QUEUED; e.wr_id++)
		assert_int_equal(cq_push(&cq->cq, &e), 0);
	nic_unlock(side[0].nic);
	assert_int_equal(nic_cq_resize(cq, QUEUED - 1, QUEUED - 1), -EINVAL);
	assert_int_equal(nic_cq_resize(cq, QUEUED, QUEUED), 0);
	assert_int_equal(nic_cq_poll(cq, QUEUED, got), QUEUED);
	for (unsigned i = 0; i < QUEUED; i++)
		assert_int_equal(got[i].wr_id, i);
	assert_int_equal(nic_cq_destroy(cq), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			nic_cq_resize__as_many_as_are_queued, setup,
			sides_close),
		cmocka_unit_test_setup_teardown(nic_cq_met__source_pages, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(
			nic_cq_met__where_a_response_goes, setup, sides_close),
		cmocka_unit_test_setup_teardown(nic_cq_met__receives, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(nic_cq_met__not_for_ever, setup,
						sides_close),
		cmocka_unit_test_setup_teardown(nic_cq_poll__several, setup,
						sides_close),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
