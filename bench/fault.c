/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* fault.c: what does a page cost the peer that was never touched? One process
 * WRITEs 4 KiB at a time to another that polls its CQ: to a touched page and to
 * an untouched one, in turns. The CPU's own first touch of such pages is
 * measured before, between and after.
 *
 *   fault [-n PAGES]
 *
 * Prints medians in us. "added" is the median difference of neighbours less
 * the CPU's first touch.
 */
#include "bench.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TOUCHED = 16, ROUNDS = 4, DEPTH = 4, PAGES_MAX = 1 << 20 };

/* Times in us: of WRITEs, of their differences, of the CPU's touches. */
static double warm[PAGES_MAX], cold[PAGES_MAX], more[PAGES_MAX];
static double own[PAGES_MAX];

/* The responder: connects, then for each round touches pages itself, tells how
 * long that took, and polls until the requester says that it is done.
 */
static void touch_own(int peer, unsigned pages)
{
	char *fresh = untouched((size_t)pages * PAGE);
	uint64_t t, before = now_ns();

	for (unsigned i = 0; i < pages; i++) {
		((volatile char *)fresh)[(size_t)i * PAGE] = 1;
		t = now_ns();
		own[i] = (double)(t - before) / 1e3;
		before = t;
	}
	send_all(peer, own, pages * sizeof(*own));
}

static void responder(int peer, unsigned pages)
{
	const size_t bytes = ((size_t)pages * ROUNDS + TOUCHED) * PAGE;
	char *region = untouched(bytes), done;
	struct addr to, mine;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct dev d;

	for (unsigned i = 0; i < TOUCHED; i++)
		region[(size_t)i * PAGE] = 1;
	dev_open(&d, 2 * DEPTH);
	mr = dev_reg(&d, region, bytes);
	if (!mr)
		die(errno, "ibv_reg_mr");
	qp = dev_qp(&d, 1, 1);
	mine = dev_addr(&d, qp, mr);
	send_all(peer, &mine, sizeof(mine));
	recv_all(peer, &to, sizeof(to));
	dev_connect(&d, qp, &to);
	for (int i = 0; i < ROUNDS; i++) {
		touch_own(peer, pages);
		while (recv(peer, &done, 1, MSG_DONTWAIT) < 0)
			for (int k = 0; k < 64; k++)
				dev_poll(&d);
	}
}

static double write_us(struct dev *d, struct ibv_qp *qp,
		       const struct ibv_mr *mr, const struct addr *to,
		       uint64_t page)
{
	const uint64_t t = now_ns();

	dev_write(qp, mr, PAGE, to, page * PAGE);
	while (!dev_poll(d))
		;
	return (double)(now_ns() - t) / 1e3;
}

static void requester(int peer, unsigned pages)
{
	double touch[ROUNDS], mean = 0;
	const size_t all = (size_t)pages * ROUNDS;
	struct addr to, mine;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct dev d;
	size_t n = 0;

	dev_open(&d, 2 * DEPTH);
	mr = dev_reg(&d, untouched(PAGE), PAGE);
	if (!mr)
		die(errno, "ibv_reg_mr");
	qp = dev_qp(&d, DEPTH, 1);
	mine = dev_addr(&d, qp, NULL);
	send_all(peer, &mine, sizeof(mine));
	recv_all(peer, &to, sizeof(to));
	dev_connect(&d, qp, &to);
	for (int r = 0; r < ROUNDS; r++) {
		recv_all(peer, own, pages * sizeof(*own));
		touch[r] = quantile(own, pages, 0.5);
		mean += touch[r] / ROUNDS;
		for (unsigned i = 0; i < pages; i++, n++) {
			warm[n] = write_us(&d, qp, mr, &to, i % TOUCHED);
			cold[n] = write_us(&d, qp, mr, &to, TOUCHED + n);
			more[n] = cold[n] - warm[n];
		}
		send_all(peer, "", 1);
	}
	printf("first touch %.3f\n", quantile(touch, ROUNDS, 0.5));
	printf("touched page %.3f\n", quantile(warm, all, 0.5));
	printf("untouched page %.3f\n", quantile(cold, all, 0.5));
	printf("added %.3f\n", quantile(more, all, 0.5) - mean);
	printf("added p90 %.3f\n", quantile(more, all, 0.9) - mean);
}

int main(int argc, char **argv)
{
	unsigned pages = 2000;
	int link[2], c;
	pid_t child;

	while ((c = getopt(argc, argv, "n:")) != -1)
		if (c == 'n')
			pages = (unsigned)atoi(optarg);
		else
			return 2;
	if (!pages || pages > PAGES_MAX / ROUNDS)
		die(0, "1 to %d pages", PAGES_MAX / ROUNDS);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link))
		die(errno, "socketpair");
	child = fork();
	if (child < 0)
		die(errno, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(link[0]);
		responder(link[1], pages);
		return 0;
	}
	close(link[1]);
	requester(link[0], pages);
	waitpid(child, NULL, 0);
	return 0;
}
