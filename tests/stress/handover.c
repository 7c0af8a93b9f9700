/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* handover.c [TIMES]: a poster and a poller hand over TIMES times, first while
 * the poller polls, then (a tenth) while it sleeps for events.
 *
 * No operation may wait for a timer. So there is none: the background threads
 * are stopped and the QPs have no ACK timeout. A request that poster and poller
 * both leave to somebody else then never completes, which is noticed.
 */
#include "fixture.h"
#include "nic/background.h"
#include "nic/completion.h"
#include "nic/memory.h"

#include <sched.h>

enum { BUF = 4096, WINDOW = 8, PATIENCE_S = 20 };

static struct nic *nics[SIDES];
static struct end ends[SIDES];
static struct nic_channel *channel;
static uint8_t *buf;
static uint32_t keys[SIDES];
static long posted, completed, goal;
static bool sleeping;

static void take(void)
{
	struct cqe e[WINDOW];
	int n;

	while ((n = nic_cq_poll(ends[0].cq, WINDOW, e)) > 0) {
		for (int i = 0; i < n; i++)
			REQUIRE(e[i].status == WC_SUCCESS);
		__atomic_fetch_add(&completed, n, __ATOMIC_RELEASE);
	}
	REQUIRE(n == 0);
}

static long left(void)
{
	return goal - __atomic_load_n(&completed, __ATOMIC_ACQUIRE);
}

/* The other side: only it moves what arrives at the target and its ACKs. */
static void *target_main(void *arg)
{
	struct cqe e;

	while (left()) {
		REQUIRE(nic_cq_poll(ends[1].cq, 1, &e) == 0);
		sched_yield();
	}
	return arg;
}

static void *poller_main(void *arg)
{
	void *cookie;

	while (left()) {
		if (sleeping) {
			REQUIRE(nic_cq_arm(ends[0].cq, false) == 0);
			take();
			if (!left())
				break;
			REQUIRE(nic_channel_get(channel, &cookie) == 0);
		}
		take();
	}
	return arg;
}

static void wait_for(long n)
{
	uint64_t end = os_now(nics[0]->os) + PATIENCE_S * UINT64_C(1000000000);

	while (goal - left() < n) {
		if (os_now(nics[0]->os) < end) {
			sched_yield();
			continue;
		}
		fprintf(stderr, "%ld posted, %ld completed: one is lost\n",
			posted, goal - left());
		_exit(1);
	}
}

static void run(long times, bool asleep)
{
	struct wqe w = {.op = WR_WRITE,
			.raddr = (uintptr_t)buf + 2048,
			.rkey = keys[1]};
	const uint64_t start = os_now(nics[0]->os);
	pthread_t poller, target;

	posted = completed = 0;
	goal = times;
	sleeping = asleep;
	REQUIRE(pthread_create(&poller, NULL, poller_main, NULL) == 0);
	REQUIRE(pthread_create(&target, NULL, target_main, NULL) == 0);
	while (posted < times) {
		wait_for(posted - posted % WINDOW);
		REQUIRE(fixture_post(ends[0].qp, w, buf, 8, keys[0]) == 1);
		posted++;
	}
	wait_for(times);
	pthread_join(poller, NULL);
	pthread_join(target, NULL);
	printf("%s: %ld times, %.2f us each\n", asleep ? "sleeping" : "polling",
	       times,
	       (double)(os_now(nics[0]->os) - start) / 1e3 / (double)times);
}

int main(int argc, char **argv)
{
	const long times = fixture_arg(argc, argv, 1, 100000);
	int fd;

	for (int i = 0; i < SIDES; i++)
		nics[i] = fixture_nic();
	REQUIRE(nic_channel_open(nics[0], &channel, &fd) == 0);
	fixture_pair(ends, nics, channel, 0);
	buf = fixture_map(BUF);
	memset(buf, 1, BUF);
	for (int i = 0; i < SIDES; i++)
		keys[i] = fixture_reg(nics[i], ends[i].pd, buf, BUF);
	run(100, false); /* who the peer is, is asked with a timer */
	for (int i = 0; i < SIDES; i++)
		background_stop(nics[i]);
	run(times, false);
	run(MAX(times / 10, 1), true);
	for (int i = 0; i < SIDES; i++) {
		__atomic_store_n(&nics[i]->bg.stop, false, __ATOMIC_RELEASE);
		REQUIRE(background_start(nics[i]) == 0);
	}
	for (int i = 0; i < SIDES; i++)
		REQUIRE(nic_mr_dereg(nics[i], keys[i]) == 0);
	fixture_unpair(ends);
	nic_channel_close(channel);
	for (int i = 0; i < SIDES; i++)
		nic_close(nics[i]);
	return 0;
}
