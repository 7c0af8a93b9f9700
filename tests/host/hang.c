/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* hang.c: pages that do not come until they are told to. Peers WRITE to such pages
 * of a victim, one after the other, each through as many connections as pages;
 * they get the share of the pagers that they may have and no more. Meanwhile a
 * bystander, another peer, WRITEs to a page that is there, to fresh pages and to
 * pages that somebody has to bring: while there is a pager left for it, all of
 * that goes on; without one, what is there does, and the rest is accepted and
 * waits for the first page that comes, without a timeout. A connection is
 * destroyed and a region deregistered meanwhile: neither waits for a page, and
 * nothing is written when it comes.
 *
 *   hang PEERS PAGES kernel|user
 */
#include "host.h"

#include <string.h>

enum {
	PEERS_MAX = 4,
	PAGES_MAX = 16,
	PAGERS = 16, /* of a NIC; one of them never waits */
	ROUNDS = 200, /* of the bystander, each time */
	TIMES = 3, /* before, while they hang, and when some are given up */
	FRESH = TIMES * ROUNDS,
};

/* What the bystander works on: a page each round, but of WARM. */
enum work { WARM, COLD, BROUGHT, WORKS };

static struct {
	unsigned peers, pages;
	enum slow_kind kind;
} arg;

/* --- who WRITEs to pages that hang ------------------------------------------------ */

static void peer(int fd)
{
	static struct link l[PAGES_MAX];
	const size_t bytes = arg.pages * PAGE;
	bool given_up;
	struct ibv_mr *mr;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, bytes), bytes);
	host_fill(mr->addr, bytes, 1);
	for (unsigned i = 0; i < arg.pages; i++)
		link_open(&l[i], &h, fd, NULL);
	link_hear_mr(&l[0], fd);
	for (unsigned i = 0; i < arg.pages; i++) {
		l[i].va = l[0].va;
		l[i].rkey = l[0].rkey;
		link_post(&l[i], IBV_WR_RDMA_WRITE, mr,
			  (char *)mr->addr + i * PAGE, PAGE, i * PAGE);
	}
	given_up = host_hear(fd);
	if (given_up) {
		/* the other end of the first is gone */
		link_close(&l[0]);
		for (unsigned i = 1; i < arg.pages; i++)
			REQUIRE(host_status(&h) == IBV_WC_REM_ACCESS_ERR);
	} else {
		host_wait(&h, arg.pages);
	}
	host_say(fd, 0);
	REQUIRE(host_hear(fd) == 0);
	for (unsigned i = given_up; i < arg.pages; i++)
		link_close(&l[i]);
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
	REQUIRE_EQ(host_counter("rnr_rx"), 0);
}

/* --- the bystander ----------------------------------------------------------------- */

static uint64_t word_of(uint64_t n)
{
	return n * 0x9e3779b97f4a7c15 + 1;
}

static void write_word(struct link *l, enum work what, uint64_t n)
{
	const uint64_t word = word_of(n);

	link_post(l, IBV_WR_RDMA_WRITE, NULL, &word, sizeof(word),
		  what == WARM ? 0 : n * PAGE);
}

/* Return: whose completion it is. */
static enum work wait_work(struct host *h, const struct link *l)
{
	unsigned vain = 0;
	struct ibv_wc wc;
	int n;

	while (!(n = ibv_poll_cq(h->cq, 1, &wc)))
		host_rest(&vain);
	REQUIRE(n == 1 && wc.status == IBV_WC_SUCCESS);
	for (int i = 0; i < WORKS; i++)
		if (l[i].qp->qp_num == wc.qp_num)
			return (enum work)i;
	REQUIRE(!"a completion of ours");
	return WORKS;
}

/* One of each kind at a time; without @all only of the page that is there, and the
 * others in the last round, which does not wait for them. Return: bits of those that
 * are out. */
static unsigned rounds(struct host *h, struct link *l, uint64_t from, bool all)
{
	const unsigned must = all ? (1 << WORKS) - 1 : 1 << WARM;
	unsigned out = 0;

	for (uint64_t n = from; n < from + ROUNDS; n++) {
		const bool some = n == FRESH - 1;

		for (int what = 0; what < WORKS; what++) {
			if (!some && !(must & 1u << what))
				continue;
			write_word(&l[what], (enum work)what, n);
			out |= 1u << what;
		}
		while (out & must)
			out &= ~(1u << wait_work(h, l));
	}
	return out;
}

static void bystander(int fd)
{
	static const char *const when[TIMES] = {"before", "while they hang",
						"when some are given up"};
	static struct link l[WORKS];
	unsigned out = 0;
	struct host h;

	host_open(&h);
	for (int i = 0; i < WORKS; i++)
		link_open(&l[i], &h, fd, NULL);
	for (int i = 0; i < WORKS; i++) {
		link_hear_mr(&l[i], fd);
	}
	for (unsigned i = 0; i < TIMES; i++) {
		const bool all = host_hear(fd);
		const uint64_t from = host_now();

		out = rounds(&h, l, (uint64_t)i * ROUNDS, all);
		printf("%s: bystander's rounds of %.1f us%s%s\n", when[i],
		       (double)(host_now() - from) / ROUNDS / 1e3,
		       out & 1 << COLD ? "; a fresh page waits" : "",
		       out & 1 << BROUGHT ? "; one that is slow waits" : "");
		host_say(fd, 0);
	}
	REQUIRE(host_hear(fd) == 0);
	while (out) /* for what has come by now */
		out &= ~(1u << wait_work(&h, l));
	host_say(fd, 0);
	REQUIRE(host_hear(fd) == 0);
	for (int i = 0; i < WORKS; i++)
		link_close(&l[i]);
	host_close(&h);
	host_no_retries();
}

/* --- the victim --------------------------------------------------------------------- */

static struct {
	struct host h;
	int fd[PEERS_MAX], bfd;
	struct ibv_mr *hung[PEERS_MAX], *works[WORKS];
	struct link l[PEERS_MAX][PAGES_MAX], b[WORKS];
	struct slow slow, quick;
} me;

static void open_all(void)
{
	const size_t mine = arg.pages * PAGE, bytes = FRESH * PAGE;
	uint8_t *hung = host_map(NULL, arg.peers * mine);

	host_open(&me.h);
	for (int i = 0; i < WORKS; i++)
		me.works[i] = host_reg(&me.h, host_map(NULL, bytes), bytes);
	memset(me.works[WARM]->addr, 0, PAGE);
	slow_hang(&me.slow);
	slow_open(&me.slow, arg.kind, hung, arg.peers * mine, 0);
	slow_open(&me.quick, arg.kind, me.works[BROUGHT]->addr, bytes, 0);
	for (unsigned p = 0; p < arg.peers; p++) {
		me.hung[p] = host_reg(&me.h, hung + p * mine, mine);
		for (unsigned i = 0; i < arg.pages; i++)
			link_open(&me.l[p][i], &me.h, me.fd[p], NULL);
	}
	for (int i = 0; i < WORKS; i++)
		link_open(&me.b[i], &me.h, me.bfd, NULL);
	for (int i = 0; i < WORKS; i++)
		host_say_mr(me.bfd, me.works[i]);
}

static void bystander_works(bool all)
{
	host_say(me.bfd, all);
	REQUIRE(host_hear(me.bfd) == 0);
}

/* One peer after the other takes what it may have: as many pagers as are free then.
 * Return: is one left that may wait for the bystander? */
static bool hang_all(void)
{
	unsigned all = 0;

	for (unsigned p = 0; p < arg.peers; p++) {
		unsigned had = 0;

		host_say_mr(me.fd[p], me.hung[p]);
		while (had < arg.pages && had < PAGERS - all) {
			had++;
			all++;
		}
		slow_asked(&me.slow, all);
	}
	printf("%u peers wait for %u pages, and have %u of %u pagers\n",
	       arg.peers, arg.peers * arg.pages, all, PAGERS);
	return all < PAGERS - 1;
}

/* The first peer's: neither waits for a page that hangs, or we would for ever. */
static void give_up(void)
{
	link_close(&me.l[0][0]);
	host_dereg(me.hung[0]);
}

/* Without pagers only the last was written, and before that the first. */
static void check_pages(const uint64_t *pages)
{
	for (uint64_t n = 0; n < FRESH; n++) {
		const uint64_t word = pages[n * PAGE / sizeof(word)];

		REQUIRE(word == word_of(n) ||
			(word == 0 && n >= ROUNDS && n < FRESH - 1));
	}
}

static void check_data(void)
{
	const uint8_t *hung = me.slow.base;

	for (size_t i = 0; i < arg.pages * PAGE; i++)
		REQUIRE(!hung[i]); /* nothing came for what is gone */
	for (unsigned p = 1; p < arg.peers; p++)
		host_check(hung + p * arg.pages * PAGE, arg.pages * PAGE, 1);
	REQUIRE_EQ(*(uint64_t *)me.works[WARM]->addr, word_of(FRESH - 1));
	check_pages(me.works[COLD]->addr);
	check_pages(me.works[BROUGHT]->addr);
}

static void close_all(void)
{
	for (unsigned p = 0; p < arg.peers; p++) {
		host_say(me.fd[p], 0);
		for (unsigned i = p == 0; i < arg.pages; i++)
			link_close(&me.l[p][i]);
		if (p)
			host_dereg(me.hung[p]);
	}
	host_say(me.bfd, 0);
	for (int i = 0; i < WORKS; i++) {
		link_close(&me.b[i]);
		host_dereg(me.works[i]);
	}
	host_close(&me.h);
	host_no_slow_move(100 * MS);
	REQUIRE_EQ(host_counter("timeouts"), 0);
	REQUIRE_EQ(host_counter("rnr_tx"), 0);
	REQUIRE_EQ(host_counter("kernel_drops"), 0);
}

static void victim(void)
{
	uint64_t asked;
	bool left;

	open_all();
	bystander_works(true);
	left = hang_all();
	asked = __atomic_load_n(&me.slow.faults, __ATOMIC_RELAXED);
	bystander_works(left);
	give_up();
	bystander_works(left);
	/* nobody has more than its share, however long it takes */
	REQUIRE_LE(__atomic_load_n(&me.slow.faults, __ATOMIC_RELAXED), asked);
	slow_release(&me.slow);
	for (unsigned p = 0; p < arg.peers; p++) {
		host_say(me.fd[p], p == 0);
		REQUIRE(host_hear(me.fd[p]) == 0);
	}
	host_say(me.bfd, 0);
	REQUIRE(host_hear(me.bfd) == 0);
	check_data();
	close_all();
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.peers = (unsigned)strtoul(argv[1], NULL, 0);
	arg.pages = (unsigned)strtoul(argv[2], NULL, 0);
	arg.kind = strcmp(argv[3], "user") ? SLOW_KERNEL : SLOW_USER;
	REQUIRE(arg.peers >= 1 && arg.peers <= PEERS_MAX);
	REQUIRE(arg.pages >= 1 && arg.pages <= PAGES_MAX);
	host_start();
	for (unsigned p = 0; p < arg.peers; p++)
		me.fd[p] = host_fork(peer);
	me.bfd = host_fork(bystander);
	victim();
	host_join();
	return 0;
}
