/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* upcall.c: how soon a program knows that an entry of the NIC's table was replaced:
 * from when that happened, as the event says, until the call that takes the event
 * returned. A peer writes to one page after another of a region that is larger than
 * the table.
 *
 * upcall MODE WRITES: MODE is get (sleeps in the call), fd (sleeps in poll(2)) or
 * spin. Prints a line of fields: upcall, MODE, how many events, and in us the median,
 * the 90th and 99th percentile and the longest. Told of is each replaced entry, and
 * each page that the NIC, looking at it again, found to have gone, if the host takes any.
 * The peer never writes more pages ahead of the owner than the queue holds, so that the
 * queue is not full however late the owner runs. What the NIC found out of a page while
 * a page elsewhere went is not noted (mem/release.c), so a few writes may leave no entry:
 * the peer writes until the owner was told of enough, one in a hundred more at most.
 */
#include "host.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <nopin.h>
#include <poll.h>
#include <string.h>

enum {
	ENTRIES = 1024,
	PAGES = 16384,
	STEP = 6151,
	EVENTS = 4096,
	MORE = 100 /* one write more for so many */
};

static uint64_t writes;

/* Pages that the owner was told of, in memory of both. */
static uint64_t *told;

/* To a page that was never written to, and far from the one before. */
static void write_one(struct link *l, const struct ibv_mr *mr, uint64_t i)
{
	link_post(l, IBV_WR_RDMA_WRITE, mr, mr->addr, 64,
		  i * STEP % PAGES * PAGE);
	host_wait(l->h, 1);
	host_sleep(50000 + host_random() % 100000);
}

static void peer(int fd)
{
	struct host h;
	struct link l;
	struct ibv_mr *mr;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	link_open(&l, &h, fd, NULL);
	for (uint64_t i = 0; i < writes + writes / MORE; i++) {
		if (__atomic_load_n(told, __ATOMIC_RELAXED) >= writes - ENTRIES)
			break;
		while (i - __atomic_load_n(told, __ATOMIC_ACQUIRE) >= EVENTS)
			host_sleep(100000);
		write_one(&l, mr, i);
	}
	host_hear(fd);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

static struct nopin_upcall take(struct nopin_upcalls *q, const char *mode)
{
	struct pollfd p = {.fd = nopin_upcalls_fd(q), .events = POLLIN};
	struct nopin_upcall ev;
	int rc;

	do {
		if (!strcmp(mode, "fd"))
			REQUIRE(poll(&p, 1, 10000) == 1);
		rc = nopin_upcalls_get(q, &ev, sizeof(ev));
	} while (rc == EAGAIN);
	REQUIRE_EQ(rc, 0);
	return ev;
}

/* Entries of a table that is not full are replaced, too: its sets fill up as they
 * come. But when all is done no more than ENTRIES pages are in it. */
static void measure(struct nopin_upcalls *q, const struct ibv_mr *mr,
		    const char *mode)
{
	const uint64_t start = (uintptr_t)mr->addr, all = writes - ENTRIES;
	uint64_t *ns = calloc(writes, sizeof(*ns)), n = 0;

	REQUIRE(ns);
	for (uint64_t pages = 0; pages < all; n++) {
		const struct nopin_upcall ev = take(q, mode);

		ns[n] = host_now() - ev.at_ns;
		if (ev.reason != NOPIN_UPCALL_EVICTED)
			REQUIRE_EQ(ev.reason, NOPIN_UPCALL_REPLACED);
		REQUIRE(ev.mr == mr && ev.addr >= start);
		REQUIRE_LE(ev.addr - start + ev.length, PAGES * PAGE);
		REQUIRE_EQ(ev.length % PAGE, 0);
		pages += ev.length / PAGE;
		REQUIRE_LE(pages, writes + writes / MORE);
		__atomic_store_n(told, pages, __ATOMIC_RELEASE);
	}
	printf("upcall\t%s\t%" PRIu64 "\t%.1f\t%.1f\t%.1f\t%.1f\n", mode, n,
	       (double)host_quantile(ns, n, 0.5) / 1000,
	       (double)host_quantile(ns, n, 0.9) / 1000,
	       (double)host_quantile(ns, n, 0.99) / 1000,
	       (double)host_quantile(ns, n, 1) / 1000);
	free(ns);
}

/* Nobody writes any more. */
static void drain(struct nopin_upcalls *q)
{
	struct nopin_upcall ev;

	while (nopin_upcalls_get(q, &ev, sizeof(ev)) == 0)
		*told += ev.length / PAGE;
}

static void owner(int fd, const char *mode)
{
	struct nopin_reg_attr attr = {.length = (size_t)PAGES * PAGE,
				      .access = IBV_ACCESS_LOCAL_WRITE |
						IBV_ACCESS_REMOTE_WRITE};
	struct host h;
	struct link l;
	struct ibv_mr *mr;

	attr.addr = host_map(NULL, attr.length);
	host_open(&h);
	REQUIRE_EQ(nopin_upcalls_open(h.ctx, EVENTS, &attr.upcalls), 0);
	if (strcmp(mode, "get") != 0)
		REQUIRE_EQ(fcntl(nopin_upcalls_fd(attr.upcalls), F_SETFL,
				 O_NONBLOCK),
			   0);
	mr = nopin_reg(h.pd, &attr, sizeof(attr));
	REQUIRE(mr);
	link_open(&l, &h, fd, mr);
	measure(attr.upcalls, mr, mode);
	host_say(fd, 0);
	host_join();
	REQUIRE_EQ(fcntl(nopin_upcalls_fd(attr.upcalls), F_SETFL, O_NONBLOCK),
		   0);
	drain(attr.upcalls);
	link_close(&l);
	host_dereg(mr);
	REQUIRE_EQ(nopin_upcalls_close(attr.upcalls), 0);
	host_close(&h);
	REQUIRE_EQ(*told, host_counter("upcalls"));
	REQUIRE_LE(host_counter("spt_evictions"), *told);
}

int main(int argc, char **argv)
{
	int fd;

	REQUIRE(argc == 3);
	writes = strtoull(argv[2], NULL, 10);
	REQUIRE(writes > ENTRIES && writes + writes / MORE <= PAGES);
	host_start();
	told = host_shared(sizeof(*told));
	fd = host_fork(peer);
	setenv("NOPIN_ENTRIES", "1024", 1);
	owner(fd, argv[1]);
	return 0;
}
