/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* e_damming.c: packet damming and packet flood. A page of the target takes 1 ms to
 * come, and
 *
 *   e_damming same write|read ROUNDS	an operation waits for it; another one,
 *					which needs nothing, is posted behind it
 *   e_damming other write|read ROUNDS	the same, on another QP
 *   e_damming flood write|read ROUNDS	many QPs work on that page at once
 *
 * A gap is the time from when nothing is missing any more (the page is there, the
 * operation is posted) until its completion. Prints the gaps, in us, of the
 * operations that waited for the page and of the one that did not.
 */
#include "lib.h"

#include <sched.h>
#include <string.h>

enum { QPS = 64, ROUNDS_MAX = 1 << 12, DELAY_US = 300, PIECE = 64 };

static struct {
	bool flood, other;
	enum ibv_wr_opcode op;
	unsigned rounds, qps;
} arg;

/* --- the target ---------------------------------------------------------------------- */

/* The completion may be there before the server of the page has said so. */
static uint64_t brought(struct slow *s)
{
	uint64_t t;

	while (!(t = __atomic_load_n(&s->brought_ns, __ATOMIC_RELAXED)))
		sched_yield();
	return t;
}

static void target(int fd)
{
	struct link l[QPS];
	struct ibv_mr *mr, *stays;
	struct cold c;
	struct host h;

	cold_open(&c, "slow1", 16 * PAGE, arg.rounds);
	host_open(&h);
	mr = host_reg(&h, c.base, cold_size(&c));
	stays = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(stays->addr, 1, PAGE);
	for (unsigned i = 0; i < arg.qps; i++)
		link_open(&l[i], &h, fd, mr);
	host_say(fd, (uintptr_t)stays->addr);
	host_say(fd, stays->rkey);
	for (unsigned r = 0; r < arg.rounds; r++) {
		cold_round(&c);
		__atomic_store_n(&c.slow.brought_ns, 0, __ATOMIC_RELAXED);
		host_say(fd, 0);
		REQUIRE(host_hear(fd) == r);
		host_say(fd, brought(&c.slow));
	}
	REQUIRE(host_hear(fd) == arg.rounds);
	for (unsigned i = 0; i < arg.qps; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_dereg(stays);
	host_close(&h);
	out_counters("target");
}

/* --- the requester ------------------------------------------------------------------- */

/* Wait for one completion. Return: when; @qpn: of which QP. */
static uint64_t completion(struct host *h, uint32_t *qpn)
{
	struct ibv_wc wc;
	int got;

	while (!(got = ibv_poll_cq(h->cq, 1, &wc)))
		sched_yield();
	REQUIRE(got == 1 && wc.status == IBV_WC_SUCCESS);
	*qpn = wc.qp_num;
	return host_now();
}

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static double gap_us(uint64_t done, uint64_t could)
{
	return done > could ? (double)(done - could) / US : 0;
}

/* One operation on the page, one on memory that is there. */
static void round_dam(struct link *l, struct link *warm, struct ibv_mr *mr,
		      int fd, unsigned r, double *waits, double *needs_nothing)
{
	uint64_t a = 0, b = 0, posted, came;

	link_post(l, arg.op, mr, mr->addr, PIECE, 0);
	host_sleep(DELAY_US * 1000);
	posted = host_now();
	link_post(warm, arg.op, mr, (char *)mr->addr + PIECE, PIECE, 0);
	for (int i = 0; i < 2; i++) {
		uint32_t qpn;
		const uint64_t t = completion(l->h, &qpn);

		/* on one QP they complete in order */
		if (qpn == l->qp->qp_num && !a)
			a = t;
		else
			b = t;
	}
	host_say(fd, r);
	came = host_hear(fd);
	waits[r] = gap_us(a, came);
	needs_nothing[r] = gap_us(b, arg.other ? posted : later(came, posted));
}

static void round_flood(struct link *l, struct ibv_mr *mr, int fd, unsigned r,
			double *last)
{
	uint64_t t = 0;
	uint32_t qpn;

	for (unsigned i = 0; i < arg.qps; i++)
		link_post(&l[i], arg.op, mr, (char *)mr->addr + i % 64 * PIECE,
			  PIECE, i % 64 * PIECE);
	for (unsigned i = 0; i < arg.qps; i++)
		t = completion(l->h, &qpn);
	host_say(fd, r);
	last[r] = gap_us(t, host_hear(fd));
}

static void requester(int fd)
{
	static double waits[ROUNDS_MAX], nothing[ROUNDS_MAX];
	struct link l[QPS], warm;
	struct ibv_mr *mr;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(mr->addr, 1, PAGE);
	for (unsigned i = 0; i < arg.qps; i++)
		link_open(&l[i], &h, fd, NULL);
	warm = l[arg.other ? 1 : 0];
	warm.va = host_hear(fd);
	warm.rkey = (uint32_t)host_hear(fd);
	for (unsigned r = 0; r < arg.rounds; r++) {
		REQUIRE(host_hear(fd) == 0);
		if (arg.flood)
			round_flood(l, mr, fd, r, waits);
		else
			round_dam(l, &warm, mr, fd, r, waits, nothing);
	}
	host_say(fd, arg.rounds);
	for (unsigned i = 0; i < arg.qps; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_close(&h);
	out_dist("waited", waits, arg.rounds);
	if (!arg.flood)
		out_dist("behind", nothing, arg.rounds);
	out_row("operations", "%u", arg.rounds * (arg.flood ? arg.qps : 2));
	out_counters("requester");
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.flood = !strcmp(argv[1], "flood");
	arg.other = !strcmp(argv[1], "other");
	arg.op = strcmp(argv[2], "read") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	arg.rounds = (unsigned)number(argv[3]);
	arg.qps = arg.flood ? QPS : 2;
	REQUIRE(arg.rounds && arg.rounds <= ROUNDS_MAX);
	host_start();
	target(host_fork(requester));
	host_join();
	return 0;
}
