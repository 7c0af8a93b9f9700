/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lastack.c: what was delivered is not reported flushed. One process SENDs, the other
 * receives, and as soon as it has seen the completion one of them ends it: the
 * receiver destroys its QP, breaks it, or is gone without a word to its NIC; or it tells the sender by other
 * means, which breaks its own. The SEND has succeeded, each time.
 *
 *   lastack ROUNDS
 */
#include "host.h"

enum end { DESTROYED, BROKEN, TOLD, GONE, ENDS };

static uint64_t rounds;

static void to_error(struct link *l)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

	REQUIRE(ibv_modify_qp(l->qp, &attr, IBV_QP_STATE) == 0);
}

/* Nothing between the completion and the end. */
static void receive(struct host *h, struct ibv_mr *mr, int fd, enum end end)
{
	struct link l;

	link_open(&l, h, fd, NULL);
	link_recv(&l, mr, mr->addr, PAGE);
	host_say(fd, 0);
	host_wait(h, 1);
	if (end == GONE)
		_exit(0);
	if (end == BROKEN)
		to_error(&l);
	if (end == TOLD)
		host_say(fd, 1);
	else
		link_close(&l);
	REQUIRE_EQ(host_hear(fd), 2);
	if (end == TOLD)
		link_close(&l);
}

static void receiver(int fd)
{
	struct ibv_mr *mr;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	for (uint64_t i = 0; i < GONE * rounds; i++)
		receive(&h, mr, fd, (enum end)(i % GONE));
	host_dereg(mr);
	host_close(&h);
}

static void dies(int fd)
{
	struct ibv_mr *mr;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	receive(&h, mr, fd, GONE);
}

/* Return: did the SEND fail? */
static bool send_one(struct host *h, struct ibv_mr *mr, int fd, enum end end)
{
	enum ibv_wc_status status;
	struct link l;

	link_open(&l, h, fd, NULL);
	host_hear(fd);
	link_post(&l, IBV_WR_SEND, mr, mr->addr, PAGE / 2, 0);
	if (end == TOLD) {
		REQUIRE_EQ(host_hear(fd), 1);
		to_error(&l);
	}
	status = host_status(h);
	link_close(&l);
	if (end != GONE)
		host_say(fd, 2);
	return status != IBV_WC_SUCCESS;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"destroyed", "broken", "told",
					    "gone"};
	uint64_t flushed[ENDS] = {0}, all = 0;
	int fd, doomed[8];
	struct ibv_mr *mr;
	struct host h;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	REQUIRE(rounds > 0);
	link_retries = 1;
	host_start();
	fd = host_fork(receiver);
	for (unsigned i = 0; i < ARRAY_SIZE(doomed); i++)
		doomed[i] = host_fork(dies);
	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	for (uint64_t i = 0; i < GONE * rounds; i++)
		flushed[i % GONE] += send_one(&h, mr, fd, (enum end)(i % GONE));
	for (unsigned i = 0; i < ARRAY_SIZE(doomed); i++)
		flushed[GONE] += send_one(&h, mr, doomed[i], GONE);
	for (unsigned i = 0; i < ENDS; i++) {
		if (flushed[i])
			fprintf(stderr, "%s: %llu failed\n", names[i],
				(unsigned long long)flushed[i]);
		all += flushed[i];
	}
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(all, 0);
	return 0;
}
