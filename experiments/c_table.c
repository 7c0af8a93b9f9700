/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* c_table.c: a cell of the cross table: the same mixed work on cold memory, for
 * whatever strategy the environment chooses.
 *
 *   c_table KIND ROUNDS SECONDS [NAMESPACE]
 *
 * KIND: of memory, see cold_open(); both sides have it. A round is a WRITE of 1 MiB
 * and two of 64 KiB on one QP; on another one eight WRITEs of 512 bytes, two READs
 * of 64 KiB of the peer's cold memory, two into one's own, and four SENDs of 16 KiB
 * into cold receive buffers. NAMESPACE: where the peer lives. After SECONDS nothing
 * is waited for any more: what was done until then counts.
 */
#include "lib.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

enum {
	KIB = 1024,
	SMALL = 512,
	MIDDLE = 64 * KIB,
	LARGE = 1024 * KIB,
	MESSAGE = 16 * KIB,
	ROUNDS_MAX = 64,
	LANE_OPS = 16, /* of a round on one QP, at most */
	LANES = 2,
	WINDOW = 6,
	/* of cold memory, for a round */
	THERE = LARGE + 4 * MIDDLE + 8 * PAGE + 4 * MESSAGE,
	HERE = 2 * MIDDLE,
};

static struct {
	const char *kind, *where;
	unsigned rounds;
	uint64_t limit_ns;
} arg;

/* --- the work ----------------------------------------------------------------- */

/**
 * struct op - @there: in the peer's cold memory of this round; @here: of a READ into
 * cold memory, in ours.
 */
struct op {
	enum ibv_wr_opcode code;
	uint32_t len;
	size_t there, here;
	bool to_cold;
};

#define W	   IBV_WR_RDMA_WRITE
#define R	   IBV_WR_RDMA_READ
#define S	   IBV_WR_SEND
#define AT_SMALL   (LARGE + 4 * MIDDLE)
#define AT_MESSAGE (AT_SMALL + 8 * PAGE)

static const struct op large_lane[] = {
	{W, LARGE, 0, 0, false},
	{W, MIDDLE, LARGE, 0, false},
	{W, MIDDLE, LARGE + MIDDLE, 0, false},
};

static const struct op mixed_lane[] = {
	{W, SMALL, AT_SMALL, 0, false},
	{W, SMALL, AT_SMALL + 5 * PAGE, 0, false},
	{S, MESSAGE, 0, 0, false},
	{R, MIDDLE, LARGE + 2 * MIDDLE, 0, false},
	{W, SMALL, AT_SMALL + 2 * PAGE, 0, false},
	{R, MIDDLE, 0, 0, true},
	{S, MESSAGE, 0, 0, false},
	{W, SMALL, AT_SMALL + 7 * PAGE, 0, false},
	{W, SMALL, AT_SMALL + 1 * PAGE, 0, false},
	{S, MESSAGE, 0, 0, false},
	{R, MIDDLE, LARGE + 3 * MIDDLE, 0, false},
	{W, SMALL, AT_SMALL + 4 * PAGE, 0, false},
	{R, MIDDLE, 0, MIDDLE, true},
	{W, SMALL, AT_SMALL + 3 * PAGE, 0, false},
	{S, MESSAGE, 0, 0, false},
	{W, SMALL, AT_SMALL + 6 * PAGE, 0, false},
};

static const struct {
	const struct op *op;
	unsigned num;
} lanes[LANES] = {
	{large_lane, ARRAY_SIZE(large_lane)},
	{mixed_lane, ARRAY_SIZE(mixed_lane)},
};

enum { SENDS = 4 };

/* --- the target ----------------------------------------------------------------- */

static struct ibv_mr *touched(struct host *h, size_t bytes)
{
	struct ibv_mr *mr = host_reg(h, host_map(NULL, bytes), bytes);

	memset(mr->addr, 1, bytes);
	return mr;
}

static void move_to(const char *where)
{
	char path[200];
	int fd;

	if (!where)
		return;
	snprintf(path, sizeof(path), "/var/run/netns/%s", where);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		host_skip("another network namespace needs root");
	close(fd);
}

static uint8_t *message_at(uint8_t *window, unsigned n)
{
	return window + n / SENDS * (size_t)THERE + AT_MESSAGE +
	       n % SENDS * MESSAGE;
}

/* Receives are posted as far as there is room, until the requester is done. */
static void serve(struct link *l, struct ibv_mr *mr, uint8_t *window, int fd)
{
	const unsigned all = arg.rounds * SENDS;
	unsigned posted = 0, done = 0, got = 0;
	bool told = false;
	uint64_t word;

	do {
		if (!got && posted)
			sched_yield();
		for (; posted < all && posted - done < DEPTH; posted++)
			link_recv(l, mr, message_at(window, posted), MESSAGE);
		if (!told)
			host_say(fd, 0);
		told = true;
		got = host_poll(l->h, DEPTH);
		done += got;
	} while (recv(fd, &word, sizeof(word), MSG_DONTWAIT) < 0);
}

static void target(int fd)
{
	struct link l[LANES];
	struct ibv_mr *mr;
	struct cold c;
	struct host h;
	uint8_t *window;

	move_to(arg.where);
	cold_open(&c, arg.kind, arg.rounds * (size_t)THERE, 1);
	host_open(&h);
	mr = host_reg(&h, c.base, cold_size(&c));
	for (unsigned i = 0; i < LANES; i++)
		link_open(&l[i], &h, fd, mr);
	window = cold_round(&c);
	serve(&l[1], mr, window, fd);
	for (unsigned i = 0; i < LANES; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_close(&h);
	out_counters("target");
	fflush(stdout);
}

/* --- the requester ------------------------------------------------------------- */

struct lane {
	struct link l;
	unsigned posted, done, all;
	uint64_t at[WINDOW], bytes;
};

static struct lane lane[LANES];
static double us[LANES][ROUNDS_MAX * LANE_OPS];

static void post(unsigned i, struct ibv_mr *warm, struct ibv_mr *cold)
{
	struct lane *q = &lane[i];
	const unsigned n = q->posted % lanes[i].num,
		       round = q->posted / lanes[i].num;
	const struct op *op = &lanes[i].op[n];
	const size_t here = round * (size_t)HERE + op->here;

	q->at[q->posted++ % WINDOW] = host_now();
	link_post(&q->l, op->code, op->to_cold ? cold : warm,
		  op->to_cold
			  ? (uint8_t *)cold->addr + here
			  : (uint8_t *)warm->addr + (op->code == R ? LARGE : 0),
		  op->len, round * (size_t)THERE + op->there);
}

/* Of a QP operations complete in order. */
static void take(const struct ibv_wc *wc)
{
	const unsigned i = wc->qp_num == lane[0].l.qp->qp_num ? 0 : 1;
	struct lane *q = &lane[i];

	REQUIRE(wc->status == IBV_WC_SUCCESS);
	us[i][q->done] = (double)(host_now() - q->at[q->done % WINDOW]) / US;
	q->bytes += lanes[i].op[q->done % lanes[i].num].len;
	q->done++;
}

/* Return: did all of it end in time? */
static bool work(struct host *h, struct ibv_mr *warm, struct ibv_mr *cold)
{
	const uint64_t end = host_now() + arg.limit_ns;
	struct ibv_wc wc[DEPTH];

	while (lane[0].done < lane[0].all || lane[1].done < lane[1].all) {
		int got;

		for (unsigned i = 0; i < LANES; i++)
			while (lane[i].posted < lane[i].all &&
			       lane[i].posted - lane[i].done < WINDOW)
				post(i, warm, cold);
		got = ibv_poll_cq(h->cq, DEPTH, wc);
		REQUIRE(got >= 0);
		for (int k = 0; k < got; k++)
			take(&wc[k]);
		if (!got && host_now() > end)
			return false;
		if (!got)
			sched_yield();
	}
	return true;
}

static void report(uint64_t ns, bool all)
{
	static const char *const names[LANES] = {"large", "mixed"};

	out_row("seconds", "%.6f", (double)ns / SECOND);
	out_row("bytes", "%llu",
		(unsigned long long)(lane[0].bytes + lane[1].bytes));
	out_row("operations", "%u\t%u", lane[0].done + lane[1].done,
		lane[0].all + lane[1].all);
	out_row("ended", "%d", all);
	for (unsigned i = 0; i < LANES; i++)
		if (lane[i].done)
			out_dist(names[i], us[i], lane[i].done);
}

static void requester(int fd)
{
	struct ibv_mr *warm, *mr;
	struct cold c;
	struct host h;
	uint64_t began;
	bool all;

	cold_open(&c, arg.kind, arg.rounds * (size_t)HERE, 1);
	host_open(&h);
	warm = touched(&h, LARGE + MIDDLE);
	mr = host_reg(&h, c.base, cold_size(&c));
	for (unsigned i = 0; i < LANES; i++) {
		lane[i].all = arg.rounds * lanes[i].num;
		link_open(&lane[i].l, &h, fd, NULL);
	}
	cold_round(&c);
	REQUIRE(host_hear(fd) == 0); /* the target is cold, too */
	began = host_now();
	all = work(&h, warm, mr);
	report(host_now() - began, all);
	host_say(fd, 0);
	for (unsigned i = 0; i < LANES; i++)
		link_close(&lane[i].l);
	host_dereg(warm);
	host_dereg(mr);
	host_close(&h);
	out_counters("requester");
	fflush(stdout);
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4 || argc == 5);
	arg.kind = argv[1];
	arg.rounds = (unsigned)number(argv[2]);
	arg.limit_ns = number(argv[3]) * SECOND;
	arg.where = argc == 5 ? argv[4] : NULL;
	REQUIRE(arg.rounds && arg.rounds <= ROUNDS_MAX);
	host_start();
	requester(host_fork(target));
	host_join();
	return 0;
}
