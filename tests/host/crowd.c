/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* crowd.c: many processes of a host, each connected to all of them, itself included.
 * Nobody waits for anybody: who has connected writes at once, to peers that are not
 * ready yet, too. Each word arrives from whom it is, where it belongs, once and in
 * order; nobody is asked for what is another's.
 *
 *   crowd PROCESSES
 */
#include "host.h"

#include <arpa/inet.h>
#include <sched.h>
#include <string.h>

enum { MOST = 64, WORD = 1024, ROUNDS = 3 };

/**
 * struct board - What the processes know of each other.
 * @card:	of each, for each, how to connect
 * @done:	so many need nobody any more
 */
static struct board {
	struct link_card card[MOST][MOST];
	uint32_t done;
} * board;
static unsigned num, self;

/** struct member - One process: where all write to, and from where. */
static struct member {
	struct host h;
	struct link l[MOST];
	struct ibv_mr *mr;
	uint8_t *in, *out;
	unsigned sent, heard, next[MOST];
} me;

static uint64_t word_of(unsigned from, unsigned to, unsigned round)
{
	return (uint64_t)round << 16 | from << 8 | to;
}

static unsigned from_of(const struct ibv_wc *wc)
{
	unsigned i = 0;

	while (me.l[i].qp->qp_num != wc->qp_num)
		i++;
	return i;
}

/* From one peer the rounds come in order. */
static void heard(const struct ibv_wc *wc)
{
	const unsigned from = from_of(wc), round = me.next[from]++;

	REQUIRE_EQ(ntohl(wc->imm_data), word_of(from, self, round));
	REQUIRE_EQ(wc->byte_len, WORD);
	host_check(me.in + (size_t)(from * ROUNDS + round) * WORD, WORD,
		   word_of(from, self, round));
	me.heard++;
}

/* Return: false: no completion is there. */
static bool take(void)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(me.h.cq, 1, &wc) != 1)
		return false;
	REQUIRE_EQ(wc.status, IBV_WC_SUCCESS);
	if (wc.opcode & IBV_WC_RECV)
		heard(&wc);
	else
		me.sent++;
	return true;
}

static void collect(unsigned to_send, unsigned to_hear)
{
	while (me.sent < to_send || me.heard < to_hear)
		if (!take())
			sched_yield();
}

static void write_to(unsigned to, unsigned round)
{
	const size_t at = (size_t)(to * ROUNDS + round) * WORD;
	struct ibv_sge sge = {(uintptr_t)me.out + at, WORD, me.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		      .imm_data = htonl((uint32_t)word_of(self, to, round)),
		      .wr.rdma = {me.l[to].va +
					  (size_t)(self * ROUNDS + round) *
						  WORD,
				  me.l[to].rkey}};

	host_fill(me.out + at, WORD, word_of(self, to, round));
	REQUIRE(ibv_post_send(me.l[to].qp, &wr, &bad) == 0);
	while (take())
		;
}

static void open_all(size_t bytes)
{
	host_open(&me.h);
	me.in = host_map(NULL, 2 * bytes);
	me.out = me.in + bytes;
	me.mr = host_reg(&me.h, me.in, 2 * bytes);
	for (unsigned i = 0; i < num; i++) {
		link_make(&me.l[i], &me.h, me.mr, &board->card[self][i]);
		__atomic_store_n(&board->card[self][i].told, true,
				 __ATOMIC_RELEASE);
	}
}

/* The peer has told its number, and may not have connected yet. */
static void connect_all(void)
{
	for (unsigned k = 0; k < num; k++) {
		const unsigned i = (self + k) % num;
		const struct link_card *theirs = &board->card[i][self];

		while (!__atomic_load_n(&theirs->told, __ATOMIC_ACQUIRE))
			sched_yield();
		link_connect(&me.l[i], &board->card[self][i], theirs);
		for (unsigned r = 0; r < ROUNDS; r++)
			link_recv(&me.l[i], me.mr, me.in, 0);
		write_to(i, 0);
	}
}

static void close_all(void)
{
	__atomic_add_fetch(&board->done, 1, __ATOMIC_RELEASE);
	while (__atomic_load_n(&board->done, __ATOMIC_ACQUIRE) < num)
		host_poll(&me.h, 1);
	for (unsigned i = 0; i < num; i++)
		link_close(&me.l[i]);
	host_dereg(me.mr);
	host_close(&me.h);
	/* Who hears nothing of a busy peer speaks as to a card, and may be
	 * dropped once the peer is ready (drop_epoch); that is no mistake. */
	REQUIRE_EQ(host_counter("drop_peer"), 0);
	REQUIRE_EQ(host_counter("drop_icrc"), 0);
}

static void member(int fd)
{
	self = (unsigned)host_hear(fd);
	open_all((size_t)num * ROUNDS * WORD);
	connect_all();
	for (unsigned r = 1; r < ROUNDS; r++) {
		for (unsigned i = 0; i < num; i++)
			write_to(i, r);
		collect((r + 1) * num, 0);
	}
	collect(ROUNDS * num, ROUNDS * num);
	close_all();
}

int main(int argc, char **argv)
{
	int fd[MOST];

	num = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
	REQUIRE(num > 0 && num <= MOST);
	host_start();
	board = host_shared(sizeof(*board));
	for (unsigned i = 0; i < num; i++)
		fd[i] = host_fork(member);
	for (unsigned i = 0; i < num; i++)
		host_say(fd[i], i);
	host_join();
	return 0;
}
