/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lastack_test.c: what the program has seen is acknowledged: before it can say so by
 * other means, and before its connection, or itself, ends.
 */
#include "nic/lock.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "owed.h"

/* The program breaks the connection when its last ACK just met a socket that was
 * full. */
static void lastack__the_last_ack(void **state)
{
	(void)state;
	write_comes();
	owed_meets_full(false);
	leave(QPS_ERR);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* --- the last ACK -------------------------------------------------------------------- */

static struct os *full_os;
static uint64_t full_until;

int __real_os_send(struct os *os, const struct os_tx *tx);
int __wrap_os_send(struct os *os, const struct os_tx *tx);

/* The socket of full_os is full for a while. */
int __wrap_os_send(struct os *os, const struct os_tx *tx)
{
	if (os == full_os && os_now(os) < full_until)
		return -EAGAIN;
	return __real_os_send(os, tx);
}

/* A full send buffer takes 1 ms to leave: 125 kB at 1 Gb/s. */
static void lastack__the_last_ack_and_a_full_millisecond(void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	write_comes();
	full_os = nic->os;
	full_until = os_now(nic->os) + 1000000;
	leave(QPS_ERR);
	full_os = NULL;
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

static struct step *slow_step;
static bool nobody_runs, leaves;

void __real_os_doze(struct os *os, int event_fd, uint64_t deadline_ns);
void __wrap_os_doze(struct os *os, int event_fd, uint64_t deadline_ns);

/* The thread that has slow_step meets a full socket (or, if it @leaves, does not)
 * while another one dozes; on a busy machine neither runs for long at first.
 */
void __wrap_os_doze(struct os *os, int event_fd, uint64_t deadline_ns)
{
	struct nic *nic = side[1].nic;

	if (nobody_runs) {
		deadline_ns += 10 * 1000 * 1000;
		nobody_runs = false;
	} else if (slow_step) {
		nic_lock(nic);
		if (leaves)
			plan_move_commit(nic, slow_step);
		else
			full(nic, slow_step);
		nic_unlock(nic);
		slow_step = NULL;
	}
	__real_os_doze(os, event_fd, deadline_ns);
}

/* Another thread has it, and meets a full socket while the connection breaks. */
static void lastack__the_last_ack_is_out(void **state)
{
	(void)state;
	write_comes();
	slow_step = owed_is_planned(2);
	leave(QPS_ERR);
	assert_null(slow_step);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The program does not end the connection, but itself. */
static void lastack__an_ack_is_out_at_exit(void **state)
{
	(void)state;
	write_comes();
	slow_step = owed_is_planned(2);
	nic_flush(side[1].nic);
	assert_null(slow_step);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

static void lastack__the_last_ack_is_out_and_nobody_runs(void **state)
{
	nobody_runs = true;
	lastack__the_last_ack_is_out(state);
	assert_false(nobody_runs);
}

/* Where packets are lost the last ACK may be, and then nobody is there to say it
 * again: a QP that is destroyed says it three times. */
static void lastack__the_last_ack_again(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++) {
		post(&side[i], WR_WRITE, 64);
		assert_int_equal(wait_cqe(&side[i]).status, WC_SUCCESS);
	}
	for (int lossy = 0; lossy < 2; lossy++) {
		struct side *s = &side[lossy];
		const uint64_t before = s->nic->cnt.v[CNT_acks_tx];

		s->qp->qp.resp.ack.lossy = lossy;
		s->nic->cfg.manual = false; /* as it is in a program */
		assert_int_equal(nic_qp_destroy(s->qp), 0);
		s->nic->cfg.manual = true;
		s->qp = NULL;
		assert_int_equal(s->nic->cnt.v[CNT_acks_tx] - before,
				 2 * lossy);
	}
}

/* --- before a completion ------------------------------------------------------------ */

/* A SEND has come and its completion is there to be taken. */
static void send_completes(void)
{
	struct nic *nic = side[1].nic;

	side_recv(&side[1], side[1].buf, 4096, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	send_all(&side[0]);
	know_pages(&side[1]);
	RECEIVE_UNTIL(resp()->ack.owed);
	assert_false(cq_empty(&side[1].cq->cq));
	assert_true(nic->x.work.ack_peers.next != &nic->x.work.ack_peers);
}

static void take_completion(void)
{
	struct nic *nic = side[1].nic;
	struct cqe e;

	nic->cfg.manual = false; /* as it is in a program */
	assert_int_equal(nic_cq_poll(side[1].cq, 1, &e), 1);
	nic->cfg.manual = true;
	assert_int_equal(e.status, WC_SUCCESS);
}

/* The thread that received it did not come to the ACK yet. */
static void lastack__an_ack_before_its_completion(void **state)
{
	const uint64_t before = side[1].nic->cnt.v[CNT_acks_tx];

	(void)state;
	send_completes();
	assert_int_equal(side[1].nic->cnt.v[CNT_acks_tx], before);
	take_completion();
	assert_int_equal(side[1].nic->cnt.v[CNT_acks_tx], before + 1);
	assert_false(resp()->ack.out || resp()->ack.owed);
}

/* That thread is still about to say that there is something to do. */
static void lastack__an_ack_of_a_commit_under_way(void **state)
{
	struct nic *nic = side[1].nic;
	struct step *rx = &nic->steps.v[3];

	(void)state;
	side_recv(&side[1], side[1].buf, 4096, 1);
	side_post(&side[0], (struct wqe){.op = WR_SEND}, side[0].buf, 64);
	request_is_planned(rx);
	nic->acks.due = 0; /* nothing was owed or left before */
	handoff_take(&nic->engine);
	plan_move_commit(nic, rx);
	take_completion();
	assert_false(resp()->ack.out || resp()->ack.owed);
	finish_receive(nic, rx);
}

/* That thread has it in its hands. */
static void lastack__an_ack_that_is_out_before_its_completion(void **state)
{
	(void)state;
	send_completes();
	slow_step = owed_is_planned(2);
	leaves = true;
	take_completion();
	leaves = false;
	assert_null(slow_step);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

/* The socket takes none: the completion does not wait for it. */
static void lastack__an_ack_that_may_not_leave_before_its_completion(
	void **state)
{
	struct nic *nic = side[1].nic;

	(void)state;
	send_completes();
	full_os = nic->os;
	full_until = os_now(nic->os) + 1000000;
	take_completion();
	assert_true(os_now(nic->os) < full_until);
	full_os = NULL;
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lastack__the_last_ack, setup),
		TEST(lastack__the_last_ack, setup_standard),
		TEST(lastack__an_ack_of_a_commit_under_way, setup),
		TEST(lastack__an_ack_of_a_commit_under_way, setup_standard),
		TEST(lastack__an_ack_before_its_completion, setup),
		TEST(lastack__an_ack_before_its_completion, setup_standard),
		TEST(lastack__an_ack_that_is_out_before_its_completion, setup),
		TEST(lastack__an_ack_that_is_out_before_its_completion,
		     setup_standard),
		TEST(lastack__an_ack_that_may_not_leave_before_its_completion,
		     setup),
		TEST(lastack__the_last_ack_and_a_full_millisecond, setup),
		TEST(lastack__the_last_ack_and_a_full_millisecond,
		     setup_standard),
		TEST(lastack__the_last_ack_is_out, setup),
		TEST(lastack__the_last_ack_is_out, setup_standard),
		TEST(lastack__an_ack_is_out_at_exit, setup),
		TEST(lastack__the_last_ack_is_out_and_nobody_runs, setup),
		TEST(lastack__the_last_ack_again, setup),
		TEST(lastack__the_last_ack_again, setup_standard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
