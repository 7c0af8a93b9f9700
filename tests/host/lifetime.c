/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* lifetime.c: what happens to memory while a page of it hangs.
 *
 *   lifetime dereg MS kernel|user
 *	A page takes that long: a peer WRITEs it, READs it, and its owner SENDs
 *	from it. ibv_dereg_mr() returns at once; the range is unmapped and a
 *	canary mapped there; the page comes: the canary is not touched, and the
 *	requests have failed.
 *   lifetime handler PAGES kernel|user
 *	The fault handler of a userfaultfd range fetches each page by an RDMA
 *	READ on the same NIC. A peer WRITEs and READs such pages, and the program
 *	itself looks at them.
 *   lifetime fork MIB FORKS
 *	A thread forks every 100 ms with so much resident: no step of the engine
 *	sleeps for an eighth of a fork, and what peers WRITE meanwhile arrives.
 */
#include "host.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

/* of the time of a fork a step sleeps less than this part */
#define OF_FORK 8
#define FORK_NS (100 * MS)
#define CANARY	0xca
/* Below everything else, so that nothing is mapped there when it is gone. A
 * range for each way: what the NIC knows of an address may be 10 ms old. */
#define RANGE(way) ((void *)(uintptr_t)(0x200000000000 + (way)*PAGE))

static struct {
	uint64_t n;
	enum slow_kind kind;
} arg;

/* --- dereg -------------------------------------------------------------------------- */

enum { WAYS = 3 };

/* The peer's part: 0: WRITE, 1: READ, 2: receive from the slow page. */
static void dereg_peer(int fd)
{
	struct ibv_mr *mr;
	struct host h;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	memset(mr->addr, 1, PAGE);
	for (int way = 0; way < WAYS; way++) {
		struct link l;

		link_open(&l, &h, fd, mr);
		if (way == 2) {
			REQUIRE(host_hear(fd) == 2);
		} else {
			link_post(&l,
				  way ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				  mr, mr->addr, PAGE, 0);
			REQUIRE(host_status(&h) == IBV_WC_REM_ACCESS_ERR);
			host_say(fd, (uint64_t)way);
		}
		link_close(&l);
	}
	host_dereg(mr);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

static void dereg_way(struct host *h, int fd, int way)
{
	struct slow *s = calloc(1, sizeof(*s)); /* stays: its threads do */
	uint8_t *canary, *range = host_map(RANGE(way), PAGE);
	struct ibv_mr *mr = host_reg(h, range, PAGE);
	uint64_t from, took;
	struct link l;

	REQUIRE(s);
	slow_open(s, arg.kind, range, PAGE, arg.n * MS);
	link_open(&l, h, fd, mr);
	if (way == 2)
		link_post(&l, IBV_WR_RDMA_WRITE, mr, range, PAGE, 0);
	slow_asked(s, 1);
	from = host_now();
	host_dereg(mr);
	took = host_now() - from;
	/* it did not wait for the page */
	REQUIRE_EQ(__atomic_load_n(&s->brought_ns, __ATOMIC_RELAXED), 0);
	REQUIRE(munmap(range, PAGE) == 0);
	canary = host_map(RANGE(way), PAGE);
	memset(canary, CANARY, PAGE);
	printf("way %d: ibv_dereg_mr %.3f ms\n", way, (double)took / MS);
	if (way == 2)
		REQUIRE(host_status(h) == IBV_WC_LOC_PROT_ERR);
	else
		REQUIRE(host_hear(fd) == (uint64_t)way);
	/* The page comes, to whoever still waits for it. */
	while (host_now() < from + arg.n * MS + 50 * MS)
		host_sleep(MS);
	for (int i = 0; i < PAGE; i++)
		REQUIRE(canary[i] == CANARY);
	if (way == 2)
		host_say(fd, 2);
	link_close(&l);
	REQUIRE(munmap(canary, PAGE) == 0);
}

static void dereg(void)
{
	int fd = host_fork(dereg_peer);
	struct host h;

	host_open(&h);
	for (int way = 0; way < WAYS; way++)
		dereg_way(&h, fd, way);
	host_close(&h);
}

/* --- handler ------------------------------------------------------------------------- */

static uint64_t word_of(uint64_t page)
{
	return page * 0x9e3779b97f4a7c15 + 1;
}

/* Serves the pages that the handler READs, and WRITEs and READs the range. */
static void handler_peer(int fd)
{
	uint64_t *pages = host_map(NULL, arg.n * PAGE), *buf;
	struct ibv_mr *mr, *own;
	struct link store, l;
	struct host h;

	for (uint64_t i = 0; i < arg.n; i++)
		pages[i * PAGE / 8] = word_of(i);
	host_open(&h);
	mr = host_reg(&h, pages, arg.n * PAGE);
	own = host_reg(&h, host_map(NULL, PAGE), PAGE);
	buf = own->addr;
	link_open(&store, &h, fd, mr);
	link_open(&l, &h, fd, NULL);
	for (uint64_t i = 0; i < arg.n; i++) {
		const uint64_t at = i * PAGE;

		/* The page comes with its word; the WRITE is behind it. */
		if (i % 3 == 0)
			link_post(&l, IBV_WR_RDMA_WRITE, NULL, &at, sizeof(at),
				  at + 8);
		else if (i % 3 == 1)
			link_post(&l, IBV_WR_RDMA_READ, own, buf, 8, at);
		else
			continue;
		host_wait(&h, 1);
		if (i % 3 == 1)
			REQUIRE_EQ(buf[0], word_of(i));
	}
	host_say(fd, 0);
	REQUIRE(host_hear(fd) == 1);
	link_close(&store);
	link_close(&l);
	host_dereg(mr);
	host_dereg(own);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

static struct {
	struct host h; /* its CQ is the handler's */
	struct link l;
	struct ibv_mr *mr;
	pthread_mutex_t lock;
	uint64_t fetched;
} store = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The handler: several threads of slow.c. */
static void fetch(struct slow *s, size_t offset)
{
	pthread_mutex_lock(&store.lock);
	link_post(&store.l, IBV_WR_RDMA_READ, store.mr, store.mr->addr, PAGE,
		  offset);
	host_wait(&store.h, 1);
	memcpy(s->backing + offset, store.mr->addr, PAGE);
	store.fetched++;
	pthread_mutex_unlock(&store.lock);
}

static void handler(void)
{
	const int fd = host_fork(handler_peer);
	static struct slow s = {.fetch = fetch};
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	store.h = h;
	store.h.cq = ibv_create_cq(h.ctx, DEPTH, NULL, NULL, 0);
	REQUIRE(store.h.cq);
	store.mr = host_reg(&h, host_map(NULL, PAGE), PAGE);
	mr = host_reg(&h, host_map(NULL, arg.n * PAGE), arg.n * PAGE);
	pthread_mutex_lock(&store.lock);
	slow_open(&s, arg.kind, mr->addr, arg.n * PAGE, 0);
	link_open(&store.l, &store.h, fd, NULL);
	pthread_mutex_unlock(&store.lock);
	link_open(&l, &h, fd, mr);
	/* Every third page is the program's own. */
	for (uint64_t i = 2; i < arg.n; i += 3)
		REQUIRE_EQ(((uint64_t *)mr->addr)[i * PAGE / 8], word_of(i));
	REQUIRE(host_hear(fd) == 0);
	for (uint64_t i = 0; i < arg.n; i++) {
		REQUIRE_EQ(((uint64_t *)mr->addr)[i * PAGE / 8], word_of(i));
		if (i % 3 == 0)
			REQUIRE_EQ(((uint64_t *)mr->addr)[i * PAGE / 8 + 1],
				   i * PAGE);
	}
	pthread_mutex_lock(&store.lock);
	REQUIRE_EQ(store.fetched, arg.n);
	pthread_mutex_unlock(&store.lock);
	host_say(fd, 1);
	link_close(&store.l);
	link_close(&l);
	host_dereg(store.mr);
	host_dereg(mr);
	REQUIRE(ibv_destroy_cq(store.h.cq) == 0);
	host_close(&h);
}

/* --- fork ------------------------------------------------------------------------------ */

static uint64_t samples[1 << 20];

static void fork_peer(int fd)
{
	const uint64_t pages = (arg.n << 20) / PAGE, until = host_hear(fd);
	struct host h;
	struct link l;
	size_t n = 0;

	host_open(&h);
	link_open(&l, &h, fd, NULL);
	for (; host_now() < until && n < ARRAY_SIZE(samples); n++) {
		const uint64_t from = host_now(), page = host_random() % pages;

		link_post(&l, IBV_WR_RDMA_WRITE, NULL, &page, sizeof(page),
			  page * PAGE);
		host_wait(&h, 1);
		samples[n] = host_now() - from;
	}
	host_quantile(samples, n, 0.5);
	printf("%zu WRITEs: p50 %.3f ms, p99 %.3f ms, max %.3f ms\n", n,
	       (double)samples[n / 2] / MS,
	       (double)samples[n - n / 100 - 1] / MS,
	       (double)samples[n - 1] / MS);
	host_say(fd, 0);
	link_close(&l);
	host_close(&h);
	REQUIRE_EQ(host_counter("timeouts"), 0);
}

static void fork_once(void)
{
	pid_t pid = fork();

	REQUIRE(pid >= 0);
	if (!pid)
		_exit(0);
	REQUIRE(waitpid(pid, NULL, 0) == pid);
}

enum { THREADS_MAX = 64 };

/* Of each thread: how long it had waited for a CPU after this fork and the two before. */
static struct {
	int tid;
	uint64_t waited[3];
} thread[THREADS_MAX];

static uint64_t cpu_waited(int tid)
{
	unsigned long long waited = 0;
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", tid);
	f = fopen(path, "re");
	if (!f)
		return 0; /* it has ended, or the kernel does not say */
	if (fscanf(f, "%*u %llu", &waited) != 1)
		waited = 0;
	fclose(f);
	return waited;
}

static uint64_t thread_waited(int tid)
{
	unsigned i = 0;
	uint64_t *w;

	while (i < THREADS_MAX && thread[i].tid && thread[i].tid != tid)
		i++;
	if (i == THREADS_MAX)
		return 0;
	w = thread[i].waited;
	w[2] = w[1];
	w[1] = w[0];
	w[0] = cpu_waited(tid);
	if (!thread[i].tid)
		w[2] = w[1] = w[0];
	thread[i].tid = tid;
	return w[0] > w[2] ? w[0] - w[2] : 0;
}

/* Return: what the thread that waited longest for a CPU did during the last two forks:
 * a step of it that had to sleep may have taken so much longer. */
static uint64_t threads_waited(void)
{
	DIR *tasks = opendir("/proc/self/task");
	uint64_t most = 0, waited;
	const struct dirent *d;

	REQUIRE(tasks);
	while ((d = readdir(tasks))) {
		if (d->d_name[0] == '.')
			continue;
		waited = thread_waited(atoi(d->d_name));
		if (waited > most)
			most = waited;
	}
	closedir(tasks);
	return most;
}

static void forks(uint64_t count)
{
	const int fd = host_fork(fork_peer);
	const size_t bytes = arg.n << 20;
	uint64_t *memory, longest = 0, waited = 0, now, may_sleep;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	/* plans and commits are accounted, too */
	setenv("NOPIN_LOG", "debug", 1);
	memory = host_map(NULL, bytes);
	for (size_t i = 0; i < bytes / PAGE; i++)
		memory[i * PAGE / 8] = UINT64_MAX;
	host_open(&h);
	mr = host_reg(&h, memory, bytes);
	host_say(fd, host_now() + count * FORK_NS);
	link_open(&l, &h, fd, mr);
	for (uint64_t i = 0; i < count; i++) {
		const uint64_t from = host_now();

		fork_once();
		if (host_now() - from > longest)
			longest = host_now() - from;
		while (host_now() < from + FORK_NS)
			host_sleep(MS);
		now = threads_waited();
		waited = now > waited ? now : waited;
	}
	REQUIRE(host_hear(fd) == 0);
	for (size_t i = 0; i < bytes / PAGE; i++)
		REQUIRE(memory[i * PAGE / 8] == UINT64_MAX ||
			memory[i * PAGE / 8] == i);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	printf("forks took up to %.3f ms; plans and commits slept up to %.3f "
	       "ms, moves %.3f ms; threads waited for a CPU up to %.3f ms\n",
	       (double)longest / MS,
	       (double)host_counter("step_sleep_max") / MS,
	       (double)host_counter("move_sleep_max") / MS,
	       (double)waited / MS);
	may_sleep = longest / OF_FORK + waited;
	REQUIRE_LE(host_counter("step_sleep_max"), may_sleep);
	REQUIRE_LE(host_counter("move_sleep_max"), may_sleep);
}

int main(int argc, char **argv)
{
	REQUIRE(argc == 4);
	arg.n = strtoull(argv[2], NULL, 0);
	arg.kind = strcmp(argv[3], "user") ? SLOW_KERNEL : SLOW_USER;
	host_start();
	if (arg.kind == SLOW_USER)
		host_user();
	if (!strcmp(argv[1], "dereg"))
		dereg();
	else if (!strcmp(argv[1], "handler"))
		handler();
	else
		forks(strtoull(argv[3], NULL, 0));
	host_join();
	return 0;
}
