/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* word.c: programs legally change buffers in flight, such as a queue's head
 * that peers READ. A thread of the owner changes one word of a 4 KiB buffer
 * without pause while a peer READs the buffer and the owner SENDs it: nothing
 * is dropped, nothing is sent again, nothing fails, and the words on both sides
 * of the changing one arrive as they are.
 *
 *   word ROUNDS [standard]
 *   word READS SENDS (owner | peer) FD
 *
 * ROUNDS READs and as many SENDs. "standard": both NICs know no extensions, so
 * that ICRC covers the payload, as towards a card. With a role, only that: the
 * other one is at the other end of the stream socket FD, and its NIC may be any
 * (tests/net/interop).
 */
#include "host.h"

#include <pthread.h>
#include <string.h>

enum { AHEAD = 16, WORD = PAGE / 2 / sizeof(uint64_t) };

static struct {
	uint64_t reads, sends;
} arg;

/* Good in every word but the one that changes. @seen: what it was. */
static void check(const uint64_t *buf, uint64_t *seen)
{
	for (size_t i = 0; i < PAGE / sizeof(*buf); i++)
		if (i != WORD && buf[i] != ~(uint64_t)i)
			REQUIRE_EQ(buf[i], ~(uint64_t)i);
	/* READs of a connection are executed in order. */
	REQUIRE_LE(*seen, buf[WORD]);
	*seen = buf[WORD];
}

static void finish(struct host *h)
{
	static const char *const drops[] = {
		"drop_short", "drop_opcode",  "drop_version", "drop_length",
		"drop_pad",   "drop_icrc",    "drop_nonce",   "drop_peer",
		"drop_psn",   "drop_no_slot", "drop_ext"};

	host_close(h);
	if (!h->nopin)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(drops); i++)
		REQUIRE_EQ(host_counter(drops[i]), 0);
	/* what was sent twice may come when its QP is gone */
	if (host_counter("drop_qpn"))
		host_retried("heard of a QP that is gone");
	host_no_retries();
}

/* --- the peer ------------------------------------------------------------------- */

static void read_rounds(struct link *l, struct ibv_mr *mr)
{
	uint64_t seen = 0;

	for (uint64_t n = 0, done = 0; done < arg.reads; done++) {
		for (; n < arg.reads && n < done + AHEAD; n++)
			link_post(l, IBV_WR_RDMA_READ, mr,
				  (char *)mr->addr + n % AHEAD * PAGE, PAGE, 0);
		host_wait(l->h, 1);
		check((uint64_t *)mr->addr + done % AHEAD * PAGE / 8, &seen);
	}
}

/* Receives, in buffers that are posted again when they were looked at. */
static void receive_rounds(struct link *l, struct ibv_mr *mr, int fd)
{
	uint64_t seen = 0;

	for (int i = 0; i < AHEAD; i++)
		link_recv(l, mr, (char *)mr->addr + i * PAGE, PAGE);
	host_say(fd, 0);
	for (uint64_t n = 0; n < arg.sends; n++) {
		char *at = (char *)mr->addr + n % AHEAD * PAGE;

		host_wait(l->h, 1);
		check((uint64_t *)at, &seen);
		link_recv(l, mr, at, PAGE);
		if (n % (AHEAD / 2) == 0)
			host_say(fd, n);
	}
}

static void peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, AHEAD * PAGE), AHEAD * PAGE);
	link_open(&l, &h, fd, mr);
	read_rounds(&l, mr);
	receive_rounds(&l, mr, fd);
	REQUIRE(host_hear(fd) == 0);
	link_close(&l);
	host_dereg(mr);
	finish(&h);
}

/* --- the owner ------------------------------------------------------------------- */

static bool stop;

static void *change(void *word)
{
	volatile uint64_t *w = word;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
		++*w;
	return NULL;
}

/* The peer says after every AHEAD / 2 that it posted so many again. */
static void send_rounds(struct link *l, struct ibv_mr *mr, int fd)
{
	uint64_t posted = 0;

	REQUIRE(host_hear(fd) == 0);
	for (uint64_t n = 0; n < arg.sends; n++) {
		while (n >= posted + AHEAD)
			posted = host_hear(fd) + 1;
		link_post(l, IBV_WR_SEND, mr, mr->addr, PAGE, 0);
		host_wait(l->h, 1);
	}
}

static void owner(int fd)
{
	uint64_t *buf = host_map(NULL, PAGE);
	struct ibv_mr *mr;
	pthread_t thread;
	struct host h;
	struct link l;

	for (size_t i = 0; i < PAGE / sizeof(*buf); i++)
		buf[i] = i == WORD ? 0 : ~(uint64_t)i;
	host_open(&h);
	mr = host_reg(&h, buf, PAGE);
	link_open(&l, &h, fd, mr);
	REQUIRE(pthread_create(&thread, NULL, change, &buf[WORD]) == 0);
	send_rounds(&l, mr, fd);
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	printf("%llu changes\n", (unsigned long long)buf[WORD]);
	host_say(fd, 0);
	link_close(&l);
	host_dereg(mr);
	finish(&h);
}

int main(int argc, char **argv)
{
	int fd;

	REQUIRE(argc >= 2);
	arg.reads = arg.sends = strtoull(argv[1], NULL, 0);
	if (argc == 3)
		setenv("NOPIN_TEST", argv[2], 1);
	host_start();
	if (argc == 5) {
		arg.sends = strtoull(argv[2], NULL, 0);
		(strcmp(argv[3], "owner") == 0 ? owner : peer)(atoi(argv[4]));
		return 0;
	}
	fd = host_fork(peer);
	owner(fd);
	host_join();
	return 0;
}
