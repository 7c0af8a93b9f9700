/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* memory.c: what registration and connections cost.
 *
 *   memory reg    us, median of ibv_reg_mr() of untouched address space
 *   memory qps    bytes of this process that one connected, idle QP takes,
 *                 from the first to the last of a thousand
 *
 * The QPs have queues of one request each way and share a CQ, so what is
 * counted is next to nothing that the program asked for.
 */
#include "bench.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REGISTRATIONS = 500, WARM_QPS = 8, QPS = 1000 };

static void measure_reg(const char *name, size_t bytes)
{
	static double reg[REGISTRATIONS], dereg[REGISTRATIONS];
	char *p = untouched(bytes);
	struct dev d;

	dev_open(&d, 1);
	for (int i = 0; i < REGISTRATIONS; i++) {
		const uint64_t a = now_ns();
		struct ibv_mr *mr = dev_reg(&d, p, bytes);
		const uint64_t b = now_ns();

		if (!mr)
			die(errno, "ibv_reg_mr of %s", name);
		ibv_dereg_mr(mr);
		reg[i] = (double)(b - a) / 1e3;
		dereg[i] = (double)(now_ns() - b) / 1e3;
	}
	printf("reg %s %.3f\n", name, quantile(reg, REGISTRATIONS, 0.5));
	printf("dereg %s %.3f\n", name, quantile(dereg, REGISTRATIONS, 0.5));
	munmap(p, bytes);
}

/* Bytes, from a line of /proc/self/status. */
static double status_bytes(const char *name)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[128];
	double kb = -1;

	if (!f)
		die(errno, "/proc/self/status");
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, strlen(name)) &&
		    line[strlen(name)] == ':')
			kb = atof(line + strlen(name) + 1);
	fclose(f);
	if (kb < 0)
		die(0, "no %s in /proc/self/status", name);
	return kb * 1024;
}

static void connect_qps(struct dev *d, int peer, int n)
{
	struct addr mine, to;

	for (int i = 0; i < n; i++) {
		struct ibv_qp *qp = dev_qp(d, 1, 1);

		mine = dev_addr(d, qp, NULL);
		send_all(peer, &mine, sizeof(mine));
		recv_all(peer, &to, sizeof(to));
		dev_connect(d, qp, &to);
	}
}

static void side(int peer, int speaks)
{
	double data, rss;
	struct dev d;
	char done = 0;

	dev_open(&d, 16);
	connect_qps(&d, peer, WARM_QPS);
	data = status_bytes("VmData");
	rss = status_bytes("VmRSS");
	connect_qps(&d, peer, QPS);
	data = (status_bytes("VmData") - data) / QPS;
	rss = (status_bytes("VmRSS") - rss) / QPS;
	if (speaks) {
		printf("VmData of a QP %.0f\n", data);
		printf("VmRSS of a QP %.0f\n", rss);
	}
	/* nobody leaves before both have measured */
	send_all(peer, &done, 1);
	recv_all(peer, &done, 1);
}

static void measure_qps(void)
{
	int link[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link))
		die(errno, "socketpair");
	child = fork();
	if (child < 0)
		die(errno, "fork");
	close(link[child ? 1 : 0]);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	side(link[child ? 0 : 1], child != 0);
	if (child)
		waitpid(child, NULL, 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		size_t bytes;
	} sizes[] = {
		{"4 KiB", PAGE},
		{"1 MiB", (size_t)1 << 20},
		{"1 GiB", (size_t)1 << 30},
		{"1 TiB", (size_t)1 << 40},
	};
	const char *what = argc == 2 ? argv[1] : "";

	if (!strcmp(what, "reg"))
		for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
			measure_reg(sizes[i].name, sizes[i].bytes);
	else if (!strcmp(what, "qps"))
		measure_qps();
	else
		die(0, "reg or qps");
	return 0;
}
