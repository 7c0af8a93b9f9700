/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* h_reg.c: what registration costs.
 *
 *   h_reg reg BYTES TIMES		ibv_reg_mr() and ibv_dereg_mr() of memory that
 *				was never touched
 *   h_reg loop BYTES TURNS	WRITEs of a region that stays registered, and
 *				WRITEs each of which registers before and
 *				deregisters after; in turns
 *   h_reg cache BYTES HITS OPS own|nic
 *				the same, from buffers of which HITS % were used
 *				lately and the others long ago. "own": with a
 *				pin-down cache of this program; "nic": without.
 */
#include "lib.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
	SAMPLES_MAX = 1 << 16,
	TURN = 64, /* WRITEs */
	HOT = 16, /* buffers that are used again and again */
	COLD = 256, /* that take their turn */
	CACHE = 32, /* regions that a pin-down cache may hold */
	PAUSE = 64,
};

static double a[SAMPLES_MAX], b[SAMPLES_MAX], ratio[SAMPLES_MAX];

/* --- the target of WRITEs -------------------------------------------------------- */

static size_t bytes;

static void target(int fd)
{
	struct ibv_mr *mr;
	struct host h;
	struct link l;
	uint64_t word;

	host_open(&h);
	mr = host_reg(&h, host_map(NULL, bytes), bytes);
	memset(mr->addr, 1, bytes);
	link_open(&l, &h, fd, mr);
	while (recv(fd, &word, sizeof(word), MSG_DONTWAIT) < 0)
		for (int k = 0; k < PAUSE; k++)
			host_poll(&h, 1);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
}

static void write_from(struct link *l, struct ibv_mr *mr, void *p)
{
	link_post(l, IBV_WR_RDMA_WRITE, mr, p, (uint32_t)bytes, 0);
	while (!host_poll(l->h, 1))
		;
}

static struct ibv_mr *must_reg(struct host *h, void *p)
{
	struct ibv_mr *mr = ibv_reg_mr(h->pd, p, bytes, IBV_ACCESS_LOCAL_WRITE);

	if (!mr)
		host_skip(strerror(errno));
	return mr;
}

/* --- reg --------------------------------------------------------------------------- */

static int measure_reg(size_t times)
{
	struct host h;
	char *p;

	host_open(&h);
	p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	REQUIRE(p != MAP_FAILED);
	madvise(p, bytes, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < times; i++) {
		const uint64_t from = host_now();
		struct ibv_mr *mr = must_reg(&h, p);
		const uint64_t mid = host_now();

		host_dereg(mr);
		b[i] = (double)(host_now() - mid) / US;
		a[i] = (double)(mid - from) / US;
		/* each registration finds memory that was never touched */
		madvise(p, bytes, MADV_DONTNEED);
	}
	out_dist("reg", a, times);
	out_dist("dereg", b, times);
	return 0;
}

/* --- loop -------------------------------------------------------------------------- */

static double turn_alone(struct link *l, struct ibv_mr *mr)
{
	const uint64_t from = host_now();

	for (int i = 0; i < TURN; i++)
		write_from(l, mr, mr->addr);
	return (double)(host_now() - from) / TURN / US;
}

static double turn_loop(struct link *l, char *p)
{
	const uint64_t from = host_now();

	for (int i = 0; i < TURN; i++) {
		struct ibv_mr *mr = must_reg(l->h, p);

		write_from(l, mr, p);
		host_dereg(mr);
	}
	return (double)(host_now() - from) / TURN / US;
}

static void measure_loop(struct link *l, size_t turns)
{
	char *stays = host_map(NULL, bytes), *p = host_map(NULL, bytes);
	struct ibv_mr *mr;

	memset(stays, 1, bytes);
	memset(p, 1, bytes);
	mr = must_reg(l->h, stays);
	turn_alone(l, mr);
	turn_loop(l, p);
	for (size_t i = 0; i < turns; i++) {
		if (i & 1) /* who is first changes */
			b[i] = turn_loop(l, p);
		a[i] = turn_alone(l, mr);
		if (!(i & 1))
			b[i] = turn_loop(l, p);
		ratio[i] = b[i] / a[i];
	}
	host_dereg(mr);
	out_dist("alone", a, turns);
	out_dist("loop", b, turns);
	out_dist("ratio", ratio, turns);
}

/* --- cache ------------------------------------------------------------------------- */

/** struct entry - A region that the program's own cache holds. */
struct entry {
	void *p;
	struct ibv_mr *mr;
	uint64_t used;
};

static struct entry cache[CACHE];
static uint64_t clock_, hits;

static struct ibv_mr *cache_get(struct host *h, void *p)
{
	struct entry *victim = &cache[0];

	clock_++;
	for (int i = 0; i < CACHE; i++) {
		if (cache[i].p == p) {
			cache[i].used = clock_;
			hits++;
			return cache[i].mr;
		}
		if (cache[i].used < victim->used)
			victim = &cache[i];
	}
	if (victim->p)
		host_dereg(victim->mr);
	*victim = (struct entry){p, must_reg(h, p), clock_};
	return victim->mr;
}

static void cache_empty(void)
{
	for (int i = 0; i < CACHE; i++)
		if (cache[i].p)
			host_dereg(cache[i].mr);
}

/* The next buffer: of the hot ones with @percent, of the cold in turn else. */
static char *choose(char *all, unsigned percent)
{
	static unsigned turn;

	if (host_random() % 100 < percent)
		return all + host_random() % HOT * bytes;
	return all + (HOT + turn++ % COLD) * bytes;
}

static void measure_cache(struct link *l, unsigned percent, size_t ops,
			  bool own)
{
	const size_t all_bytes = (HOT + COLD) * bytes;
	char *all = host_map(NULL, all_bytes);

	memset(all, 1, all_bytes);
	for (size_t i = 0; i < ops; i++) {
		char *p = choose(all, percent);
		const uint64_t from = host_now();
		struct ibv_mr *mr = own ? cache_get(l->h, p)
					: must_reg(l->h, p);

		write_from(l, mr, p);
		if (!own)
			host_dereg(mr);
		a[i] = (double)(host_now() - from) / US;
	}
	out_dist("op", a, ops);
	out_row("hits", "%.4f", (double)hits / (double)ops);
	cache_empty();
}

/* A cache inside the NIC holds what the limit of locked memory allows. */
static void limit_cache(void)
{
	const struct rlimit l = {CACHE * bytes, CACHE * bytes};

	REQUIRE(setrlimit(RLIMIT_MEMLOCK, &l) == 0);
	host_user();
}

static void with_peer(int argc, char **argv)
{
	const bool cached = !strcmp(argv[1], "cache");
	const char *mode = getenv("NOPIN_REG");
	struct host h;
	struct link l;
	int fd;

	REQUIRE(!cached || argc == 6);
	fd = host_fork(target);
	if (cached && mode && !strcmp(mode, "pin-cache"))
		limit_cache();
	host_open(&h);
	link_open(&l, &h, fd, NULL);
	if (cached)
		measure_cache(&l, (unsigned)number(argv[3]), number(argv[4]),
			      !strcmp(argv[5], "own"));
	else
		measure_loop(&l, number(argv[3]));
	host_say(fd, 0);
	link_close(&l);
	host_close(&h);
	host_join();
}

int main(int argc, char **argv)
{
	host_start();
	REQUIRE(argc >= 4);
	bytes = number(argv[2]);
	REQUIRE(bytes >= PAGE);
	REQUIRE(number(argv[3]) <= SAMPLES_MAX);
	if (!strcmp(argv[1], "reg"))
		return measure_reg(number(argv[3]));
	with_peer(argc, argv);
	return 0;
}
