/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* sim_run.c: runs scenarios with seeds. A seed runs in a process of its own, so
 * that a crash or an endless loop is only that seed's failure; a lone --seed runs
 * in this one, for the debugger.
 */
#include "base/check.h"
#include "base/counters.h"
#include "base/log.h"
#include "hashes.h"
#include "scenarios.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HANG_SECONDS = 60, JOBS_MAX = 64, SHOW_MAX = 20 };

enum { UNCHECKED = 5 };

static const struct scenario *const scenarios[] = {
	&scenario_pair,
	&scenario_evict,
	&scenario_teardown,
	&scenario_mixed,
	&scenario_preempt,
	/* make check runs these */
	&scenario_lossy,
	&scenario_fault,
	&scenario_rnr,
	&scenario_replay,
	&scenario_far,
	&scenario_card,
	&scenario_busy,
	&scenario_slow,
	&scenario_refuse,
	&scenario_full,
	&scenario_reg,
	&scenario_strategy,
	&scenario_fixed,
	&scenario_ud,
	&scenario_queue,
	&scenario_prefetch,
	&scenario_adaptive,
	&scenario_suspend,
	&scenario_flood,
	&scenario_resume,
	&scenario_notify,
	&scenario_upcall,
	&scenario_sync,
	&scenario_order,
	&scenario_budget,
	&scenario_open,
	&scenario_ending,
	&scenario_rescue,
	&scenario_reads,
	&scenario_srq,
};

struct options {
	const struct scenario *scenario;
	uint64_t first, seeds;
	unsigned jobs;
	bool verbose, once, soak, hashes;
	const char *expect; /* file of hashes, or NULL */
};

/** struct shared - What the processes of a batch add up, and the hashes of each. */
struct shared {
	struct counters total;
	struct sim_stats stats;
	uint64_t virtual_ns, longest_ns;
	struct hashes hashes[];
};

static void add_up(struct shared *s, const struct world *w)
{
	uint64_t *to = (uint64_t *)&s->stats;
	const uint64_t *from = (const uint64_t *)&w->stats;

	for (unsigned i = 0; i < CNT_NUM; i++)
		__atomic_fetch_add(&s->total.v[i], w->total.v[i],
				   __ATOMIC_RELAXED);
	for (unsigned i = 0; i < sizeof(s->stats) / sizeof(*to); i++)
		__atomic_fetch_add(&to[i], from[i], __ATOMIC_RELAXED);
}

static struct hashes run_seed(const struct options *o, uint64_t seed, bool all,
			      struct shared *s)
{
	struct world *w = calloc(1, sizeof(*w));
	struct hashes hashes;

	CHECK(w);
	w->scenario = o->scenario->name;
	w->seed = seed;
	w->verbose = o->verbose;
	w->hash_all = all;
	world_sim(w, seed);
	if (o->verbose)
		sim_verbose(w->sim, stdout);
	world_config_draw(w);
	o->scenario->run(w);
	add_up(s, w);
	memcpy(hashes.of, w->hash, sizeof(hashes.of));
	free(w);
	return hashes;
}

/* Of CPU time: a busy machine or a sanitizer makes no seed hang. The longest of
 * preempt take 17 s, twice. */
static void limit_cpu(void)
{
	const struct itimerval limit = {.it_value.tv_sec = HANG_SECONDS};

	CHECK(setitimer(ITIMER_PROF, &limit, NULL) == 0);
}

/* Every now and then a seed runs twice: it must be the same run. */
static void child(const struct options *o, uint64_t seed, struct shared *s)
{
	const bool again = seed % 16 == 0;
	struct hashes *h = &s->hashes[seed - o->first], second;

	limit_cpu();
	*h = run_seed(o, seed, again || o->hashes, s);
	if (!again)
		exit(0);
	second = run_seed(o, seed, true, s);
	exit(!hashes_same(o->scenario->name, seed, "two runs", h, &second));
}

static bool reap(const struct options *o, pid_t *pids, const uint64_t *seeds,
		 unsigned *failed)
{
	int status;
	pid_t pid = wait(&status);

	if (pid < 0)
		return false;
	for (unsigned i = 0; i < o->jobs; i++) {
		if (pids[i] != pid)
			continue;
		pids[i] = 0;
		if (status == 0)
			continue;
		*failed += 1;
		if (!WIFEXITED(status))
			fprintf(stderr, "%s, seed %" PRIu64 ": %s\n",
				o->scenario->name, seeds[i],
				WTERMSIG(status) == SIGPROF
					? "hangs"
					: strsignal(WTERMSIG(status)));
	}
	return true;
}

static uint64_t run_batch(const struct options *o, struct shared *s,
			  unsigned *failed)
{
	uint64_t seeds[JOBS_MAX] = {0}, seed = o->first;
	pid_t pids[JOBS_MAX] = {0};
	unsigned slot;

	while (seed < o->first + o->seeds && *failed < SHOW_MAX) {
		for (slot = 0; slot < o->jobs && pids[slot] != 0; slot++)
			;
		if (slot == o->jobs) {
			reap(o, pids, seeds, failed);
			continue;
		}
		fflush(NULL);
		seeds[slot] = seed;
		pids[slot] = fork();
		if (pids[slot] == 0)
			child(o, seed, s);
		seed++;
	}
	while (reap(o, pids, seeds, failed))
		;
	return seed - o->first;
}

static void show_totals(const struct shared *s)
{
	for (unsigned i = 0; i < CNT_NUM; i++) {
		if (s->total.v[i] != 0)
			printf("  %-18s %12" PRIu64 "\n", counter_info[i].name,
			       s->total.v[i]);
	}
	printf("  network: sent %" PRIu64 ", lost %" PRIu64 " and %" PRIu64
	       " bursts, split %" PRIu64 ", doubled %" PRIu64
	       ", overtaken %" PRIu64 ", corrupted %" PRIu64 "\n",
	       s->stats.sent, s->stats.lost, s->stats.bursts_lost,
	       s->stats.bursts_split, s->stats.duplicated, s->stats.reordered,
	       s->stats.corrupted);
	printf("  memory: moves %" PRIu64 ", torn %" PRIu64 ", minor %" PRIu64
	       ", major %" PRIu64 ", evictions %" PRIu64 " (%" PRIu64
	       " waited for holds), forks %" PRIu64 "\n",
	       s->stats.moves, s->stats.torn, s->stats.minor, s->stats.major,
	       s->stats.evictions, s->stats.evict_busy, s->stats.forks);
}

/* Return: how many mechanisms never fired. */
static unsigned check_coverage(const struct options *o, const struct shared *s)
{
	const char *never = o->scenario->never ? o->scenario->never(&s->stats)
					       : NULL;
	unsigned missing = never != NULL;

	if (never)
		fprintf(stderr, "%s: %s never happened\n", o->scenario->name,
			never);
	for (unsigned i = 0; i < o->scenario->musts; i++) {
		const enum counter c = o->scenario->must[i];

		if (s->total.v[c] != 0)
			continue;
		fprintf(stderr, "%s: %s never happened\n", o->scenario->name,
			counter_info[c].name);
		missing++;
	}
	return missing;
}

/* Of seeds that all ended well. Return: how many are not as expected. */
static unsigned show_hashes(const struct options *o, const struct shared *s)
{
	const char *name = o->scenario->name;
	unsigned wrong = 0;

	for (uint64_t i = 0; i < o->seeds; i++) {
		if (o->expect)
			wrong += !hashes_expect(o->expect, name, o->first + i,
						&s->hashes[i]);
		else
			hashes_print(name, o->first + i, &s->hashes[i]);
	}
	return wrong;
}

static int run_scenario(const struct options *o)
{
	const size_t bytes = sizeof(struct shared) +
			     o->seeds * sizeof(struct hashes);
	struct shared *s = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	unsigned failed = 0, missing = 0;
	struct hashes one;
	uint64_t ran = 1;

	CHECK(s != MAP_FAILED);
	if (o->once) {
		one = run_seed(o, o->first, true, s);
		hashes_print(o->scenario->name, o->first, &one);
	} else {
		ran = run_batch(o, s, &failed);
	}
	if (o->hashes) {
		if (failed == 0)
			failed = show_hashes(o, s);
		munmap(s, bytes);
		return failed != 0;
	}
	if (failed == 0 && !o->once)
		missing = check_coverage(o, s);
	printf("%s: %" PRIu64 " seeds, %u failed\n", o->scenario->name, ran,
	       failed);
	show_totals(s);
	munmap(s, bytes);
	return failed != 0 || missing != 0;
}

static const struct scenario *find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(scenarios); i++) {
		if (!strcmp(scenarios[i]->name, name))
			return scenarios[i];
	}
	fprintf(stderr, "no scenario %s; there are:", name);
	for (unsigned i = 0; i < ARRAY_SIZE(scenarios); i++)
		fprintf(stderr, " %s", scenarios[i]->name);
	fprintf(stderr, "\n");
	exit(2);
}

static const struct option long_options[] = {
	{"scenario", required_argument, NULL, 's'},
	{"seed", required_argument, NULL, 'n'},
	{"seeds", required_argument, NULL, 'c'},
	{"jobs", required_argument, NULL, 'j'},
	{"verbose", no_argument, NULL, 'v'},
	{"soak", no_argument, NULL, 'k'},
	{"table", no_argument, NULL, 't'},
	{"hashes", no_argument, NULL, 'h'},
	{"expect", required_argument, NULL, 'e'},
	{0},
};

/* Seeds that the quick batches lack: 10,000 in ten minutes of SOAK_SECONDS, and as
 * many of some alone. In less time, of each scenario that make check does not run
 * enough for every mechanism to be met. */
static uint64_t soak_seeds(unsigned scenario)
{
	enum { ENOUGH = 30, SEEDS = 10000, SECONDS = 600 };
	const char *s = getenv("SOAK_SECONDS");

	if (s && strtoull(s, NULL, 10) < SECONDS)
		return scenario < UNCHECKED ? ENOUGH : 0;
	if (scenarios[scenario]->long_soak)
		return SEEDS;
	return DIV_ROUND_UP(SEEDS, ARRAY_SIZE(scenarios));
}

static bool parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		switch (c) {
		case 's':
			o->scenario = find(optarg);
			break;
		case 'n':
			o->first = strtoull(optarg, NULL, 0);
			o->once = true;
			break;
		case 'c':
			o->seeds = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			o->jobs = (unsigned)strtoul(optarg, NULL, 0);
			break;
		case 'k':
			o->soak = true;
			o->first = 1001;
			break;
		case 't':
			adaptive_table();
			exit(0);
		case 'v':
			o->verbose = true;
			break;
		case 'e':
			o->expect = optarg;
			o->hashes = true;
			break;
		case 'h':
			o->hashes = true;
			break;
		default:
			return false;
		}
	}
	if (o->seeds != 0 || o->soak)
		o->once = false;
	return optind == argc && o->jobs >= 1 && o->jobs <= JOBS_MAX;
}

static void write_line(const char *line, int len)
{
	fwrite(line, 1, (size_t)len, stderr);
}

int main(int argc, char **argv)
{
	struct options o = {.first = 1, .jobs = 2};
	const bool help = argc == 2 && strcmp(argv[1], "--help") == 0;
	int failed = 0;

	if (help || !parse(argc, argv, &o)) {
		fprintf(help ? stdout : stderr,
			"sim_run [--scenario NAME] [--seed N] [--seeds N]\n"
			"        [--jobs J] [--verbose] [--soak]\n"
			"sim_run --table\n"
			"sim_run --hashes ...: what each seed did, in five "
			"numbers\n"
			"sim_run --expect FILE ...: or that it did what FILE "
			"says\n"
			"--seed alone runs that seed; with --seeds it is the "
			"first of so many.\n");
		return help ? 0 : 2;
	}
	log_set(LOG_WARN, write_line);
	if (o.hashes && !o.expect)
		hashes_head();
	if (o.seeds == 0)
		o.seeds = 50;
	if (o.scenario)
		return run_scenario(&o);
	for (unsigned i = 0; i < ARRAY_SIZE(scenarios); i++) {
		o.scenario = scenarios[i];
		if (o.soak)
			o.seeds = soak_seeds(i);
		if (o.seeds)
			failed |= run_scenario(&o);
	}
	return failed;
}
