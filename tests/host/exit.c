/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* exit.c: a program ends as soon as it has seen what it waited for, and destroys
 * nothing: a card would have acknowledged it, and so do we. One after the other,
 * processes exit at the last byte of a WRITE of this one, whose request must
 * complete, with success, although nobody is left there.
 *
 *   exit TIMES
 */
#include "host.h"

enum { LEN = 64 };

static void target(int fd)
{
	volatile uint8_t *at = host_map(NULL, PAGE);
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, (void *)(uintptr_t)at, PAGE);
	link_open(&l, &h, fd, mr);
	while (!at[LEN - 1])
		ibv_poll_cq(h.cq, 1, &wc);
	exit(0);
}

int main(int argc, char **argv)
{
	const int times = argc == 2 ? atoi(argv[1]) : 0;
	struct link l;
	struct host h;
	int *fd;

	host_start();
	REQUIRE(times > 0);
	fd = calloc((size_t)times, sizeof(*fd));
	REQUIRE(fd);
	for (int i = 0; i < times; i++)
		fd[i] = host_fork(target);
	host_open(&h);
	for (int i = 0; i < times; i++) {
		static const uint8_t ones[LEN] = {[0 ... LEN - 1] = 1};

		link_open(&l, &h, fd[i], NULL);
		link_post(&l, IBV_WR_RDMA_WRITE, NULL, ones, LEN, 0);
		REQUIRE_EQ(host_status(&h), IBV_WC_SUCCESS);
		link_close(&l);
	}
	host_close(&h);
	free(fd);
	host_join();
	return 0;
}
