/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* count.c: a fixed number of operations for valgrind's callgrind to count.
 *
 *   valgrind --tool=callgrind --fair-sched=yes --dump-before=bench_mark \
 *	build/bench/bench-count [PHASE...]
 *
 * Both processes call bench_mark() before and after each phase, so callgrind
 * writes the instructions of each phase in a file of its own; bench/run reads
 * them. The two use the library in turns: what a side polls for is there, so
 * counts hardly depend on who ran when. On stdout: who is who, and per phase
 * how many operations and how many polls of that side that found nothing; what
 * those cost is measured too, in the phase "idle", to be taken off. What is
 * spent in this program itself does not count: it waits for its turn in it.
 */
#include "bench.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	PAGES = 1024,
	BIG = 1 << 20,
	DEPTH = 16,
	IDLE_POLLS = 20000,
	EMPTY_POLLS = 3 /* after two an ACK that is owed goes out */
};

/** struct phase - @depth 0: ping-pong of SENDs; @random: pages, or page 0; @srq: between
 * QPs that take receives from a shared queue. */
static const struct phase {
	const char *name;
	uint32_t bytes, ops, depth;
	bool random, srq;
} phases[] = {
	{"idle", 0, 0, 0, false, false},
	{"warming", 8, PAGES, DEPTH, true, false},
	{"SEND 8 B", 8, 1000, 0, false, false},
	{"warming SRQ", 8, 16, 0, false, true},
	{"SEND 8 B, SRQ", 8, 1000, 0, false, true},
	{"hot 8 B", 8, 2000, DEPTH, false, false},
	{"random 8 B", 8, 2000, DEPTH, true, false},
	{"hot 4 KiB", 4096, 1000, DEPTH, false, false},
	{"random 4 KiB", 4096, 1000, DEPTH, true, false},
	{"hot 1 MiB", BIG, 50, 2, false, false},
};

struct side {
	struct dev d;
	struct ibv_qp *qp; /* of the phase: without an SRQ, or with one */
	struct ibv_qp *with[2];
	struct ibv_mr *mr;
	struct addr to;
	int peer;
	bool asks;
	unsigned phase;
	uint64_t empty; /* polls that found nothing */
};

/**
 * struct shared - In a page that both have.
 * @turn:	who may use the library: 1 the requester, 0 the responder
 * @finished:	phases that the requester is through with
 */
struct shared {
	unsigned turn, finished;
};
static volatile struct shared *shared;

void bench_mark(void);

__attribute__((noinline)) void bench_mark(void)
{
	__asm__ volatile("");
}

static unsigned poll_once(struct side *s)
{
	const unsigned n = dev_poll(&s->d);

	s->empty += n == 0;
	return n;
}

static void side_open(struct side *s)
{
	const size_t bytes = (size_t)PAGES * PAGE;
	char *region = untouched(bytes);
	struct addr mine;

	memset(region, 1, bytes);
	dev_open(&s->d, 4 * DEPTH);
	s->mr = dev_reg(&s->d, region, bytes);
	if (!s->mr)
		skip("ibv_reg_mr: %s", strerror(errno));
	s->with[0] = dev_qp(&s->d, DEPTH, DEPTH);
	s->with[1] = dev_srq_qp(&s->d, DEPTH,
				2 * DEPTH); /* two phases leave theirs */
	for (int srq = 1; srq >= 0; srq--) {
		s->qp = s->with[srq];
		mine = dev_addr(&s->d, s->qp, s->mr);
		send_all(s->peer, &mine, sizeof(mine));
		recv_all(s->peer, &s->to, sizeof(s->to));
		dev_connect(&s->d, s->qp, &s->to);
	}
}

/* A requester that is through needs no more turns. */
static void turn_take(const struct side *s)
{
	/* valgrind runs one thread at a time: let the others have theirs */
	while (shared->turn != s->asks && shared->finished <= s->phase)
		sched_yield();
}

/* Poll until nothing comes any more, then it is the other side's turn. */
static unsigned turn_end(struct side *s)
{
	unsigned empty = 0, total = 0, n;

	while (empty < EMPTY_POLLS) {
		n = poll_once(s);
		total += n;
		empty = n ? 0 : empty + 1;
	}
	shared->turn = !s->asks;
	return total;
}

/* Half of the completions are those of SENDs, which may come late. */
static void ping_pong(struct side *s, const struct phase *p)
{
	unsigned sent = 0, done = 0;

	while (done < 2 * p->ops) {
		turn_take(s);
		if (sent < p->ops &&
		    (s->asks ? done >= 2 * sent : done >= 2 * sent + 1)) {
			dev_recv(s->qp, s->mr, p->bytes);
			dev_send(s->qp, s->mr, p->bytes);
			sent++;
		}
		done += turn_end(s);
	}
}

static void stream(struct side *s, const struct phase *p)
{
	unsigned posted = 0, done = 0, page = 0;

	while (done < p->ops) {
		turn_take(s);
		while (posted < p->ops && posted - done < p->depth) {
			/* steps of an odd number visit all pages */
			page = p->random ? (page + 397) % PAGES : 0;
			dev_write(s->qp, s->mr, p->bytes, &s->to,
				  (uint64_t)page * PAGE);
			posted++;
		}
		done += turn_end(s);
	}
}

static void run_phase(struct side *s, unsigned index)
{
	const struct phase *p = &phases[index];

	s->empty = 0;
	s->phase = index;
	if (!p->ops)
		while (s->empty < IDLE_POLLS)
			poll_once(s);
	else if (!p->depth)
		ping_pong(s, p);
	else if (s->asks)
		stream(s, p);
	if (s->asks)
		shared->finished = index + 1;
	while (p->ops && !s->asks && shared->finished <= index) {
		turn_take(s);
		turn_end(s);
	}
}

static void both_here(struct side *s)
{
	char here = 0;

	send_all(s->peer, &here, 1);
	recv_all(s->peer, &here, 1);
}

/* @names: NULL at the end; without any, all are meant. */
static bool wanted(const struct phase *p, char **names)
{
	if (!*names || !p->bytes)
		return true;
	while (*names && strcmp(*names, p->name))
		names++;
	return *names != NULL;
}

static void play(struct side *s, char **names)
{
	side_open(s);
	for (unsigned i = 0; i < ARRAY_SIZE(phases); i++) {
		if (!wanted(&phases[i], names))
			continue;
		s->qp = s->with[phases[i].srq];
		for (int k = 1; k < DEPTH && !phases[i].depth && phases[i].ops;
		     k++)
			dev_recv(s->qp, s->mr, phases[i].bytes);
		if (s->asks)
			shared->turn = 1;
		both_here(s);
		bench_mark();
		run_phase(s, i);
		bench_mark();
		printf("%s %d %s: %u %llu\n",
		       s->asks ? "requester" : "responder", getpid(),
		       phases[i].name, phases[i].ops,
		       (unsigned long long)s->empty);
		fflush(stdout);
	}
	both_here(s);
}

int main(int argc, char **argv)
{
	struct side s = {0};
	int link[2];
	pid_t child;

	(void)argc;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_STREAM, 0, link))
		die(errno, "shared memory and sockets");
	child = fork();
	if (child < 0)
		die(errno, "fork");
	s.asks = child != 0;
	s.peer = link[child ? 0 : 1];
	close(link[child ? 1 : 0]);
	if (!child)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	play(&s, argv + 1);
	if (child)
		waitpid(child, NULL, 0);
	return 0;
}
