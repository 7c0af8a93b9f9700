/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* unpinned.c: what does it cost that no memory is pinned? Two pairs of
 * processes, one with NOPIN_REG=ondemand and one with NOPIN_REG=pin, live side
 * by side, warm; in short turns one of them WRITEs and the other sleeps, so
 * that a change of the host's speed meets both.
 *
 *   unpinned [-r REGION_MIB] [-t MS] [-n TURNS]
 *
 * Prints for each kind of WRITE the median of the turns of each pair, in
 * operations a second, and the median of their ratios (below 1: unpinned is
 * slower). The target of the WRITEs polls its CQ.
 *
 * Theory of operation. The parent makes no verbs call. It gives one turn to a
 * requester and its responder through pipes; the responder polls until the
 * requester, through a shared page, says that the turn is over.
 */
#include "bench.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MODES = 2, DEPTH = 64, BIG = 1 << 20, TURNS_MAX = 1000, SWEEP = 3 };

static const char *const modes[MODES] = {"ondemand", "pin"};

/** struct kind - @bytes each; @depth: outstanding; @random: a page, or page 0. */
static const struct kind {
	const char *name;
	uint32_t bytes, depth;
	bool random;
} kinds[] = {
	{"hot 8 B", 8, 16, false},	  {"hot 4 KiB", 4096, 16, false},
	{"hot 1 MiB", BIG, 2, false},	  {"random 8 B", 8, 16, true},
	{"random 4 KiB", 4096, 16, true},
};

/** struct turn - What a requester is to do. @ms 0: each page once, in order. */
struct turn {
	uint32_t kind, ms;
};

struct result {
	uint64_t ops, ns;
};

/** struct pair - Ends of the socket pairs that the parent holds. */
struct pair {
	int requester, responder;
};

struct options {
	uint64_t region; /* bytes */
	unsigned ms, turns;
};

/* In a page that all processes share: turns that are over, of each pair. */
static volatile uint64_t *over;

static uint64_t random_next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* --- the requester ------------------------------------------------------------ */

static struct result take_turn(struct dev *d, struct ibv_qp *qp,
			       const struct ibv_mr *from, const struct addr *to,
			       const struct turn *turn, uint64_t pages)
{
	const struct kind *k = &kinds[turn->kind];
	uint64_t posted = 0, done = 0, state = 88172645463325252u, page;
	const uint64_t start = now_ns(), ns = turn->ms * UINT64_C(1000000);
	bool more = true;

	state ^= start;
	while (more || done < posted) {
		while (more && posted - done < k->depth) {
			page = !turn->ms    ? posted
			       : !k->random ? 0
					    : random_next(&state) % pages;
			dev_write(qp, from, k->bytes, to, page * PAGE);
			posted++;
			more = turn->ms ? now_ns() - start < ns
					: posted < pages;
		}
		done += dev_poll(d);
	}
	return (struct result){done, now_ns() - start};
}

static void requester(const struct options *o, int parent, int peer, int mode)
{
	struct addr to, mine;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct turn turn;
	struct dev d;

	dev_open(&d, 2 * DEPTH);
	mr = dev_reg(&d, untouched(BIG), BIG);
	if (!mr)
		die(errno, "ibv_reg_mr");
	qp = dev_qp(&d, DEPTH, 1);
	mine = dev_addr(&d, qp, NULL);
	send_all(peer, &mine, sizeof(mine));
	recv_all(peer, &to, sizeof(to));
	dev_connect(&d, qp, &to);
	for (;;) {
		struct result r;

		recv_all(parent, &turn, sizeof(turn));
		r = take_turn(&d, qp, mr, &to, &turn, o->region / PAGE);
		over[mode]++;
		send_all(parent, &r, sizeof(r));
	}
}

/* --- the responder ------------------------------------------------------------ */

static void responder(const struct options *o, int parent, int peer, int mode)
{
	char *region = untouched(o->region);
	struct addr to, mine;
	uint64_t turns = 0;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	struct dev d;
	char go = 0;

	for (uint64_t at = 0; at < o->region; at += PAGE)
		region[at] = 1;
	dev_open(&d, 2 * DEPTH);
	mr = dev_reg(&d, region, o->region);
	if (!mr)
		skip("%s: ibv_reg_mr: %s", modes[mode], strerror(errno));
	qp = dev_qp(&d, 1, 1);
	mine = dev_addr(&d, qp, mr);
	recv_all(peer, &to, sizeof(to));
	send_all(peer, &mine, sizeof(mine));
	dev_connect(&d, qp, &to);
	send_all(parent, &go, 1);
	for (;;) {
		recv_all(parent, &go, 1);
		for (turns++; over[mode] < turns;)
			dev_poll(&d);
	}
}

/* --- the parent --------------------------------------------------------------- */

static int start(const struct options *o, int mode, int peer,
		 void (*main)(const struct options *, int, int, int))
{
	int ends[2];
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		die(errno, "socketpair");
	child = fork();
	if (child < 0)
		die(errno, "fork");
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(ends[0]);
		setenv("NOPIN_REG", modes[mode], 1);
		main(o, ends[1], peer, mode);
	}
	close(ends[1]);
	return ends[0];
}

static struct pair pair_start(const struct options *o, int mode)
{
	struct pair p;
	int link[2];
	char ready;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, link))
		die(errno, "socketpair");
	p.responder = start(o, mode, link[0], responder);
	p.requester = start(o, mode, link[1], requester);
	close(link[0]);
	close(link[1]);
	recv_all(p.responder, &ready, 1);
	return p;
}

/* Return: operations a second. */
static double pair_turn(const struct pair *p, uint32_t kind, uint32_t ms)
{
	struct turn turn = {kind, ms};
	struct result r;
	char go = 0;

	send_all(p->responder, &go, 1);
	send_all(p->requester, &turn, sizeof(turn));
	recv_all(p->requester, &r, sizeof(r));
	return (double)r.ops / (double)r.ns * 1e9;
}

static void measure(const struct pair *pairs, uint32_t kind,
		    const struct options *o)
{
	static double rate[MODES][TURNS_MAX], ratio[TURNS_MAX];
	const char *name = kinds[kind].name;

	for (unsigned i = 0; i < o->turns; i++) {
		/* who is first changes: the second finds the caches colder */
		for (unsigned k = 0; k < MODES; k++) {
			unsigned mode = (k + i) % MODES;

			rate[mode][i] = pair_turn(&pairs[mode], kind, o->ms);
		}
		ratio[i] = rate[0][i] / rate[1][i];
	}
	for (unsigned k = 0; k < MODES; k++)
		printf("%s, %s %.0f\n", name, modes[k],
		       quantile(rate[k], o->turns, 0.5));
	printf("%s, ratio %.4f\n", name, quantile(ratio, o->turns, 0.5));
	printf("%s, spread %.4f\n", name,
	       quantile(ratio, o->turns, 0.75) -
		       quantile(ratio, o->turns, 0.25));
	fflush(stdout);
}

/* The pin mode needs the right to lock the region; what may be raised is. */
static void raise_memlock(uint64_t bytes)
{
	struct rlimit l;

	getrlimit(RLIMIT_MEMLOCK, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_MEMLOCK, &l);
	if (geteuid() && l.rlim_cur < bytes + BIG)
		skip("pinning %llu MiB needs root or ulimit -l",
		     (unsigned long long)bytes >> 20);
}

int main(int argc, char **argv)
{
	struct options o = {
		.region = UINT64_C(4096) << 20, .ms = 100, .turns = 15};
	struct pair pairs[MODES];
	int c;

	while ((c = getopt(argc, argv, "r:t:n:")) != -1)
		if (c == 'r')
			o.region = strtoull(optarg, NULL, 0) << 20;
		else if (c == 't')
			o.ms = (unsigned)atoi(optarg);
		else if (c == 'n')
			o.turns = (unsigned)atoi(optarg);
		else
			return 2;
	if (o.region < BIG || !o.ms || !o.turns || o.turns > TURNS_MAX)
		die(0, "a number is out of range");
	raise_memlock(o.region);
	over = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (over == MAP_FAILED)
		die(errno, "mmap");
	for (int mode = 0; mode < MODES; mode++)
		pairs[mode] = pair_start(&o, mode);
	for (int mode = 0; mode < MODES; mode++)
		printf("warming, %s %.0f\n", modes[mode],
		       pair_turn(&pairs[mode], SWEEP, 0));
	fflush(stdout);
	for (uint32_t k = 0; k < ARRAY_SIZE(kinds); k++)
		measure(pairs, k, &o);
	return 0;
}
