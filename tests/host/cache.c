/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cache.c: four processes, as ordinary users, write to the memory of a fifth, of
 * whose pages the NIC's table holds a sixteenth, and which are evicted and protected
 * all the time. They ask before each WRITE what is ready. Everything that is written is
 * read back; nobody believes more to be ready than the table holds. Users are killed
 * (SIGKILL) in their turn: one that does nothing, one that waits, one in between; the
 * others go on. With an argument the owner is killed.
 *
 *   host-cache [owner]
 */
#include "sync.h"

#include "../../tools/nopin/nopin.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
	USERS = 4,
	SERVERS = 2,
	BLOCK = 2 * PAGE,
	BLOCKS = 2048,
	MINE = BLOCKS / USERS, /* blocks that a user writes to */
	ENTRIES = 256,
	ROUNDS = 600,
	HITS = 20000
};

/* What a user does when the owner's process says so; it answers when it did. */
enum order { HIT = 1, LOSE, WAIT, RUN, RUN_FOR_EVER, CHECK, TELL };

/* 2 s, and 0.25 s for each retry, say connections of nopin; and a busy machine */

static struct host h;
static struct nopin_owner *owner;
static struct sync_link end[USERS];
static struct link data[USERS];
static int fd[USERS];
static pid_t *pid;

/* --- users ---------------------------------------------------------------------- */

/** struct user - @round: of what was written last to each of its blocks, or 0. */
static struct {
	struct nopin_cache *c;
	struct sync_link control;
	struct link l;
	struct ibv_mr *mr;
	uint8_t *from, *to;
	uint64_t number, round[MINE];
} me;

static uint64_t place(uint64_t i)
{
	return (i * USERS + me.number) * BLOCK;
}

static int ready(uint64_t offset, uint64_t timeout_ns)
{
	return nopin_cache_ready(me.c, me.l.va + offset, BLOCK, timeout_ns,
				 (enum nopin_wait)(host_random() % 3));
}

static struct nopin_cache_stats stats(void)
{
	struct nopin_cache_stats s;

	REQUIRE_EQ(nopin_cache_query(me.c, &s, sizeof(s)), 0);
	return s;
}

static void check(uint64_t i)
{
	link_post(&me.l, IBV_WR_RDMA_READ, me.mr, me.to, BLOCK, place(i));
	host_wait(&h, 1);
	host_check(me.to, BLOCK, me.round[i]);
}

/* The answer does not matter: it is a hint. */
static int turn(uint64_t k)
{
	const uint64_t i = host_random() % MINE;
	int rc = ready(place(i), host_random() % 4 ? SECOND : 0);

	if (rc && rc != EAGAIN && rc != ETIMEDOUT)
		return rc;
	me.round[i] = (k * USERS + me.number) * MINE + i + 1;
	host_fill(me.from, BLOCK, me.round[i]);
	link_post(&me.l, IBV_WR_RDMA_WRITE, me.mr, me.from, BLOCK, place(i));
	host_wait(&h, 1);
	check(i);
	return 0;
}

static uint64_t counted(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	REQUIRE(at);
	return strtoull(at + strlen(name), NULL, 10);
}

/* That were sent, but for answers: the owner asks now and then whether we live. */
static uint64_t packets(void)
{
	char why[ASK_WHY_MAX], *text;
	uint64_t n;
	size_t len;

	text = ask_nic(getpid(), "stat", 5000, &len, why);
	REQUIRE(text);
	n = counted(text, "\"tx_packets\":") - counted(text, "\"acks_tx\":");
	free(text);
	return n;
}

/* A hit sends nothing. */
static int hit(void)
{
	uint64_t before;

	while (ready(0, SECOND) == EAGAIN)
		;
	host_sleep(20 * MS);
	before = packets();
	for (int i = 0; i < HITS; i++)
		REQUIRE_EQ(ready(0, 0), 0);
	REQUIRE_EQ(packets(), before);
	REQUIRE_LE(HITS, stats().hits);
	return 0;
}

/* What was ready is not, after the owner's program has been told so. */
static int lose(void)
{
	const struct nopin_cache_stats was = stats();

	while (stats().misses == was.misses)
		ready(0, 0);
	REQUIRE_LE(was.invalidated + 1, stats().invalidated);
	return 0;
}

static int obey(enum order order)
{
	int rc = 0;

	switch (order) {
	case HIT:
		return hit();
	case LOSE:
		return lose();
	case WAIT:
		return ready(0, UINT64_MAX);
	case CHECK:
		for (uint64_t i = 0; i < MINE; i++)
			if (me.round[i])
				check(i);
		return 0;
	case TELL: /* that is up to date after a while; counts are then, too */
		host_sleep(100 * MS);
		ready(place(0), SECOND);
		return (int)stats().held;
	default:
		for (uint64_t k = 0; !rc && (k < ROUNDS || order != RUN); k++)
			rc = turn(k);
		return rc;
	}
}

static void user_open(int s)
{
	host_open(&h);
	sync_link_open(&me.control, &h, s);
	me.c = cache_open(&me.control, s, BLOCK, BLOCKS);
	link_open(&me.l, &h, s, NULL);
	me.from = host_map(NULL, 2 * BLOCK);
	me.to = me.from + BLOCK;
	me.mr = host_reg(&h, me.from, 2 * BLOCK);
}

static void user(int s)
{
	uint64_t order;

	user_open(s);
	me.number = host_hear(s);
	pid[me.number] = getpid();
	for (;;) {
		order = order_take(s);
		order_done(s, order, obey((enum order)order));
	}
}

static int have(int i, enum order order)
{
	order_say(fd[i], order);
	return order_answer(fd[i], order);
}

/* --- the owner --------------------------------------------------------------------- */

static uint8_t *base;
static struct ibv_mr *mr;
static bool gone[USERS];
static bool disturb;
static unsigned evictions;

static void *serve(void *arg)
{
	struct nopin_owner_event e;

	(void)arg;
	while (nopin_owner_serve(owner, NOPIN_WAIT_BLOCK, &e) == 0) {
		REQUIRE(e.gone == NOPIN_GONE_DIED);
		REQUIRE(e.qp == end[e.index].l.qp);
		__atomic_store_n(&gone[e.index], true, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Pages of a file can go and come back, if it is ours. */
static void map_file(void)
{
	char name[] = "host-cache.XXXXXX";
	int file = mkstemp(name);

	REQUIRE(file >= 0 && unlink(name) == 0 && fchmod(file, 0666) == 0);
	REQUIRE(ftruncate(file, (off_t)BLOCKS * BLOCK) == 0);
	base = mmap(NULL, (size_t)BLOCKS * BLOCK, PROT_READ | PROT_WRITE,
		    MAP_SHARED, file, 0);
	REQUIRE(base != MAP_FAILED);
	close(file);
}

static void fork_once(void)
{
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	REQUIRE(child > 0 && waitpid(child, NULL, 0) == child);
}

static void *disturber(void *arg)
{
	(void)arg;
	for (uint64_t i = 0; __atomic_load_n(&disturb, __ATOMIC_RELAXED); i++) {
		uint8_t *p = base + host_random() % (BLOCKS - 8) * BLOCK;

		(void)msync(p, 8 * BLOCK, MS_SYNC);
		(void)madvise(p, 8 * BLOCK, MADV_PAGEOUT);
		evictions += host_resident(p, 8 * BLOCK) < 8 * BLOCK / PAGE;
		if (i % 64 == 0)
			fork_once();
		host_sleep(MS);
	}
	return NULL;
}

static void start(int users)
{
	const struct nopin_owner_attr attr = {.users = USERS,
					      .alive_ns = 200 * MS};
	struct nopin_reg_attr r = {.length = (size_t)BLOCKS * BLOCK,
				   .access = IBV_ACCESS_LOCAL_WRITE |
					     IBV_ACCESS_REMOTE_WRITE |
					     IBV_ACCESS_REMOTE_READ};
	pthread_t thread;

	r.addr = base;
	setenv("NOPIN_ENTRIES", "256", 1);
	host_open(&h);
	REQUIRE_EQ(nopin_owner_create(h.pd, &attr, &owner), 0);
	mr = nopin_owner_reg(owner, &r, sizeof(r));
	REQUIRE(mr);
	for (int i = 0; i < users; i++) {
		sync_link_open(&end[i], &h, fd[i]);
		cache_join(owner, &end[i], fd[i]);
		link_open(&data[i], &h, fd[i], mr);
		host_say(fd[i], (uint64_t)i);
	}
	for (int i = 0; i < SERVERS; i++)
		REQUIRE(pthread_create(&thread, NULL, serve, NULL) == 0);
}

static void be_gone(uint32_t i)
{
	const uint64_t began = host_now();

	while (!__atomic_load_n(&gone[i], __ATOMIC_ACQUIRE))
		host_sleep(MS);
	printf("%u: known after %.0f ms\n", i,
	       (double)(host_now() - began) / 1e6);
}

static void kill_one(uint32_t i)
{
	int status;

	REQUIRE(kill(pid[i], SIGKILL) == 0);
	REQUIRE(waitpid(pid[i], &status, 0) == pid[i]);
	REQUIRE(WIFSIGNALED(status));
}

static void run_all(int from, enum order order)
{
	for (int i = from; i < USERS; i++)
		order_say(fd[i], order);
	for (int i = from; i < USERS; i++)
		REQUIRE_EQ(order_answer(fd[i], order), 0);
}

/* Nobody knows of more than there is. Return: how many blocks they know of. */
static unsigned count(int from)
{
	unsigned all = 0;

	for (int i = from; i < USERS; i++) {
		const int held = have(i, TELL);

		printf("%d: knows of %d blocks\n", i, held);
		REQUIRE_LE((uint64_t)held * (BLOCK / PAGE), ENTRIES);
		all += (unsigned)held;
	}
	return all;
}

static void hits_and_misses(void)
{
	REQUIRE_EQ(have(0, HIT), 0);
	REQUIRE(nopin_mr_suspend(mr, 0) == 0);
	REQUIRE_EQ(have(0, LOSE), 0);
	REQUIRE(nopin_mr_resume(mr) == 0);
	REQUIRE_EQ(have(0, HIT), 0);
	fork_once();
	REQUIRE_EQ(have(0, LOSE), 0);
	REQUIRE_EQ(have(0, HIT), 0);
}

static void deaths(void)
{
	kill_one(0); /* does nothing */
	REQUIRE(nopin_mr_suspend(mr, 0) == 0);
	order_say(fd[1], WAIT); /* waits for what cannot be had */
	host_sleep(50 * MS);
	kill_one(1);
	host_sleep(50 * MS);
	REQUIRE(!__atomic_load_n(&gone[1], __ATOMIC_ACQUIRE));
	REQUIRE(nopin_mr_resume(mr) == 0);
	order_say(fd[2], RUN_FOR_EVER);
	host_sleep(50 * MS + host_random() % (100 * MS));
	kill_one(2);
	run_all(3, RUN); /* while nobody has noticed yet */
	for (uint32_t i = 0; i < 3; i++)
		be_gone(i);
}

static void run(void)
{
	pthread_t thread;

	for (int i = 0; i < USERS; i++)
		fd[i] = host_fork(user);
	start(USERS);
	hits_and_misses();
	disturb = true;
	REQUIRE(pthread_create(&thread, NULL, disturber, NULL) == 0);
	run_all(0, RUN);
	run_all(0, CHECK);
	__atomic_store_n(&disturb, false, __ATOMIC_RELAXED);
	REQUIRE(pthread_join(thread, NULL) == 0);
	printf("%u times were pages not there that had been\n", evictions);
	run_all(0, RUN);
	REQUIRE_LE(USERS * ENTRIES / 32, count(0));
	run_all(0, CHECK);
	deaths();
	run_all(3, RUN);
	count(3);
	run_all(3, CHECK);
}

/* --- no owner any more --------------------------------------------------------- */

static void owner_role(int s)
{
	pid[0] = getpid();
	fd[0] = s;
	start(1);
	for (;;)
		pause();
}

static void run_without_owner(void)
{
	const int s = host_fork(owner_role);
	uint64_t began;
	int rc = 0;

	user_open(s);
	REQUIRE(host_hear(s) == 0);
	REQUIRE_EQ(ready(0, UINT64_MAX), 0);
	began = host_now();
	REQUIRE(kill(pid[0], SIGKILL) == 0);
	for (uint64_t i = 1; !rc || rc == ETIMEDOUT; i++)
		rc = ready(i * BLOCK, 500 * MS);
	REQUIRE_EQ(rc, ENOTCONN);
	printf("the owner's end: known after %.0f ms\n",
	       (double)(host_now() - began) / 1e6);
	REQUIRE_EQ(ready(0, 0), ENOTCONN);
	REQUIRE_EQ(nopin_cache_destroy(me.c), 0);
	sync_link_close(&me.control);
	link_close(&me.l);
	host_dereg(me.mr);
	host_close(&h);
}

int main(int argc, char **argv)
{
	(void)argv;
	host_start();
	map_file();
	host_user();
	link_timeout = 14;
	link_retries = 2;
	pid = host_shared(sizeof(*pid));
	if (argc == 1)
		run();
	else
		run_without_owner();
	return 0;
}
