/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* table.c: what the three versions of the program of l_table.h share. */
#include "l_table.h"

#include <string.h>
#include <sys/mman.h>

enum { HOT = 64 };

static int peer_fd;

static uint64_t word_of(uint64_t i)
{
	return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

/* Has a place for each record that may be on its way, and checks the last. */
static void peer(int fd)
{
	const size_t bytes = (size_t)RECORDS_AT_ONCE * RECORD;
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t ops;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, bytes), bytes);
	link_open(&l, &h, fd, mr);
	ops = host_hear(fd);
	for (uint64_t i = ops - RECORDS_AT_ONCE; i < ops; i++) {
		const uint64_t *got = (const uint64_t *)mr->addr +
				      i % RECORDS_AT_ONCE * RECORD / 8;

		for (size_t k = 0; k < RECORD / 8; k++)
			REQUIRE_EQ(got[k], word_of(i));
	}
	host_say(fd, 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

void table_open(struct table *t)
{
	host_start();
	peer_fd = host_fork(peer);
	t->base = host_map(NULL, TABLE_BYTES);
	host_open(&t->h);
	link_open(&t->to, &t->h, peer_fd, NULL);
}

/* Nine of ten records are hot ones; all lie far apart: one in 64 KiB of the table. */
uint8_t *table_record(struct table *t, uint64_t i)
{
	const uint64_t slots = WORKING_BYTES / RECORD;
	const uint64_t slot = i % 10 ? i % HOT : HOT + i * 7919 % (slots - HOT);
	uint64_t *p = (uint64_t *)(t->base + slot * 16 * RECORD);

	for (size_t k = 0; k < RECORD / 8; k++)
		p[k] = word_of(i);
	return (uint8_t *)p;
}

void table_write(struct table *t, uint64_t i, struct ibv_mr *mr, void *p)
{
	link_post(&t->to, IBV_WR_RDMA_WRITE, mr, p, RECORD,
		  i % RECORDS_AT_ONCE * RECORD);
}

void table_close(struct table *t, uint64_t ops, uint64_t began_ns)
{
	const double s = (double)(host_now() - began_ns) / SECOND;

	REQUIRE(ops >= RECORDS_AT_ONCE);
	host_say(peer_fd, ops);
	REQUIRE(host_hear(peer_fd) == 0);
	out_row("rate", "%.0f", (double)ops / s);
	out_row("rss", "%llu", (unsigned long long)status_kib("VmRSS"));
	out_row("locked", "%llu", (unsigned long long)status_kib("VmLck"));
	link_close(&t->to);
	ibv_close_device(t->h.ctx);
	host_join();
}
