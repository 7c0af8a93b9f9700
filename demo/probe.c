/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* probe.c: an innocent second connection: every few milliseconds it READs
 * some bytes of a page that is never evicted. An ordinary verbs client.
 *
 *   probe PORT SERIES-FILE
 *
 * The series has a line "ns-when-posted ns-until-completed" for each READ. A
 * READ is posted when it is its time, whether or not earlier ones completed.
 * It polls, and sleeps when that takes long, so as not to starve the others.
 * Ends on SIGTERM, when the READs in flight have completed.
 */
#include "demo.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEPTH = 256, SPIN_US = 200, PERIOD_MS = 8 };

static volatile sig_atomic_t stop;
static uint64_t posted[DEPTH];
static struct hello victim;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct dev dev;
static FILE *series;

static void on_term(int sig)
{
	(void)sig;
	stop = 1;
}

/* Return: how many completed. */
static uint64_t reap(void)
{
	struct ibv_wc wc[16];
	int n = dev_poll(&dev, 16, wc);
	uint64_t now = now_ns();

	for (int i = 0; i < n; i++) {
		const uint64_t t = posted[wc[i].wr_id];

		fprintf(series, "%" PRIu64 " %" PRIu64 "\n", t, now - t);
	}
	return (uint64_t)n;
}

static void probe(void)
{
	const struct ibv_sge sge = {(uintptr_t)mr->addr, PROBE_BYTES, mr->lkey};
	uint64_t sent = 0, done = 0, next = now_ns(), last = next;

	while (!stop || done < sent) {
		if (done == sent)
			sleep_until(next);
		else if (now_ns() - last > (uint64_t)SPIN_US * 1000)
			dev_wait(&dev,
				 next > now_ns() ? next : now_ns() + MS / 10);
		if (!stop && now_ns() >= next && sent - done < DEPTH) {
			last = posted[sent % DEPTH] = now_ns();
			post(qp, IBV_WR_RDMA_READ, sent++ % DEPTH, &sge,
			     victim.page.va, victim.page.rkey);
			next += (uint64_t)PERIOD_MS * MS;
			if (next < now_ns()) /* no bursts to catch up */
				next = now_ns();
		}
		done += reap();
	}
}

int main(int argc, char **argv)
{
	const struct sigaction term = {.sa_handler = on_term};
	struct hello mine = {0};
	int fd;

	if (argc != 3)
		die(0, "usage: probe PORT SERIES-FILE");
	alarm(LIFE_S);
	sigaction(SIGTERM, &term, NULL);
	series = fopen(argv[2], "we");
	if (!series)
		die(errno, "%s", argv[2]);
	dev_open(&dev, DEPTH);
	mr = ibv_reg_mr(dev.pd, aligned_alloc(PAGE, PAGE), PAGE,
			IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		die(errno, "ibv_reg_mr");
	memset(mr->addr, 0, PAGE);
	fd = tcp_connect((uint16_t)number(argv[1]));
	qp = dev_qp(&dev, &mine);
	must_send(fd, &mine, sizeof(mine));
	must_recv(fd, &victim, sizeof(victim));
	dev_connect(&dev, qp, &mine, &victim);
	probe();
	if (fclose(series))
		die(errno, "%s", argv[2]);
	ibv_destroy_qp(qp);
	ibv_dereg_mr(mr);
	dev_close(&dev);
	close(fd);
	return 0;
}
