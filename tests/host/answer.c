/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* answer.c: a request completes before its answer does. Two processes take turns, each
 * says what it has to when the other's word has come, so the request of one is the
 * answer of the other. Whatever is said, by a SEND, with immediate data, by a WRITE
 * that the other polls memory for, in one packet or many, with a page missing that is
 * asked for behind it: who finds it looks whether what it said before has completed.
 * The verdict is how often it had not.
 *
 *   answer ROUNDS [standard]
 *
 * "standard": the NICs take each other for cards. $NS_A, $NS_B: the network namespaces
 * of the two, if they are on different hosts (../net/topology.sh).
 */
#include "host.h"

#include <arpa/inet.h>
#include <sched.h>
#include <string.h>

enum {
	LONGEST = 32768,
	RECVS = 4,
	PAGES = 32, /* that come late */
	WORDS_AT = RECVS * LONGEST, /* what is polled for */
	SOURCE_AT = WORDS_AT + LONGEST,
	BYTES = SOURCE_AT + LONGEST,
};
enum kind { REQUEST = 1, BEHIND, RECEIVE };

/**
 * struct shape - What is said first, and what is said to it.
 * @behind:	a WRITE to a page that is missing is posted after each request
 */
static const struct shape {
	const char *name;
	enum ibv_wr_opcode ask, answer;
	bool behind;
} shapes[] = {
	{"SEND", IBV_WR_SEND, IBV_WR_SEND, false},
	{"SEND with immediate data", IBV_WR_SEND_WITH_IMM, IBV_WR_SEND_WITH_IMM,
	 false},
	{"WRITE with immediate data", IBV_WR_RDMA_WRITE_WITH_IMM,
	 IBV_WR_RDMA_WRITE_WITH_IMM, false},
	{"polled WRITE", IBV_WR_RDMA_WRITE, IBV_WR_SEND_WITH_IMM, false},
	{"polled WRITES", IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, false},
	{"SEND before a fault", IBV_WR_SEND_WITH_IMM,
	 IBV_WR_RDMA_WRITE_WITH_IMM, true},
};
static const uint32_t lens[] = {8, 4096, 16384, 32768};

/**
 * struct speaker - One of the two.
 * @out:	requests that have not completed, WRITEs behind them not counted
 * @heard:	receives that have completed; @late: what came before its request had
 */
struct speaker {
	struct host h;
	struct link l;
	struct ibv_mr *mr, *late_mr;
	uint8_t *mem;
	struct slow slow;
	uint64_t out, behind, heard, late, late_va;
	uint32_t late_key;
};

static uint64_t rounds;

static uint64_t *last_word(uint8_t *at, uint32_t len)
{
	return (uint64_t *)(at + len - sizeof(uint64_t));
}

static void receive(struct speaker *s, unsigned i)
{
	struct ibv_sge sge = {(uintptr_t)s->mem + i * LONGEST, LONGEST,
			      s->mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = RECEIVE, .sg_list = &sge, .num_sge = 1};

	REQUIRE(ibv_post_recv(s->l.qp, &wr, &bad) == 0);
}

static void post(struct speaker *s, enum kind kind, enum ibv_wr_opcode op,
		 uint32_t len, uint64_t va, uint32_t key)
{
	struct ibv_sge sge = {(uintptr_t)s->mem + SOURCE_AT, len, s->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = kind,
				       .sg_list = &sge,
				       .num_sge = 1,
				       .opcode = op,
				       .send_flags = IBV_SEND_SIGNALED,
				       .imm_data = htonl(len),
				       .wr.rdma = {va, key}};

	REQUIRE(ibv_post_send(s->l.qp, &wr, &bad) == 0);
}

/* Return: false: no completion is there. */
static bool collect(struct speaker *s)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(s->h.cq, 1, &wc) != 1)
		return false;
	REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
	if (wc.wr_id == RECEIVE) {
		s->late += s->out != 0;
		receive(s, (unsigned)(s->heard++ % RECVS));
	} else {
		*(wc.wr_id == REQUEST ? &s->out : &s->behind) -= 1;
	}
	return true;
}

/* The buffer that is sent from is one: until what it held is there. */
static void say(struct speaker *s, enum ibv_wr_opcode op, uint32_t len,
		uint64_t n)
{
	while (s->out || s->behind)
		if (!collect(s))
			sched_yield();
	*last_word(s->mem + SOURCE_AT, len) = n;
	s->out++;
	post(s, REQUEST, op, len, s->l.va + WORDS_AT, s->l.rkey);
}

/* Word @n; @seen: how many receives before it there were. */
static void hear(struct speaker *s, enum ibv_wr_opcode op, uint32_t len,
		 uint64_t n, uint64_t seen)
{
	const uint64_t *word = last_word(s->mem + WORDS_AT, len);

	if (op != IBV_WR_RDMA_WRITE) {
		while (s->heard == seen)
			if (!collect(s))
				sched_yield();
		return;
	}
	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != n)
		sched_yield();
	while (collect(s))
		;
	s->late += s->out != 0;
}

static void faults_return(struct speaker *s, int fd, bool asks)
{
	if (asks) {
		while (s->behind)
			collect(s);
		host_say(fd, 0);
		host_hear(fd);
		return;
	}
	host_hear(fd);
	slow_evict(&s->slow, 0, PAGES * PAGE);
	host_say(fd, 0);
}

static void talk(struct speaker *s, int fd, const struct shape *sh,
		 uint32_t len, bool asks)
{
	const uint64_t before = s->late;

	memset(s->mem + WORDS_AT, 0, LONGEST);
	host_say(fd, 0); /* from now on it may be written to */
	host_hear(fd);
	for (uint64_t n = 1; n <= rounds; n++) {
		const uint64_t seen = s->heard;

		if (sh->behind && n % PAGES == 1)
			faults_return(s, fd, asks);
		if (!asks)
			hear(s, sh->ask, len, n, seen);
		say(s, asks ? sh->ask : sh->answer, len, n);
		if (asks && sh->behind) {
			s->behind++;
			post(s, BEHIND, IBV_WR_RDMA_WRITE, 8,
			     s->late_va + n % PAGES * PAGE, s->late_key);
		}
		if (asks)
			hear(s, sh->answer, len, n, seen);
	}
	while (s->out || s->behind)
		collect(s);
	if (s->late != before)
		fprintf(stderr, "%s of %u bytes, %s: %llu of %llu\n", sh->name,
			len, asks ? "asked" : "answered",
			(unsigned long long)(s->late - before),
			(unsigned long long)rounds);
}

static void speak(int fd, bool asks)
{
	static struct speaker s;
	uint8_t *pages = host_map(NULL, PAGES * PAGE);

	host_open(&s.h);
	s.mem = host_map(NULL, BYTES);
	s.mr = host_reg(&s.h, s.mem, BYTES);
	slow_open(&s.slow, SLOW_USER, pages, PAGES * PAGE, 20000);
	s.late_mr = host_reg(&s.h, pages, PAGES * PAGE);
	link_open(&s.l, &s.h, fd, s.mr);
	host_say_mr(fd, s.late_mr);
	s.late_va = host_hear(fd);
	s.late_key = (uint32_t)host_hear(fd);
	for (unsigned i = 0; i < RECVS; i++)
		receive(&s, i);
	for (unsigned i = 0; i < ARRAY_SIZE(shapes); i++)
		for (unsigned k = 0; k < ARRAY_SIZE(lens); k++)
			talk(&s, fd, &shapes[i], lens[k], asks);
	host_say(fd, 0);
	host_hear(fd);
	link_close(&s.l);
	host_dereg(s.late_mr);
	host_dereg(s.mr);
	host_close(&s.h);
	REQUIRE_EQ(s.late, 0);
}

static void enter(const char *where)
{
	const char *name = getenv(where);

	if (name)
		host_enter(name);
}

static void answers(int fd)
{
	enter("NS_B");
	speak(fd, false);
}

int main(int argc, char **argv)
{
	int fd;

	rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
	REQUIRE(rounds > 0);
	if (argc == 3)
		setenv("NOPIN_TEST", argv[2], 1);
	host_start();
	fd = host_fork(answers);
	enter("NS_A");
	speak(fd, true);
	host_join();
	return 0;
}
