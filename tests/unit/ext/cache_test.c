/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* cache_test.c: an owner and two users in one process: what is ready, what is lost,
 * and who goes.
 */
#include "../sanitized.h"
#include "pair.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	USERS = 2,
	SERVERS = 2,
	PAGE = 4096,
	BLOCK = 2 * PAGE,
	BLOCKS = 8,
	LEN = 64 * PAGE,
};

#define MS UINT64_C(1000000)

static struct nopin_owner *owner;
static struct end {
	struct pair_ends ends;
	struct nopin_cache *c;
	struct nopin_card theirs, card;
	unsigned gone;
} end[USERS];
static pthread_t server[SERVERS];
static struct ibv_mr *region;
static char *all, *mem;

/* --- an owner and its users ------------------------------------------------ */

static int (*advise)(struct ibv_pd *in, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sge, uint32_t num);
static unsigned advised; /* requests for pages of owners */

static int advise_counted(struct ibv_pd *in, enum ibv_advise_mr_advice advice,
			  uint32_t flags, struct ibv_sge *sge, uint32_t num)
{
	__atomic_add_fetch(&advised, 1, __ATOMIC_RELEASE);
	return advise(in, advice, flags, sge, num);
}

/* Until a thread of the owner is at work for a user, @times after the test began. */
static void owner_works(unsigned times)
{
	while (__atomic_load_n(&advised, __ATOMIC_ACQUIRE) < times)
		usleep(1000);
}

static void *serve(void *arg)
{
	struct nopin_owner_event e;
	int rc;

	(void)arg;
	while (!(rc = nopin_owner_serve(owner, NOPIN_WAIT_BLOCK, &e)))
		for (int i = 0; i < USERS; i++)
			if (e.qp == end[i].ends.qp[1])
				__atomic_store_n(&end[i].gone, e.gone,
						 __ATOMIC_RELEASE);
	assert_int_equal(rc, ECANCELED);
	return NULL;
}

static void end_open(struct end *e)
{
	const struct nopin_cache_attr attr = {.block = BLOCK, .blocks = BLOCKS};

	e->gone = 0;
	pair_ends_open(&e->ends);
	assert_int_equal(
		nopin_cache_create(e->ends.qp[0], &attr, &e->c, &e->theirs), 0);
	assert_int_equal(
		nopin_cache_ready(e->c, (uintptr_t)mem, 1, 0, NOPIN_WAIT_SPIN),
		EINVAL);
	assert_int_equal(
		nopin_owner_join(owner, e->ends.qp[1], &e->theirs, &e->card),
		0);
	assert_int_equal(nopin_cache_start(e->c, &e->card), 0);
	assert_int_equal(nopin_cache_start(e->c, &e->card), EINVAL);
}

static struct ibv_mr *reg(char *at, size_t len)
{
	const struct nopin_reg_attr a = {.addr = at,
					 .length = len,
					 .access = IBV_ACCESS_LOCAL_WRITE |
						   IBV_ACCESS_REMOTE_WRITE};
	struct ibv_mr *m = nopin_owner_reg(owner, &a, sizeof(a));

	assert_non_null(m);
	return m;
}

static void servers(bool start)
{
	if (!start)
		assert_int_equal(nopin_owner_stop(owner), 0);
	for (int i = 0; i < SERVERS; i++)
		assert_int_equal(
			start ? pthread_create(&server[i], NULL, serve, NULL)
			      : pthread_join(server[i], NULL),
			0);
}

/* Nobody is in nopin_owner_serve() yet. */
static int setup_table(void **state, const char *entries)
{
	const struct nopin_owner_attr attr = {.users = USERS,
					      .alive_ns = 40 * MS};

	setenv("NOPIN_ENTRIES", entries, 1);
	pair_retries = 0; /* 2 s until a peer is given up */
	pair_open(state);
	advised = 0;
	advise = verbs_get_ctx(ctx)->advise_mr;
	verbs_get_ctx(ctx)->advise_mr = advise_counted;
	all = mmap(NULL, LEN + BLOCK, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	mem = all + BLOCK - (uintptr_t)all % BLOCK;
	assert_int_equal(nopin_owner_create(pd, &attr, &owner), 0);
	region = reg(mem, LEN);
	for (int i = 0; i < USERS; i++)
		end_open(&end[i]);
	return 0;
}

static int setup_unserved(void **state)
{
	return setup_table(state, "4096");
}

static int setup(void **state)
{
	setup_unserved(state);
	servers(true);
	return 0;
}

static int setup_small(void **state)
{
	setup_table(state, "64");
	servers(true);
	return 0;
}

static int teardown(void **state)
{
	for (int i = 0; i < USERS; i++)
		if (end[i].c)
			assert_int_equal(nopin_cache_destroy(end[i].c), 0);
	servers(false);
	if (region)
		assert_int_equal(nopin_owner_dereg(owner, region), 0);
	assert_int_equal(nopin_owner_destroy(owner), 0);
	for (int i = 0; i < USERS; i++)
		pair_ends_close(&end[i].ends);
	munmap(all, LEN + BLOCK);
	return pair_close(state);
}

static unsigned gone(struct end *e)
{
	unsigned why;

	while (!(why = __atomic_load_n(&e->gone, __ATOMIC_ACQUIRE)))
		usleep(1000);
	return why;
}

/* --- calls ----------------------------------------------------------------- */

/* How often it moved or took away pages of anybody: while it does they are absent. */
static uint64_t kernel_moves(void)
{
	static const char *const names[] = {"pgmigrate_", "pgsteal_",
					    "thp_collapse_alloc",
					    "compact_isolated"};
	FILE *f = fopen("/proc/vmstat", "re");
	char line[100];
	uint64_t sum = 0;

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
			if (strncmp(line, names[i], strlen(names[i])) == 0)
				sum += strtoull(strchr(line, ' '), NULL, 10);
	fclose(f);
	return sum;
}

/* What the kernel took meanwhile is asked for again, as programs do; so is what may have
 * been taken. */
static int ready(int i, uint64_t offset, uint64_t len)
{
	uint64_t moves;
	int rc;

	do {
		moves = kernel_moves();
		rc = nopin_cache_ready(end[i].c, (uintptr_t)mem + offset, len,
				       UINT64_MAX,
				       (enum nopin_wait)(offset % 3));
	} while (rc == EAGAIN && (kernel_moves() != moves || SANITIZED));
	return rc;
}

static struct nopin_cache_stats stats(int i)
{
	struct nopin_cache_stats s;

	assert_int_equal(nopin_cache_query(end[i].c, &s, sizeof(s)), 0);
	return s;
}

/* Does it have to ask, if it is asked? */
static bool misses(int i, uint64_t offset)
{
	const uint64_t before = stats(i).misses;

	nopin_cache_ready(end[i].c, (uintptr_t)mem + offset, 1, 0,
			  NOPIN_WAIT_SPIN);
	return stats(i).misses > before;
}

/* What was lost gets about in good time. */
static void becomes_lost(int i, uint64_t offset)
{
	while (!misses(i, offset))
		usleep(100);
}

static size_t resident(uint64_t offset, size_t pages)
{
	unsigned char there[LEN / PAGE];
	size_t n = 0;

	assert_int_equal(mincore(mem + offset, pages * PAGE, there), 0);
	for (size_t i = 0; i < pages; i++)
		n += there[i] & 1;
	return n;
}

/* --- what is ready --------------------------------------------------------- */

static void ready__miss_then_hit(void **state)
{
	struct nopin_cache_stats s;

	(void)state;
	assert_int_equal(resident(0, LEN / PAGE), 0);
	assert_int_equal(ready(0, PAGE, 1), 0);
	/* a whole block, and no other */
	assert_int_equal(resident(0, LEN / PAGE), BLOCK / PAGE);
	assert_int_equal(resident(0, BLOCK / PAGE), BLOCK / PAGE);
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(ready(0, BLOCK - 1, 2), 0);
	assert_int_equal(resident(0, LEN / PAGE), 2 * BLOCK / PAGE);
	s = stats(0);
	assert_int_equal(s.hits, 2);
	assert_int_equal(s.misses, 2);
	assert_int_equal(s.held, 2);
	assert_int_equal(s.evicted + s.invalidated, 0);
	/* the other one knows nothing of it */
	assert_int_equal(ready(1, 0, BLOCK), 0);
	assert_int_equal(stats(1).misses, 1);
}

static void ready__used_least_recently_goes(void **state)
{
	(void)state;
	for (int i = 0; i < BLOCKS; i++)
		assert_int_equal(ready(0, (uint64_t)i * BLOCK, 1), 0);
	assert_int_equal(ready(0, 0, 1), 0);
	assert_int_equal(ready(0, BLOCKS * BLOCK, 1), 0);
	assert_int_equal(stats(0).evicted, 1);
	assert_false(misses(0, 0));
	assert_true(misses(0, BLOCK));
}

/* More answers than the row has room for. */
static void ready__many(void **state)
{
	(void)state;
	for (int i = 0; i < 500; i++)
		assert_int_equal(ready(0, (uint64_t)i * BLOCK % LEN, 1), 0);
	assert_int_equal(stats(0).misses, 500);
}

static void ready__in_the_middle(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(ready(0, 5 * BLOCK, BLOCK), 0);
	assert_int_equal(ready(0, 100, 6 * BLOCK - 200), 0);
	assert_int_equal(stats(0).hits, 2);
	assert_int_equal(stats(0).misses, 6);
	assert_int_equal(resident(0, LEN / PAGE), 6 * BLOCK / PAGE);
}

static void ready__refused(void **state)
{
	struct nopin_cache *c = end[0].c;
	const uint64_t at = (uintptr_t)mem;

	(void)state;
	assert_int_equal(ready(0, 0, 0), EINVAL);
	assert_int_equal(ready(0, 0, (UINT64_C(1) << 30) + 1), EINVAL);
	assert_int_equal(ready(0, 0, BLOCKS * BLOCK + 1), EINVAL);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ready(0, LEN, 1), EINVAL);
	assert_int_equal(ready(0, LEN - 1, 2), EINVAL);
	assert_int_equal(ready(0, (uint64_t)-1, 2), EINVAL);
	assert_int_equal(
		nopin_cache_ready(c, UINT64_MAX, 2, 0, NOPIN_WAIT_SPIN),
		EINVAL);
	assert_int_equal(nopin_cache_ready(c, at, 1, 0, (enum nopin_wait)3),
			 EINVAL);
	assert_int_equal(nopin_cache_query(c, NULL, 0), EINVAL);
	assert_int_equal(nopin_cache_query(c, NULL, 1000), EINVAL);
	/* the last byte, and its block, but no more than the region */
	assert_int_equal(ready(0, LEN - 1, 1), 0);
	assert_int_equal(mprotect(mem + LEN / 2, BLOCK, PROT_NONE), 0);
	assert_int_equal(ready(0, LEN / 2, 1), EFAULT);
	assert_int_equal(mprotect(mem + LEN / 2, BLOCK, PROT_READ | PROT_WRITE),
			 0);
	assert_int_equal(ready(0, LEN / 2, 1), 0);
}

static void create__refused(void **state)
{
	static const struct nopin_cache_attr bad[] = {
		{.block = 2048, .blocks = 1},
		{.block = 3 * PAGE, .blocks = 1},
		{.block = UINT64_C(1) << 31, .blocks = 1},
		{.block = PAGE, .blocks = 0},
		{.block = PAGE, .blocks = (1 << 24) + 1},
		{.block = PAGE, .blocks = 1, .reserved = 1},
	};
	const struct nopin_cache_attr good = {.block = PAGE, .blocks = 1};
	struct nopin_owner_attr wrong = {.users = 1 << 20};
	struct nopin_reg_attr a = {.addr = mem, .length = PAGE};
	struct nopin_card card, ours;
	struct nopin_owner *o;
	struct nopin_cache *c;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(nopin_cache_create(end[0].ends.qp[0], &bad[i],
						    &c, &card),
				 EINVAL);
	assert_int_equal(nopin_owner_create(pd, &wrong, &o), EINVAL);
	a.access = IBV_ACCESS_LOCAL_WRITE;
	assert_null(nopin_owner_reg(owner, &a, sizeof(a)));
	assert_int_equal(errno, EINVAL);
	a.access |= IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED;
	assert_null(nopin_owner_reg(owner, &a, sizeof(a)));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(nopin_owner_dereg(owner, mr), EINVAL);
	assert_int_equal(nopin_owner_dereg(owner, NULL), EINVAL);
	assert_int_equal(nopin_owner_destroy(owner), EBUSY);
	assert_int_equal(nopin_cache_create(qp[0], &good, &c, &card), 0);
	assert_int_equal(nopin_owner_join(owner, qp[1], &card, &ours), EUSERS);
	card.objects++;
	assert_int_equal(nopin_owner_join(owner, qp[1], &card, &ours), EINVAL);
	card.objects--;
	card.words = 3; /* bytes of a block */
	assert_int_equal(nopin_owner_join(owner, qp[1], &card, &ours), EINVAL);
	assert_int_equal(nopin_cache_destroy(c), 0);
}

/* --- what is lost ---------------------------------------------------------- */

static void lost__suspended(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	becomes_lost(0, 0);
	/* it was asked for meanwhile, and the answer comes when it can */
	assert_int_equal(nopin_cache_ready(end[0].c, (uintptr_t)mem, 1, 20 * MS,
					   NOPIN_WAIT_BLOCK),
			 ETIMEDOUT);
	assert_int_equal(nopin_mr_resume(region), 0);
	while (ready(0, 0, BLOCK) == EAGAIN)
		;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_true(stats(0).invalidated >= 1);
}

static void lost__forked(void **state)
{
	pid_t pid;

	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	pid = fork();
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	becomes_lost(0, 0);
	assert_int_equal(ready(0, 0, BLOCK), 0);
}

/* The table is full of other pages. */
static void lost__replaced(void **state)
{
	char *more = mmap(NULL, 4 * LEN, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *big = reg(more, 4 * LEN);
	const uint64_t at = (uint64_t)(more - mem);

	(void)state;
	while (ready(0, 0, BLOCK) == EAGAIN)
		;
	for (uint64_t i = 0; i < 4 * LEN; i += BLOCK)
		ready(1, at + i, BLOCK);
	becomes_lost(0, 0);
	assert_true(stats(0).invalidated > 0);
	assert_int_equal(nopin_owner_dereg(owner, big), 0);
	munmap(more, 4 * LEN);
}

/* Nobody reads what is told, for longer than there is room. */
static void lost__nobody_looks(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	for (int i = 0; i < 600; i++) {
		assert_int_equal(nopin_mr_suspend(region, 0), 0);
		assert_int_equal(nopin_mr_resume(region), 0);
		if (i % 10 == 0) /* and some of them are taken one by one */
			assert_int_not_equal(ready(1, 0, BLOCK), ETIMEDOUT);
	}
	becomes_lost(0, 0);
	while (ready(0, 0, BLOCK) == EAGAIN)
		;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	assert_int_equal(nopin_mr_resume(region), 0);
	becomes_lost(0, 0);
}

/* The row is full of what else was lost: of this nothing is said any more. */
static void lost__all(void **state)
{
	enum { ROW = 128 };
	char *more = mmap(NULL, 2 * ROW * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *other[ROW];

	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	/* no neighbours: each is a record */
	for (size_t i = 0; i < ROW; i++)
		other[i] = reg(more + 2 * i * PAGE, PAGE);
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	assert_int_equal(nopin_mr_resume(region), 0);
	becomes_lost(0, 0);
	for (size_t i = 0; i < ROW; i++)
		assert_int_equal(nopin_owner_dereg(owner, other[i]), 0);
	munmap(more, 2 * ROW * PAGE);
}

static void lost__deregistered(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(nopin_owner_dereg(owner, region), 0);
	becomes_lost(0, 0);
	assert_int_equal(ready(0, 0, BLOCK), EINVAL);
	region = reg(mem, LEN);
	becomes_lost(0, 0);
	assert_int_equal(ready(0, 0, BLOCK), 0);
}

static int (*post_send)(struct ibv_qp *q, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad);
static unsigned posts; /* of the first user */

static int post_counted(struct ibv_qp *q, struct ibv_send_wr *wr,
			struct ibv_send_wr **bad)
{
	if (q == end[0].ends.qp[0]) /* nor does another thread write it */
		posts++;
	return post_send(q, wr, bad);
}

/* Once in half a row of news, and no sooner, a hit says that it was read. All of it fits
 * the row, whenever it is read. */
static void lost__only_of_others(void **state)
{
	enum { AREAS = 50, HALF_ROW = 64 };
	char *more = mmap(NULL, 2 * AREAS * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *other[AREAS];

	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	posts = 0;
	post_send = ctx->ops.post_send;
	ctx->ops.post_send = post_counted;
	/* no neighbours: each is a record */
	for (size_t i = 0; i < AREAS; i++)
		other[i] = reg(more + 2 * i * PAGE, PAGE);
	for (size_t i = 0; i < AREAS; i++) {
		if (i == HALF_ROW - AREAS - 2)
			usleep(20000); /* it arrived, most likely */
		assert_false(misses(0, 0));
		/* the first was @region's */
		assert_true(posts == 0 || i >= HALF_ROW - AREAS - 1);
		assert_int_equal(nopin_owner_dereg(owner, other[i]), 0);
	}
	while (posts == 0) {
		assert_false(misses(0, 0));
		usleep(100);
	}
	ctx->ops.post_send = post_send;
	assert_int_equal(posts, 1);
	assert_int_equal(stats(0).invalidated, 0);
	munmap(more, 2 * AREAS * PAGE);
}

/* A block is ready when all of it is that is registered. */
static void lost__a_neighbour_is_registered(void **state)
{
	struct ibv_mr *rest;

	(void)state;
	assert_int_equal(nopin_owner_dereg(owner, region), 0);
	region = reg(mem, PAGE);
	assert_int_equal(ready(0, 0, PAGE), 0);
	assert_int_equal(resident(0, LEN / PAGE), 1);
	assert_int_equal(ready(0, 0, BLOCK), 0); /* as nobody asks */
	rest = reg(mem + PAGE, LEN - PAGE);
	becomes_lost(0, 0);
	assert_int_equal(ready(0, 0, 1), 0);
	assert_int_equal(resident(0, LEN / PAGE), BLOCK / PAGE);
	assert_int_equal(nopin_owner_dereg(owner, rest), 0);
}

/* --- one who waits --------------------------------------------------------- */

static void *wait_thread(void *arg)
{
	int *rc = arg;

	*rc = nopin_cache_ready(end[0].c, (uintptr_t)mem, 1, UINT64_MAX,
				NOPIN_WAIT_BLOCK);
	return NULL;
}

static void ready__others_do_not_wait(void **state)
{
	char *other = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *second = reg(other, PAGE);
	pthread_t t;
	int rc;

	(void)state;
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	assert_int_equal(pthread_create(&t, NULL, wait_thread, &rc), 0);
	owner_works(1);
	assert_int_equal(ready(0, 0, 1), EBUSY);
	assert_int_equal(ready(1, (uint64_t)(other - mem), PAGE), 0);
	assert_int_equal(nopin_mr_resume(region), 0);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_true(rc == 0 || rc == EAGAIN);
	assert_int_equal(nopin_owner_dereg(owner, second), 0);
	munmap(other, PAGE);
}

/* --- the end --------------------------------------------------------------- */

static void user__leaves(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(nopin_cache_destroy(end[0].c), 0);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_LEFT);
	pair_ends_close(&end[0].ends);
	end_open(&end[0]);
	assert_int_equal(ready(0, 0, BLOCK), 0);
	assert_int_equal(stats(0).misses, 1);
}

static void notify(struct ibv_qp *q, const struct nopin_card *card)
{
	struct ibv_send_wr *bad, wr = {.opcode = IBV_WR_RDMA_WRITE,
				       .send_flags = IBV_SEND_SIGNALED};

	assert_int_equal(nopin_post_write_notify(q, &wr, card->counter, &bad),
			 0);
}

/* Its own end, so that it need not find out by retries that nobody answers. */
static void link_break(struct end *e)
{
	pair_break(e->ends.qp[0]);
}

static void user__lies(void **state)
{
	(void)state;
	notify(end[0].ends.qp[0], &end[0].card); /* and its box is empty */
	assert_int_equal(gone(&end[0]), NOPIN_GONE_LIED);
	assert_int_equal(ready(0, 0, 1), ENOTCONN);
	assert_int_equal(ready(0, 0, 1), ENOTCONN);
	assert_int_equal(ready(1, 0, 1), 0);
}

/* It asks again before it was answered; the thread that works for it has the last
 * word. */
static void user__lies_twice(void **state)
{
	(void)state;
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	assert_true(misses(0, 0));
	owner_works(1);
	notify(end[0].ends.qp[0], &end[0].card);
	usleep(100000);
	assert_int_equal(end[0].gone, 0);
	assert_int_equal(nopin_mr_resume(region), 0);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_LIED);
	assert_int_equal(ready(1, 0, 1), 0);
	link_break(&end[0]);
}

static void user__dies(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, 1), 0);
	link_break(&end[0]);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_DIED);
	assert_int_equal(ready(0, BLOCK, 1), ENOTCONN);
	assert_int_equal(ready(0, 0, 1), ENOTCONN);
	assert_int_equal(ready(1, 0, 1), 0);
}

static void owner__ends(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, 1), 0);
	servers(false);
	assert_int_equal(nopin_owner_destroy(owner), EBUSY); /* has a region */
	assert_int_equal(nopin_owner_dereg(owner, region), 0);
	assert_int_equal(nopin_owner_destroy(owner), 0);
	assert_int_equal(ready(0, BLOCK, 1), ENOTCONN);
	link_break(&end[1]);
	for (int i = 0; i < USERS; i++)
		assert_int_equal(nopin_cache_destroy(end[i].c), 0);
	assert_int_equal(nopin_owner_create(pd, NULL, &owner), 0);
	for (int i = 0; i < USERS; i++) {
		pair_ends_close(&end[i].ends);
		end_open(&end[i]);
	}
	region = reg(mem, LEN);
	servers(true);
	assert_int_equal(ready(1, 0, 1), 0);
}

/* A user that only ever looks finds out as well. */
static void polls_in_vain(uint64_t offset)
{
	int rc;

	while ((rc = nopin_cache_ready(end[0].c, (uintptr_t)mem + offset, 1, 0,
				       NOPIN_WAIT_SPIN)) == ETIMEDOUT)
		usleep(1000);
	assert_int_equal(rc, ENOTCONN);
	assert_int_equal(ready(1, 0, 1), 0);
}

static void owner__dies_and_nobody_waits(void **state)
{
	(void)state;
	assert_int_equal(ready(0, 0, 1), 0);
	pair_break(end[0].ends.qp[1]);
	polls_in_vain(BLOCK);
}

/* Also when all that it sent had arrived before. */
static void owner__dies_before_it_answers(void **state)
{
	(void)state;
	assert_int_equal(nopin_mr_suspend(region, 0), 0);
	assert_true(misses(0, 0));
	owner_works(1);
	usleep(100000); /* the next look takes the completions */
	misses(0, 0);
	pair_break(end[0].ends.qp[1]);
	assert_int_equal(nopin_mr_resume(region), 0);
	polls_in_vain(0);
}

/* It says that there is news where there is none. */
static void owner__lies(void **state)
{
	(void)state;
	notify(end[0].ends.qp[1], &end[0].theirs);
	while (ready(0, 0, 1) != ENOTCONN)
		usleep(1000);
	assert_int_equal(gone(&end[0]), NOPIN_GONE_DIED);
	assert_int_equal(ready(1, 0, 1), 0);
}

/* Who serves needs no descriptor that it does not have, not even the first time. */
static void owner__no_descriptor_left(void **state)
{
	struct nopin_owner_event e;
	struct rlimit was;
	int rc;

	(void)state;
	/* which is not seen at the first look: so it waits */
	pair_break(end[0].ends.qp[1]);
	was = pair_no_descriptors();
	rc = nopin_owner_serve(owner, NOPIN_WAIT_BLOCK, &e);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	link_break(&end[0]);
	servers(true);
	assert_int_equal(rc, 0);
	assert_ptr_equal(e.qp, end[0].ends.qp[1]);
	assert_int_equal(e.gone, NOPIN_GONE_DIED);
}

static bool all_enodev(void)
{
	struct nopin_owner_event e;
	struct nopin_cache_stats s;

	return ready(0, 0, 1) == ENODEV &&
	       nopin_cache_query(end[0].c, &s, sizeof(s)) == ENODEV &&
	       nopin_cache_start(end[0].c, &end[0].card) == ENODEV &&
	       nopin_cache_destroy(end[0].c) == ENODEV &&
	       nopin_owner_serve(owner, NOPIN_WAIT_SPIN, &e) == ENODEV &&
	       nopin_owner_dereg(owner, region) == ENODEV &&
	       nopin_owner_stop(owner) == ENODEV &&
	       nopin_owner_destroy(owner) == ENODEV;
}

static void child__enodev(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(ready(0, 0, 1), 0);
	pid = fork();
	if (pid == 0)
		_exit(all_enodev() ? 0 : 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(ready__miss_then_hit),
		T(ready__used_least_recently_goes),
		T(ready__many),
		T(ready__in_the_middle),
		T(ready__refused),
		T(create__refused),
		T(lost__suspended),
		T(lost__forked),
		cmocka_unit_test_setup_teardown(lost__replaced, setup_small,
						teardown),
		T(lost__nobody_looks),
		T(lost__only_of_others),
		T(lost__all),
		T(lost__deregistered),
		T(lost__a_neighbour_is_registered),
		T(ready__others_do_not_wait),
		T(user__leaves),
		T(user__lies),
		T(user__lies_twice),
		T(user__dies),
		T(owner__ends),
		T(owner__dies_and_nobody_waits),
		T(owner__dies_before_it_answers),
		T(owner__lies),
		cmocka_unit_test_setup_teardown(owner__no_descriptor_left,
						setup_unserved, teardown),
		T(child__enodev),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
