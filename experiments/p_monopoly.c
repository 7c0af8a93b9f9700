/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* p_monopoly.c: several processes of a host whose NICs share a budget of entries, and
 * some of them touch a hundred times as many pages as the others.
 *
 *   p_monopoly PROCESSES MONOPOLISTS PAGES TURNS [NOPIN]
 *
 * Each process has memory that this one READs and WRITEs, in random order: PAGES
 * pages, or of the first MONOPOLISTS a hundred times as many. They take turns, so
 * that they compete for the table and not for the CPUs; the monopolists begin. What
 * was read is looked at. NOPIN: "nopin stat --host" says at the end who has what.
 */
#include "lib.h"

#include <string.h>

enum {
	PROCESSES_MAX = 8,
	FACTOR = 100,
	WINDOW = 8,
	LEN = 64,
	OPS = 400, /* in a turn */
	MONOPOLY = 5, /* times as many in a monopolist's */
	TURNS_MAX = 1000,
	WARM = 16, /* turns that do not count: all pages were used in them */
};

/** struct proc - Another process, seen from here. @fill: its pages say which */
struct proc {
	struct link l;
	int fd;
	uint64_t pages;
	bool fill;
	double speed[TURNS_MAX];
};

static struct {
	unsigned processes, monopolists, turns;
	uint64_t pages;
} arg;

static struct proc proc[PROCESSES_MAX];
static unsigned role; /* number of the next child */

/* --- a process ------------------------------------------------------------------ */

static uint64_t pages_of(unsigned i)
{
	return i < arg.monopolists ? FACTOR * arg.pages : arg.pages;
}

static void target(int fd)
{
	const bool fill = role >= arg.monopolists;
	const size_t bytes = pages_of(role) * PAGE;
	uint8_t *base;
	struct ibv_mr *mr;
	struct host h;
	struct link l;

	host_open(&h);
	base = host_map(NULL, bytes);
	/* a monopolist's are all the page of zeros */
	for (uint64_t i = 0; fill && i < bytes / PAGE; i++)
		memcpy(base + i * PAGE, &i, sizeof(i));
	mr = host_reg(&h, base, bytes);
	link_open(&l, &h, fd, mr);
	host_say(fd, 1);
	host_hear(fd);
	link_close(&l);
	host_dereg(mr);
	host_close(&h);
	host_say(fd, host_counter("spt_evictions"));
	host_say(fd, host_counter("table_misses"));
}

/* --- who works on them ------------------------------------------------------------ */

static struct ibv_mr *local;

/* What page @page of @p says. */
static void check(const struct proc *p, const uint8_t *at, uint64_t page)
{
	uint64_t word;

	memcpy(&word, at, sizeof(word));
	REQUIRE_EQ(word, p->fill ? page : 0);
}

static double turn(struct host *h, struct proc *p, unsigned ops)
{
	const uint64_t from = host_now();

	for (unsigned done = 0; done < ops; done += WINDOW) {
		const bool write = p->fill && done / WINDOW % 2;
		uint64_t page[WINDOW];

		for (unsigned k = 0; k < WINDOW; k++) {
			uint8_t *at = (uint8_t *)local->addr + k * PAGE;

			page[k] = host_random() % p->pages;
			if (write)
				memcpy(at, &page[k], sizeof(page[k]));
			link_post(&p->l,
				  write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ,
				  local, at, LEN, page[k] * PAGE);
		}
		host_wait(h, WINDOW);
		for (unsigned k = 0; k < WINDOW; k++)
			check(p, (uint8_t *)local->addr + k * PAGE, page[k]);
	}
	return ops * (double)MS / (double)(host_now() - from);
}

static void all_turns(struct host *h)
{
	for (unsigned t = 0; t < WARM + arg.turns; t++)
		for (unsigned i = 0; i < arg.processes; i++) {
			struct proc *p = &proc[i];
			const unsigned ops = i < arg.monopolists
						     ? OPS * MONOPOLY /
							       arg.monopolists
						     : OPS;
			const double speed = turn(h, p, ops);

			if (t >= WARM)
				p->speed[t - WARM] = speed;
		}
}

/* Its first line; it has no tabs. */
static void say_host(const char *nopin)
{
	static char line[1 << 16];
	char command[512];
	FILE *f;

	snprintf(command, sizeof(command), "'%s' stat --host --json", nopin);
	f = popen(command, "re");
	REQUIRE(f);
	if (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		out_row("host", "%s", line);
	}
	pclose(f);
}

static void finish(unsigned i)
{
	char name[32];

	host_say(proc[i].fd, 0);
	snprintf(name, sizeof(name), "speed.%u", i);
	out_dist(name, proc[i].speed, arg.turns);
	link_close(&proc[i].l);
	out_row("evictions", "%u\t%llu", i,
		(unsigned long long)host_hear(proc[i].fd));
	out_row("misses", "%u\t%llu", i,
		(unsigned long long)host_hear(proc[i].fd));
}

int main(int argc, char **argv)
{
	struct host h;

	host_start();
	REQUIRE(argc == 5 || argc == 6);
	arg.processes = (unsigned)number(argv[1]);
	arg.monopolists = (unsigned)number(argv[2]);
	arg.pages = number(argv[3]);
	arg.turns = (unsigned)number(argv[4]);
	REQUIRE(arg.processes <= PROCESSES_MAX && arg.turns <= TURNS_MAX);
	for (unsigned i = 0; i < arg.processes; i++) {
		role = i;
		proc[i].pages = pages_of(i);
		proc[i].fill = i >= arg.monopolists;
		proc[i].fd = host_fork(target);
	}
	host_open(&h);
	local = host_reg(&h, host_map(NULL, WINDOW * PAGE), WINDOW * PAGE);
	memset(local->addr, 1, WINDOW * PAGE);
	for (unsigned i = 0; i < arg.processes; i++) {
		link_open(&proc[i].l, &h, proc[i].fd, NULL);
		host_hear(proc[i].fd);
	}
	/* they are there first */
	for (unsigned i = 0; i < arg.monopolists; i++)
		turn(&h, &proc[i], (unsigned)arg.pages * 32 / arg.monopolists);
	all_turns(&h);
	if (argc == 6)
		say_host(argv[5]);
	for (unsigned i = 0; i < arg.processes; i++)
		finish(i);
	host_dereg(local);
	host_close(&h);
	host_join();
	return 0;
}
