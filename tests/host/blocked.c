/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* blocked.c: the only thread of a program sleeps until its counter rises, and so it is
 * what a packet wakes. The page that this is for was there a moment ago, and does not
 * come now: the thread hangs in it, in a move. Everybody else goes on.
 *
 *   blocked TIMES
 */
#include "host.h"

#include <nopin.h>
#include <pthread.h>

enum { GOES, STAYS, LINKS, ROUNDS = 100 };

static struct slow slow;
static int times;

/* Takes the page away, and gives it back, when the peer says so. */
static void *evict(void *arg)
{
	const int fd = *(int *)arg;

	for (int i = 0; i < times; i++) {
		host_hear(fd);
		slow_hang(&slow);
		slow_evict(&slow, 0, PAGE);
		host_say(fd, 0);
		host_hear(fd);
		slow_release(&slow);
	}
	return NULL;
}

static void sleeper(int fd)
{
	struct nopin_counter *counter;
	struct link l[LINKS];
	pthread_t thread;
	struct ibv_mr *mr;
	struct host h;
	void *base;

	host_open(&h);
	base = host_map(NULL, LINKS * PAGE);
	slow_open(&slow, SLOW_KERNEL, base, PAGE, 0);
	mr = host_reg(&h, base, LINKS * PAGE);
	for (int i = 0; i < LINKS; i++)
		link_open(&l[i], &h, fd, mr);
	REQUIRE(nopin_counter_create(h.pd, NULL, NULL, &counter) == 0);
	host_say(fd, nopin_counter_id(counter));
	REQUIRE(pthread_create(&thread, NULL, evict, &fd) == 0);
	REQUIRE(nopin_counter_wait(counter, 1, UINT64_MAX, NOPIN_WAIT_BLOCK) ==
		0);
	REQUIRE(pthread_join(thread, NULL) == 0);
	host_hear(fd);
	REQUIRE(nopin_counter_destroy(counter) == 0);
	for (int i = 0; i < LINKS; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_close(&h);
}

static void one(struct host *h, struct link *l, int fd)
{
	static const uint64_t word = 1;

	link_post(&l[GOES], IBV_WR_RDMA_WRITE, NULL, &word, 8, 0);
	host_wait(h, 1);
	host_say(fd, 0);
	host_hear(fd);
	link_post(&l[GOES], IBV_WR_RDMA_WRITE, NULL, &word, 8, 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct ibv_wc wc;

		link_post(&l[STAYS], IBV_WR_RDMA_WRITE, NULL, &word, 8, PAGE);
		while (!ibv_poll_cq(h->cq, 1, &wc))
			;
		REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
		REQUIRE_EQ(wc.qp_num, l[STAYS].qp->qp_num);
	}
	host_say(fd, 0);
	host_wait(h, 1);
}

int main(int argc, char **argv)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE};
	struct link l[LINKS];
	struct host h;
	uint32_t counter;
	int fd;

	times = argc == 2 ? atoi(argv[1]) : 0;
	REQUIRE(times > 0);
	host_start();
	fd = host_fork(sleeper);
	host_open(&h);
	for (int i = 0; i < LINKS; i++)
		link_open(&l[i], &h, fd, NULL);
	counter = (uint32_t)host_hear(fd);
	for (int i = 0; i < times; i++)
		one(&h, l, fd);
	REQUIRE(nopin_post_write_notify(l[STAYS].qp, &wr, counter, &bad) == 0);
	host_wait(&h, 1);
	host_say(fd, 0);
	for (int i = 0; i < LINKS; i++)
		link_close(&l[i]);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
	host_join();
	return 0;
}
