/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* m_notify.c: what it costs to be told of a WRITE, by how one waits for it.
 *
 *   m_notify TURNS [BYTES [WAY]]
 *
 * Two processes WRITE to each other in turn, each when it saw the other's. It sees
 * it
 *   write	in the last byte, polling; nobody is notified
 *   spin	by a counter, polling (NOPIN_WAIT_SPIN)
 *   word	by the counter's word, polling the CQ
 *   block	by a counter, asleep (NOPIN_WAIT_BLOCK)
 *   futex	by a counter, asleep (NOPIN_WAIT_FUTEX)
 *   run	in a handler on a thread of the program (nopin_counter_run())
 *   handler	in a handler on a thread of nopin's
 * and "udp" are datagrams of the same size between threads that sleep in recv().
 * In turns of EXCHANGES; prints the half round trips, in us, the mean of each turn.
 */
#include "lib.h"

#include <arpa/inet.h>
#include <nopin.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/socket.h>

enum { EXCHANGES = 100, TURNS_MAX = 1 << 12, LEN_MAX = 4096 };
enum way { WRITE, SPIN, WORD, BLOCK, FUTEX, RUN, HANDLER, UDP, WAYS };

static const char *const names[WAYS] = {"write", "spin", "word",    "block",
					"futex", "run",	 "handler", "udp"};

static unsigned turns;
static uint32_t len = 8;
static const char *only;

/**
 * struct side - @first: who begins. @want: of EXCHANGES how many are to come.
 * @theirs: identifiers of the peer's counters
 */
static struct side {
	bool first;
	struct host h;
	struct link l;
	struct ibv_mr *mr;
	volatile uint8_t *in, *out;
	struct nopin_counter *polled, *handled;
	uint32_t polled_id, handled_id;
	uint64_t polls, handles; /* values so far */
	uint8_t came; /* WRITEs, of all kinds */
	unsigned want;
	sem_t done;
	int udp;
} me;

/* --- an exchange --------------------------------------------------------------- */

static void send_one(uint32_t *counter)
{
	struct ibv_sge sge = {(uintptr_t)me.out, len, me.mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = IBV_WR_RDMA_WRITE,
		      .wr.rdma = {.remote_addr = me.l.va, .rkey = me.l.rkey}};

	while (host_poll(&me.h, 16))
		;
	me.out[len - 1]++;
	REQUIRE((counter ? nopin_post_write_notify(me.l.qp, &wr, *counter, &bad)
			 : ibv_post_send(me.l.qp, &wr, &bad)) == 0);
}

static void see_byte(void)
{
	struct ibv_wc wc;

	while (me.in[len - 1] != me.came)
		ibv_poll_cq(me.h.cq, 1, &wc);
}

static void see_word(void)
{
	const uint64_t *word = nopin_counter_word(me.polled);
	struct ibv_wc wc;

	for (me.polls++; __atomic_load_n(word, __ATOMIC_ACQUIRE) < me.polls;)
		ibv_poll_cq(me.h.cq, 1, &wc);
}

static void see(enum way way)
{
	me.came++;
	if (way == WRITE) {
		see_byte();
	} else if (way == WORD) {
		see_word();
	} else {
		REQUIRE(nopin_counter_wait(me.polled, ++me.polls, UINT64_MAX,
					   way == SPIN ? NOPIN_WAIT_SPIN
					   : way == BLOCK
						   ? NOPIN_WAIT_BLOCK
						   : NOPIN_WAIT_FUTEX) == 0);
	}
}

static void turn_wait(enum way way)
{
	for (int i = 0; i < EXCHANGES; i++) {
		if (me.first)
			send_one(way == WRITE ? NULL : &me.polled_id);
		see(way);
		if (!me.first)
			send_one(way == WRITE ? NULL : &me.polled_id);
	}
}

/* --- handlers -------------------------------------------------------------------- */

/* One came; @counter is to be raised for it. Return: it was the last. */
static bool handled(uint32_t *counter)
{
	me.came++;
	me.want--;
	if (!me.first || me.want)
		send_one(counter);
	return !me.want;
}

static int on_thread(void *arg, uint64_t value)
{
	(void)arg;
	REQUIRE(value == ++me.handles);
	if (handled(&me.handled_id))
		sem_post(&me.done);
	return 0;
}

static void turn_handler(void)
{
	if (me.first)
		send_one(&me.handled_id);
	while (sem_wait(&me.done))
		;
}

/* nopin_counter_run() begins with what has been counted already. */
static int on_run(void *arg, uint64_t value)
{
	(void)arg;
	if (value <= me.polls)
		return 0;
	REQUIRE(value == ++me.polls);
	return handled(&me.polled_id);
}

static void turn_run(void)
{
	if (me.first)
		send_one(&me.polled_id);
	REQUIRE(nopin_counter_run(me.polled, on_run, NULL) == 0);
}

/* --- datagrams ------------------------------------------------------------------- */

static void udp_open(int fd)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);

	me.udp = socket(AF_INET, SOCK_DGRAM, 0);
	REQUIRE(me.udp >= 0 && bind(me.udp, (void *)&a, n) == 0 &&
		getsockname(me.udp, (void *)&a, &n) == 0);
	host_say(fd, a.sin_port);
	a.sin_port = (in_port_t)host_hear(fd);
	REQUIRE(connect(me.udp, (void *)&a, n) == 0);
}

static void turn_udp(void)
{
	static char b[LEN_MAX];

	for (int i = 0; i < EXCHANGES; i++) {
		if (me.first)
			REQUIRE(send(me.udp, b, len, 0) == len);
		REQUIRE(recv(me.udp, b, len, 0) == len);
		if (!me.first)
			REQUIRE(send(me.udp, b, len, 0) == len);
	}
}

/* --- both sides ------------------------------------------------------------------ */

static double turn(enum way way)
{
	const uint64_t from = host_now();

	if (way == UDP)
		turn_udp();
	else if (way == HANDLER)
		turn_handler();
	else if (way == RUN)
		turn_run();
	else
		turn_wait(way);
	return (double)(host_now() - from) / 2 / EXCHANGES / US;
}

static void side_open(int fd)
{
	sem_init(&me.done, 0, 0);
	host_open(&me.h);
	me.mr = host_reg(&me.h, host_map(NULL, 2 * LEN_MAX), 2 * LEN_MAX);
	memset(me.mr->addr, 0, 2 * LEN_MAX);
	me.in = me.mr->addr;
	me.out = me.in + LEN_MAX;
	link_open(&me.l, &me.h, fd, me.mr);
	REQUIRE(nopin_counter_create(me.h.pd, NULL, NULL, &me.polled) == 0);
	REQUIRE(nopin_counter_create(me.h.pd, on_thread, NULL, &me.handled) ==
		0);
	host_say(fd, nopin_counter_id(me.polled));
	host_say(fd, nopin_counter_id(me.handled));
	me.polled_id = (uint32_t)host_hear(fd);
	me.handled_id = (uint32_t)host_hear(fd);
	udp_open(fd);
}

static void side(int fd)
{
	static double took[WAYS][TURNS_MAX];

	side_open(fd);
	for (unsigned i = 0; i < turns + 1; i++) /* the first warms up */
		for (enum way way = 0; way < WAYS; way++) {
			if (only && strcmp(only, names[way]) != 0)
				continue;
			me.want = EXCHANGES; /* before the other begins */
			host_say(fd, way);
			REQUIRE(host_hear(fd) == way);
			took[way][i ? i - 1 : 0] = turn(way);
		}
	host_say(fd, WAYS);
	REQUIRE(host_hear(fd) == WAYS);
	REQUIRE(nopin_counter_destroy(me.polled) == 0);
	REQUIRE(nopin_counter_destroy(me.handled) == 0);
	link_close(&me.l);
	host_dereg(me.mr);
	host_close(&me.h);
	for (enum way way = 0; way < WAYS && me.first; way++)
		out_dist(names[way], took[way], turns);
}

int main(int argc, char **argv)
{
	int fd;

	if (argc < 2)
		return 2;
	turns = (unsigned)number(argv[1]);
	if (argc > 2)
		len = (uint32_t)number(argv[2]);
	if (argc > 3)
		only = argv[3];
	REQUIRE(turns <= TURNS_MAX && len > 0 && len <= LEN_MAX);
	host_start();
	fd = host_fork(side);
	me.first = true;
	side(fd);
	host_join();
	return 0;
}
