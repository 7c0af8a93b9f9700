/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* q_cache.c: what a WRITE costs with what is known of the target's pages.
 *
 *   q_cache MODE BYTES OPS fits|slow
 *
 * WRITEs of BYTES each to a block of the target's, of which HITS % go to blocks that
 * were used lately and the others to blocks that were used long ago, for each HITS.
 * MODE:
 *   none     just that
 *   handle   nopin_cache_ready() before each, of a cache of CACHE blocks
 *   all      the same, of a cache that is large enough for all
 *   pin      a pin-down cache of CACHE blocks: for one that is not in it the target
 *            is asked to munlock() what it drops and to mlock() this, as Firehose does
 * "slow": what was used long ago is not in memory any more; a page takes PAGE_NS.
 */
#include "lib.h"
#include "sync.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum {
	HOT = 16, /* blocks that are used again and again */
	COLD = 256, /* that take their turn */
	CACHE = 32,
	AGO = 64, /* turns after which a cold block leaves memory */
	OPS_MAX = 1 << 16,
	PAGE_NS = 100000,
	END = 0xffff
};
static const unsigned hit_rates[] = {50, 75, 90, 95, 99};

static const char *mode;
static uint64_t bytes, ops;
static bool slow, asks;

static struct host h;
static struct sync_link control;
static struct nopin_counter *counter;
static uint32_t peer_counter;

/** struct order - To the target's pin-down side: offsets; drop: UINT64_MAX: none. */
struct order {
	uint64_t drop, pin;
};

static void notify(const struct ibv_mr *mr, const void *what, uint32_t len)
{
	struct ibv_sge sge = {(uintptr_t)what, len, mr ? mr->lkey : 0};
	struct ibv_send_wr *bad,
		wr = {
			.sg_list = &sge,
			.num_sge = len ? 1 : 0,
			.opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = {control.l.va, control.l.rkey},
		};

	host_poll(&control.h, 16);
	REQUIRE(nopin_post_write_notify(control.l.qp, &wr, peer_counter,
					&bad) == 0);
}

/* Both sides have a counter, and what is told of @mr. */
static void acquaint(int fd, const struct ibv_mr *mr)
{
	REQUIRE(nopin_counter_create(h.pd, NULL, NULL, &counter) == 0);
	sync_link_open(&control, &h, fd);
	host_say(fd, nopin_counter_id(counter));
	peer_counter = (uint32_t)host_hear(fd);
	host_say_mr(fd, mr);
	link_hear_mr(&control.l, fd);
}

/* --- the target ------------------------------------------------------------------ */

static uint8_t *base;
static struct slow pages;
static struct nopin_owner *owner;

static void pin(const struct order *o, const struct ibv_mr *mr)
{
	struct ibv_sge sge = {(uintptr_t)base + o->pin, (uint32_t)bytes,
			      mr->lkey};

	if (o->drop != UINT64_MAX)
		REQUIRE(munlock(base + o->drop, bytes) == 0);
	/* the userfaultfd of a user is not asked for mlock()'s pages */
	for (uint64_t at = 0; slow && at < bytes; at += PAGE)
		(void)*(volatile uint8_t *)(base + o->pin + at);
	if (mlock(base + o->pin, bytes))
		host_skip(strerror(errno));
	REQUIRE(ibv_advise_mr(h.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			      IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1) == 0);
}

/** struct pinner - What its thread needs. */
static struct {
	struct ibv_mr *mr, *box;
} pinner;

static void *pin_thread(void *arg)
{
	uint64_t done = 0;

	(void)arg;
	while (nopin_counter_wait(counter, done + 1, UINT64_MAX,
				  NOPIN_WAIT_BLOCK) == 0) {
		pin(pinner.box->addr, pinner.mr);
		notify(NULL, NULL, 0);
		done++;
	}
	return NULL;
}

static void *serve_thread(void *arg)
{
	struct nopin_owner_event e;

	(void)arg;
	while (nopin_owner_serve(owner, NOPIN_WAIT_BLOCK, &e) == 0)
		REQUIRE(e.gone == NOPIN_GONE_LEFT);
	return NULL;
}

static struct ibv_mr *target_memory(void)
{
	struct nopin_reg_attr a = {.length = (HOT + COLD) * bytes,
				   .access = IBV_ACCESS_LOCAL_WRITE |
					     IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mr *mr;

	base = host_map(NULL, a.length + bytes);
	base += bytes - (uintptr_t)base % bytes;
	a.addr = base;
	if (slow)
		slow_open(&pages, SLOW_USER, base, a.length, PAGE_NS);
	else
		memset(base, 1, a.length);
	REQUIRE(nopin_owner_create(h.pd, NULL, &owner) == 0);
	mr = nopin_owner_reg(owner, &a, sizeof(a));
	REQUIRE(mr);
	return mr;
}

/* In each mode one thread waits, and does the NIC's work meanwhile. */
static void target(int fd)
{
	struct sync_link asked;
	struct ibv_mr *mr;
	struct link data;
	pthread_t thread;
	uint64_t block;

	host_open(&h);
	mr = target_memory();
	link_open(&data, &h, fd, mr);
	pinner.mr = mr;
	pinner.box = host_reg(&h, host_map(NULL, PAGE), PAGE);
	acquaint(fd, pinner.box);
	if (asks) {
		sync_link_open(&asked, &h, fd);
		cache_join(owner, &asked, fd);
	}
	REQUIRE(pthread_create(&thread, NULL, asks ? serve_thread : pin_thread,
			       NULL) == 0);
	while ((block = host_hear(fd)) != END) {
		slow_evict(&pages, block * bytes, bytes);
		host_say(fd, 0);
	}
	_exit(0); /* with threads and connections as they are */
}

/* --- the initiator ------------------------------------------------------------------ */

static struct link data;
static struct ibv_mr *from, *orders;
static struct nopin_cache *cache;
static double took[OPS_MAX];

/** struct entry - Of the pin-down cache. */
static struct entry {
	uint64_t block, used;
} entry[CACHE];
static uint64_t clock_, hits, waited;

/* Return: where it is, or where it is to be: then it was used first. */
static struct entry *entry_of(uint64_t block)
{
	struct entry *victim = &entry[0];

	for (int i = 0; i < CACHE; i++) {
		if (entry[i].used && entry[i].block == block)
			return &entry[i];
		if (entry[i].used < victim->used)
			victim = &entry[i];
	}
	return victim;
}

static void pinned(uint64_t block)
{
	struct entry *e = entry_of(block);
	struct order *o = orders->addr;

	if (e->used && e->block == block) {
		hits++;
	} else {
		o->drop = e->used ? e->block * bytes : UINT64_MAX;
		o->pin = block * bytes;
		notify(orders, o, sizeof(*o));
		REQUIRE(nopin_counter_wait(counter, ++waited, UINT64_MAX,
					   NOPIN_WAIT_SPIN) == 0);
	}
	*e = (struct entry){block, ++clock_};
}

static void ready(uint64_t block)
{
	int rc = nopin_cache_ready(cache, data.va + block * bytes, bytes,
				   UINT64_MAX, NOPIN_WAIT_SPIN);

	REQUIRE(rc == 0 || rc == EAGAIN);
}

static void write_to(uint64_t block)
{
	if (cache)
		ready(block);
	else if (strcmp(mode, "pin") == 0)
		pinned(block);
	link_post(&data, IBV_WR_RDMA_WRITE, from, from->addr, (uint32_t)bytes,
		  block * bytes);
	while (!host_poll(&h, 1))
		;
}

/* The next block. What was used some turns ago leaves memory. */
static uint64_t choose(int fd, unsigned percent)
{
	static uint64_t turn;

	if (host_random() % 100 < percent)
		return host_random() % HOT;
	if (slow && turn >= AGO) {
		host_say(fd, HOT + (turn - AGO) % COLD);
		host_hear(fd);
	}
	return HOT + turn++ % COLD;
}

static uint64_t hits_now(void)
{
	struct nopin_cache_stats s;

	if (!cache)
		return hits;
	REQUIRE(nopin_cache_query(cache, &s, sizeof(s)) == 0);
	return s.hits;
}

static void measure(int fd, unsigned percent)
{
	char name[16];
	uint64_t before;

	for (int i = 0; i < 2 * CACHE; i++)
		write_to(choose(fd, percent));
	before = hits_now();
	for (uint64_t i = 0; i < ops; i++) {
		const uint64_t block = choose(fd, percent), at = host_now();

		write_to(block);
		took[i] = (double)(host_now() - at) / US;
	}
	snprintf(name, sizeof(name), "%u", percent);
	out_row("hits", "%u\t%.4f", percent,
		(double)(hits_now() - before) / (double)ops);
	out_dist(name, took, ops);
}

int main(int argc, char **argv)
{
	struct sync_link asking;
	int fd;

	REQUIRE(argc == 5);
	mode = argv[1];
	bytes = number(argv[2]);
	ops = number(argv[3]);
	slow = strcmp(argv[4], "slow") == 0;
	asks = strcmp(mode, "handle") == 0 || strcmp(mode, "all") == 0;
	REQUIRE(bytes >= PAGE && ops <= OPS_MAX);
	host_start();
	fd = host_fork(target);
	host_open(&h);
	from = host_reg(&h, host_map(NULL, bytes), bytes);
	memset(from->addr, 1, bytes);
	orders = host_reg(&h, host_map(NULL, PAGE), PAGE);
	link_open(&data, &h, fd, NULL);
	acquaint(fd, orders);
	if (asks) {
		sync_link_open(&asking, &h, fd);
		cache = cache_open(&asking, fd, bytes,
				   mode[0] == 'a' ? HOT + COLD : CACHE);
	}
	for (uint64_t block = 0; block < HOT + COLD; block++)
		write_to(block);
	for (size_t i = 0; i < ARRAY_SIZE(hit_rates); i++)
		measure(fd, hit_rates[i]);
	host_say(fd, END);
	return 0;
}
