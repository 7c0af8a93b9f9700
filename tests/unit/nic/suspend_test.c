/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend_test.c: two NICs in one process; a region of one of them is suspended,
 * moved and resumed while the other uses it.
 */
#include "mem/mr.h"
#include "nic/ctl.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/progress.h"
#include "nic/step.h"
#include "nic/suspension.h"
#include "nic/text.h"
#include "os/wait.h"
#include "steps.h"
#include "wire/aeth.h"
#include "wire/ext.h"
#include "wire/opcode.h"
#include "wire/timecode.h"
#include "xport/peer.h"

#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static bool standard;

#define MS UINT64_C(1000000)

static void sides_here(bool manual)
{
	const struct nic_config cfg = {
		.os = {.addr = "lo", .pagers = 4},
		.entries = 1 << 16,
		.scatter = true,
		.pool_bytes = 1 << 18,
		.manual = manual,
		.standard = standard,
		.strategies = strategy_set(STRATEGY_ADAPTIVE)};

	sides_open(&cfg);
}

static int setup_threads(void **state)
{
	(void)state;
	sides_here(false);
	return 0;
}

static int setup_manual(void **state)
{
	(void)state;
	sides_here(true);
	return 0;
}

static void fill(uint8_t *p, size_t n, unsigned seed)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* The NIC's own threads count, too. */
static uint64_t counted(int i, enum counter c)
{
	uint64_t n;

	nic_lock(side[i].nic);
	n = side[i].nic->cnt.v[c];
	nic_unlock(side[i].nic);
	return n;
}

static uint64_t held_until(void)
{
	uint64_t until;

	nic_lock(side[0].nic);
	until = side[0].qp->qp.req.at[REQ_SUSPEND];
	nic_unlock(side[0].nic);
	return until;
}

/* Nothing completes for @ms, which is no condition to wait for. */
static void expect_quiet(unsigned ms)
{
	enum { LONG_MS = 100 };
	uint64_t end = os_now(side[0].nic->os) + ms * MS;
	struct cqe e;

	while (os_now(side[0].nic->os) < end) {
		assert_int_equal(nic_cq_poll(side[0].cq, 1, &e), 0);
		if (ms >= LONG_MS) /* there are other threads for the packets */
			os_wait(side[0].nic->os, OS_WAIT_TIMER,
				os_now(side[0].nic->os) + MS, -1);
	}
}

/* Until @cond, during which nothing completes. */
#define QUIET_UNTIL(cond)                                                      \
	do {                                                                   \
		while (!(cond))                                                \
			expect_quiet(1);                                       \
	} while (0)

/* The first @len bytes of both regions. */
static void use(enum wr_op op, uint32_t len)
{
	side_post(&side[0],
		  (struct wqe){.op = op,
			       .raddr = (uintptr_t)side[1].buf,
			       .rkey = side[1].key},
		  side[0].buf, len);
}

static struct nic_suspension query(struct side *s)
{
	struct nic_suspension q;

	assert_int_equal(nic_mr_suspension(s->nic, s->key, &q), 0);
	return q;
}

/* As much as there is credit for is redirected. */
static void suspend__writes_wait(void **state)
{
	const uint32_t len = BUF / 2;
	struct nic_suspension q;

	(void)state;
	fill(side[0].buf, len, 1);
	assert_int_equal(nic_mr_suspend(side[1].nic, side[1].key, 1000 * MS),
			 0);
	use(WR_WRITE, len);
	QUIET_UNTIL(counted(1, CNT_suspend_waits) &&
		    query(&side[1]).held == !standard);
	expect_quiet(100);
	for (uint32_t i = 0; i < len; i++)
		assert_int_equal(side[1].buf[i], 0);
	q = query(&side[1]);
	assert_true(q.suspended && q.held == !standard);
	assert_true(q.since_ns >= 100 * MS);
	assert_int_equal(q.expected_ns, 1000 * MS);
	assert_int_equal(nic_mr_resume(side[1].nic, side[1].key), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[1].buf, side[0].buf, len);
	q = query(&side[1]);
	assert_false(q.suspended || q.held);
	assert_true(q.pause_ns >= 100 * MS && q.pause_ns < 10000 * MS);
	if (standard)
		return;
	assert_true(counted(1, CNT_fault_redirect));
	assert_true(counted(0, CNT_suspend_heard));
	assert_int_equal(counted(0, CNT_suspend_silence), 0);
	assert_int_equal(held_until(), TIME_NEVER);
}

/* A READ of it is answered when it is resumed; one into it waits here. */
static void suspend__reads_wait(void **state)
{
	(void)state;
	for (int i = 0; i < SIDES; i++) {
		fill(side[1].buf, 100000, (unsigned)i + 5);
		assert_int_equal(nic_mr_suspend(side[i].nic, side[i].key, 0),
				 0);
		use(WR_READ, 100000);
		QUIET_UNTIL(counted(i, CNT_suspend_waits));
		expect_quiet(50);
		assert_int_equal(nic_mr_resume(side[i].nic, side[i].key), 0);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		assert_memory_equal(side[0].buf, side[1].buf, 100000);
	}
	assert_true(counted(1, CNT_fault_park));
}

/* All that both can do now, and time for a pager. */
static void pump_both(void)
{
	for (int k = 0; k < SIDES; k++)
		pump(&side[k]);
	idle(side[0].nic);
}

static bool busy(const struct qp *qp)
{
	return qp->req.probe.asked || qp->resp.ack.owed;
}

/* Until there is nothing more to do and nothing on its way: whatever the peer has
 * said so far would be news to who is held. */
static void settle(void)
{
	uint64_t came, before;
	int i = 0;

	do {
		assert_true(i++ < TRIES);
		before = counted(0, CNT_rx_packets) +
			 counted(1, CNT_rx_packets);
		pump_both();
		came = counted(0, CNT_rx_packets) + counted(1, CNT_rx_packets);
	} while (came != before || busy(&side[0].qp->qp) ||
		 busy(&side[1].qp->qp));
}

/* It is told of the end; nobody has to ask, which would be a second later. */
static void suspend__end_is_said(void **state)
{
	struct nic *nic = side[0].nic;
	const struct req *r = &side[0].qp->qp.req;
	uint16_t question;

	(void)state;
	if (standard)
		skip();
	assert_int_equal(
		nic_mr_suspend(side[1].nic, side[1].key, 600 * 1000 * MS), 0);
	use(WR_READ, 8);
	for (int i = 0; i < TRIES && !deadline_waits(r->at[REQ_SUSPEND]); i++)
		pump_both();
	assert_true(deadline_waits(r->at[REQ_SUSPEND]));
	settle();
	question = r->probe.question;
	assert_int_equal(nic_mr_resume(side[1].nic, side[1].key), 0);
	for (int i = 0; i < TRIES && deadline_waits(r->at[REQ_SUSPEND]); i++) {
		pump(&side[1]);
		if (inlet_receive(nic, &nic->steps.v[1]))
			finish_receive(nic, &nic->steps.v[1]);
	}
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
	assert_int_equal(r->probe.question, question);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
}

static void suspend__sends_wait(void **state)
{
	(void)state;
	fill(side[0].buf, 5000, 3);
	for (int i = 0; i < SIDES; i++) {
		memset(side[1].buf, 0, 5000);
		assert_int_equal(nic_mr_suspend(side[i].nic, side[i].key, 0),
				 0);
		side_recv(&side[1], side[1].buf, 5000, 1);
		use(WR_SEND, 5000);
		QUIET_UNTIL(counted(i, CNT_suspend_waits));
		expect_quiet(30);
		assert_int_equal(nic_mr_resume(side[i].nic, side[i].key), 0);
		assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
		assert_int_equal(side_cqe(&side[1]).status, WC_SUCCESS);
		assert_memory_equal(side[1].buf, side[0].buf, 5000);
	}
}

/* Longer than a dead peer would be believed to live. */
static void suspend__no_timeout(void **state)
{
	uint64_t acks;

	(void)state;
	if (standard)
		skip();
	assert_int_equal(nic_mr_suspend(side[1].nic, side[1].key, 0), 0);
	use(WR_WRITE, 4096);
	QUIET_UNTIL(counted(0, CNT_suspend_heard));
	acks = counted(0, CNT_acks_tx);
	expect_quiet(3000);
	acks = counted(0, CNT_acks_tx) - acks;
	assert_int_equal(nic_mr_resume(side[1].nic, side[1].key), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_int_equal(counted(0, CNT_timeouts), 0);
	assert_int_equal(counted(0, CNT_rnr_rx), 0);
	/* it asks now and then, no more */
	assert_in_range(acks, 2, 12);
}

/* More than half its timeout, after which a page would be an RNR. */
static void suspend__standard_hears_nothing(void **state)
{
	(void)state;
	if (!standard)
		skip();
	assert_int_equal(nic_mr_suspend(side[1].nic, side[1].key, 0), 0);
	use(WR_WRITE, 8);
	QUIET_UNTIL(counted(1, CNT_suspend_waits));
	expect_quiet(600);
	assert_int_equal(counted(1, CNT_rnr_tx), 0);
	assert_int_equal(nic_mr_resume(side[1].nic, side[1].key), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
}

/* Side 0 hears @flags of side 1, which never said it, or long ago. */
static void forge(uint8_t flags, uint32_t hold_us)
{
	static struct rx_run run;
	struct qp *qp = &side[0].qp->qp;
	struct pkt p = {.opcode = OP_X_ACK,
			.op = opcode_info(OP_X_ACK)->flags,
			.ext = true,
			.syndrome = AETH_ACK | AETH_CREDIT_INVALID,
			.xack_flags = flags,
			.hold_us = hold_us};

	p.psn = p.accepted = psn_add(qp->req.psn.una, PSN_MASK);
	p.credit = qp->peer->flow.budget;
	rx_run_init(&run);
	nic_tick(side[0].nic);
	qp_rx(qp, &p, payload_of_step(NULL), &run);
}

/* For ten minutes; and nobody says that it is over. */
static void hold__false_one_lasts_a_question(void **state)
{
	const struct req *r = &side[0].qp->qp.req;
	uint64_t began;
	uint16_t asked;

	(void)state;
	if (standard)
		skip();
	use(WR_WRITE, 8);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	settle();
	asked = r->probe.question;
	began = os_now(side[0].nic->os);
	forge(XACK_HOLD | XACK_SUSPEND, UINT32_MAX);
	assert_true(req_held(r));
	assert_in_range(r->at[REQ_SUSPEND], began + 600 * 1000 * MS,
			began + 3 * 600 * 1000 * MS + 1000 * MS);
	use(WR_WRITE, 8);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	assert_true(os_now(side[0].nic->os) - began >= 900 * MS);
	assert_int_equal((uint16_t)(r->probe.question - asked), 1);
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
}

/* A question is asked, and there is nobody any more to answer it. */
static void hold__silence_ends_it(void **state)
{
	const struct qp_attr err = {.state = QPS_ERR};
	const struct req *r = &side[0].qp->qp.req;
	uint64_t began;

	(void)state;
	if (standard)
		skip();
	use(WR_WRITE, 8);
	assert_int_equal(wait_cqe(&side[0]).status, WC_SUCCESS);
	settle();
	assert_int_equal(nic_qp_modify(side[1].qp, &err, QPA_STATE), 0);
	began = os_now(side[0].nic->os);
	forge(XACK_SUSPEND, 50000);
	for (int i = 0; i < TRIES && deadline_waits(r->at[REQ_SUSPEND]); i++)
		pump_both();
	assert_false(deadline_waits(r->at[REQ_SUSPEND]));
	assert_int_equal(counted(0, CNT_suspend_silence), 1);
	assert_true(os_now(side[0].nic->os) - began >= 150 * MS);
}

static void suspend__dereg_refuses_who_waits(void **state)
{
	struct mr_attr mr;

	(void)state;
	assert_int_equal(nic_mr_query(side[1].nic, side[1].key, &mr), 0);
	assert_int_equal(nic_mr_suspend(side[1].nic, side[1].key, 0), 0);
	use(WR_WRITE, 8);
	QUIET_UNTIL(counted(1, CNT_suspend_waits));
	expect_quiet(10);
	assert_int_equal(nic_mr_dereg(side[1].nic, side[1].key), 0);
	assert_int_equal(side_cqe(&side[0]).status, WC_REM_ACCESS_ERR);
	assert_int_equal(nic_mr_reg(side[1].nic, &mr, &side[1].key), 0);
}

static void update__other_memory_same_keys(void **state)
{
	uint8_t *other = mmap(NULL, BUF, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct nic *nic = side[1].nic;
	uint32_t key = side[1].key;

	(void)state;
	use(WR_WRITE, 4096);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	fill(side[0].buf, 4096, 77);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)other, BUF),
			 -EINVAL);
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_int_equal(nic_mr_suspend(nic, key, 0), -EINVAL);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)other, BUF - 1),
			 -EINVAL);
	assert_int_equal(nic_mr_update(nic, key, UINT64_MAX - 7, BUF), -EINVAL);
	munmap(other + BUF / 2, 4096);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)other, BUF),
			 -EFAULT);
	assert_ptr_equal(mmap(other + BUF / 2, 4096, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 other + BUF / 2);
	use(WR_WRITE, 4096);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)other, BUF), 0);
	assert_int_equal(nic_mr_resume(nic, key), 0);
	assert_int_equal(nic_mr_resume(nic, key), -EINVAL);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(other, side[0].buf, 4096);
	assert_int_equal(side[1].buf[1], 0);
	/* not moved with a move in it */
	assert_int_equal(nic_mr_suspend(nic, key, 0), 0);
	assert_int_equal(nic_mr_update(nic, key, (uintptr_t)side[1].buf, BUF),
			 0);
	assert_int_equal(nic_mr_resume(nic, key), 0);
	munmap(other, BUF);
}

static void suspension__limit(void **state)
{
	const uint64_t t = ack_timeout_to_ns(17);
	struct nic_suspension q;

	(void)state;
	use(WR_WRITE, 8);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	/* who is not known yet may be a standard peer: the answer to HELLO may
	 * come behind the first request */
	if (!standard)
		QUIET_UNTIL(query(&side[1]).limit_ns == UINT64_MAX);
	q = query(&side[1]);
	/* timeout 17, 7 retries: one is left for what was forgotten */
	assert_int_equal(q.limit_ns, standard ? 7 * t - t / 2 : UINT64_MAX);
	assert_int_equal(
		nic_mr_suspension(side[1].nic, side[1].key ^ 0x100, &q),
		-ENOENT);
}

/* --- from below ----------------------------------------------------------------- */

static struct ctl_answer ask(const char *fmt, uint32_t key)
{
	struct ctl_answer a;
	char req[128];

	snprintf(req, sizeof(req), fmt, key);
	ctl_request(side[1].nic, req, strlen(req), &a);
	return a;
}

static void expect_error(const char *fmt, uint32_t key, const char *want)
{
	struct ctl_answer a = ask(fmt, key);

	assert_null(a.text);
	assert_non_null(strstr(a.error, want));
}

static void expect_text(const char *fmt, uint32_t key, const char *want)
{
	struct ctl_answer a = ask(fmt, key);

	assert_string_equal(a.error, "");
	assert_non_null(a.text);
	assert_int_equal(strlen(a.text), a.len);
	assert_non_null(strstr(a.text, want));
	free(a.text);
}

static void ctl__suspend_and_resume(void **state)
{
	(void)state;
	expect_text("suspend 0x%x 20", side[1].key, "suspended: 1\nlimit_ms: ");
	expect_error("suspend 0x%x", side[1].key, "suspended already");
	assert_int_equal(query(&side[1]).expected_ns, 20 * MS);
	use(WR_WRITE, 8);
	expect_quiet(20);
	expect_text("resume 0x%x", side[1].key, "resumed: 1\npause_us: ");
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	expect_error("resume 0x%x", side[1].key, "not suspended");
	expect_text("suspend all", 0, "suspended: 1\n");
	expect_text("suspend all", 0, "suspended: 0\n");
	expect_text("resume all", 0, "resumed: 1\n");
}

static void ctl__bad(void **state)
{
	(void)state;
	expect_error("suspend", 0, "which region");
	expect_error("suspend 0x%x xx", side[1].key, "how many ms");
	expect_error("suspend 0x%x -1", side[1].key, "how many ms");
	expect_error("suspend 0x%x", side[1].key ^ 0x100, "no region");
	expect_error("suspend key", 0, "'key' is no key");
	expect_error("suspend 0x1%08x", 1, "is no key");
	expect_error("resume", 0, "which region");
	expect_error("move 0x%x", side[1].key, "to what");
	expect_error("move 0x%x elsewhere", side[1].key, "to what");
	expect_error("move 0x%x file relative", side[1].key, "to what");
	expect_error("move 0x%x node x", side[1].key, "to what");
	expect_error("move 0x%x recreate now", side[1].key, "to what");
	expect_error("move all recreate", 0, "no region");
	expect_error("move 0x%x node 1000", side[1].key, "no such node");
	expect_error("move 0x%x file /nowhere/f", side[1].key,
		     "no such directory");
	assert_false(query(&side[1]).suspended);
}

/* Its users are none the wiser. */
static void ctl__move(void **state)
{
	struct ctl_answer a;

	(void)state;
	fill(side[1].buf, BUF, 9);
	a = ask("move 0x%x recreate", side[1].key);
	if (strstr(a.error, "unprivileged_userfaultfd"))
		skip();
	assert_string_equal(a.error, "");
	assert_non_null(strstr(a.text, "moved: 1048576\ncopied: 1048576\n"));
	free(a.text);
	use(WR_READ, BUF / 2);
	assert_int_equal(side_cqe(&side[0]).status, WC_SUCCESS);
	assert_memory_equal(side[0].buf, side[1].buf, BUF / 2);
	/* a region that somebody else suspended stays so */
	assert_int_equal(nic_mr_suspend(side[1].nic, side[1].key, 0), 0);
	expect_text("move 0x%x recreate", side[1].key, "pause_us: 0");
	assert_true(query(&side[1]).suspended);
	assert_int_equal(nic_mr_resume(side[1].nic, side[1].key), 0);
	expect_text("move 0x%x node 0", side[1].key, "copied: 0");
}

int main(void)
{
#define T(name)                                                                \
	cmocka_unit_test_setup_teardown(name, setup_threads, sides_close)
#define M(name) cmocka_unit_test_setup_teardown(name, setup_manual, sides_close)
	const struct CMUnitTest tests[] = {
		T(suspend__writes_wait),
		T(suspend__reads_wait),
		M(suspend__end_is_said),
		T(suspend__sends_wait),
		T(suspend__no_timeout),
		T(suspend__standard_hears_nothing),
		M(hold__false_one_lasts_a_question),
		M(hold__silence_ends_it),
		T(suspend__dereg_refuses_who_waits),
		T(update__other_memory_same_keys),
		T(suspension__limit),
		T(ctl__suspend_and_resume),
		T(ctl__bad),
		T(ctl__move),
	};
	int failed = 0;

	for (int i = 0; i < 2; i++) {
		standard = i;
		failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
