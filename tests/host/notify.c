/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify.c: a program that knows nothing of nopin notifies one that does: its WRITEs
 * with immediate data raise a counter, which nothing is posted for. When the counter
 * has risen all of the WRITE is there, also where pages had to come first.
 *
 *   notify ROUNDS [standard]
 *
 * "standard": nor does its NIC know anything of nopin, nor ours of it.
 */
#include "host.h"

#include <arpa/inet.h>
#include <nopin.h>
#include <stdlib.h>
#include <string.h>

enum { PAGES = 4, OFFSET = 100, LEN = 2 * PAGE + 8, EVICT = 8 };

static uint64_t rounds;

static enum nopin_wait way(uint64_t round)
{
	return round % 3 == 0	? NOPIN_WAIT_SPIN
	       : round % 3 == 1 ? NOPIN_WAIT_BLOCK
				: NOPIN_WAIT_FUTEX;
}

static void reader(int fd)
{
	struct nopin_counter *counter;
	static struct slow slow;
	uint8_t *base;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	base = host_map(NULL, PAGES * PAGE);
	slow_open(&slow, SLOW_USER, base, PAGES * PAGE, 20000);
	mr = host_reg(&h, base, PAGES * PAGE);
	link_open(&l, &h, fd, mr);
	REQUIRE(nopin_qp_set_counting(l.qp, 1) == 0);
	REQUIRE(nopin_counter_create(h.pd, NULL, NULL, &counter) == 0);
	host_say(fd, nopin_counter_id(counter));
	for (uint64_t i = 1; i <= rounds; i++) {
		REQUIRE(nopin_counter_wait(counter, i, UINT64_MAX, way(i)) ==
			0);
		REQUIRE_EQ(*nopin_counter_word(counter), i);
		host_check(base + OFFSET, LEN, i);
		if (i % EVICT == 0)
			slow_evict(&slow, 0, PAGES * PAGE);
		host_say(fd, i);
	}
	host_hear(fd);
	REQUIRE_EQ(*nopin_counter_word(counter), rounds);
	REQUIRE(nopin_counter_destroy(counter) == 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_LE(rounds / EVICT, slow.faults);
}

/* A program as there are many. */
static void post(struct link *l, const struct ibv_mr *mr, uint32_t id)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, LEN, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = 1,
				       .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htonl(id),
				       .wr.rdma = {l->va + OFFSET, l->rkey}};

	REQUIRE(ibv_post_send(l->qp, &wr, &bad) == 0);
}

int main(int argc, char **argv)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint32_t id;
	int fd;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	REQUIRE(rounds > 0);
	if (argc > 2)
		setenv("NOPIN_TEST", argv[2], 1);
	host_start();
	fd = host_fork(reader);
	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGES * PAGE), PAGES * PAGE);
	link_open(&l, &h, fd, NULL);
	id = (uint32_t)host_hear(fd);
	for (uint64_t i = 1; i <= rounds; i++) {
		host_fill(mr->addr, LEN, i);
		post(&l, mr, id);
		host_wait(&h, 1);
		REQUIRE_EQ(host_hear(fd), i);
	}
	/* what is no counter of the peer's */
	post(&l, mr, id + 1);
	REQUIRE_EQ(host_status(&h), IBV_WC_REM_ACCESS_ERR);
	host_say(fd, 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	host_join();
	return 0;
}
