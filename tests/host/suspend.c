/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* suspend.c: a region is suspended for as long as one likes while a peer WRITEs to
 * it, with the smallest budgets a program can ask for; another connection of the
 * same two NICs goes on as before. Then its memory is somewhere else, and all data
 * is there.
 *
 *   host-suspend SECONDS
 */
#include "host.h"

#include <nopin.h>
#include <string.h>
#include <sys/mman.h>

enum { BYTES = 4 << 20, WORD = 8, SAMPLES = 20000 };

static double seconds;

static struct {
	struct host h;
	struct link held, innocent;
	struct ibv_mr *mr;
	uint8_t *buf;
} me;

static void open_two(int fd, void *addr, size_t bytes, struct ibv_mr **other,
		     void *other_addr)
{
	host_open(&me.h);
	me.mr = host_reg(&me.h, addr, bytes);
	*other = host_reg(&me.h, other_addr, PAGE);
	link_open(&me.held, &me.h, fd, me.mr);
	link_open(&me.innocent, &me.h, fd, *other);
}

/* The target: suspends, moves, resumes. */
static void target(int fd)
{
	uint8_t *to = host_map(NULL, BYTES), *page = host_map(NULL, PAGE);
	struct nopin_suspension s;
	struct ibv_mr *other;

	me.buf = host_map(NULL, BYTES);
	open_two(fd, me.buf, BYTES, &other, page);
	REQUIRE_EQ(host_hear(fd), 1);
	REQUIRE(nopin_mr_suspend(me.mr, 1 * SECOND) == 0);
	host_say(fd, 2);
	REQUIRE_EQ(host_hear(fd), 3); /* it posted a WRITE of all */
	do /* it comes: from then on the pause counts */
		REQUIRE(nopin_mr_query_suspension(me.mr, &s, sizeof(s)) == 0);
	while (!s.held);
	host_sleep((uint64_t)(seconds * SECOND));
	REQUIRE(nopin_mr_query_suspension(me.mr, &s, sizeof(s)) == 0);
	REQUIRE_EQ(s.held, 1);
	REQUIRE(s.limit_ns == UINT64_MAX);
	for (size_t i = 0; i < BYTES; i++)
		REQUIRE(!me.buf[i]);
	REQUIRE(nopin_mr_update(me.mr, to, BYTES) == 0);
	REQUIRE(nopin_mr_resume(me.mr) == 0);
	REQUIRE_EQ(host_hear(fd), 4); /* the WRITE completed */
	host_check(to, BYTES, 7);
	for (size_t i = 0; i < BYTES; i++)
		REQUIRE(!me.buf[i]);
	REQUIRE(nopin_mr_query_suspension(me.mr, &s, sizeof(s)) == 0);
	REQUIRE(s.pause_ns >= (uint64_t)(seconds * SECOND));
	host_say(fd, 5);
	host_hear(fd);
	link_close(&me.held);
	link_close(&me.innocent);
	host_dereg(me.mr);
	host_dereg(other);
	host_close(&me.h);
}

/* Return: p99 of WRITEs by the innocent connection, one in a while, for so long. */
static uint64_t measure(const struct ibv_mr *mr, uint8_t *word, double secs)
{
	static uint64_t took[SAMPLES];
	const uint64_t end = host_now() + (uint64_t)(secs * SECOND);
	size_t n = 0;

	while (host_now() < end) {
		const uint64_t began = host_now();

		link_post(&me.innocent, IBV_WR_RDMA_WRITE, mr, word, WORD, 0);
		host_wait(&me.h, 1);
		took[n++ % SAMPLES] = host_now() - began;
		host_sleep(SECOND / 10000);
	}
	return host_quantile(took, n < SAMPLES ? n : SAMPLES, 0.99);
}

static void writer(int fd)
{
	uint8_t *word = host_map(NULL, PAGE);
	uint64_t before, during;
	struct ibv_mr *other;

	me.buf = host_map(NULL, BYTES);
	host_fill(me.buf, BYTES, 7);
	open_two(fd, me.buf, BYTES, &other, word);
	before = measure(other, word, seconds / 4);
	host_say(fd, 1);
	REQUIRE_EQ(host_hear(fd), 2);
	link_post(&me.held, IBV_WR_RDMA_WRITE, me.mr, me.buf, BYTES, 0);
	host_say(fd, 3);
	/* every completion is the innocent's: what is held has none */
	during = measure(other, word, seconds * 0.9);
	host_wait(&me.h, 1);
	host_say(fd, 4);
	REQUIRE_EQ(host_hear(fd), 5);
	printf("innocent, p99: %.1f us before, %.1f us during %g s\n",
	       (double)before / 1e3, (double)during / 1e3, seconds);
	host_say(fd, 6);
	link_close(&me.held);
	link_close(&me.innocent);
	host_dereg(me.mr);
	host_dereg(other);
	host_close(&me.h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
	REQUIRE_EQ(host_counter("rnr_rx"), 0);
	REQUIRE_EQ(host_counter("naks_rx"), 0);
	REQUIRE(host_counter("suspend_heard"));
}

int main(int argc, char **argv)
{
	int fd;

	if (argc != 2) {
		fprintf(stderr, "%s SECONDS\n", argv[0]);
		return 2;
	}
	seconds = strtod(argv[1], NULL);
	host_start();
	link_retries = 1;
	link_rnr_retries = 0;
	fd = host_fork(target);
	writer(fd);
	host_join();
	return 0;
}
