/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cancel.c [TIMES]: threads that end or live in unusual ways.
 *  - rping cancels its CQ thread, TIMES times: while it waits for an event it
 *    ends there, anywhere else it goes on to the next wait, and nothing of the
 *    NIC stays locked or taken;
 *  - no other call is a cancellation point, also one that waits for moves;
 *  - a thread that blocks every signal polls while its buffers are unmapped;
 *  - a child polls its parent's CQ.
 */
#include "fixture.h"
#include "nic/completion.h"
#include "nic/lock.h"
#include "nic/memory.h"
#include "nic/pair.h"
#include "nic/post.h"
#include "nic/progress.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

enum { BUF = 64 * 1024, PATIENCE_S = 20 };

static struct nic *nics[SIDES];
static struct end ends[SIDES];
static struct nic_channel *channel;
static uint8_t *buf;
static uint32_t keys[SIDES];
static unsigned long events;

static void post_write(uint32_t len)
{
	struct wqe w = {.op = WR_WRITE,
			.raddr = (uintptr_t)buf + BUF / 2,
			.rkey = keys[1]};

	fixture_post(ends[0].qp, w, buf, len, keys[0]);
}

static void join_soon(pthread_t id, void **ret)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += PATIENCE_S;
	REQUIRE(pthread_timedjoin_np(id, ret, &ts) == 0);
}

/* --- cancellation ---------------------------------------------------------- */

/* What the program's cleanup handlers find is what it left. */
static void none_is_blocked(void *arg)
{
	sigset_t now;

	pthread_sigmask(SIG_BLOCK, NULL, &now);
	for (int sig = 1; sig < SIGRTMIN; sig++)
		REQUIRE(sigismember(&now, sig) != 1);
	(void)arg;
}

/* What the CQ thread of rping does. */
static void *cq_thread(void *arg)
{
	struct cqe e;
	void *cookie;

	pthread_cleanup_push(none_is_blocked, NULL);
	for (;;) {
		pthread_testcancel();
		REQUIRE(nic_channel_get(channel, &cookie) == 0);
		__atomic_fetch_add(&events, 1, __ATOMIC_RELAXED);
		REQUIRE(nic_cq_arm(ends[0].cq, false) == 0);
		while (nic_cq_poll(ends[0].cq, 1, &e) == 1)
			REQUIRE(e.status == WC_SUCCESS);
	}
	pthread_cleanup_pop(0);
	return arg;
}

static void check_unharmed(void)
{
	for (int i = 0; i < SIDES; i++) {
		nic_lock(nics[i]);
		REQUIRE(__atomic_load_n(&nics[i]->sleepers.blocked,
					__ATOMIC_RELAXED) == 0);
		REQUIRE(nics[i]->idle.waiters == 0);
		nic_unlock(nics[i]);
	}
}

static void cancel_cq_thread(long times)
{
	for (long i = 0; i < times; i++) {
		pthread_t id;
		void *ret;

		REQUIRE(nic_cq_arm(ends[0].cq, false) == 0);
		REQUIRE(pthread_create(&id, NULL, cq_thread, NULL) == 0);
		for (long n = i % 8; n; n--) {
			post_write(i % 3 ? 8 : 30000);
			if (i % 5 == 0)
				sched_yield();
		}
		if (i % 4 == 0)
			usleep((useconds_t)(i % 16) * 100);
		REQUIRE(pthread_cancel(id) == 0);
		join_soon(id, &ret);
		REQUIRE(ret == PTHREAD_CANCELED);
		check_unharmed();
	}
	REQUIRE(events > 0);
}

/* A thread that was cancelled before it began comes through all these. */
static void *cancelled_already(void *arg)
{
	struct end *e = arg;
	uint32_t key;
	struct cqe c;

	pthread_cancel(pthread_self());
	for (int i = 0; i < 20; i++) {
		struct end pair[SIDES];

		key = fixture_reg(e->nic, e->pd, buf, BUF);
		post_write(30000);
		nic_cq_poll(e->cq, 1, &c);
		REQUIRE(nic_mr_dereg(e->nic, key) == 0);
		fixture_pair(pair, nics, NULL, 14);
		for (int n = 0; n < 8; n++)
			fixture_post(pair[0].qp,
				     (struct wqe){.op = WR_WRITE,
						  .raddr = (uintptr_t)buf,
						  .rkey = keys[1]},
				     buf, 30000, keys[0]);
		fixture_unpair(pair);
	}
	return e;
}

static void cancel_elsewhere(void)
{
	pthread_t id;
	void *ret;

	REQUIRE(pthread_create(&id, NULL, cancelled_already, &ends[0]) == 0);
	join_soon(id, &ret);
	REQUIRE(ret == &ends[0]);
	check_unharmed();
}

/* --- signals and children -------------------------------------------------- */

static void *deaf_thread(void *arg)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	for (int i = 0; i < 100; i++) {
		uint8_t *mem = fixture_map(BUF);
		struct end e[SIDES];
		uint32_t key[SIDES];
		unsigned got = 0;
		struct cqe c;

		fixture_pair(e, nics, NULL, 14);
		for (int k = 0; k < SIDES; k++)
			key[k] = fixture_reg(nics[k], e[k].pd, mem, BUF);
		memset(mem, 1, BUF); /* present, so that it is used at once */
		for (int n = 0; n < 4; n++) {
			struct wqe w = {.op = n & 1 ? WR_READ : WR_WRITE,
					.raddr = (uintptr_t)mem,
					.rkey = key[1]};

			REQUIRE(fixture_post(e[0].qp, w, mem + BUF / 2, 20000,
					     key[0]) == 1);
			if (n == i % 4)
				REQUIRE(munmap(mem, BUF) == 0);
		}
		while (got < 4) {
			if (nic_cq_poll(e[0].cq, 1, &c) == 1)
				got++;
			REQUIRE(nic_cq_poll(e[1].cq, 1, &c) >= 0);
		}
		for (int k = 0; k < SIDES; k++)
			REQUIRE(nic_mr_dereg(nics[k], key[k]) == 0);
		fixture_unpair(e);
	}
	return arg;
}

static void unmapped_under_deaf_thread(void)
{
	pthread_t id;
	void *ret;

	REQUIRE(pthread_create(&id, NULL, deaf_thread, NULL) == 0);
	join_soon(id, &ret);
}

/* Return: exit status of the child. */
static int child_main(void)
{
	const int before = fcntl(0, F_GETFD);
	struct nic_qp_init init;
	struct qp_attr attr;
	struct cqe e;
	void *cookie;
	uint32_t n;

	nic_channel_close(channel); /* whose number is 0 here */
	return !(fcntl(0, F_GETFD) == before &&
		 nic_cq_poll(ends[0].cq, 1, &e) == -ENODEV &&
		 nic_cq_arm(ends[0].cq, false) == -ENODEV &&
		 nic_channel_get(channel, &cookie) == -ENODEV &&
		 nic_send_begin(ends[0].qp) == -ENODEV &&
		 nic_recv_begin(ends[0].qp) == -ENODEV &&
		 nic_qp_query(ends[0].qp, &attr, &init) == -ENODEV &&
		 nic_qp_modify(ends[0].qp, &attr, 0) == -ENODEV &&
		 nic_qp_destroy(ends[0].qp) == -ENODEV &&
		 nic_mr_dereg(nics[0], keys[0]) == -ENODEV &&
		 nic_pd_alloc(nics[0], &n) == -ENODEV);
}

static void *lock_and_unlock(void *arg)
{
	bool *end = arg;

	while (!__atomic_load_n(end, __ATOMIC_RELAXED)) {
		nic_lock(nics[0]);
		nic_unlock(nics[0]);
	}
	return NULL;
}

/* Also one that was forked while another thread had the engine lock. */
static void child_polls(void)
{
	bool end = false;
	pthread_t id;

	REQUIRE(pthread_create(&id, NULL, lock_and_unlock, &end) == 0);
	for (int i = 0; i < 50; i++) {
		int status;
		pid_t pid = fork();

		REQUIRE(pid >= 0);
		if (pid == 0) {
			alarm(PATIENCE_S);
			_exit(child_main());
		}
		REQUIRE(waitpid(pid, &status, 0) == pid && status == 0);
	}
	__atomic_store_n(&end, true, __ATOMIC_RELAXED);
	pthread_join(id, NULL);
}

/* All that was done to it, and the NIC still works. */
static void still_works(void)
{
	const uint64_t end = os_now(nics[0]->os) + UINT64_C(20000000000);
	struct cqe e;

	while (nic_cq_poll(ends[0].cq, 1, &e) == 1)
		;
	buf[0] = 0x5a;
	buf[BUF / 2] = 0;
	while (fixture_post(ends[0].qp,
			    (struct wqe){.op = WR_WRITE,
					 .wr_id = 4711,
					 .raddr = (uintptr_t)buf + BUF / 2,
					 .rkey = keys[1]},
			    buf, 1, keys[0]) != 1)
		nic_cq_poll(ends[0].cq, 1, &e);
	do {
		REQUIRE(os_now(nics[0]->os) < end);
	} while (nic_cq_poll(ends[0].cq, 1, &e) != 1 || e.wr_id != 4711);
	REQUIRE(e.status == WC_SUCCESS && buf[BUF / 2] == 0x5a);
}

int main(int argc, char **argv)
{
	int fd;

	for (int i = 0; i < SIDES; i++)
		nics[i] = fixture_nic();
	REQUIRE(nic_channel_open(nics[0], &channel, &fd) == 0);
	fixture_pair(ends, nics, channel, 14);
	buf = fixture_map(BUF);
	for (int i = 0; i < SIDES; i++)
		keys[i] = fixture_reg(nics[i], ends[i].pd, buf, BUF);
	/* AddressSanitizer does not survive that a thread is unwound. */
	if (!UNDER_ASAN) {
		cancel_cq_thread(fixture_arg(argc, argv, 1, 1000));
		still_works();
		cancel_elsewhere();
		still_works();
	}
	unmapped_under_deaf_thread();
	child_polls();
	still_works();
	for (int i = 0; i < SIDES; i++)
		REQUIRE(nic_mr_dereg(nics[i], keys[i]) == 0);
	fixture_unpair(ends);
	nic_channel_close(channel);
	for (int i = 0; i < SIDES; i++)
		nic_close(nics[i]);
	return 0;
}
