/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* behind.c: I8 against another NIC: a responder that expects an earlier PSN than its
 * requester sends, as one that began anew does, refuses each packet, and never will
 * take one. The request ends all the same.
 *
 *   behind asker|target FD
 *
 * Verbs only, so that it runs on rxe, too. @FD is a socket to the other one. Before it a
 * connection between the two that agree shows that all else is right.
 */
#include "host.h"

#include <string.h>

enum { LEN = 3000, AHEAD = 5 };

static struct host h;
static struct ibv_mr *mr;
static uint8_t *mem;

static enum ibv_wc_status ask(int fd, uint32_t ahead, enum ibv_wr_opcode op)
{
	enum ibv_wc_status status;
	struct link l;

	link_psn_ahead = ahead;
	link_open(&l, &h, fd, mr);
	link_post(&l, op, mr, mem, LEN, 0);
	status = host_status(&h);
	host_say(fd, 0);
	link_close(&l);
	return status;
}

static void answer(int fd)
{
	struct link l;

	link_open(&l, &h, fd, mr);
	host_hear(fd);
	link_close(&l);
}

int main(int argc, char **argv)
{
	static const enum ibv_wr_opcode ops[] = {IBV_WR_RDMA_WRITE,
						 IBV_WR_RDMA_READ};
	bool asks;
	int fd;

	REQUIRE(argc == 3);
	asks = !strcmp(argv[1], "asker");
	fd = atoi(argv[2]);
	host_start();
	link_timeout = 14; /* 67 ms: as long as an emulated machine may pause */
	link_retries = 3;
	host_open(&h);
	mem = host_map(NULL, LEN);
	mr = host_reg(&h, mem, LEN);
	for (unsigned i = 0; i < ARRAY_SIZE(ops); i++) {
		if (!asks) {
			answer(fd);
			answer(fd);
			continue;
		}
		REQUIRE_EQ(ask(fd, 0, ops[i]), IBV_WC_SUCCESS);
		REQUIRE_EQ(ask(fd, AHEAD, ops[i]), IBV_WC_RETRY_EXC_ERR);
		printf("behind: it ends\n");
	}
	host_dereg(mr);
	host_close(&h);
	return 0;
}
