/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* isolation.c: a fault delays only the work that needs the page (I1). The
 * victim has many pages that take 40 ms to come in, and one that is there. One
 * connection works on the former without pause: a peer WRITEs them, READs them,
 * and the victim WRITEs from them. Another, from a third process, WRITEs 8
 * bytes at a time to the page that is there and takes the time of each.
 *
 *   isolation PAGES kernel|user EXPECT [polled]
 *
 * PAGES: of each of the three kinds of work. "polled": a thread of the victim
 * polls its CQ; otherwise only the NIC's own thread works there. EXPECT:
 *   isolated   half of the time the WRITE that is out takes less than half of what a page
 *              takes, and half of them less than 1 ms; no retry counter moves, no
 *              major fault
 *   wrong      the same, but the NIC calls every page ready: major faults
 *   block      what a NIC does that sleeps in the fault: half of the time 32 ms and more
 *   quick      as isolated, but for busy machines: a page takes 100 ms, and only the
 *              time counts
 *
 * On a host that is busy otherwise every WRITE takes longer. So each kind of work is
 * done once more, as often, on the pages that are there by then: a WRITE that takes no
 * more than a few times what it takes in that control is innocent. The longest of them
 * say what else had the CPU, and are no more than printed. A host may also stop
 * altogether for most of a second: work and control take turns, and of the turns the one
 * in the middle counts.
 */
#include "host.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define PAGE_NS	  (arg.expect == EXPECT_QUICK ? 100 * MS : 40 * MS)
#define LIMIT_NS  (1 * MS)
#define ASLEEP_NS (PAGE_NS / 5 * 4)

enum { SAMPLES_MAX = 1 << 20, AT_ONCE = 4, KINDS = 3, BUSY = 4, TURNS = 3 };

enum expect { EXPECT_ISOLATED, EXPECT_WRONG, EXPECT_BLOCK, EXPECT_QUICK };

static const char *const expect_names[] = {"isolated", "wrong", "block",
					   "quick"};
static const char *const kind_names[KINDS] = {"WRITEs to slow pages",
					      "READs of slow pages",
					      "WRITEs from slow pages"};

static struct {
	size_t pages;
	enum slow_kind kind;
	enum expect expect;
	bool polled;
} arg;

/* --- the second connection -------------------------------------------------------- */

static uint64_t samples[SAMPLES_MAX];

static size_t measure(struct host *h, struct link *l, uint64_t until)
{
	size_t n = 0;

	while (host_now() < until && n < SAMPLES_MAX) {
		const uint64_t from = host_now();

		link_post(l, IBV_WR_RDMA_WRITE, NULL, &from, sizeof(from), 0);
		while (!host_poll(h, 1))
			;
		samples[n++] = host_now() - from;
	}
	return n;
}

/* How long is the WRITE that is out at any time, half of the time? @n: sorted */
static uint64_t half_of_time(size_t n)
{
	uint64_t sum = 0, half = 0;
	size_t i = 0;

	for (size_t k = 0; k < n; k++)
		sum += samples[k];
	while (half < sum / 2)
		half += samples[i++];
	return samples[i ? i - 1 : 0];
}

/* What a turn is judged by, ns. */
enum { P50, HALF, MEASURES };

/** struct spread - How long WRITEs took in each turn. */
struct spread {
	uint64_t of[MEASURES][TURNS];
};

static void spread_add(struct spread *s, int turn, size_t n, const char *name)
{
	s->of[P50][turn] = host_quantile(samples, n, 0.5);
	s->of[HALF][turn] = half_of_time(n);
	printf("%s: another connection's p50 %.3f ms, p99 %.3f ms, max %.3f "
	       "ms, half of the time %.3f ms, %zu samples\n",
	       name, (double)s->of[P50][turn] / MS,
	       (double)host_quantile(samples, n, 0.99) / MS,
	       (double)samples[n - 1] / MS, (double)s->of[HALF][turn] / MS, n);
}

static uint64_t spread_middle(struct spread *s, int measure)
{
	return host_quantile(s->of[measure], TURNS, 0.5);
}

/* @ns: is no more than @limit, or than a few times what @control says the host does
 * to such WRITEs while no page is missing */
static void judge_one(uint64_t ns, uint64_t limit, uint64_t control)
{
	REQUIRE_LE(ns, limit < BUSY * control ? BUSY * control : limit);
}

static void judge(struct spread *s, struct spread *control)
{
	const uint64_t half = spread_middle(s, HALF);

	if (arg.expect == EXPECT_BLOCK) {
		REQUIRE_LE(ASLEEP_NS, half);
		return;
	}
	judge_one(half, PAGE_NS / 2, spread_middle(control, HALF));
	if (arg.expect != EXPECT_QUICK)
		judge_one(spread_middle(s, P50), LIMIT_NS,
			  spread_middle(control, P50));
}

static void bystander(int fd)
{
	struct host h;
	struct link l;

	host_open(&h);
	link_open(&l, &h, fd, NULL);
	for (int kind = 0; kind < KINDS; kind++) {
		struct spread s, control;

		for (int turn = 0; turn < TURNS; turn++) {
			size_t n = measure(&h, &l, host_hear(fd));

			spread_add(&s, turn, n, kind_names[kind]);
			host_say(fd, 0);
			n = measure(&h, &l, host_hear(fd));
			spread_add(&control, turn, n,
				   "the same, nothing missing");
			if (turn + 1 == TURNS)
				judge(&s, &control);
			host_say(fd, 0);
		}
	}
	link_close(&l);
	host_close(&h);
	if (arg.expect != EXPECT_BLOCK)
		host_no_retries();
}

/* --- work on slow pages ------------------------------------------------------------ */

/* Of each turn. */
static size_t pages_of_turn(void)
{
	return arg.pages / TURNS;
}

/* Page after page, AT_ONCE at a time, @op between @mine and the peer's pages
 * from those of @turn on, until @until; pages that were used up are a failure. In the
 * control, once more the pages that are there, as often as if they were slow. The
 * peer sleeps between looks: of two CPUs with two programs that spin, the
 * scheduler leaves the victim's NIC less than it needs, for milliseconds at a
 * time. The victim spins: its looks are its NIC's progress.
 */
static void work(struct link *l, enum ibv_wr_opcode op, struct ibv_mr *mine,
		 bool mine_slow, int turn, uint64_t until, bool control)
{
	static size_t pages;
	const size_t most = pages_of_turn();
	size_t n = 0, done = 0;

	while (host_now() < until || done < n) {
		while (n < done + AT_ONCE && host_now() < until) {
			const size_t at = turn * most +
					  n % (control ? pages : most),
				     slow = at * PAGE,
				     fast = n % AT_ONCE * PAGE;

			REQUIRE(control || n < most);
			link_post(l, op, mine,
				  (char *)mine->addr +
					  (mine_slow ? slow : fast),
				  PAGE, mine_slow ? fast : slow);
			n++;
		}
		done += host_poll(l->h, AT_ONCE);
		if (control && done == n)
			host_sleep(PAGE_NS);
		else if (mine_slow)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = MS / 10}, NULL);
	}
	printf("%zu pages\n", n);
	REQUIRE(n > 0); /* in "wrong" who posts may sleep each time */
	pages = n;
}

static void peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, AT_ONCE * PAGE), AT_ONCE * PAGE);
	memset(mr->addr, 1, AT_ONCE * PAGE);
	link_open(&l, &h, fd, mr);
	for (int kind = 0; kind < 2; kind++) {
		for (int i = 0; i < 2 * TURNS; i++) {
			work(&l, kind ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
			     mr, false, i / 2, host_hear(fd), i % 2);
			host_say(fd, 0);
		}
		l.va += arg.pages * PAGE;
	}
	REQUIRE(host_hear(fd) == 0); /* the victim has done its part */
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	if (arg.expect != EXPECT_BLOCK)
		host_no_retries();
}

/* --- the victim -------------------------------------------------------------------- */

static bool stop;

static void *poll_always(void *cq)
{
	struct ibv_wc wc;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		REQUIRE(ibv_poll_cq(cq, 1, &wc) == 0);
		sched_yield();
	}
	return NULL;
}

/* When a turn of this many pages, AT_ONCE at a time, must end. */
static uint64_t turn_end(void)
{
	return host_now() + pages_of_turn() / AT_ONCE / 2 * PAGE_NS;
}

static void turns(struct host *h, struct link *l, int pfd, int bfd,
		  struct ibv_mr *mr)
{
	struct ibv_mr third = *mr;

	third.addr = (char *)mr->addr + 2 * arg.pages * PAGE;
	for (int i = 0; i < 2 * TURNS * KINDS; i++) {
		const uint64_t until = turn_end();
		const int kind = i / 2 / TURNS, turn = i / 2 % TURNS;
		struct ibv_cq *idle = ibv_create_cq(h->ctx, 1, NULL, NULL, 0);
		pthread_t t;

		REQUIRE(idle);
		stop = false;
		if (arg.polled)
			REQUIRE(pthread_create(&t, NULL, poll_always, idle) ==
				0);
		host_say(bfd, until);
		if (kind < 2)
			host_say(pfd, until);
		else
			work(l, IBV_WR_RDMA_WRITE, &third, true, turn, until,
			     i % 2);
		if (kind < 2)
			REQUIRE(host_hear(pfd) == 0);
		REQUIRE(host_hear(bfd) == 0);
		__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
		if (arg.polled)
			pthread_join(t, NULL);
		REQUIRE(ibv_destroy_cq(idle) == 0);
	}
	host_say(pfd, 0);
}

static void victim(int pfd, int bfd)
{
	const size_t bytes = KINDS * arg.pages * PAGE;
	static struct slow s = {.fetch = NULL};
	struct ibv_mr *pages, *page;
	struct link p, b;
	struct host h;

	if (arg.expect == EXPECT_BLOCK)
		setenv("NOPIN_FAULT", "block", 1);
	if (arg.expect == EXPECT_WRONG)
		setenv("NOPIN_TEST", "always-ready", 1);
	host_open(&h);
	pages = host_reg(&h, host_map(NULL, bytes), bytes);
	page = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(page->addr, 1, PAGE);
	slow_open(&s, arg.kind, pages->addr, bytes, PAGE_NS);
	link_open(&p, &h, pfd, pages);
	link_open(&b, &h, bfd, page);
	turns(&h, &p, pfd, bfd, pages);
	link_close(&p);
	link_close(&b);
	host_dereg(pages);
	host_dereg(page);
	host_close(&h);
	if (arg.expect == EXPECT_BLOCK)
		return;
	host_no_retries();
	if (arg.expect == EXPECT_WRONG)
		REQUIRE_LE(1, host_counter("engine_majflt"));
	else
		host_no_slow_move(PAGE_NS);
}

int main(int argc, char **argv)
{
	int pfd, bfd;

	REQUIRE(argc >= 4);
	arg.pages = strtoul(argv[1], NULL, 0);
	arg.kind = strcmp(argv[2], "user") ? SLOW_KERNEL : SLOW_USER;
	while (arg.expect < (enum expect)ARRAY_SIZE(expect_names) &&
	       strcmp(argv[3], expect_names[arg.expect]))
		arg.expect++;
	REQUIRE(arg.expect < (enum expect)ARRAY_SIZE(expect_names));
	arg.polled = argc > 4;
	host_start();
	pfd = host_fork(peer);
	bfd = host_fork(bystander);
	victim(pfd, bfd);
	host_join();
	return 0;
}
