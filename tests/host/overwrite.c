/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* overwrite.c: pages that are swapped out and overwritten whole are not swapped in:
 * the kernel counts it (pswpin). And all data is right.
 *
 *   overwrite HOW PAGES
 *
 * write: RDMA WRITEs into a region that may be overwritten; write-unasked: into one
 * of which the program did not say so, so they are swapped in; send: into receive
 * buffers; read: into destinations of RDMA READ. Root.
 */
#include "host.h"

#include <nopin.h>
#include <string.h>

enum { PIECE = 4 * PAGE, SENDS = 16, RECVS = 48 };

static const struct how {
	const char *name;
	enum ibv_wr_opcode op;
	bool consent, fetched;
} hows[] = {
	{"write", IBV_WR_RDMA_WRITE, true, false},
	{"write-unasked", IBV_WR_RDMA_WRITE, false, true},
	{"send", IBV_WR_SEND, false, false},
	{"read", IBV_WR_RDMA_READ, false, false},
};

static const struct how *how;
static size_t pieces;

static size_t bytes(void)
{
	return pieces * PIECE;
}

/* --- whose memory is there -------------------------------------------------------- */

static void send_all(struct link *l, const struct ibv_mr *mr)
{
	uint8_t *at = mr->addr;
	size_t posted = 0;

	for (size_t done = 0; done < pieces; done++) {
		for (; posted < pieces && posted < done + SENDS; posted++)
			link_post(l, how->op, mr, at + posted * PIECE, PIECE,
				  posted * PIECE);
		host_wait(l->h, 1);
	}
}

static void peer(int fd)
{
	uint8_t *data = host_map(NULL, bytes());
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_fill(data, bytes(), 2);
	host_open(&h);
	mr = host_reg(&h, data, bytes());
	link_open(&l, &h, fd, mr);
	REQUIRE(host_hear(fd) == 1);
	if (how->op != IBV_WR_RDMA_READ)
		send_all(&l, mr);
	host_say(fd, 2);
	REQUIRE(host_hear(fd) == 3);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

/* --- whose memory is swapped out ---------------------------------------------------- */

static void receive_all(struct link *l, const struct ibv_mr *mr, int fd)
{
	uint8_t *at = mr->addr;
	size_t posted = 0;

	for (; posted < RECVS; posted++)
		link_recv(l, mr, at + posted * PIECE, PIECE);
	host_say(fd, 1);
	for (size_t done = 0; done < pieces; done++) {
		host_wait(l->h, 1);
		if (posted < pieces) {
			link_recv(l, mr, at + posted * PIECE, PIECE);
			posted++;
		}
	}
}

static void move_all(struct link *l, const struct ibv_mr *mr, int fd)
{
	if (how->op == IBV_WR_SEND) {
		receive_all(l, mr, fd);
	} else {
		host_say(fd, 1);
		if (how->op == IBV_WR_RDMA_READ)
			send_all(l, mr);
	}
	REQUIRE(host_hear(fd) == 2);
}

static void target(int fd)
{
	uint8_t *base = host_map(NULL, bytes());
	uint64_t before, came, began;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, base, bytes());
	if (how->consent)
		REQUIRE(nopin_mr_set_fault(mr, NOPIN_FAULT_OVERWRITE) == 0);
	link_open(&l, &h, fd, mr);
	host_fill(base, bytes(), 1);
	swap_pageout(base, bytes());
	/* What the NIC saw last is not news any more. */
	host_sleep(20 * MS);
	before = swap_reads();
	began = host_now();
	move_all(&l, mr, fd);
	came = swap_reads() - before;
	printf("%s: %zu pages overwritten in %.1f ms, %lu swapped in\n",
	       how->name, bytes() / PAGE, (double)(host_now() - began) / 1e6,
	       (unsigned long)came);
	host_check(base, bytes(), 2);
	if (how->fetched)
		REQUIRE_LE(bytes() / PAGE, came);
	else
		REQUIRE_EQ(came, 0);
	host_say(fd, 3);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(host_counter("engine_majflt"), 0);
}

static void test(void)
{
	int fd = host_fork(peer);

	target(fd);
	host_join();
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 3);
	for (size_t i = 0; i < ARRAY_SIZE(hows); i++)
		if (!strcmp(hows[i].name, argv[1]))
			how = &hows[i];
	REQUIRE(how);
	pieces = strtoul(argv[2], NULL, 0) / (PIECE / PAGE);
	REQUIRE(pieces >= RECVS);
	host_start();
	setenv("NOPIN_FAULT", "overwrite", 1);
	swap_run(2 * bytes(), test);
	return 0;
}
