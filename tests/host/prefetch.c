/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* prefetch.c: a peer WRITEs to every third page of a range whose pages take a
 * while, one after the other, then READs every third backwards.
 *
 *   prefetch PAGES MS prefetch
 *	Pages are foreseen: a quarter of the accesses take less than half of what
 *	a page takes. (How much is fetched in vain is a matter of time: it is tested
 *	in the simulator.)
 *   prefetch PAGES MS queue
 *	The control (NOPIN_AHEAD=queue): each access waits for its page.
 */
#include "host.h"

#include <string.h>

enum { STRIDE = 3, LEN = 512, WAYS = 2 };

static struct {
	uint64_t n, delay_ns;
	bool foresees;
} arg;

static uint64_t offset_of(int way, uint64_t i)
{
	const uint64_t page = STRIDE * i + (uint64_t)way;

	return (way ? STRIDE * arg.n - page : page) * PAGE + 64;
}

static void peer(int fd)
{
	static const enum ibv_wr_opcode ops[WAYS] = {IBV_WR_RDMA_WRITE,
						     IBV_WR_RDMA_READ};
	uint64_t *took = calloc(WAYS * arg.n, sizeof(*took));
	struct ibv_mr *mr;
	struct link l;
	struct host h;

	host_open(&h);
	REQUIRE(took);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(mr->addr, 1, PAGE);
	link_open(&l, &h, fd, mr);
	for (int way = 0; way < WAYS; way++) {
		for (uint64_t i = 0; i < arg.n; i++) {
			uint64_t began = host_now();

			if (way == 0)
				host_fill(mr->addr, LEN, i);
			link_post(&l, ops[way], mr, mr->addr, LEN,
				  offset_of(way, i));
			host_wait(&h, 1);
			took[way * arg.n + i] = host_now() - began;
			if (way == 1)
				host_check(mr->addr, LEN, arg.n + i);
		}
		if (way == 0) {
			host_say(fd, 0);
			host_hear(fd);
		}
	}
	host_say(fd, host_quantile(took, WAYS * arg.n, 0.25));
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	free(took);
}

/* @ns: what a quarter of the accesses took at most. Whether pages that are foreseen are
 * there in time is for the counters to say: hits are. */
static void check_time(uint64_t ns)
{
	printf("a quarter within %.2f ms\n", (double)ns / MS);
	if (!arg.foresees)
		REQUIRE_LE(arg.delay_ns, ns);
}

static void check_counters(void)
{
	const uint64_t pages = host_counter("prefetch_pages");
	const uint64_t hits = host_counter("prefetch_hits");

	printf("%llu pages foreseen, %llu of use\n", (unsigned long long)pages,
	       (unsigned long long)hits);
	REQUIRE_LE(hits + host_counter("prefetch_waste"), pages);
	if (arg.foresees)
		REQUIRE_LE(arg.n / 2, hits);
	else
		REQUIRE_EQ(pages, 0);
}

static void owner(int fd)
{
	const size_t bytes = (STRIDE * arg.n + 1) * PAGE;
	uint8_t *buf = host_map(NULL, bytes);
	static struct slow slow = {.uffd = -1};
	struct ibv_mr *mr;
	struct link l;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, buf, bytes);
	slow_open(&slow, SLOW_USER, buf, bytes, arg.delay_ns);
	link_open(&l, &h, fd, mr);
	host_hear(fd);
	for (uint64_t i = 0; i < arg.n; i++) {
		host_check(buf + offset_of(0, i), LEN, i);
		host_fill(slow.backing + offset_of(1, i), LEN, arg.n + i);
	}
	host_say(fd, 0);
	check_time(host_hear(fd));
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	check_counters();
	host_no_retries();
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.n = strtoull(argv[1], NULL, 0);
	arg.delay_ns = strtoull(argv[2], NULL, 0) * MS;
	arg.foresees = !strcmp(argv[3], "prefetch");
	host_start();
	REQUIRE(setenv("NOPIN_AHEAD", argv[3], 1) == 0);
	owner(host_fork(peer));
	host_join();
	return 0;
}
