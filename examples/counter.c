/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* counter.c: one process WRITEs lines into the memory of another, and is told when
 * they were read; each sleeps until its counter rises.
 *
 *   cc counter.c $(pkg-config --cflags --libs nopin) && nopin run -- ./a.out
 */
#include "rc.h"

#include <string.h>

enum { LINES = 1000, LINE_MAX = 64 };

/* What the two tell each other: where to write, and what to raise. */
struct card {
	uint64_t addr;
	uint32_t rkey, counter;
};

static char line[LINE_MAX];

static void notify(struct ibv_qp *qp, const struct card *to, uint32_t lkey,
		   uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)line, len, lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
				       .num_sge = len ? 1 : 0,
				       .opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED,
				       .wr.rdma = {to->addr, to->rkey}};

	TRY(!nopin_post_write_notify(qp, &wr, to->counter, &bad));
	rc_done(qp);
}

static void play(int fd, int writer)
{
	struct ibv_pd *pd = rc_device();
	struct ibv_mr *mr = ibv_reg_mr(pd, line, sizeof(line), WRITABLE);
	struct ibv_qp *qp = rc_connect(pd, fd);
	struct card mine = {(uintptr_t)line, mr->rkey, 0}, theirs;
	struct nopin_counter *counter;

	TRY(!nopin_counter_create(pd, NULL, NULL, &counter));
	mine.counter = nopin_counter_id(counter);
	swap(fd, &mine, &theirs, sizeof(mine));
	for (uint64_t i = 1; i <= LINES; i++) {
		if (writer)
			notify(qp, &theirs, mr->lkey,
			       1 + snprintf(line, LINE_MAX, "line %d", (int)i));
		TRY(!nopin_counter_wait(counter, i, UINT64_MAX,
					NOPIN_WAIT_BLOCK));
		if (writer)
			continue;
		TRY(atoi(line + strlen("line ")) == (int)i);
		if (i % 100 == 0)
			puts(line);
		notify(qp, &theirs, 0, 0); /* no data: it was read */
	}
	TRY(!nopin_counter_destroy(counter));
	swap(fd, "", line, 1); /* nobody ends before the other has its ACK */
}

int main(void)
{
	int fd, writer = rc_fork(&fd);

	play(fd, writer);
	return 0;
}
