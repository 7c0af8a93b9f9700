/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* l_use.c: what a region takes depends on what is used of it, not on its size.
 *
 *   l_use REGION_BYTES USED_BYTES STEPS
 *
 * A target registers REGION_BYTES that nobody ever touched. A peer WRITEs to as
 * many of its pages as make USED_BYTES, spread over all of it. After each step the
 * target prints: bytes used, and KiB: VmRSS and VmData since the device was
 * opened (the region left out of VmData), VmPTE, VmLck.
 */
#include "lib.h"

#include <string.h>
#include <sys/socket.h>

enum { AT_ONCE = 16, RUN = 16 * PAGE, PAUSE = 64 };

static struct {
	uint64_t region, used, steps;
} arg;

static void print_use(uint64_t used, uint64_t rss, uint64_t data)
{
	out_row("use", "%llu\t%llu\t%llu\t%llu\t%llu", (unsigned long long)used,
		(unsigned long long)(status_kib("VmRSS") - rss),
		(unsigned long long)status_kib("VmPTE"),
		(unsigned long long)status_kib("VmLck"),
		(unsigned long long)(status_kib("VmData") - data));
}

static void target(int fd)
{
	uint8_t *base = host_map(NULL, arg.region);
	const uint64_t rss = status_kib("VmRSS"), data = status_kib("VmData");
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t used;

	host_open(&h);
	mr = host_reg(&h, base, arg.region);
	link_open(&l, &h, fd, mr);
	print_use(0, rss, data);
	for (uint64_t i = 0; i < arg.steps; i++) {
		while (recv(fd, &used, sizeof(used), MSG_DONTWAIT) < 0)
			for (int k = 0; k < PAUSE; k++)
				host_poll(&h, 1);
		print_use(used, rss, data);
		host_say(fd, 0);
	}
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	out_counters("target");
}

/* Runs of 64 KiB, evenly over the region. */
static void peer(int fd)
{
	const uint64_t runs = arg.used / RUN, stride = arg.region / runs;
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t n = 0, done = 0;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, RUN), RUN);
	memset(mr->addr, 1, RUN);
	link_open(&l, &h, fd, NULL);
	for (uint64_t step = 1; step <= arg.steps; step++) {
		const uint64_t to = runs * step / arg.steps;

		while (done < to) {
			for (; n < to && n < done + AT_ONCE; n++)
				link_post(&l, IBV_WR_RDMA_WRITE, mr, mr->addr,
					  RUN, n * (stride & -(uint64_t)RUN));
			host_wait(&h, 1);
			done++;
		}
		host_say(fd, to * RUN);
		REQUIRE(host_hear(fd) == 0);
	}
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.region = number(argv[1]);
	arg.used = number(argv[2]);
	arg.steps = number(argv[3]);
	host_start();
	target(host_fork(peer));
	host_join();
	return 0;
}
