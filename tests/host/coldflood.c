/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* coldflood.c: who touches cold pages without pause waits for himself (I4). A peer
 * WRITEs to pages of a victim that take 10 ms each, through several connections,
 * each of which always has some out. Another peer WRITEs a word at a time to fresh
 * pages and to one that is there, before the flood and in it. All of its work is
 * done, with nothing said twice, no move of the victim's NIC sleeps in a page, and
 * all data is right. What the flood costs is printed, not judged: on a busy machine
 * that is the scheduler's.
 *
 *   coldflood ROUNDS kernel|user
 */
#include "host.h"

#include <string.h>
#include <sys/socket.h>

enum {
	QPS = 8, /* of who floods */
	AT_ONCE = 4, /* of each */
	PAGES_MAX = 1 << 16, /* more than come in time */
};

#define PAGE_NS (10 * MS)

/* What the other peer works on, and when. */
enum work { WARM, FRESH, WORKS };
enum when { ALONE, FLOODED, WHENS };

static struct {
	uint64_t rounds;
	enum slow_kind kind;
} arg;

static uint64_t word_of(uint64_t n)
{
	return n * 0x9e3779b97f4a7c15 + 1;
}

static void write_word(struct link *l, uint64_t n, uint64_t page)
{
	const uint64_t word = word_of(n);

	link_post(l, IBV_WR_RDMA_WRITE, NULL, &word, sizeof(word), page * PAGE);
}

/* --- who floods -------------------------------------------------------------------- */

/* Has the victim said something? Then that is taken. */
static bool told(int fd)
{
	uint64_t what;

	return recv(fd, &what, sizeof(what), MSG_DONTWAIT) == sizeof(what);
}

/* Page after page, in turns, until told to stop. Return: how many pages. */
static uint64_t flood(struct host *h, struct link *l, int fd)
{
	unsigned out[QPS] = {0}, all = 0;
	uint64_t n = 0;
	bool stop = false;

	while (!stop || all) {
		struct ibv_wc wc;

		stop = stop || told(fd);
		for (unsigned i = 0; i < QPS && !stop; i++)
			for (; out[i] < AT_ONCE; out[i]++, all++, n++) {
				REQUIRE(n < PAGES_MAX);
				write_word(&l[i], n, n);
			}
		while (ibv_poll_cq(h->cq, 1, &wc) == 1) {
			unsigned i = 0;

			REQUIRE(wc.status == IBV_WC_SUCCESS);
			while (l[i].qp->qp_num != wc.qp_num)
				i++;
			out[i]--;
			all--;
		}
		host_sleep(MS / 10);
	}
	return n;
}

static void flooder(int fd)
{
	static struct link l[QPS];
	struct host h;

	host_open(&h);
	for (int i = 0; i < QPS; i++)
		link_open(&l[i], &h, fd, NULL);
	link_hear_mr(&l[0], fd);
	for (int i = 1; i < QPS; i++) {
		l[i].va = l[0].va;
		l[i].rkey = l[0].rkey;
	}
	REQUIRE(host_hear(fd) == 1);
	host_say(fd, flood(&h, l, fd));
	REQUIRE(host_hear(fd) == 0);
	for (int i = 0; i < QPS; i++)
		link_close(&l[i]);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

/* --- who does not ------------------------------------------------------------------ */

static void work(struct host *h, struct link *l, uint64_t from, enum when when)
{
	static const char *const what_names[WORKS] = {"there", "fresh"},
				 *const when_names[WHENS] = {"alone",
							     "in the flood"};
	uint64_t *took = calloc(WORKS * arg.rounds, sizeof(*took));

	REQUIRE(took);
	for (uint64_t i = 0; i < arg.rounds; i++)
		for (uint64_t what = 0; what < WORKS; what++) {
			const uint64_t began = host_now();

			write_word(&l[what], from + i,
				   what == FRESH ? from + i : 0);
			host_wait(h, 1);
			took[what * arg.rounds + i] = host_now() - began;
		}
	for (uint64_t what = 0; what < WORKS; what++) {
		uint64_t *v = took + what * arg.rounds;

		printf("WRITE to a page that is %s, %s: p50 %.1f us, p99 %.1f "
		       "us\n",
		       what_names[what], when_names[when],
		       (double)host_quantile(v, arg.rounds, 0.5) / 1e3,
		       (double)host_quantile(v, arg.rounds, 0.99) / 1e3);
	}
	free(took);
}

static void neighbour(int fd)
{
	static struct link l[WORKS];
	struct host h;

	host_open(&h);
	for (int i = 0; i < WORKS; i++)
		link_open(&l[i], &h, fd, NULL);
	for (int i = 0; i < WORKS; i++) {
		link_hear_mr(&l[i], fd);
	}
	for (uint64_t when = 0; when < WHENS; when++) {
		REQUIRE(host_hear(fd) == when);
		work(&h, l, when * arg.rounds, (enum when)when);
		host_say(fd, when);
	}
	REQUIRE(host_hear(fd) == 0);
	for (int i = 0; i < WORKS; i++)
		link_close(&l[i]);
	host_close(&h);
	host_no_retries();
}

/* --- the victim --------------------------------------------------------------------- */

static struct {
	struct host h;
	int ffd, nfd;
	struct ibv_mr *cold, *works[WORKS];
	struct link f[QPS], n[WORKS];
	struct slow slow;
} me;

static void open_all(void)
{
	const size_t bytes = (size_t)PAGES_MAX * PAGE,
		     fresh = WHENS * arg.rounds * PAGE;

	host_open(&me.h);
	me.cold = host_reg(&me.h, host_map(NULL, bytes), bytes);
	slow_open(&me.slow, arg.kind, me.cold->addr, bytes, PAGE_NS);
	for (int i = 0; i < WORKS; i++)
		me.works[i] = host_reg(&me.h, host_map(NULL, fresh), fresh);
	memset(me.works[WARM]->addr, 0, PAGE);
	for (int i = 0; i < QPS; i++)
		link_open(&me.f[i], &me.h, me.ffd, NULL);
	for (int i = 0; i < WORKS; i++)
		link_open(&me.n[i], &me.h, me.nfd, NULL);
	host_say_mr(me.ffd, me.cold);
	for (int i = 0; i < WORKS; i++)
		host_say_mr(me.nfd, me.works[i]);
}

static void neighbour_works(enum when when)
{
	host_say(me.nfd, when);
	REQUIRE(host_hear(me.nfd) == when);
}

static void check_words(const struct ibv_mr *mr, uint64_t pages)
{
	const uint64_t *p = mr->addr;

	for (uint64_t n = 0; n < pages; n++)
		REQUIRE_EQ(p[n * PAGE / sizeof(*p)], word_of(n));
}

static void close_all(void)
{
	host_say(me.ffd, 0);
	host_say(me.nfd, 0);
	for (int i = 0; i < QPS; i++)
		link_close(&me.f[i]);
	for (int i = 0; i < WORKS; i++) {
		link_close(&me.n[i]);
		host_dereg(me.works[i]);
	}
	host_dereg(me.cold);
	host_close(&me.h);
	host_no_retries();
	host_no_slow_move(PAGE_NS);
}

static void victim(void)
{
	uint64_t pages, before;

	open_all();
	neighbour_works(ALONE);
	host_say(me.ffd, 1);
	slow_asked(&me.slow, QPS);
	before = __atomic_load_n(&me.slow.faults, __ATOMIC_RELAXED);
	neighbour_works(FLOODED);
	/* it went on all the time */
	REQUIRE_LE(before + 1,
		   __atomic_load_n(&me.slow.faults, __ATOMIC_RELAXED));
	host_say(me.ffd, 0);
	pages = host_hear(me.ffd);
	printf("the flood: %llu pages of 10 ms\n", (unsigned long long)pages);
	check_words(me.cold, pages);
	check_words(me.works[FRESH], WHENS * arg.rounds);
	REQUIRE_EQ(*(uint64_t *)me.works[WARM]->addr,
		   word_of(WHENS * arg.rounds - 1));
	close_all();
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 3);
	arg.rounds = strtoull(argv[1], NULL, 0);
	arg.kind = strcmp(argv[2], "user") ? SLOW_KERNEL : SLOW_USER;
	REQUIRE(arg.rounds > 0);
	host_start();
	me.ffd = host_fork(flooder);
	me.nfd = host_fork(neighbour);
	victim();
	host_join();
	return 0;
}
