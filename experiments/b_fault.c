/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* b_fault.c: what does a message cost whose pages are not there? WRITEs of BYTES
 * to memory that is there and to memory that is not, in turns; the CPU's own
 * touch of as much cold memory, in the same rounds.
 *
 *   b_fault KIND remote|local|into BYTES MESSAGES ROUNDS [hold]
 *   b_fault wake
 *
 * KIND: see cold_open(). MESSAGES: cold ones a round. "remote": the target's
 * memory is cold, "local": the source's, "into": the place of a READ. "hold": after each round print a line
 * with the pid of the process that met the faults, and wait for a line on
 * standard input: the time to ask its NIC what it did (nopin trace).
 *
 * "wake": what it costs to wake another thread.
 */
#include "lib.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { SAMPLES_MAX = 1 << 16, PAUSE = 64 };

static struct {
	const char *kind;
	bool local, hold;
	enum ibv_wr_opcode op;
	size_t bytes;
	unsigned messages, rounds;
} arg;

static double cpu[SAMPLES_MAX], warm[SAMPLES_MAX], cold[SAMPLES_MAX];
static double more[SAMPLES_MAX];

/* --- the two halves of a round --------------------------------------------------- */

/* Messages in an order that no read-ahead guesses; the CPU has the even ones. */
static size_t place_of(unsigned i, bool nic)
{
	return (2 * (size_t)((i * 37 + 11) % arg.messages) + nic) * arg.bytes;
}

static size_t window_bytes(void)
{
	return 2 * (size_t)arg.messages * arg.bytes;
}

static void touch(uint8_t *window, double *us)
{
	for (unsigned i = 0; i < arg.messages; i++) {
		volatile uint8_t *p = window + place_of(i, false);
		const uint64_t from = host_now();

		for (size_t at = 0; at < arg.bytes; at += PAGE)
			p[at] = 1;
		us[i] = (double)(host_now() - from) / US;
	}
}

/* A message between @from of @mr and the peer's @at. Return: us. */
static double write_us(struct link *l, struct ibv_mr *mr, const uint8_t *from,
		       uint64_t at, uint32_t rkey)
{
	const uint64_t start = host_now();

	l->va = at;
	l->rkey = rkey;
	link_post(l, arg.op, mr, from, (uint32_t)arg.bytes, 0);
	while (!host_poll(l->h, 1))
		;
	return (double)(host_now() - start) / US;
}

static struct ibv_mr *touched(struct host *h)
{
	struct ibv_mr *mr = host_reg(h, host_map(NULL, arg.bytes), arg.bytes);

	memset(mr->addr, 1, arg.bytes);
	return mr;
}

/* Whoever's NIC met the faults. */
static void hold(unsigned round)
{
	char line[16];

	if (!arg.hold)
		return;
	out_row("hold", "%u\t%d", round, (int)getpid());
	fflush(stdout);
	REQUIRE(fgets(line, sizeof(line), stdin));
}

/* --- remote: the target is cold -------------------------------------------------- */

/* The NIC of a program that polls; the requester is told by @fd. */
static void poll_until_told(struct host *h, int fd)
{
	uint64_t word;

	while (recv(fd, &word, sizeof(word), MSG_DONTWAIT) < 0)
		for (int k = 0; k < PAUSE; k++)
			host_poll(h, 1);
}

static void cold_target(int fd)
{
	struct ibv_mr *mr, *stays;
	struct cold c;
	struct host h;
	struct link l;

	cold_open(&c, arg.kind, window_bytes(), arg.rounds);
	host_open(&h);
	stays = touched(&h);
	mr = host_reg(&h, c.base, cold_size(&c));
	link_open(&l, &h, fd, stays);
	host_say(fd, mr->rkey);
	for (unsigned r = 0; r < arg.rounds; r++) {
		uint8_t *window = cold_round(&c);

		touch(window, cpu);
		host_say(fd, (uintptr_t)window);
		REQUIRE(send(fd, cpu, arg.messages * sizeof(*cpu), 0) > 0);
		poll_until_told(&h, fd);
		hold(r);
		host_say(fd, 0);
	}
	link_close(&l);
	host_dereg(mr);
	host_dereg(stays);
	host_close(&h);
	out_counters("faulter");
}

static size_t remote_round(struct link *l, struct ibv_mr *from, int fd,
			   uint32_t rkey, size_t n)
{
	const uint64_t stays = l->va, window = host_hear(fd);
	const uint32_t stays_key = l->rkey;

	REQUIRE(recv(fd, cpu + n, arg.messages * sizeof(*cpu), MSG_WAITALL) ==
		(ssize_t)(arg.messages * sizeof(*cpu)));
	for (unsigned i = 0; i < arg.messages; i++, n++) {
		warm[n] = write_us(l, from, from->addr, stays, stays_key);
		cold[n] = write_us(l, from, from->addr,
				   window + place_of(i, true), rkey);
		more[n] = cold[n] - warm[n];
	}
	l->va = stays;
	l->rkey = stays_key;
	host_say(fd, 0);
	REQUIRE(host_hear(fd) == 0); /* the target has held */
	return n;
}

/* --- local, into: ours is cold ---------------------------------------------------- */

static void warm_target(int fd)
{
	struct ibv_mr *stays;
	struct host h;
	struct link l;

	host_open(&h);
	stays = touched(&h);
	link_open(&l, &h, fd, stays);
	for (unsigned r = 0; r < arg.rounds; r++)
		poll_until_told(&h, fd);
	host_say(fd, 0);
	link_close(&l);
	host_dereg(stays);
	host_close(&h);
}

static size_t local_round(struct link *l, struct ibv_mr *from,
			  struct ibv_mr *mr, struct cold *c, size_t n)
{
	uint8_t *window = cold_round(c);

	touch(window, cpu + n);
	for (unsigned i = 0; i < arg.messages; i++, n++) {
		warm[n] = write_us(l, from, from->addr, l->va, l->rkey);
		cold[n] = write_us(l, mr, window + place_of(i, true), l->va,
				   l->rkey);
		more[n] = cold[n] - warm[n];
	}
	return n;
}

/* --- both -------------------------------------------------------------------------- */

static void report(size_t n)
{
	out_dist("cpu", cpu, n);
	out_dist("warm", warm, n);
	out_dist("cold", cold, n);
	out_dist("added", more, n);
}

static void remote(int fd)
{
	struct ibv_mr *from;
	struct host h;
	struct link l;
	uint32_t rkey;
	size_t n = 0;

	host_open(&h);
	from = touched(&h);
	link_open(&l, &h, fd, NULL);
	rkey = (uint32_t)host_hear(fd);
	for (unsigned r = 0; r < arg.rounds; r++)
		n = remote_round(&l, from, fd, rkey, n);
	link_close(&l);
	host_dereg(from);
	host_close(&h);
	report(n);
	out_counters("peer");
}

static void local(int fd)
{
	struct ibv_mr *from, *mr;
	struct cold c;
	struct host h;
	struct link l;
	size_t n = 0;

	cold_open(&c, arg.kind, window_bytes(), arg.rounds);
	host_open(&h);
	from = touched(&h);
	mr = host_reg(&h, c.base, cold_size(&c));
	link_open(&l, &h, fd, NULL);
	for (unsigned r = 0; r < arg.rounds; r++) {
		n = local_round(&l, from, mr, &c, n);
		hold(r);
		host_say(fd, 0);
	}
	REQUIRE(host_hear(fd) == 0);
	link_close(&l);
	host_dereg(from);
	host_dereg(mr);
	host_close(&h);
	report(n);
	out_counters("faulter");
}

/* --- waking a thread ----------------------------------------------------------------- */

static int there, back;

static void *echo(void *unused)
{
	uint64_t one;

	while (read(there, &one, sizeof(one)) == sizeof(one))
		REQUIRE(write(back, &one, sizeof(one)) == sizeof(one));
	return unused;
}

/* Half of a round trip between threads that sleep. */
static void wake(void)
{
	enum { TIMES = 5000 };
	uint64_t one = 1;
	pthread_t t;

	there = eventfd(0, 0);
	back = eventfd(0, 0);
	REQUIRE(pthread_create(&t, NULL, echo, NULL) == 0);
	for (int i = 0; i < TIMES; i++) {
		const uint64_t from = host_now();

		REQUIRE(write(there, &one, sizeof(one)) == sizeof(one));
		REQUIRE(read(back, &one, sizeof(one)) == sizeof(one));
		cpu[i] = (double)(host_now() - from) / 2 / US;
	}
	out_dist("wake", cpu, TIMES);
}

int main(int argc, char **argv)
{
	host_start();
	if (argc == 2 && !strcmp(argv[1], "wake")) {
		wake();
		return 0;
	}
	REQUIRE(argc >= 6);
	arg.kind = argv[1];
	arg.op = strcmp(argv[2], "into") ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
	arg.local = strcmp(argv[2], "remote");
	arg.bytes = number(argv[3]);
	arg.messages = (unsigned)number(argv[4]);
	arg.rounds = (unsigned)number(argv[5]);
	arg.hold = argc > 6;
	REQUIRE(arg.messages * arg.rounds <= SAMPLES_MAX);
	REQUIRE(arg.messages % 37 && arg.bytes % PAGE == 0);
	if (arg.local) {
		local(host_fork(warm_target));
	} else {
		/* the faulter is the parent: its pid is known, it has stdin */
		cold_target(host_fork(remote));
	}
	host_join();
	return 0;
}
