/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* isolation.c: a fault delays only the work that needs the page (I1). The
 * victim has many pages that take 10 ms to come in, and one that is there. One
 * connection works on the former without pause: a peer WRITEs them, READs them,
 * and the victim WRITEs from them. Another, from a third process, WRITEs 8
 * bytes at a time to the page that is there and takes the time of each.
 *
 *   isolation PAGES kernel|user EXPECT [polled]
 *
 * PAGES: of each of the three kinds of work. "polled": a thread of the victim
 * polls its CQ; otherwise only the NIC's own thread works there. EXPECT:
 *   isolated   p99 is under 1 ms, no retry counter moves, no major fault; a
 *              WRITE for each ms that the hypervisor took is not counted
 *   wrong      the same, but the NIC calls every page ready: major faults
 *   block      what a NIC does that sleeps in the fault: 8 ms and more
 *   quick      as isolated, but for busy machines: a page takes 100 ms, and most
 *              of the time the WRITE that is out takes less than half of that
 */
#include "host.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#define PAGE_NS	  (arg.expect == EXPECT_QUICK ? 100 * MS : 10 * MS)
#define LIMIT_NS  (1 * MS)
#define ASLEEP_NS (8 * MS)

enum { SAMPLES_MAX = 1 << 20, AT_ONCE = 4, KINDS = 3 };

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

/* @n: sorted */
static void judge_p99(size_t n, uint64_t stolen)
{
	const uint64_t explained = stolen / LIMIT_NS;
	size_t over = 0;

	while (over < n && samples[n - 1 - over] > LIMIT_NS)
		over++;
	if (over > explained)
		REQUIRE_LE(over - explained, n / 100);
}

static void judge(size_t n, int kind, uint64_t stolen)
{
	const uint64_t p50 = host_quantile(samples, n, 0.5),
		       p99 = host_quantile(samples, n, 0.99),
		       half = half_of_time(n);

	printf("%s: another connection's p50 %.3f ms, p99 %.3f ms, max %.3f "
	       "ms, half of the time %.3f ms, %zu samples, %.0f ms stolen\n",
	       kind_names[kind], (double)p50 / MS, (double)p99 / MS,
	       (double)samples[n - 1] / MS, (double)half / MS, n,
	       (double)stolen / MS);
	if (arg.expect == EXPECT_BLOCK)
		REQUIRE_LE(ASLEEP_NS, p99);
	else if (arg.expect == EXPECT_QUICK)
		REQUIRE_LE(half, PAGE_NS / 2);
	else {
		REQUIRE_LE(p50, LIMIT_NS); /* whatever was stolen */
		judge_p99(n, stolen);
	}
}

static void bystander(int fd)
{
	struct host h;
	struct link l;

	host_open(&h);
	link_open(&l, &h, fd, NULL);
	for (int kind = 0; kind < KINDS; kind++) {
		const uint64_t until = host_hear(fd), before = host_stolen();
		const size_t n = measure(&h, &l, until);

		judge(n, kind, host_stolen() - before);
		host_say(fd, 0);
	}
	link_close(&l);
	host_close(&h);
	if (arg.expect != EXPECT_BLOCK)
		host_no_retries();
}

/* --- work on slow pages ------------------------------------------------------------ */

/* Page after page, AT_ONCE at a time, @op between @mine and the peer's pages
 * from @first on, until @until; pages that were used up are a failure. The
 * peer sleeps between looks: of two CPUs with two programs that spin, the
 * scheduler leaves the victim's NIC less than it needs, for milliseconds at a
 * time. The victim spins: its looks are its NIC's progress.
 */
static void work(struct link *l, enum ibv_wr_opcode op, struct ibv_mr *mine,
		 bool mine_slow, uint64_t until)
{
	size_t n = 0, done = 0;

	while (host_now() < until || done < n) {
		while (n < done + AT_ONCE && host_now() < until) {
			const size_t slow = n % arg.pages * PAGE,
				     fast = n % AT_ONCE * PAGE;

			REQUIRE(n < arg.pages);
			link_post(l, op, mine,
				  (char *)mine->addr +
					  (mine_slow ? slow : fast),
				  PAGE, mine_slow ? fast : slow);
			n++;
		}
		done += host_poll(l->h, AT_ONCE);
		if (mine_slow)
			sched_yield();
		else
			nanosleep(&(struct timespec){.tv_nsec = MS / 10}, NULL);
	}
	printf("%zu pages\n", n);
	REQUIRE_LE(AT_ONCE, n);
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
	work(&l, IBV_WR_RDMA_WRITE, mr, false, host_hear(fd));
	host_say(fd, 0);
	l.va += arg.pages * PAGE;
	work(&l, IBV_WR_RDMA_READ, mr, false, host_hear(fd));
	host_say(fd, 0);
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

/* When a phase of this many pages, AT_ONCE at a time, must end. */
static uint64_t phase_end(void)
{
	return host_now() + arg.pages / AT_ONCE / 2 * PAGE_NS;
}

static void phases(struct host *h, struct link *l, int pfd, int bfd,
		   struct ibv_mr *mr)
{
	struct ibv_mr third = *mr;

	third.addr = (char *)mr->addr + 2 * arg.pages * PAGE;
	for (int kind = 0; kind < KINDS; kind++) {
		const uint64_t until = phase_end();
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
			work(l, IBV_WR_RDMA_WRITE, &third, true, until);
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
	phases(&h, &p, pfd, bfd, pages);
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
		REQUIRE_EQ(host_counter("engine_majflt"), 0);
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
