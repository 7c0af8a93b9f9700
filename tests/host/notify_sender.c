/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* notify_sender.c: WRITEs with immediate data, by a program as there are many. */
#include "notify.h"

#include <arpa/inet.h>

static void post(struct link *l, const struct ibv_mr *mr, uint32_t imm)
{
	struct ibv_sge sge = {(uintptr_t)mr->addr, NOTIFY_LEN, mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		      .send_flags = IBV_SEND_SIGNALED,
		      .imm_data = htonl(imm),
		      .wr.rdma = {l->va + NOTIFY_OFFSET, l->rkey}};

	REQUIRE(ibv_post_send(l->qp, &wr, &bad) == 0);
}

void notify_sender(int fd, uint64_t rounds)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint32_t id;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, NOTIFY_PAGES * PAGE),
		      NOTIFY_PAGES * PAGE);
	link_open(&l, &h, fd, NULL);
	id = (uint32_t)host_hear(fd);
	for (uint64_t i = 1; i <= rounds; i++) {
		host_fill(mr->addr, NOTIFY_LEN, i);
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
}
