/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* incast.c: several senders to one receiver, as fast as they can. The receiver's
 * socket buffer is shared among them: the kernel drops nothing, nothing is sent
 * again, and every byte is right.
 *
 *   incast SENDERS ROUNDS
 *
 * Each round is a WRITE of 256 KiB and one of 64 bytes, then a SEND that says
 * so. Preload tests/verify/stock.so for the buffer that Linux gives by default.
 */
#include "host.h"

#include <string.h>

enum { BIG = 256 * 1024, SMALL = 64, MESSAGE = BIG + SMALL };

static struct {
	uint64_t senders, rounds;
} arg;

static void sender(int fd)
{
	uint8_t *buf = host_map(NULL, MESSAGE);
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, buf, MESSAGE);
	link_open(&l, &h, fd, NULL);
	host_hear(fd);
	for (uint64_t n = 0; n < arg.rounds; n++) {
		host_fill(buf, MESSAGE, n);
		link_post(&l, IBV_WR_RDMA_WRITE, mr, buf, BIG, 0);
		link_post(&l, IBV_WR_RDMA_WRITE, mr, buf + BIG, SMALL, BIG);
		link_post(&l, IBV_WR_SEND, NULL, &n, sizeof(n), 0);
		host_wait(&h, 3);
		host_hear(fd); /* it was looked at */
	}
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	host_no_retries();
}

struct peer {
	int fd;
	struct link l;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint64_t round;
};

static struct ibv_wc next(struct host *h)
{
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(h->cq, 1, &wc)))
		;
	REQUIRE(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static void check(struct peer *p)
{
	const uint64_t n = p->round++;

	REQUIRE(memcmp(p->buf + MESSAGE, &n, sizeof(n)) == 0);
	host_check(p->buf, MESSAGE, n);
}

static void receive(struct host *h, struct peer *peers)
{
	for (uint64_t n = 0; n < arg.senders * arg.rounds; n++) {
		struct ibv_wc wc = next(h);
		struct peer *p = peers;

		while (p->l.qp->qp_num != wc.qp_num)
			p++;
		check(p);
		if (p->round < arg.rounds)
			link_recv(&p->l, p->mr, p->buf + MESSAGE, PAGE);
		host_say(p->fd, n);
	}
}

int main(int argc, char **argv)
{
	struct peer *peers;
	struct host h;

	REQUIRE(argc == 3);
	arg.senders = strtoull(argv[1], NULL, 0);
	arg.rounds = strtoull(argv[2], NULL, 0);
	peers = calloc(arg.senders, sizeof(*peers));
	REQUIRE(peers);
	host_start();
	for (uint64_t i = 0; i < arg.senders; i++)
		peers[i].fd = host_fork(sender);
	host_open(&h);
	for (uint64_t i = 0; i < arg.senders; i++) {
		struct peer *p = &peers[i];

		p->buf = host_map(NULL, MESSAGE + PAGE);
		p->mr = host_reg(&h, p->buf, MESSAGE + PAGE);
		link_open(&p->l, &h, p->fd, p->mr);
		link_recv(&p->l, p->mr, p->buf + MESSAGE, PAGE);
	}
	for (uint64_t i = 0; i < arg.senders; i++)
		host_say(peers[i].fd, 0);
	receive(&h, peers);
	for (uint64_t i = 0; i < arg.senders; i++) {
		link_close(&peers[i].l);
		host_dereg(peers[i].mr);
	}
	host_close(&h);
	host_no_retries();
	host_join();
	free(peers);
	return 0;
}
