/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* order.c: what a connection writes becomes visible in the order it was sent,
 * and an acknowledgement means that it is there (I3). Page A takes 10 ms to
 * come in, the page B behind it is always there:
 *
 *      slow page A       | page B
 *      ............ word | word ............
 *
 * The requester writes a number to A's word and then to B's, or both in one
 * WRITE that starts in A and ends in B, of one packet or of several. A thread
 * of the target, which never calls the library, spins on B and looks at A when
 * B changes; a third process READs B and then A over another connection. No
 * older A, ever. After its completion the requester tells the target, which
 * finds both. Then A goes while a WRITE to it waits: that one fails.
 *
 *   order EVICTIONS WARM GOINGS kernel|user
 */
#include "host.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_NS (10 * MS)
#define WORD_A	(PAGE - sizeof(uint64_t))
#define WORD_B	PAGE
#define GONE_NS (30 * MS)
/* Below everything else, so that nothing is mapped there when it is gone. */
#define GONE_MAP ((void *)0x200000000000)

enum { AHEAD = 8 };

static struct {
	uint64_t evictions, warm, goings;
	enum slow_kind kind;
} arg;

/* --- the requester ----------------------------------------------------------- */

static void write_number(struct link *l, struct ibv_mr *mr, uint64_t n)
{
	const uint64_t both[] = {n, n};
	uint64_t *buf = mr->addr;

	switch (n % 3) {
	case 0:
		link_post(l, IBV_WR_RDMA_WRITE, NULL, &n, sizeof(n), WORD_A);
		link_post(l, IBV_WR_RDMA_WRITE, NULL, &n, sizeof(n), WORD_B);
		break;
	case 1:
		link_post(l, IBV_WR_RDMA_WRITE, NULL, both, sizeof(both),
			  WORD_A);
		break;
	default: /* a buffer of its own for each that may be on its way */
		buf += n / 3 % AHEAD * 2 * PAGE / sizeof(n);
		for (size_t i = 0; i < 2 * PAGE / sizeof(n); i++)
			buf[i] = n;
		link_post(l, IBV_WR_RDMA_WRITE, mr, buf, 2 * PAGE, 0);
	}
}

static unsigned writes_of(uint64_t n)
{
	return n % 3 ? 1 : 2;
}

static void write_goings(struct host *h, int fd)
{
	for (uint64_t i = 0; i < 2 * arg.goings; i++) {
		const uint64_t n = i + 1;
		struct link l;

		link_open(&l, h, fd, NULL);
		link_post(&l, IBV_WR_RDMA_WRITE, NULL, &n, sizeof(n), WORD_A);
		link_post(&l, IBV_WR_RDMA_WRITE, NULL, &n, sizeof(n), WORD_B);
		REQUIRE(host_status(h) == IBV_WC_REM_ACCESS_ERR);
		REQUIRE(host_status(h) == IBV_WC_WR_FLUSH_ERR);
		host_say(fd, n);
		REQUIRE(host_hear(fd) == n);
		link_close(&l);
	}
}

static void requester(int fd)
{
	uint64_t n = 0, done = 0;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, 2 * AHEAD * PAGE), 2 * AHEAD * PAGE);
	link_open(&l, &h, fd, NULL);
	while (n < arg.evictions) {
		REQUIRE(host_hear(fd) == ++n);
		write_number(&l, mr, n);
		host_wait(&h, writes_of(n));
		host_say(fd, n);
	}
	REQUIRE(host_hear(fd) == n + 1);
	for (done = n; n < arg.evictions + arg.warm;) {
		write_number(&l, mr, ++n);
		for (; done + AHEAD < n; done++)
			host_wait(&h, writes_of(done + 1));
	}
	for (; done < n; done++)
		host_wait(&h, writes_of(done + 1));
	host_say(fd, n);
	link_close(&l);
	write_goings(&h, fd);
	host_dereg(mr);
	host_close(&h);
	REQUIRE(host_counter("timeouts") + host_counter("rnr_rx") == 0);
	REQUIRE(host_counter("naks_rx") == 2 * arg.goings);
}

/* --- the reader --------------------------------------------------------------- */

/* READ B and then A until B is @n. */
static void read_until(struct host *h, struct link *l, struct ibv_mr *mr,
		       uint64_t n)
{
	volatile uint64_t *b = mr->addr, *a = b + 1;

	do {
		link_post(l, IBV_WR_RDMA_READ, mr, (void *)(uintptr_t)b,
			  sizeof(*b), WORD_B);
		link_post(l, IBV_WR_RDMA_READ, mr, (void *)(uintptr_t)a,
			  sizeof(*a), WORD_A);
		host_wait(h, 2);
		REQUIRE_LE(*b, *a);
	} while (*b != n);
}

static void reader(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	link_open(&l, &h, fd, NULL);
	for (uint64_t n = 1; n <= arg.evictions; n++) {
		REQUIRE(host_hear(fd) == n);
		read_until(&h, &l, mr, n);
		host_say(fd, n);
	}
	read_until(&h, &l, mr, arg.evictions + arg.warm);
	host_say(fd, 0);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	REQUIRE(host_counter("timeouts") + host_counter("rnr_rx") == 0);
}

/* --- the target --------------------------------------------------------------- */

static struct {
	const volatile uint64_t *a, *b;
	uint64_t seen, changes;
	bool stop;
} watch;

static void *spin(void *unused)
{
	uint64_t last = 0;

	(void)unused;
	while (!__atomic_load_n(&watch.stop, __ATOMIC_RELAXED)) {
		uint64_t a, b = __atomic_load_n(watch.b, __ATOMIC_ACQUIRE);

		if (b == last)
			continue;
		a = __atomic_load_n(watch.a, __ATOMIC_ACQUIRE);
		REQUIRE_LE(b, a);
		watch.changes++;
		last = b;
		__atomic_store_n(&watch.seen, b, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The requester says that @n is there: it is. */
static void told(int fd, uint64_t n)
{
	REQUIRE(host_hear(fd) == n);
	REQUIRE_EQ(__atomic_load_n(watch.b, __ATOMIC_ACQUIRE), n);
	REQUIRE_EQ(__atomic_load_n(watch.a, __ATOMIC_ACQUIRE), n);
	while (__atomic_load_n(&watch.seen, __ATOMIC_ACQUIRE) != n)
		sched_yield();
}

static void evictions(struct slow *s, int wfd, int rfd)
{
	for (uint64_t n = 1; n <= arg.evictions; n++) {
		slow_evict(s, 0, PAGE);
		/* Every other time the NIC has forgotten the page, too; else
		 * its table is wrong, and the move meets the fault. */
		if (n % 2)
			host_sleep(12 * MS);
		if (n / 2 % 2)
			host_say(wfd, n);
		host_say(rfd, n);
		if (!(n / 2 % 2))
			host_say(wfd, n);
		told(wfd, n);
		REQUIRE(host_hear(rfd) == n);
	}
}

/* Page A of its own; @i: by which means it goes. */
static void one_going(struct host *h, int fd, uint64_t i)
{
	const bool file = i % 2;
	struct slow *s = calloc(1, sizeof(*s)); /* stays: its threads do */
	uint8_t *base = host_map(GONE_MAP, 2 * PAGE);
	struct ibv_mr *mr = host_reg(h, base, 2 * PAGE);
	int fd_a = -1;
	struct link l;

	REQUIRE(s);
	*(uint64_t *)(base + WORD_B) = 0;
	if (file) {
		fd_a = memfd_create("page", MFD_CLOEXEC);
		REQUIRE(fd_a >= 0 && ftruncate(fd_a, PAGE) == 0);
		REQUIRE(mmap(base, PAGE, PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_FIXED, fd_a, 0) == base);
	}
	slow_open(s, arg.kind, base, PAGE, GONE_NS);
	link_open(&l, h, fd, mr);
	slow_asked(s, 1); /* the WRITE is in a slot */
	if (file)
		REQUIRE(ftruncate(fd_a, 0) == 0);
	else
		REQUIRE(munmap(base, PAGE) == 0);
	REQUIRE(host_hear(fd) == i + 1);
	REQUIRE(*(uint64_t *)(base + WORD_B) == 0);
	host_say(fd, i + 1);
	link_close(&l);
	host_dereg(mr);
	REQUIRE(munmap(base, 2 * PAGE) == 0);
	if (file)
		close(fd_a);
}

/* Half of the slots of these waited for a page that nobody knew of. */
static void check_residence(void)
{
	printf("slots: %llu under 100 us, %llu under 1 ms, %llu under 5 ms, "
	       "%llu over\n",
	       (unsigned long long)host_counter("slots_100us"),
	       (unsigned long long)host_counter("slots_1ms"),
	       (unsigned long long)host_counter("slots_5ms"),
	       (unsigned long long)host_counter("slots_longer"));
	REQUIRE_LE(arg.evictions / 4, host_counter("slots_longer"));
}

static void target(int wfd, int rfd)
{
	static struct slow s = {.fetch = NULL};
	uint8_t *base = host_map(NULL, 2 * PAGE);
	struct link w, r;
	struct ibv_mr *mr;
	pthread_t spinner;
	struct host h;

	*(uint64_t *)(base + WORD_B) = 0;
	watch.a = (const uint64_t *)(base + WORD_A);
	watch.b = (const uint64_t *)(base + WORD_B);
	slow_open(&s, arg.kind, base, PAGE, PAGE_NS);
	host_open(&h);
	mr = host_reg(&h, base, 2 * PAGE);
	link_open(&w, &h, wfd, mr);
	link_open(&r, &h, rfd, mr);
	REQUIRE(pthread_create(&spinner, NULL, spin, NULL) == 0);
	evictions(&s, wfd, rfd);
	host_say(wfd, arg.evictions + 1);
	told(wfd, arg.evictions + arg.warm);
	REQUIRE(host_hear(rfd) == 0);
	__atomic_store_n(&watch.stop, true, __ATOMIC_RELAXED);
	pthread_join(spinner, NULL);
	printf("the spinner saw %llu changes\n",
	       (unsigned long long)watch.changes);
	link_close(&w);
	link_close(&r);
	host_dereg(mr);
	for (uint64_t i = 0; i < 2 * arg.goings; i++)
		one_going(&h, wfd, i);
	host_close(&h);
	check_residence();
}

int main(int argc, char **argv)
{
	int wfd, rfd;

	REQUIRE(argc == 5);
	arg.evictions = strtoull(argv[1], NULL, 0);
	arg.warm = strtoull(argv[2], NULL, 0);
	arg.goings = strtoull(argv[3], NULL, 0);
	arg.kind = strcmp(argv[4], "user") ? SLOW_KERNEL : SLOW_USER;
	host_start();
	wfd = host_fork(requester);
	rfd = host_fork(reader);
	target(wfd, rfd);
	host_join();
	return 0;
}
